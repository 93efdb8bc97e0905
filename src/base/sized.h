/* sized.h - structs that may grow cross the ABI with the size that the caller's headers gave them.
 *
 * A program built with older headers has a shorter struct, one built with newer headers a longer
 * one.  Fields are only ever appended, and zero means default, so the common beginning is enough
 * unless the program sets a field that this library does not know. */
#ifndef MR_SIZED_H
#define MR_SIZED_H

#include <millrace/api.h>

/* Copy the caller's `theirs` bytes to our struct of `ours` bytes; what the caller does not have is
 * zero.  `from` NULL: all zero.  -E2BIG: the caller sets a field that is unknown here; `what` names
 * the struct in the error. */
int mr_take_sized(void *to, size_t ours, const void *from, size_t theirs, const char *what,
                  struct mr_error *err);
/* Copy our struct to the caller's; what we do not know becomes zero.  `to` NULL is a no-op. */
void mr_give_sized(void *to, size_t theirs, const void *from, size_t ours);

#endif
