/* write_all.h - write every byte, and have them on stable storage. */
#ifndef MR_WRITE_ALL_H
#define MR_WRITE_ALL_H

#include <stddef.h>

/* 0 or -errno; goes on after short writes and signals. */
int mr_write_all(int fd, const void *bytes, size_t n);
/* fsync, again after a signal: then it has said nothing about the data.  0 or -errno. */
int mr_sync_file(int fd);

#endif
