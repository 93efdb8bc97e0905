/* indexed.h - a format's index of what a spec names, for tests of the format alone. */
#ifndef MR_INDEXED_H
#define MR_INDEXED_H

#include "blob_store.h"
#include "entries.h"

typedef int index_fn(struct mr_store *s, const char *name, struct mr_entries *out,
                     struct mr_error *err);

static inline int indexed(index_fn *index, const char *spec, struct mr_entries *out,
                          struct mr_error *err)
{
    struct mr_store *store;
    const char *name;
    int r = mr_store_open(spec, &store, &name, err);
    if (r)
        return r;
    r = index(store, name, out, err);
    mr_store_unref(store);
    return r;
}

#endif
