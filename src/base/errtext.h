/* errtext.h - fill a struct mr_error, and name errors in words. */
#ifndef MR_ERRTEXT_H
#define MR_ERRTEXT_H

#include <millrace/api.h>

/* Store `code` and the text, return `code`: `return mr_fail(err, -ENOENT, "%s: no", path);`
 * `err` may be NULL.  An error that is already there stays. */
int mr_fail(struct mr_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* strerror of -errno, thread-safe: "No such file or directory". */
const char *mr_errno_text(int code);

#endif
