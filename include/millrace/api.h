/* api.h - what every millrace header shares: export mark, error text, version.
 *
 * Functions that can fail return int: 0 or a positive count is success, -errno is failure.
 * Truncated data is -ENODATA, corrupt data -EBADMSG, an unsupported request -ENOTSUP.
 * The library never prints and never exits.
 *
 * Structs of options and of statistics may grow: later versions append fields, and zero means what
 * the earlier ones did.  The calls that take one are inline and pass its size on to a function
 * whose name ends in _sized, so a program runs with a newer library than it was built with.
 * docs/api.md says what else holds from version to version. */
/* Example:
 *
 *     struct mr_error err = {0};
 *     struct mr_dataset *data;
 *
 *     if (mr_dataset_open("photo.jpg/nowhere", &data, &err) == 0)
 *         return 1;
 *     printf("millrace %s: error %d: %s\n", mr_version(), -err.code, err.text);
 */
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
