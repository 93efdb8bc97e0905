/* blob_store.h - where blobs live: one row a kind of store, and what can be asked of each.
 *
 *     struct mr_store *store;
 *     const char *name;
 *     mr_store_open("photos/train", &store, &name, err);     "file://..." is the same
 *
 * A blob is a file or an object; within its store it has a name.  A store answers about names; its
 * sources (source.h) read extents.  docs/extending.md shows how to add one.
 *
 * A store is shared by reference count and may be used by any thread. */
#ifndef MR_BLOB_STORE_H
#define MR_BLOB_STORE_H

#include <millrace/store.h>

#include "blob_table.h"
#include "stage.h"

#include <stdatomic.h>

struct mr_buffer;
struct mr_device_place;
struct mr_source;
struct mr_source_opts;

enum mr_blob_kind {
    MR_BLOB_FILE,
    MR_BLOB_FOLDER,
    MR_BLOB_OTHER, /* a device, a pipe: nothing to read samples from */
};

struct mr_blob_stat {
    enum mr_blob_kind kind;
    uint64_t bytes;
    uint64_t version; /* changes when the contents do: the time of the last change in ns */
};

/* What a listing hands over: 0 = go on, anything else ends it and is returned. */
typedef int mr_list_fn(void *ctx, const char *name, enum mr_blob_kind kind);

struct mr_store {
    const struct mr_store_ops *ops;
    atomic_uint refs;
};

struct mr_store_ops {
    const char *scheme; /* what stands before "://" */
    const char *what;   /* one line for users */
    /* `rest` is what stands behind "://", or the whole spec where it has no scheme.  The name of
     * the spec's blob within the store goes to *name, a part of `rest`.  NULL: tests make it. */
    int (*open)(const char *rest, struct mr_store **out, const char **name, struct mr_error *err);
    void (*close)(struct mr_store *s);
    int (*stat)(struct mr_store *s, const char *name, struct mr_blob_stat *out);
    /* The names in a folder, in any order, without their folder.  One that cannot be looked at
     * counts as a file, so that it is noticed when it is read. */
    int (*list)(struct mr_store *s, const char *folder, mr_list_fn *each, void *ctx);
    /* How much of an extent is cached where this process can tell, and whether it can be dropped.
     * `evict`: drop it, and return an enum mr_cold.  before, after may be NULL. */
    int (*cache)(struct mr_store *s, const char *name, const struct mr_extent *e, int evict,
                 struct mr_cache_state *before, struct mr_cache_state *after);
    /* Where byte `offset` of a blob lies, as far as this device cares; never fails, but may say
     * less.  `fd` is the blob's if it is open, else -1; `inode` is 0 where it is unknown. */
    void (*place)(struct mr_store *s, const char *name, int fd, const struct mr_device *d,
                  uint64_t inode, uint64_t offset, struct mr_device_place *out);
    int (*source)(struct mr_store *s, const struct mr_source_opts *o, struct mr_source **out,
                  struct mr_error *err);
};

/* The store and the name that a spec means: `path` or `scheme://...`; returns a reference.  An
 * unknown scheme is refused with the ones that there are. */
int mr_store_open(const char *spec, struct mr_store **out, const char **name, struct mr_error *err);
struct mr_store *mr_store_ref(struct mr_store *s);
void mr_store_unref(struct mr_store *s);

/* All of a blob of at most `max` bytes, into a buffer that grows to its size.  0 or -errno. */
int mr_store_load(struct mr_store *s, const char *name, uint64_t max, struct mr_buffer *into,
                  size_t *len);
/* The same of an extent; *stage is that of a failure. */
int mr_extent_load(struct mr_store *s, struct mr_blob_table *blobs, const struct mr_extent *e,
                   uint64_t max, struct mr_buffer *into, size_t *len, enum mr_stage *stage);

extern const struct mr_store_ops mr_posix_store;

#endif
