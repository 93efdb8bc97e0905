/* sample_set.h - what the library asks of a data set beyond <millrace/dataset.h>: where samples
 * lie, and their bytes. */
#ifndef MR_SAMPLE_SET_H
#define MR_SAMPLE_SET_H

#include <millrace/dataset.h>
#include <millrace/store.h>

#include "format.h"
#include "source.h"

struct mr_buffer;

/* A data set in a store that is open (takes a reference), of a format; NULL: the one that fits. */
int mr_dataset_open_in(struct mr_store *store, const char *name, const struct mr_format *format,
                       struct mr_dataset **out, struct mr_error *err);

/* Samples `next` and, some time after it, `later` will be asked for: in a shuffled order their
 * entries are in no cache, and fetching them takes as long as a system call. */
void mr_dataset_prefetch(const struct mr_dataset *d, uint64_t next, uint64_t later);

/* Where the sample's bytes lie.  Not for a range, which has none. */
struct mr_extent mr_dataset_extent(const struct mr_dataset *d, uint64_t index);
/* A source that reads those extents; o->blobs need not be filled in.  -ENOENT: a range. */
int mr_dataset_source(const struct mr_dataset *d, const struct mr_source_opts *o,
                      struct mr_source **out, struct mr_error *err);
/* Of a sample's bytes, what the format calls its payload, and its label.  0 or -errno. */
int mr_dataset_payload(const struct mr_dataset *d, uint64_t index, const uint8_t *bytes, size_t len,
                       struct mr_payload *out);

/* The bytes of a sample of at most `max`, here and now.  0 or -errno with the stage that failed. */
int mr_dataset_load(const struct mr_dataset *d, uint64_t index, uint64_t max,
                    struct mr_buffer *into, size_t *len, enum mr_stage *stage);
/* How much of a sample is cached; with `evict` it is dropped, and an enum mr_cold returned.  before
 * and after may be NULL. */
int mr_dataset_cache(const struct mr_dataset *d, uint64_t index, int evict,
                     struct mr_cache_state *before, struct mr_cache_state *after);
/* What the store says of the sample's blob.  0 or -errno. */
int mr_dataset_stat(const struct mr_dataset *d, uint64_t index, struct mr_blob_stat *out);
/* The bytes that a sample should have: its extent's, or its blob's.  0 or -errno. */
int mr_dataset_bytes(const struct mr_dataset *d, uint64_t index, uint64_t *out);

/* The name of the sample's blob in its store: for what is asked of the storage below, such as which
 * disk it is.  As mr_dataset_name otherwise. */
int mr_dataset_blob_name(const struct mr_dataset *d, uint64_t index, char *buf, size_t cap);
/* Blobs, and the row of the format; 0 and NULL for a range. */
const struct mr_blob_table *mr_dataset_blobs(const struct mr_dataset *d);
const struct mr_format *mr_dataset_format(const struct mr_dataset *d);

/* Is it a list without a single label?  Then all samples are of class 0. */
int mr_dataset_is_unlabelled(const struct mr_dataset *d);

#endif
