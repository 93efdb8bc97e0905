/* format.h - what a data set looks like: one row a format, in one table that is tried in order.
 *
 * A format finds the samples of a data set (index), takes the payload out of a sample's bytes
 * (payload), and may write data sets of its kind (writer).  It reads through the store that it is
 * given and knows no paths beyond it.  docs/extending.md shows how to add one. */
#ifndef MR_FORMAT_H
#define MR_FORMAT_H

#include "blob_store.h"
#include "entries.h"

/* What a sample's bytes hold. */
struct mr_payload {
    const uint8_t *bytes; /* an image, a tensor, ...: part of the sample's own bytes */
    size_t len;
    uint32_t label; /* the index's, unless the format changes it */
};

/* begin -> add* -> commit or abort, both of which free *w.  An abandoned data set is not left as if
 * it were one. */
struct mr_format_writer {
    int (*begin)(const char *path, void **w, struct mr_error *err);
    int (*add)(void *w, const struct mr_payload *sample, struct mr_error *err);
    int (*commit)(void *w, struct mr_error *err);
    void (*abort)(void *w);
};

struct mr_format {
    const char *name; /* "folder" */
    const char *what; /* one line for users */
    /* Does `name` in the store look like it?  1, 0, or -errno. */
    int (*probe)(struct mr_store *s, const char *name, const struct mr_blob_stat *st);
    /* Collect blobs and samples; `out` is initialised.  0 or -errno with words. */
    int (*index)(struct mr_store *s, const char *name, struct mr_entries *out,
                 struct mr_error *err);
    /* *p holds all of a sample's bytes and its label: narrow it to the payload.  Called by several
     * threads at once.  -errno: a bad sample.  NULL: the bytes are the payload. */
    int (*payload)(struct mr_payload *p);
    const struct mr_format_writer *writer; /* NULL: it cannot be written */
};

/* The i-th row; NULL behind the last. */
const struct mr_format *mr_format_at(unsigned i);
/* The first whose probe says yes; -errno with words that name the ones there are. */
int mr_format_find(struct mr_store *s, const char *name, const struct mr_format **out,
                   struct mr_error *err);

#endif
