/* blob_table.h - the blobs of a data set: a number for each name, and what readers found out.
 *
 * Lifetime: {0} -> (dir, add)* -> finish -> name, known -> fini.  Read-only after finish, but for
 * the sizes that readers note, which are atomic: any thread. */
#ifndef MR_BLOB_TABLE_H
#define MR_BLOB_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Part of a blob.  length 0: the whole of it, whatever its size. */
struct mr_extent {
    uint64_t blob, offset, length;
};

struct mr_blob_table { /* all zero = empty */
    uint64_t n;

    /* Private */
    struct mr_blob *blob;
    uint64_t cap;
    char *names; /* all names, each closed by NUL */
    uint64_t names_len, names_cap;
    char **dirs; /* each ends in '/' or is "" */
    uint32_t n_dirs, cap_dirs;
    uint32_t *dir_hash; /* open addressing, dir number + 1, 0 = empty */
    uint32_t dir_hash_size;
    uint32_t last_dir;
    atomic_uint *sizes; /* [n] bytes of each blob when it was last read; 0: unknown */
};

void mr_blob_table_fini(struct mr_blob_table *t);

/* The number of a directory (a prefix that ends in '/', or ""), or -ENOMEM. */
int64_t mr_blob_table_dir(struct mr_blob_table *t, const char *dir, size_t len);
/* Append a blob: `name` of `len` bytes in directory number `dir`.  0 or -ENOMEM. */
int mr_blob_table_add(struct mr_blob_table *t, uint32_t dir, const char *name, size_t len);
/* Sort blobs first .. n-1 by name; they must be of one directory. */
void mr_blob_table_sort_from(struct mr_blob_table *t, uint64_t first);
/* Give spare capacity back, drop what only adding needs, make room for sizes.  0 or -ENOMEM. */
int mr_blob_table_finish(struct mr_blob_table *t);

/* Length of the name written to buf, or -ENAMETOOLONG. */
int mr_blob_table_name(const struct mr_blob_table *t, uint64_t i, char *buf, size_t cap);
/* How many of the first bytes of their names all blobs have in common: a folder and its '/'. */
size_t mr_blob_table_common(const struct mr_blob_table *t);
/* Fetch into the CPU's cache what the name of blob `next` needs, and of `later` what that will
 * need: in a shuffled order they are in no cache, and fetching them takes as long as a system
 * call. */
void mr_blob_table_prefetch(const struct mr_blob_table *t, uint64_t next, uint64_t later);
size_t mr_blob_table_memory(const struct mr_blob_table *t);

/* How long a blob was when it was last read: a hint that saves asking, never a promise. */
size_t mr_blob_table_known(const struct mr_blob_table *t, uint64_t i); /* 0: unknown */
void mr_blob_table_know(struct mr_blob_table *t, uint64_t i, size_t bytes);

#endif
