/* op_log.c - see op_log.h.
 *
 * A record is an operation or a report.  A file is known by the record that created it, whatever
 * its name is later.  Building walks the records twice: names of each folder, then bytes of the
 * files that have a name.  Temporaries' bytes do not count in the fingerprint, but for an index and
 * an older graph: nobody else's are looked at.
 *
 * Lock: l->mu guards the records while the run goes on; later there is one thread. */
#include "op_log.h"

#include "ckpt_name.h"
#include "digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK    ((uint64_t)4096)
#define MAX_FILE ((size_t)1 << 20)
#define MAX_OPEN 64

struct record {
    int is_report;
    uint64_t step, version;
    enum mr_out_kind kind;
    unsigned tag;
    char name[256], to[256];
    uint64_t offset, len;
    uint8_t *data;
    size_t file;           /* record that created the file */
    size_t loose, n_loose; /* after op_log_n_loose: its parts */
};

struct entry { /* a name in the state */
    char name[256];
    unsigned tag;
    size_t file;
    uint8_t *bytes;
    uint64_t size;
};

struct op_log {
    struct mr_out_hook hook;
    pthread_mutex_t mu;
    struct record *records;
    size_t n, cap;
    struct entry entries[MAX_OPEN];
    size_t n_entries;
};

static void *checked(void *p)
{
    if (!p)
        abort();
    return p;
}

static struct record *add(struct op_log *l)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 256;
        l->records = checked(realloc(l->records, l->cap * sizeof *l->records));
    }
    struct record *r = &l->records[l->n++];
    memset(r, 0, sizeof *r);
    return r;
}

/* Which file has this name now?  SIZE_MAX: none that the log knows. */
static size_t file_of(const struct op_log *l, unsigned tag, const char *name, size_t before)
{
    char now[256];
    snprintf(now, sizeof now, "%s", name);
    for (size_t i = before; i-- > 0;) {
        const struct record *r = &l->records[i];
        if (r->is_report || r->tag != tag)
            continue;
        if (r->kind == MR_OUT_RENAME && !strcmp(r->to, now))
            return r->file;
        if (r->kind == MR_OUT_CREATE && !strcmp(r->name, now))
            return i;
    }
    return SIZE_MAX;
}

static void record(void *ctx, const struct mr_out_op *op)
{
    struct op_log *l = ctx;
    pthread_mutex_lock(&l->mu);
    size_t at = l->n;
    struct record *r = add(l);
    r->kind = op->kind;
    r->tag = op->tag;
    snprintf(r->name, sizeof r->name, "%s", op->name);
    snprintf(r->to, sizeof r->to, "%s", op->to ? op->to : "");
    r->offset = op->offset;
    r->len = op->len;
    if (op->data) {
        r->data = checked(malloc(op->len));
        memcpy(r->data, op->data, op->len);
    }
    r->file = op->kind == MR_OUT_CREATE ? at : file_of(l, op->tag, op->name, at);
    pthread_mutex_unlock(&l->mu);
}

struct op_log *op_log_new(void)
{
    struct op_log *l = checked(calloc(1, sizeof *l));
    pthread_mutex_init(&l->mu, NULL);
    l->hook = (struct mr_out_hook){.after = record, .ctx = l};
    return l;
}

static void drop_entries(struct op_log *l)
{
    for (size_t i = 0; i < l->n_entries; i++)
        free(l->entries[i].bytes);
    l->n_entries = 0;
}

void op_log_free(struct op_log *l)
{
    drop_entries(l);
    for (size_t i = 0; i < l->n; i++)
        free(l->records[i].data);
    free(l->records);
    pthread_mutex_destroy(&l->mu);
    free(l);
}

const struct mr_out_hook *op_log_hook(struct op_log *l)
{
    return &l->hook;
}

/* One more record, of the file that record `file` created, or (SIZE_MAX) of none. */
static struct record *seed_one(struct op_log *l, enum mr_out_kind kind, unsigned tag, size_t file)
{
    struct record *r = add(l);
    r->kind = kind;
    r->tag = tag;
    r->file = file;
    return r;
}

void op_log_seed(struct op_log *l, const struct op_log *from)
{
    for (size_t i = 0; i < from->n_entries; i++) {
        const struct entry *e = &from->entries[i];
        size_t file = l->n;
        struct record *made = seed_one(l, MR_OUT_CREATE, e->tag, file);
        memcpy(made->name, e->name, sizeof made->name);
        struct record *written = seed_one(l, MR_OUT_WRITE, e->tag, file);
        written->len = e->size;
        written->data = checked(malloc(e->size + 1));
        if (e->size)
            memcpy(written->data, e->bytes, e->size);
        seed_one(l, MR_OUT_SYNC, e->tag, file);
    }
    for (unsigned t = 0; t < OP_LOG_TIERS; t++)
        seed_one(l, MR_OUT_SYNC_DIR, t, SIZE_MAX);
}

void op_log_durable(struct op_log *l, unsigned tier, uint64_t step, uint64_t version)
{
    pthread_mutex_lock(&l->mu);
    struct record *r = add(l);
    r->is_report = 1;
    r->tag = tier;
    r->step = step;
    r->version = version;
    pthread_mutex_unlock(&l->mu);
}

size_t op_log_n(const struct op_log *l)
{
    return l->n;
}

int op_log_durable_at(const struct op_log *l, size_t n, unsigned tier, uint64_t *step,
                      uint64_t *version)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        if (l->records[i].is_report && l->records[i].tag == tier) {
            *step = l->records[i].step;
            *version = l->records[i].version;
            any = 1;
        }
    return any;
}

