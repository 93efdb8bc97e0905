/* memory_store.c - see memory_store.h.
 *
 * Blobs stand in an array in the order in which they were added.  A source of this store keeps its
 * started reads with the time at which each is there; a read's bytes are copied when it is taken
 * out.  Reads that are there at the same time come in the order of their start.
 *
 * Lock: m->mu guards scripts and counts. */
#include "memory_store.h"

#include "clock.h"
#include "device.h"
#include "errtext.h"
#include "source.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct blob {
    char *name;
    uint8_t *bytes;
    size_t len;
    unsigned n_reads;
    struct mr_memory_script script;
};

struct memory_store {
    struct mr_store base;
    pthread_mutex_t mu;
    struct blob *blob;
    size_t n, cap;
};

struct memory_source {
    struct mr_source base;
    struct pending {
        struct mr_read *read;
        uint64_t ready_ns;
    } * pending; /* [depth], the first n, in the order of their start */
    unsigned n;
};

static struct blob *find(struct memory_store *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->blob[i].name, name))
            return &m->blob[i];
    return NULL;
}

static struct blob *find_number(struct mr_source *s, uint64_t number)
{
    char name[PATH_MAX];
    if (mr_blob_table_name(s->o.blobs, number, name, sizeof name) < 0)
        return NULL;
    return find((struct memory_store *)s->store, name);
}

/* The failure that a read at this stage is told to have, counted; 0: none. */
static int scripted(struct memory_store *m, struct blob *b, enum mr_stage stage)
{
    pthread_mutex_lock(&m->mu);
    struct mr_memory_script *script = &b->script;
    int code = script->stage == stage ? script->code : 0;
    if (code && script->times && !--script->times)
        script->code = 0;
    pthread_mutex_unlock(&m->mu);
    return code;
}

static int prepare(struct mr_source *s, struct mr_read *r)
{
    struct blob *b = find_number(s, r->extent.blob);
    r->stage = MR_STAGE_OPEN;
    r->have = 0;
    r->fd = -1;
    r->inode = 0;
    if (!b)
        return -ENOENT;
    int code = scripted((struct memory_store *)s->store, b, MR_STAGE_OPEN);
    if (code)
        return code;
    r->size = r->extent.length ? (size_t)r->extent.length : b->len;
    r->room = r->size;
    return !b->len ? -ENODATA : r->size > s->o.max_bytes ? -EFBIG : 0;
}

static void drop(struct mr_source *s, struct mr_read *r)
{
    (void)s;
    (void)r;
}

static void start(struct mr_source *base, struct mr_read *r)
{
    struct memory_source *s = (struct memory_source *)base;
    struct memory_store *m = (struct memory_store *)base->store;
    struct blob *b = find_number(base, r->extent.blob);
    pthread_mutex_lock(&m->mu);
    b->n_reads++;
    s->pending[s->n++] = (struct pending){r, mr_clock_ns() + b->script.delay_ns};
    pthread_mutex_unlock(&m->mu);
}

/* The read is due: copy its bytes. */
static void complete(struct memory_source *s, struct mr_read *r)
{
    struct memory_store *m = (struct memory_store *)s->base.store;
    struct blob *b = find_number(&s->base, r->extent.blob);
    uint64_t from = r->extent.offset;
    r->stage = MR_STAGE_READ;
    r->result = scripted(m, b, MR_STAGE_READ);
    pthread_mutex_lock(&m->mu);
    size_t there = b->script.missing < b->len ? b->len - b->script.missing : 0;
    pthread_mutex_unlock(&m->mu);
    if (!r->result && (from > there || r->size > there - from))
        r->result = -ENODATA;
    if (!r->result)
        memcpy(r->buf, b->bytes + from, r->size);
    r->data = r->buf;
    r->len = r->size;
    r->end_ns = mr_clock_ns();
    r->took_ns = r->end_ns - r->asked_ns;
    r->overdue = 0;
}

/* The first of those that are ready first; n: none is pending. */
static unsigned earliest(const struct memory_source *s)
{
    unsigned best = 0;
    for (unsigned i = 1; i < s->n; i++)
        if (s->pending[i].ready_ns < s->pending[best].ready_ns)
            best = i;
    return best;
}

static int wait(struct mr_source *base, uint64_t until_ns, struct mr_read **done, unsigned max)
{
    struct memory_source *s = (struct memory_source *)base;
    int n = 0;
    while (s->n && (unsigned)n < max) {
        unsigned at = earliest(s);
        uint64_t ready = s->pending[at].ready_ns;
        if (ready > mr_clock_ns() && n)
            break;
        mr_device_wait_until(ready < until_ns ? ready : until_ns);
        if (ready > mr_clock_ns())
            break;
        done[n++] = s->pending[at].read;
        s->n--;
        memmove(s->pending + at, s->pending + at + 1, (s->n - at) * sizeof *s->pending);
        complete(s, done[n - 1]);
    }
    return n;
}

static void close_source(struct mr_source *base)
{
    free(((struct memory_source *)base)->pending);
    free(base);
}

