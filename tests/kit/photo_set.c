/* photo_set.c - see photo_set.h. */
#include "photo_set.h"

#include "digest.h"
#include "draw.h"
#include "unit.h"
#include "uring_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t size_of(uint64_t i)
{
    return i % 37 == 36 ? 600000 : 16 + mr_below(mr_mix(i), 70000);
}

static uint8_t byte_of(uint64_t i, size_t at, size_t len)
{
    size_t word = at & ~(size_t)7;
    if (word + 8 > len)
        return (uint8_t)(i + at);
    uint64_t w = word ? mr_mix(i * 1000003 + word) : i;
    return (uint8_t)(w >> 8 * (at - word));
}

static const char *name_of(uint64_t i)
{
    static char name[64];
    snprintf(name, sizeof name, "set/%c/%04llu.jpg", "abc"[i % 3], (unsigned long long)i);
    return name;
}

void photo_set_write(struct tempdir *t, unsigned n)
{
    uint8_t *buf = malloc(600000);
    assert_non_null(buf);
    for (uint64_t i = 0; i < n; i++) {
        for (size_t at = 0; at < size_of(i); at++)
            buf[at] = byte_of(i, at, size_of(i));
        tempdir_write(t, name_of(i), buf, size_of(i));
    }
    free(buf);
}

int photo_set_is(const uint8_t *bytes, size_t len, uint64_t *which)
{
    uint64_t i = 0;
    if (len < 16)
        return 0;
    for (int k = 7; k >= 0; k--)
        i = i << 8 | bytes[k];
    if (len != size_of(i))
        return 0;
    for (size_t at = 0; at < len; at++)
        if (bytes[at] != byte_of(i, at, len))
            return 0;
    *which = i;
    return 1;
}

const char *photo_set_list(struct tempdir *t, unsigned n, unsigned every)
{
    static const char *const bad[] = {"set/missing.jpg", "set/a", "set/empty.jpg", "set/pipe",
                                      "set/huge.jpg"};
    char *list = malloc(n * 64), *p = list;
    uint8_t *huge = calloc(1, PHOTO_TOO_LARGE + 1);
    assert_true(list && huge);
    tempdir_write(t, "set/huge.jpg", huge, PHOTO_TOO_LARGE + 1);
    tempdir_write(t, "set/empty.jpg", "", 0);
    unlink(tempdir_path(t, "set/pipe"));
    assert_int_equal(mkfifo(tempdir_path(t, "set/pipe"), 0666), 0);
    for (unsigned i = 0, n_bad = 0; i < n; i++)
        p += snprintf(p, 64, "%s,%u\n", i % every == every - 1 ? bad[n_bad++ % 5] : name_of(i),
                      i % 3);
    const char *path = tempdir_write(t, "list.csv", list, (size_t)(p - list));
    free(list);
    free(huge);
    return path;
}

struct mr_dataset *photo_set_open(const char *path)
{
    struct mr_dataset *d = NULL;
    struct mr_error err = {0};
    if (mr_dataset_open(path, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

uint64_t photo_set_batch_hash(const struct mr_batch *b)
{
    struct mr_digest digest;
    mr_digest_init(&digest);
    mr_digest_add_u64(&digest, b->epoch);
    mr_digest_add_u64(&digest, b->number);
    mr_digest_add_u64(&digest, b->n);
    for (unsigned i = 0; i < b->n; i++) {
        mr_digest_add_u64(&digest, b->samples[i].index);
        mr_digest_add_u64(&digest, b->samples[i].label);
        mr_digest_add_u64(&digest, b->samples[i].len);
        mr_digest_add(&digest, b->samples[i].data, b->samples[i].len);
    }
    return mr_digest_value(&digest);
}

uint64_t photo_set_hash(struct mr_dataset *d, const struct mr_pipeline_opts *o, int *r)
{
    struct mr_pipeline *p = NULL;
    struct mr_batch *b;
    struct mr_error err = {0};
    struct mr_digest digest;
    mr_digest_init(&digest);
    if (mr_pipeline_open(d, o, &p, &err))
        fail_msg("%s", err.text);
    unsigned n_epochs = o->epochs ? o->epochs : 1;
    while ((*r = mr_pipeline_next(p, &b)) == 1 || (!*r && --n_epochs)) {
        if (!*r)
            continue; /* an epoch ended */
        mr_digest_add_u64(&digest, photo_set_batch_hash(b));
        mr_batch_unref(b);
    }
    mr_pipeline_close(p);
    return mr_digest_value(&digest);
}

enum mr_engine photo_set_engine;

int photo_set_choose_engine(void)
{
    const char *name = getenv("MILLRACE_ENGINE");
    struct mr_uring_reader *probe;
    photo_set_engine = name && !strcmp(name, "uring") ? MR_ENGINE_URING : MR_ENGINE_THREADS;
    if (photo_set_engine == MR_ENGINE_THREADS)
        return 0;
    int r = mr_uring_reader_open(1, 0, &probe, NULL);
    if (!r)
        mr_uring_reader_close(probe);
    return r;
}

struct mr_pipeline_opts photo_set_opts(void)
{
    return (struct mr_pipeline_opts){.engine = photo_set_engine,
                                     .threads = 3,
                                     .io_depth = 8,
                                     .batch = 16,
                                     .seed = 1,
                                     .max_file_bytes = PHOTO_TOO_LARGE};
}

struct mr_pipeline *photo_set_pipeline(struct mr_dataset *d, const struct mr_pipeline_opts *o)
{
    struct mr_pipeline *p = NULL;
    struct mr_error err = {0};
    if (mr_pipeline_open(d, o, &p, &err))
        fail_msg("%s", err.text);
    return p;
}

int photo_set_number(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    return photo_set_is(in->bytes, in->len, slot) ? 0 : -EBADMSG;
}