static int is_name_op(const struct record *r)
{
    return r->kind == MR_OUT_CREATE || r->kind == MR_OUT_RENAME || r->kind == MR_OUT_UNLINK;
}

/* Is there a sync behind record i, among the first n, that covers it? */
static int is_synced(const struct op_log *l, size_t i, size_t n)
{
    const struct record *r = &l->records[i];
    for (size_t k = i + 1; k < n; k++) {
        const struct record *s = &l->records[k];
        if (s->is_report || s->tag != r->tag)
            continue;
        if (is_name_op(r) ? s->kind == MR_OUT_SYNC_DIR
                          : s->kind == MR_OUT_SYNC && s->file == r->file)
            return 1;
    }
    return 0;
}

size_t op_log_n_loose(struct op_log *l, size_t n)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        struct record *r = &l->records[i];
        r->n_loose = 0;
        if (r->is_report || r->kind == MR_OUT_SYNC || r->kind == MR_OUT_SYNC_DIR ||
            is_synced(l, i, n))
            continue;
        r->loose = total;
        r->n_loose = r->kind == MR_OUT_WRITE ? (size_t)((r->len + BLOCK - 1) / BLOCK) : 1;
        total += r->n_loose;
    }
    return total;
}

static struct entry *find(struct op_log *l, unsigned tag, const char *name)
{
    for (size_t i = 0; i < l->n_entries; i++)
        if (l->entries[i].tag == tag && !strcmp(l->entries[i].name, name))
            return &l->entries[i];
    return NULL;
}

static void remove_name(struct op_log *l, const struct record *r)
{
    struct entry *e = find(l, r->tag, r->name);
    if (e && e->file == r->file)
        *e = l->entries[--l->n_entries];
}

static void set_name(struct op_log *l, const struct record *r, const char *name)
{
    struct entry *e = find(l, r->tag, name);
    if (!e) {
        if (l->n_entries == MAX_OPEN)
            abort();
        e = &l->entries[l->n_entries++];
        snprintf(e->name, sizeof e->name, "%s", name);
        e->tag = r->tag;
        e->bytes = NULL;
        e->size = 0;
    }
    e->file = r->file;
}

static void apply_name(struct op_log *l, const struct record *r)
{
    if (r->kind == MR_OUT_CREATE) {
        set_name(l, r, r->name);
    } else if (r->kind == MR_OUT_UNLINK) {
        remove_name(l, r);
    } else {
        remove_name(l, r);
        set_name(l, r, r->to);
    }
}

static void grow(struct entry *e, uint64_t size)
{
    if (size <= e->size)
        return;
    if (size > MAX_FILE)
        abort();
    e->bytes = checked(realloc(e->bytes, size));
    memset(e->bytes + e->size, 0, size - e->size);
    e->size = size;
}

static void apply_bytes(struct entry *e, const struct record *r, const uint8_t *keep)
{
    if (r->kind == MR_OUT_ALLOCATE && (!r->n_loose || keep[r->loose])) {
        grow(e, r->len);
    } else if (r->kind == MR_OUT_TRUNCATE && (!r->n_loose || keep[r->loose])) {
        grow(e, r->len);
        e->size = r->len;
    } else if (r->kind == MR_OUT_WRITE) {
        for (uint64_t at = 0, b = 0; at < r->len; at += BLOCK, b++) {
            uint64_t len = r->len - at < BLOCK ? r->len - at : BLOCK;
            if (r->n_loose && !keep[r->loose + b])
                continue;
            grow(e, r->offset + at + len);
            memcpy(e->bytes + r->offset + at, r->data + at, len);
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->tag != y->tag ? (x->tag < y->tag ? -1 : 1) : strcmp(x->name, y->name);
}

uint64_t op_log_build(struct op_log *l, size_t n, const uint8_t *keep)
{
    drop_entries(l);
    for (size_t i = 0; i < n; i++) {
        const struct record *r = &l->records[i];
        if (!r->is_report && is_name_op(r) && (!r->n_loose || keep[r->loose]))
            apply_name(l, r);
    }
    qsort(l->entries, l->n_entries, sizeof *l->entries, by_name);
    char was[MR_CKPT_MAX_NAME];
    size_t stem_len;
    struct mr_digest digest;
    mr_digest_init(&digest);
    for (size_t k = 0; k < l->n_entries; k++) {
        struct entry *e = &l->entries[k];
        for (size_t i = 0; i < n; i++)
            if (!l->records[i].is_report && l->records[i].file == e->file)
                apply_bytes(e, &l->records[i], keep);
        mr_digest_add(&digest, &e->tag, sizeof e->tag);
        mr_digest_add(&digest, e->name, strlen(e->name) + 1);
        if (!mr_ckpt_temp_parse(e->name, was, NULL) || mr_ckpt_format_of(was, &stem_len) >= 0) {
            mr_digest_add(&digest, &e->size, sizeof e->size);
            mr_digest_add(&digest, e->bytes, e->size);
        }
    }
    return mr_digest_value(&digest);
}

static int empty_folder(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    if (!d)
        return -errno;
    while ((e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    return 0;
}

int op_log_write(const struct op_log *l, const char *const dirs[OP_LOG_TIERS])
{
    char path[1024];
    for (unsigned t = 0; t < OP_LOG_TIERS; t++)
        if (empty_folder(dirs[t]))
            return -errno;
    for (size_t i = 0; i < l->n_entries; i++) {
        const struct entry *e = &l->entries[i];
        snprintf(path, sizeof path, "%s/%s", dirs[e->tag], e->name);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
            return -errno;
        ssize_t n = write(fd, e->bytes ? (void *)e->bytes : "", e->size);
        close(fd);
        if (n != (ssize_t)e->size)
            return -EIO;
    }
    return 0;
}