static int open_source(struct mr_store *store, const struct mr_source_opts *o,
                       struct mr_source **out, struct mr_error *err)
{
    static const struct mr_source_ops ops = {prepare, drop, start, NULL, wait, close_source};
    struct memory_source *s = calloc(1, sizeof *s);
    struct pending *pending = calloc(o->depth, sizeof *pending);
    (void)store;
    if (!s || !pending) {
        free(s);
        free(pending);
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    }
    s->base.ops = &ops;
    s->pending = pending;
    *out = &s->base;
    return 0;
}

static void close_store(struct mr_store *base)
{
    struct memory_store *m = (struct memory_store *)base;
    for (size_t i = 0; i < m->n; i++) {
        free(m->blob[i].name);
        free(m->blob[i].bytes);
    }
    free(m->blob);
    pthread_mutex_destroy(&m->mu);
    free(m);
}

/* What lies behind "folder/" in a name that is in it; NULL: it is not.  "" and "." are the root. */
static const char *within(const char *folder, const char *name)
{
    size_t n = strcmp(folder, ".") ? strlen(folder) : 0;
    while (n && folder[n - 1] == '/')
        n--;
    if (!n)
        return name;
    return !strncmp(folder, name, n) && name[n] == '/' ? name + n + 1 : NULL;
}

static int stat_blob(struct mr_store *base, const char *name, struct mr_blob_stat *out)
{
    struct memory_store *m = (struct memory_store *)base;
    const struct blob *b = find(m, name);
    if (b) {
        *out = (struct mr_blob_stat){MR_BLOB_FILE, b->len, 1};
        return 0;
    }
    for (size_t i = 0; i < m->n; i++)
        if (within(name, m->blob[i].name)) {
            *out = (struct mr_blob_stat){.kind = MR_BLOB_FOLDER};
            return 0;
        }
    return -ENOENT;
}

/* Was a blob before number i in the same sub-folder of `folder`? */
static int is_listed(const struct memory_store *m, size_t i, const char *folder, size_t len)
{
    const char *rest = within(folder, m->blob[i].name);
    for (size_t k = 0; k < i; k++) {
        const char *before = within(folder, m->blob[k].name);
        if (before && !strncmp(before, rest, len) && before[len] == '/')
            return 1;
    }
    return 0;
}

static int list(struct mr_store *base, const char *folder, mr_list_fn *each, void *ctx)
{
    struct memory_store *m = (struct memory_store *)base;
    char name[NAME_MAX + 1];
    int r = 0;
    for (size_t i = 0; !r && i < m->n; i++) {
        const char *rest = within(folder, m->blob[i].name);
        const char *slash = rest ? strchr(rest, '/') : NULL;
        size_t len = !rest ? 0 : slash ? (size_t)(slash - rest) : strlen(rest);
        if (!rest || len > NAME_MAX || (slash && is_listed(m, i, folder, len)))
            continue;
        memcpy(name, rest, len);
        name[len] = 0;
        r = each(ctx, name, slash ? MR_BLOB_FOLDER : MR_BLOB_FILE);
    }
    return r;
}

/* All of it is memory, and stays so. */
static int cache(struct mr_store *base, const char *name, const struct mr_extent *e, int evict,
                 struct mr_cache_state *before, struct mr_cache_state *after)
{
    const struct blob *b = find((struct memory_store *)base, name);
    if (!b)
        return -ENOENT;
    uint64_t bytes = e->length ? e->length : b->len;
    struct mr_cache_state is = {bytes, (int64_t)bytes};
    if (before)
        *before = is;
    if (after)
        *after = is;
    return evict ? MR_COLD_UNPROVEN : 0;
}

int mr_memory_store_new(struct mr_store **out)
{
    static const struct mr_store_ops ops = {
        .scheme = "memory",
        .what = "blobs in memory",
        .close = close_store,
        .stat = stat_blob,
        .list = list,
        .cache = cache,
        .source = open_source,
    };
    struct memory_store *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->base.ops = &ops;
    atomic_init(&m->base.refs, 1);
    pthread_mutex_init(&m->mu, NULL);
    *out = &m->base;
    return 0;
}

int mr_memory_store_add(struct mr_store *s, const char *name, const void *bytes, size_t len)
{
    struct memory_store *m = (struct memory_store *)s;
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 16;
        struct blob *blob = realloc(m->blob, cap * sizeof *blob);
        if (!blob)
            return -ENOMEM;
        m->blob = blob;
        m->cap = cap;
    }
    struct blob b = {.name = strdup(name), .bytes = malloc(len + 1), .len = len};
    if (!b.name || !b.bytes) {
        free(b.name);
        free(b.bytes);
        return -ENOMEM;
    }
    if (len)
        memcpy(b.bytes, bytes, len);
    m->blob[m->n++] = b;
    return 0;
}

int mr_memory_store_script(struct mr_store *s, const char *name,
                           const struct mr_memory_script *script)
{
    struct memory_store *m = (struct memory_store *)s;
    struct blob *b = find(m, name);
    if (!b)
        return -ENOENT;
    pthread_mutex_lock(&m->mu);
    b->script = *script;
    pthread_mutex_unlock(&m->mu);
    return 0;
}

unsigned mr_memory_store_reads(struct mr_store *s, const char *name)
{
    struct memory_store *m = (struct memory_store *)s;
    const struct blob *b = find(m, name);
    pthread_mutex_lock(&m->mu);
    unsigned n = b ? b->n_reads : 0;
    pthread_mutex_unlock(&m->mu);
    return n;
}
