/* page_cache.h - the truth about the page cache, for part of a file. */
#ifndef MR_PAGE_CACHE_H
#define MR_PAGE_CACHE_H

#include <millrace/store.h>

/* What of bytes [offset, offset + length) of a file is cached, in whole pages; length 0: to its
 * end.  With `evict` they are written back and dropped, and an enum mr_cold is returned.  A
 * relative path begins at the folder `dir`.  `before` and `after` may be NULL.  0 or -errno. */
int mr_cache_range(int dir, const char *path, uint64_t offset, uint64_t length, int evict,
                   struct mr_cache_state *before, struct mr_cache_state *after);

#endif
