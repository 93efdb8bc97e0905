/* open_file.h - open, again after a signal. */
#ifndef MR_OPEN_FILE_H
#define MR_OPEN_FILE_H

/* A descriptor (closed on exec) or -errno.  `mode` is for a file that is made. */
int mr_open_file(const char *path, int flags, unsigned mode);

#endif
