/* proc_text.h - files of /proc that are kept open and read again and again, and the numbers in
 * them.
 *
 * A read file is text with a zero byte behind it.  Scanners move *p forward only when they succeed.
 */
#ifndef MR_PROC_TEXT_H
#define MR_PROC_TEXT_H

#include <millrace/api.h>

struct mr_text {
    char *buf;
    size_t cap, len;
};

void mr_text_fini(struct mr_text *t);

/* The descriptor of root/name, or -errno. */
int mr_proc_open(const char *root, const char *name);
/* The whole file from its start.  Grows the buffer when it must, so that the steady state does not
 * allocate; 0 or -errno, -EFBIG for more than 64 MiB. */
int mr_proc_read(int fd, struct mr_text *t);

/* A number behind blanks, with a blank or the end of the line behind it; 0 or -1. */
int mr_scan_u64(const char **p, uint64_t *out);
/* A word behind blanks, up to a blank or `stop`; 0, or -1 when there is none or it does not fit. */
int mr_scan_word(const char **p, char stop, char *out, size_t cap);
/* The start of the next line, or the end of the text. */
const char *mr_next_line(const char *p);
/* Whether the text begins with a word; *p then stands behind it. */
int mr_scan_literal(const char **p, const char *word);

#endif
