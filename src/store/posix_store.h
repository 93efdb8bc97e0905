/* posix_store.h - files by path: what the posix store's files share. */
#ifndef MR_POSIX_STORE_H
#define MR_POSIX_STORE_H

#include "blob_store.h"

/* From where relative names are looked up, for openat: the folder that was the working one when the
 * store was opened, whatever it is now.  AT_FDCWD when the spec was absolute.  It stays open as
 * long as the store is there. */
int mr_posix_store_folder(const struct mr_store *s);

#endif
