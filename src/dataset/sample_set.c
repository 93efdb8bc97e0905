/* sample_set.c - struct mr_dataset: a shared index, and which of its samples belong to it.
 *
 *     dataset -> index   (shared by reference count: entries, their store and format)
 *             -> pick[]  (after a split: the samples' numbers; NULL = all of them)
 *
 * Nothing changes after opening but the sizes that readers note in the table of blobs, which are
 * atomic, and the two reference counts.  Reading needs no lock. */
#include "sample_set.h"

#include "draw.h"
#include "errtext.h"
#include "permutation.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct index {
    atomic_uint refs;
    struct mr_entries e;
    struct mr_store *store;
    const struct mr_format *format;
};

struct mr_dataset {
    atomic_uint refs;
    struct index *index; /* NULL for a range */
    uint64_t n;
    uint32_t *pick32; /* one of these after a split: 32 bits as long as they are enough */
    uint64_t *pick64;
};

static void index_unref(struct index *x)
{
    if (!x || atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    mr_entries_fini(&x->e);
    mr_store_unref(x->store);
    free(x);
}

static struct mr_dataset *dataset_new(struct index *x, uint64_t n)
{
    struct mr_dataset *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    atomic_init(&d->refs, 1);
    d->index = x;
    d->n = n;
    if (x)
        atomic_fetch_add(&x->refs, 1);
    return d;
}

int mr_dataset_open_in(struct mr_store *store, const char *name, const struct mr_format *format,
                       struct mr_dataset **out, struct mr_error *err)
{
    struct index *x = calloc(1, sizeof *x);
    if (!x)
        return mr_fail(err, -ENOMEM, "%s: no memory", name);
    atomic_init(&x->refs, 1);
    mr_entries_init(&x->e);
    x->store = mr_store_ref(store);
    x->format = format;
    int r = format ? 0 : mr_format_find(store, name, &x->format, err);
    if (!r)
        r = x->format->index(store, name, &x->e, err);
    struct mr_dataset *d = NULL;
    if (!r) {
        d = mr_entries_finish(&x->e) ? NULL : dataset_new(x, x->e.n);
        r = d ? 0 : mr_fail(err, -ENOMEM, "%s: no memory", name);
    }
    index_unref(x);
    if (!r)
        *out = d;
    return r;
}

int mr_dataset_open(const char *spec, struct mr_dataset **out, struct mr_error *err)
{
    struct mr_store *store;
    const char *name;
    int r = mr_store_open(spec, &store, &name, err);
    if (r)
        return r;
    r = mr_dataset_open_in(store, name, NULL, out, err);
    mr_store_unref(store);
    return r;
}

int mr_dataset_range(uint64_t n, struct mr_dataset **out, struct mr_error *err)
{
    if (!n || n > (uint64_t)1 << 62)
        return mr_fail(err, -EINVAL, "a range of %llu samples: not from 1 to 2^62",
                       (unsigned long long)n);
    struct mr_dataset *d = dataset_new(NULL, n);
    if (!d)
        return mr_fail(err, -ENOMEM, "no memory");
    *out = d;
    return 0;
}

static uint64_t entry_of(const struct mr_dataset *d, uint64_t i)
{
    return d->pick32 ? d->pick32[i] : d->pick64 ? d->pick64[i] : i;
}

static struct mr_dataset *pick_new(struct mr_dataset *d, uint64_t n)
{
    struct mr_dataset *part = dataset_new(d->index, n);
    uint64_t last = d->index ? d->index->e.n : d->n;
    if (!part)
        return NULL;
    size_t bytes;
    if (!__builtin_mul_overflow(n + 1, last > UINT32_MAX ? 8 : 4, &bytes)) {
        void *p = malloc(bytes);
        if (p && last > UINT32_MAX)
            part->pick64 = p;
        else
            part->pick32 = p;
        if (p)
            return part;
    }
    mr_dataset_unref(part);
    return NULL;
}

static void pick_set(struct mr_dataset *d, uint64_t at, uint64_t entry)
{
    if (d->pick32)
        d->pick32[at] = (uint32_t)entry;
    else
        d->pick64[at] = entry;
}

int mr_dataset_split(struct mr_dataset *d, double part, uint64_t seed, struct mr_dataset **rest,
                     struct mr_dataset **held, struct mr_error *err)
{
    if (!(part >= 0 && part <= 1))
        return mr_fail(err, -EINVAL, "a split by %g: not from 0 to 1", part);
    /* A keyed permutation sends exactly n_held samples below n_held. */
    uint64_t n_held = (uint64_t)llround(part * (double)d->n);
    struct mr_permutation perm;
    if (d->n)
        mr_permutation_init(&perm, d->n, mr_draw(seed, MR_DRAW_SPLIT, 0, 0, 0));
    struct mr_dataset *a = pick_new(d, d->n - n_held), *b = pick_new(d, n_held);
    if (!a || !b) {
        mr_dataset_unref(a);
        mr_dataset_unref(b);
        return mr_fail(err, -ENOMEM, "no memory");
    }
    uint64_t at_rest = 0, at_held = 0;
    for (uint64_t i = 0; i < d->n; i++)
        if (mr_permutation_at(&perm, i) < n_held)
            pick_set(b, at_held++, entry_of(d, i));
        else
            pick_set(a, at_rest++, entry_of(d, i));
    *rest = a;
    *held = b;
    return 0;
}

struct mr_dataset *mr_dataset_ref(struct mr_dataset *d)
{
    atomic_fetch_add(&d->refs, 1);
    return d;
}

void mr_dataset_unref(struct mr_dataset *d)
{
    if (!d || atomic_fetch_sub(&d->refs, 1) != 1)
        return;
    index_unref(d->index);
    free(d->pick32);
    free(d->pick64);
    free(d);
}

uint64_t mr_dataset_size(const struct mr_dataset *d)
{
    return d->n;
}

int mr_dataset_is_unlabelled(const struct mr_dataset *d)
{
    return d->index && d->index->e.unlabelled;
}

uint32_t mr_dataset_n_classes(const struct mr_dataset *d)
{
    return d->index ? d->index->e.n_classes : 1;
}

const char *mr_dataset_class_name(const struct mr_dataset *d, uint32_t label)
{
    return d->index && label < d->index->e.n_class_names ? d->index->e.class_names[label] : NULL;
}

uint32_t mr_dataset_label(const struct mr_dataset *d, uint64_t index)
{
    return d->index ? mr_entries_label(&d->index->e, entry_of(d, index)) : 0;
}

const struct mr_blob_table *mr_dataset_blobs(const struct mr_dataset *d)
{
    return d->index ? &d->index->e.blobs : NULL;
}

const struct mr_format *mr_dataset_format(const struct mr_dataset *d)
{
    return d->index ? d->index->format : NULL;
}

struct mr_extent mr_dataset_extent(const struct mr_dataset *d, uint64_t index)
{
    return mr_entries_extent(&d->index->e, entry_of(d, index));
}

int mr_dataset_blob_name(const struct mr_dataset *d, uint64_t index, char *buf, size_t cap)
{
    return d->index ? mr_entries_path(&d->index->e, entry_of(d, index), buf, cap) : -ENOENT;
}

int mr_dataset_name(const struct mr_dataset *d, uint64_t index, char *buf, size_t cap)
{
    int n = mr_dataset_blob_name(d, index, buf, cap);
    struct mr_extent e = n < 0 ? (struct mr_extent){0} : mr_dataset_extent(d, index);
    if (!e.length)
        return n;
    int more = snprintf(buf + n, cap - (size_t)n, "@%llu", (unsigned long long)e.offset);
    return (size_t)(n + more) < cap ? n + more : -ENAMETOOLONG;
}

int mr_dataset_source(const struct mr_dataset *d, const struct mr_source_opts *o,
                      struct mr_source **out, struct mr_error *err)
{
    struct mr_source_opts with = *o;
    if (!d->index)
        return mr_fail(err, -ENOENT, "this data set has no files to read");
    with.blobs = &d->index->e.blobs;
    return mr_source_open(d->index->store, &with, out, err);
}

int mr_dataset_payload(const struct mr_dataset *d, uint64_t index, const uint8_t *bytes, size_t len,
                       struct mr_payload *out)
{
    *out = (struct mr_payload){bytes, len, mr_dataset_label(d, index)};
    return d->index && d->index->format->payload ? d->index->format->payload(out) : 0;
}

int mr_dataset_load(const struct mr_dataset *d, uint64_t index, uint64_t max,
                    struct mr_buffer *into, size_t *len, enum mr_stage *stage)
{
    *stage = MR_STAGE_OPEN;
    if (!d->index)
        return -ENOENT;
    struct mr_extent e = mr_dataset_extent(d, index);
    return mr_extent_load(d->index->store, &d->index->e.blobs, &e, max, into, len, stage);
}

int mr_dataset_cache(const struct mr_dataset *d, uint64_t index, int evict,
                     struct mr_cache_state *before, struct mr_cache_state *after)
{
    char name[PATH_MAX];
    int r = mr_dataset_blob_name(d, index, name, sizeof name);
    if (r < 0)
        return r;
    struct mr_store *store = d->index->store;
    struct mr_extent e = mr_dataset_extent(d, index);
    return store->ops->cache ? store->ops->cache(store, name, &e, evict, before, after) : -ENOTSUP;
}

int mr_dataset_stat(const struct mr_dataset *d, uint64_t index, struct mr_blob_stat *out)
{
    char name[PATH_MAX];
    int r = mr_dataset_blob_name(d, index, name, sizeof name);
    return r < 0 ? r : d->index->store->ops->stat(d->index->store, name, out);
}

int mr_dataset_bytes(const struct mr_dataset *d, uint64_t index, uint64_t *out)
{
    struct mr_blob_stat st;
    struct mr_extent e = d->index ? mr_dataset_extent(d, index) : (struct mr_extent){0};
    int r = e.length ? 0 : mr_dataset_stat(d, index, &st);
    if (!r)
        *out = e.length ? e.length : st.bytes;
    return r;
}

void mr_dataset_prefetch(const struct mr_dataset *d, uint64_t next, uint64_t later)
{
    if (d->index)
        mr_entries_prefetch(&d->index->e, entry_of(d, next), entry_of(d, later));
}

size_t mr_dataset_memory(const struct mr_dataset *d)
{
    size_t pick = d->pick32 ? 4 : d->pick64 ? 8 : 0;
    return sizeof *d + d->n * pick + (d->index ? mr_entries_memory(&d->index->e) : 0);
}
