/* api.h - what every millrace header shares: export mark, error text, version.
 *
 * Functions that can fail return int: 0 or a positive count is success, -errno is failure.
 * Truncated data is -ENODATA, corrupt data -EBADMSG, an unsupported request -ENOTSUP.
 * The library never prints and never exits. */
#ifndef MILLRACE_API_H
#define MILLRACE_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_API __attribute__((visibility("default")))

/* In options where zero means "the default", this means "none at all". */
#define MR_NONE (~0u)

/* What went wrong, in words that name the file and the reason.  Begin with {0}: functions that take
 * one accept NULL, write it only when they fail, and let an error that is already there stay. */
struct mr_error {
    int code; /* -errno */
    char text[508];
};

/* "0.1.0" */
MR_API const char *mr_version(void);

#ifdef __cplusplus
}
#endif
#endif
