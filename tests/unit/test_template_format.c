/* test_template_format.c - a format of records in one blob, through the same row as those that
 * there are: indexed, read at offsets by every source, written, refused. */
#include "unit.h"

#include "buffer.h"
#include "memory_store.h"
#include "photo_set.h"
#include "sample_set.h"
#include "template_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N 300

/* Contents of record i: from 1 to 9,000 bytes. */
static size_t record(unsigned i, uint8_t *out)
{
    size_t len = 1 + i * 2654435761u % 9000;
    for (size_t k = 0; k < len; k++)
        out[k] = (uint8_t)(i + k * 7);
    return len;
}

static void write_records(const char *path, unsigned n)
{
    const struct mr_format_writer *to = template_format.writer;
    uint8_t bytes[9000];
    void *w;
    assert_int_equal(to->begin(path, &w, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        struct mr_payload sample = {bytes, record(i, bytes), i % 7};
        assert_int_equal(to->add(w, &sample, NULL), 0);
    }
    assert_int_equal(to->commit(w, NULL), 0);
}

/* A store of files, or the same bytes in memory. */
static struct mr_dataset *open_records(const char *path, int in_memory)
{
    struct mr_store *store, *memory;
    struct mr_buffer all = {0};
    struct mr_dataset *d;
    const char *name;
    size_t len;
    assert_int_equal(mr_store_open(path, &store, &name, NULL), 0);
    if (in_memory) {
        assert_int_equal(mr_memory_store_new(&memory), 0);
        assert_int_equal(mr_store_load(store, name, SIZE_MAX / 4, &all, &len), 0);
        assert_int_equal(mr_memory_store_add(memory, name, all.data, len), 0);
        mr_buffer_fini(&all);
        mr_store_unref(store);
        store = memory;
    }
    struct mr_error err = {0};
    if (mr_dataset_open_in(store, name, &template_format, &d, &err))
        fail_msg("%s", err.text);
    mr_store_unref(store);
    return d;
}

static void is_sample(const struct mr_sample *s)
{
    uint8_t want[9000];
    assert_int_equal(s->len, record((unsigned)s->index, want));
    assert_memory_equal(s->data, want, s->len);
    assert_int_equal(s->label, s->index % 7);
}

static uint64_t draw(struct mr_dataset *d, const struct mr_pipeline_opts *o)
{
    struct mr_pipeline *p = photo_set_pipeline(d, o);
    struct mr_batch *b;
    uint64_t hash = 0, n = 0;
    int r;
    while ((r = mr_pipeline_next(p, &b)) == 1) {
        for (unsigned i = 0; i < b->n; i++)
            is_sample(&b->samples[i]);
        n += b->n;
        hash = hash * 31 + photo_set_batch_hash(b);
        mr_batch_unref(b);
    }
    if (r)
        fail_msg("%s", mr_pipeline_error(p));
    assert_int_equal(n, N);
    mr_pipeline_close(p);
    return hash;
}

static void records_are_samples_whatever_reads_them(void **state)
{
    struct tempdir *t = *state;
    struct mr_device *device;
    uint64_t first = 0;
    char path[512];
    snprintf(path, sizeof path, "%s", tempdir_path(t, "set.tpl"));
    write_records(path, N);
    assert_int_equal(mr_device_open("optane", &device, NULL), 0);
    for (unsigned kind = 0; kind < 16; kind++) {
        struct mr_dataset *d = open_records(path, kind & 1);
        struct mr_pipeline_opts o = {.threads = 2,
                                     .io_depth = 9,
                                     .batch = 13,
                                     .keep_last = 1,
                                     .engine = kind & 2 ? MR_ENGINE_URING : MR_ENGINE_THREADS,
                                     .direct = !!(kind & 4),
                                     .storage = kind & 8 ? device : NULL};
        struct mr_pipeline *p;
        if (mr_pipeline_open(d, &o, &p, NULL) == 0) { /* -ENOTSUP: no io_uring here */
            mr_pipeline_close(p);
            uint64_t hash = draw(d, &o);
            first = first ? first : hash;
            assert_true(hash == first);
        }
        mr_dataset_unref(d);
    }
    mr_device_close(device);
}

static void names_sizes_and_the_cache_are_those_of_the_part(void **state)
{
    struct tempdir *t = *state;
    struct mr_buffer bytes = {0};
    struct mr_cache_state is;
    enum mr_stage stage;
    uint64_t n;
    size_t len;
    char path[512], name[600], want[600];
    snprintf(path, sizeof path, "%s", tempdir_path(t, "set.tpl"));
    write_records(path, N);
    struct mr_dataset *d = open_records(path, 0);
    struct mr_extent e = mr_dataset_extent(d, 3);
    snprintf(want, sizeof want, "%s@%llu", path, (unsigned long long)e.offset);
    assert_int_equal(mr_dataset_name(d, 3, name, sizeof name), strlen(want));
    assert_string_equal(name, want);
    assert_int_equal(mr_dataset_name(d, 3, name, strlen(want)), -ENAMETOOLONG);
    assert_int_equal(mr_dataset_bytes(d, 3, &n), 0);
    assert_int_equal(n, e.length);
    assert_int_equal(mr_dataset_load(d, 3, SIZE_MAX / 4, &bytes, &len, &stage), 0);
    assert_int_equal(len, e.length);
    assert_int_equal(mr_dataset_load(d, 3, 1, &bytes, &len, &stage), -EFBIG);
    assert_int_equal(stage, MR_STAGE_OPEN);
    assert_int_equal(mr_dataset_cache(d, 3, 0, &is, NULL), 0);
    assert_in_range(is.size_bytes, e.length, e.length + 8192); /* in whole pages */
    assert_in_range(mr_dataset_memory(d) / N, 20, 24);
    mr_buffer_fini(&bytes);
    mr_dataset_unref(d);
}

struct seen {
    unsigned n;
    char stage[16], reason[32];
};

static void note(void *ctx, const struct mr_bad_sample *bad)
{
    struct seen *s = ctx;
    s->n++;
    snprintf(s->stage, sizeof s->stage, "%s", bad->stage);
    snprintf(s->reason, sizeof s->reason, "%s", bad->reason);
}

/* Someone wrote over the shard after it was indexed. */
static void a_record_that_changed_is_a_bad_sample(void **state)
{
    struct tempdir *t = *state;
    char path[512];
    snprintf(path, sizeof path, "%s", tempdir_path(t, "set.tpl"));
    write_records(path, N);
    struct mr_dataset *d = open_records(path, 0);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, (long)mr_dataset_extent(d, 5).offset, SEEK_SET);
    fputs("\xff\xff\xff\xff", f);
    assert_int_equal(fclose(f), 0);
    struct seen s = {0};
    struct mr_pipeline_opts o = {.batch = 10, .on_error = note, .on_error_ctx = &s};
    draw(d, &o);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.stage, "record");
    assert_string_equal(s.reason, "corrupt");

    /* And cut it: what lies behind the end is truncated. */
    f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), (off_t)mr_dataset_extent(d, N - 1).offset + 1), 0);
    assert_int_equal(fclose(f), 0);
    s.n = 0;
    o.shuffle = MR_SHUFFLE_NONE;
    draw(d, &o);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.stage, "read");
    assert_string_equal(s.reason, "truncated");
    mr_dataset_unref(d);
}

