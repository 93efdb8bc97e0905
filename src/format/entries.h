/* entries.h - what a format's index yields: blobs, and samples that lie in them, with labels.
 *
 * A data set is of whole blobs (mr_entries_add: sample i is blob i) or of records
 * (mr_entries_add_blob, mr_entries_add_record), never of both.
 *
 * Lifetime: init -> (dir, add)* -> finish -> extent, label -> fini. */
#ifndef MR_ENTRIES_H
#define MR_ENTRIES_H

#include "blob_table.h"

struct mr_entries {
    uint64_t n;
    uint32_t n_classes; /* largest label + 1 */
    char **class_names; /* [n_class_names], or NULL */
    uint32_t n_class_names;
    int unlabelled; /* a list without a single label */
    struct mr_blob_table blobs;

    /* Private */
    uint32_t *label; /* [n] */
    uint64_t cap;
    struct mr_record *record; /* [n], or NULL: whole blobs */
    uint64_t cap_records;
};

void mr_entries_init(struct mr_entries *e);
void mr_entries_fini(struct mr_entries *e);

/* The number of a directory (a prefix that ends in '/', or ""), or -ENOMEM. */
int64_t mr_entries_dir(struct mr_entries *e, const char *dir, size_t len);
/* Append a sample that is a blob: `name` of `len` bytes in directory number `dir`.  0 or -ENOMEM.
 */
int mr_entries_add(struct mr_entries *e, uint32_t dir, const char *name, size_t len,
                   uint32_t label);
/* Append a blob that holds records.  0 or -ENOMEM. */
int mr_entries_add_blob(struct mr_entries *e, uint32_t dir, const char *name, size_t len);
/* Append a sample that is part of a blob.  0, -ENOMEM, or -EOVERFLOW: a length of 0, of 4 GiB or
 * more, or a blob beyond 2^32. */
int mr_entries_add_record(struct mr_entries *e, const struct mr_extent *extent, uint32_t label);
/* Append the name of the next class.  0 or -ENOMEM. */
int mr_entries_add_class(struct mr_entries *e, const char *name);
/* Label l becomes new_label[l], for all samples. */
void mr_entries_relabel(struct mr_entries *e, const uint32_t *new_label);
/* Sort samples first .. n-1 by name; they must be whole blobs of one directory and label. */
void mr_entries_sort_from(struct mr_entries *e, uint64_t first);
/* Give spare capacity back and drop what only adding needs.  0 or -ENOMEM. */
int mr_entries_finish(struct mr_entries *e);

uint32_t mr_entries_label(const struct mr_entries *e, uint64_t i);
struct mr_extent mr_entries_extent(const struct mr_entries *e, uint64_t i);
/* Length of the name of the sample's blob written to buf, or -ENAMETOOLONG. */
int mr_entries_path(const struct mr_entries *e, uint64_t i, char *buf, size_t cap);
/* Fetch into the CPU's cache what extent, name and label of sample `next` need, and of `later` what
 * that will need. */
void mr_entries_prefetch(const struct mr_entries *e, uint64_t next, uint64_t later);
size_t mr_entries_memory(const struct mr_entries *e);

#endif
