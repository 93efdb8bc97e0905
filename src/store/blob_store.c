/* blob_store.c - the table of stores, and what they have in common. */
#include "blob_store.h"

#include "buffer.h"
#include "clock.h"
#include "errtext.h"
#include "source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One row a store that a spec can name; the first takes specs without a scheme. */
static const struct mr_store_ops *const stores[] = {&mr_posix_store};

#define N_STORES (sizeof stores / sizeof *stores)

/* Bytes of a scheme before "://"; 0: there is none. */
static size_t scheme_of(const char *spec)
{
    size_t n = strspn(spec, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return !strncmp(spec + n, "://", 3) ? n : 0;
}

static int unknown_scheme(const char *spec, size_t n, struct mr_error *err)
{
    char known[256] = "";
    for (size_t i = 0; i < N_STORES; i++) {
        size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s:// (%s)", i ? ", " : "", stores[i]->scheme,
                 stores[i]->what);
    }
    return mr_fail(err, -ENOTSUP, "%s: there is no store '%.*s'; there is: a path, %s", spec,
                   (int)n, spec, known);
}

int mr_store_open(const char *spec, struct mr_store **out, const char **name, struct mr_error *err)
{
    size_t n = scheme_of(spec);
    if (!n)
        return stores[0]->open(spec, out, name, err);
    for (size_t i = 0; i < N_STORES; i++)
        if (strlen(stores[i]->scheme) == n && !strncmp(stores[i]->scheme, spec, n))
            return stores[i]->open(spec + n + 3, out, name, err);
    return unknown_scheme(spec, n, err);
}

struct mr_store *mr_store_ref(struct mr_store *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void mr_store_unref(struct mr_store *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1)
        s->ops->close(s);
}

int mr_source_open(struct mr_store *store, const struct mr_source_opts *o, struct mr_source **out,
                   struct mr_error *err)
{
    int r = store->ops->source(store, o, out, err);
    if (!r) {
        (*out)->store = mr_store_ref(store);
        (*out)->o = *o;
    }
    return r;
}

void mr_source_close(struct mr_source *s)
{
    if (!s)
        return;
    struct mr_store *store = s->store;
    s->ops->close(s);
    mr_store_unref(store);
}

/* Start the read in a buffer that is large enough, until it is done. */
static int load_with(struct mr_source *s, struct mr_read *r, struct mr_buffer *into)
{
    struct mr_read *done;
    int code = mr_source_prepare(s, r);
    if (code)
        return code;
    r->result = MR_READ_ROOM;
    while (r->result == MR_READ_ROOM) {
        r->stage = MR_STAGE_READ;
        code = mr_buffer_reserve(into, r->room ? r->room : 1);
        if (code) {
            mr_source_drop(s, r);
            return code;
        }
        r->buf = into->data;
        r->cap = into->cap;
        mr_source_start(s, r);
        code = mr_source_wait(s, UINT64_MAX, &done, 1);
        if (code < 0)
            return code;
    }
    return r->result;
}

int mr_extent_load(struct mr_store *s, struct mr_blob_table *blobs, const struct mr_extent *e,
                   uint64_t max, struct mr_buffer *into, size_t *len, enum mr_stage *stage)
{
    struct mr_source_opts o = {.blobs = blobs, .depth = 1, .keep_fd = -1, .max_bytes = max};
    struct mr_source *source;
    struct mr_read read = {.extent = *e, .asked_ns = mr_clock_ns()};
    *stage = MR_STAGE_OPEN;
    int r = mr_source_open(s, &o, &source, NULL);
    if (r)
        return r;
    r = load_with(source, &read, into);
    if (!r)
        *len = read.len;
    *stage = read.stage;
    mr_source_close(source);
    return r;
}

int mr_store_load(struct mr_store *s, const char *name, uint64_t max, struct mr_buffer *into,
                  size_t *len)
{
    struct mr_blob_table one = {0};
    enum mr_stage stage;
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    int64_t dir = mr_blob_table_dir(&one, name, (size_t)(base - name));
    int r = dir < 0 ? (int)dir : mr_blob_table_add(&one, (uint32_t)dir, base, strlen(base));
    if (!r)
        r = mr_blob_table_finish(&one);
    if (!r)
        r = mr_extent_load(s, &one, &(struct mr_extent){0}, max, into, len, &stage);
    mr_blob_table_fini(&one);
    return r;
}