static void what_is_no_such_set_is_refused_with_words(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {{"x", "TPL1"}, {"TPL1abc", "offset 4"}, {"TPL1\x09\0\0\0\0\0\0\0x", "offset 4"}};
    struct tempdir *t = *state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct mr_dataset *d = NULL;
        struct mr_store *store;
        struct mr_error err = {0};
        const char *name;
        const char *path = tempdir_text(t, "bad.tpl", bad[i].text);
        assert_int_equal(mr_store_open(path, &store, &name, NULL), 0);
        assert_int_equal(mr_dataset_open_in(store, name, &template_format, &d, &err), -EBADMSG);
        assert_non_null(strstr(err.text, bad[i].words));
        assert_null(d);
        mr_store_unref(store);
    }
}

static void specs_name_stores_and_formats_are_found(void **state)
{
    struct tempdir *t = *state;
    struct mr_dataset *d = NULL;
    struct mr_error err = {0};
    char spec[512];
    assert_int_equal(mr_dataset_open("s3://bucket/set", &d, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "'s3'"));
    assert_non_null(strstr(err.text, "file://"));
    assert_null(d);
    tempdir_text(t, "set/a/1.jpg", "x");
    snprintf(spec, sizeof spec, "file://%s", tempdir_path(t, "set"));
    assert_int_equal(mr_dataset_open(spec, &d, NULL), 0);
    assert_string_equal(mr_dataset_format(d)->name, "folder");
    mr_dataset_unref(d);
    assert_int_equal(mr_dataset_open(tempdir_text(t, "l.csv", "set/a/1.jpg,0\n"), &d, NULL), 0);
    assert_string_equal(mr_dataset_format(d)->name, "list");
    mr_dataset_unref(d);
    for (unsigned i = 0; mr_format_at(i); i++)
        assert_true(mr_format_at(i)->name[0] && mr_format_at(i)->what[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(records_are_samples_whatever_reads_them),
        WITH_TEMPDIR(names_sizes_and_the_cache_are_those_of_the_part),
        WITH_TEMPDIR(a_record_that_changed_is_a_bad_sample),
        WITH_TEMPDIR(what_is_no_such_set_is_refused_with_words),
        WITH_TEMPDIR(specs_name_stores_and_formats_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
