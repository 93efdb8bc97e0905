/* test_tf_bundle.c - indexes of TensorFlow checkpoints, and their graphs. */
#include "tf_bundle.h"

#include "ckpt_samples.h"
#include "crc32c.h"
#include "sstable.h"
#include "tf_meta.h"
#include "unit.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void an_index_comes_back(void **state)
{
    struct mr_bundle b, c;
    struct mr_bytes out, again;
    uint64_t bytes;
    mr_bundle_init(&b);
    mr_bytes_init(&out);
    mr_bytes_init(&again);
    sample_table(&b.tensors);
    assert_int_equal(mr_bundle_layout(&b.tensors, MR_BUNDLE_ALIGN, &bytes), 0);
    assert_int_equal(mr_bundle_write_index(&b, &out, NULL), 0);
    assert_int_equal(mr_bundle_parse("index", out.data, out.len, &c, NULL), 0);
    assert_int_equal(c.n_shards, 1);
    assert_int_equal(c.tensors.n, b.tensors.n);
    for (size_t i = 0; i < b.tensors.n; i++) {
        const struct mr_tensor *x = &b.tensors.tensors[i];
        const struct mr_tensor *y = mr_tensor_table_find(&c.tensors, x->name);
        assert_non_null(y);
        assert_int_equal(y->offset, x->offset);
        assert_int_equal(y->offset % MR_BUNDLE_ALIGN, 0);
        assert_int_equal(y->bytes, x->bytes);
        assert_int_equal(y->crc, x->crc);
        assert_int_equal(y->dtype, x->dtype);
    }
    assert_int_equal(mr_bundle_write_index(&c, &again, NULL), 0);
    assert_int_equal(again.len, out.len);
    assert_memory_equal(again.data, out.data, out.len);
    mr_bundle_fini(&b);
    mr_bundle_fini(&c);
    mr_bytes_fini(&out);
    mr_bytes_fini(&again);
}

static void the_packed_layout_has_no_gaps(void **state)
{
    struct mr_tensor_table t;
    uint64_t bytes, sum = 0;
    sample_table(&t);
    assert_int_equal(mr_bundle_layout(&t, 1, &bytes), 0);
    for (size_t i = 0; i < t.n; i++) {
        assert_int_equal(t.tensors[i].offset, sum);
        sum += t.tensors[i].bytes;
    }
    assert_int_equal(bytes, sum);
    t.tensors[0].bytes = UINT64_MAX - 5;
    assert_int_equal(mr_bundle_layout(&t, 1, &bytes), -EOVERFLOW);
    mr_tensor_table_fini(&t);
}

/* A table 5 x 300 in two slices of rows, saved in two shards. */
static void slices_are_found_by_their_keys(void **state)
{
    struct mr_bundle b, c;
    struct mr_bytes out;
    struct mr_tensor t = {.name = "emb/\xffpart",
                          .dtype = MR_DT_F32,
                          .n_dims = 2,
                          .dims = {300, 5},
                          .bytes = 6000,
                          .has_crc = 1};
    struct mr_bundle_part parts[2] = {
        {.start = {0, 0}, .length = {100, 5}, .full = 2, .shard = 0, .crc = 1, .bytes = 2000},
        {.start = {100, 0},
         .length = {200, 5},
         .full = 2,
         .shard = 1,
         .crc = 2,
         .offset = 64,
         .bytes = 4000},
    };
    const struct mr_bundle_part *first;
    mr_bundle_init(&b);
    mr_bytes_init(&out);
    b.n_shards = 2;
    assert_int_equal(mr_tensor_table_add(&b.tensors, &t), 0);
    b.parts = parts;
    b.n_parts = 2;
    assert_int_equal(mr_bundle_write_index(&b, &out, NULL), 0);
    /* 0, name with ff escaped, rank 2, [0, 100), whole: as OrderedCode has it. */
    assert_non_null(memmem(out.data, out.len,
                           "\x00"
                           "emb/\xff\x00part\x00\x01\x01\x02\x80\xc0\x64\x80\x7f",
                           20));
    assert_int_equal(mr_bundle_parse("index", out.data, out.len, &c, NULL), 0);
    assert_int_equal(c.tensors.n, 1);
    assert_int_equal(c.tensors.tensors[0].bytes, 6000);
    assert_int_equal(mr_bundle_parts_of(&c, 0, &first), 2);
    assert_int_equal(first[1].shard, 1);
    assert_int_equal(first[1].offset, 64);
    assert_int_equal(first[1].start[0], 100);
    assert_int_equal(first[1].length[0], 200);
    assert_int_equal(first[1].crc, 2);
    mr_bundle_fini(&c);
    out.len = 0;
    parts[1].start[0] = 99; /* overlaps */
    assert_int_equal(mr_bundle_write_index(&b, &out, NULL), 0);
    assert_int_equal(mr_bundle_parse("index", out.data, out.len, &c, NULL), -EBADMSG);
    out.len = 0;
    b.n_parts = 1; /* does not cover */
    assert_int_equal(mr_bundle_write_index(&b, &out, NULL), 0);
    assert_int_equal(mr_bundle_parse("index", out.data, out.len, &c, NULL), -EBADMSG);
    b.parts = NULL;
    b.n_parts = 0;
    mr_bundle_fini(&b);
    mr_bytes_fini(&out);
}

/* An index with this header and one entry "x". */
static int parse_entry(const char *header, size_t header_len, const char *entry, size_t len)
{
    struct mr_sstable_writer w;
    struct mr_bytes out;
    struct mr_bundle b;
    struct mr_error err = {0};
    mr_bytes_init(&out);
    mr_sstable_init(&w, &out);
    assert_int_equal(mr_sstable_add(&w, "", 0, header, header_len), 0);
    assert_int_equal(mr_sstable_add(&w, "x", 1, entry, len), 0);
    assert_int_equal(mr_sstable_finish(&w), 0);
    mr_sstable_fini(&w);
    int r = mr_bundle_parse("index", out.data, out.len, &b, &err);
    if (!r)
        mr_bundle_fini(&b);
    assert_int_equal(r, err.code);
    mr_bytes_fini(&out);
    return r;
}

#define HEADER      "\x08\x01\x1a\x02\x08\x01"
#define ENTRY(h, e) parse_entry(h, sizeof h - 1, e, sizeof e - 1)

static void wrong_headers_and_entries_are_refused(void **state)
{
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x00\x28\x04\x35\x01\x02\x03\x04"), 0);
    assert_int_equal(ENTRY("\x08\x01\x10\x01", "\x08\x01\x12\x00\x28\x04"), -ENOTSUP); /* big */
    assert_int_equal(ENTRY("\x08\x01\x1a\x02\x10\x02", "\x08\x01\x12\x00\x28\x04"), -ENOTSUP);
    assert_int_equal(ENTRY("", "\x08\x01\x12\x00\x28\x04"), -EBADMSG); /* no shards */
    assert_int_equal(ENTRY("\x08\xff\xff\xff\xff\x0f", "\x08\x01\x12\x00\x28\x04"), -EBADMSG);
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x00\x28\x05"), -EBADMSG); /* size */
    assert_int_equal(ENTRY(HEADER, "\x08\x15\x12\x00\x28\x04"), -ENOTSUP); /* a variant */
    assert_int_equal(ENTRY(HEADER, "\x08\xe8\x07\x12\x00"), -ENOTSUP);     /* not TensorFlow's */
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x00\x18\x01\x28\x04"), -EBADMSG); /* shard 1 */
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x02\x18\x01"), -EBADMSG); /* unknown rank */
    assert_int_equal(
        ENTRY(HEADER, "\x08\x01\x12\x00\x20\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x28\x04"),
        -EBADMSG); /* ends behind 2^63 */
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff"
                                   "\xff\x01"),
                     -EBADMSG); /* a dimension of -1 */
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x14\x12\x08\x08\xff\xff\xff\xff\xff\xff\x7f"
                                   "\x12\x08\x08\xff\xff\xff\xff\xff\xff\x7f"),
                     -EBADMSG); /* overflows */
    assert_int_equal(ENTRY(HEADER, "\x08\x01\x12\x12"
                                   "\x12\0\x12\0\x12\0\x12\0\x12\0\x12\0"
                                   "\x12\0\x12\0\x12\0"),
                     -ENOTSUP); /* nine dimensions */
    assert_int_equal(ENTRY(HEADER, "\x08\x07\x12\x07\x12\x05\x08\xff\xff\xff\x0f\x28\x04"),
                     -EBADMSG); /* millions of strings in 4 bytes */
    assert_int_equal(ENTRY(HEADER, "\x08"), -EBADMSG);
}

static void strings_are_checked_by_their_own_rule(void **state)
{
    struct mr_bytes b;
    uint32_t crc;
    mr_bytes_init(&b);
    uint32_t expected = sample_strings(&b);
    assert_int_equal(mr_bundle_strings_crc(b.data, b.len, 3, &crc), 0);
    assert_int_equal(crc, expected);
    assert_int_equal(mr_bundle_strings_crc(b.data, b.len, 2, &crc), -EBADMSG);
    assert_int_equal(mr_bundle_strings_crc(b.data, b.len - 1, 3, &crc), -EBADMSG);
    assert_int_equal(mr_bundle_strings_crc(b.data, b.len, UINT64_MAX, &crc), -EBADMSG);
    for (size_t bit = 0; bit < 8 * b.len; bit++) {
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(mr_bundle_strings_crc(b.data, b.len, 3, &crc) || crc != expected);
        b.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(mr_bundle_strings_crc((const uint8_t *)"\xd8\xea\x82\xa2", 4, 0, &crc), 0);
    mr_bytes_fini(&b);
}

static void a_graph_has_what_restore_needs(void **state)
{
    struct mr_tensor_table t;
    struct mr_bytes b;
    struct mr_tf_meta m;
    struct mr_error err = {0};
    mr_bytes_init(&b);
    sample_table(&t);
    assert_int_equal(mr_tf_meta_write(&t, &b), 0);
    assert_int_equal(mr_tf_meta_parse("meta", b.data, b.len, &t, &m, &err), 0);
    assert_int_equal(m.n_variables, t.n - 1); /* all but the strings */
    assert_int_equal(m.n_restored, m.n_variables);
    /* 4 a variable, 1 Assign each, and the saver's: Const, 4 of save, 3 of restore, restore_all */
    assert_int_equal(m.n_nodes, 5 * m.n_variables + 9);
    assert_int_equal(m.producer, 21);
    assert_int_equal(m.saver_version, 2);
    assert_true(m.has_saver);
    assert_int_equal(m.n_collections, 2);
    t.tensors[3].name = strcpy((char *)(uintptr_t)t.tensors[3].name, "other");
    assert_int_equal(mr_tf_meta_parse("meta", b.data, b.len, &t, &m, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "global_step"));
    mr_tensor_table_fini(&t);
    mr_bytes_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_comes_back),
        cmocka_unit_test(the_packed_layout_has_no_gaps),
        cmocka_unit_test(slices_are_found_by_their_keys),
        cmocka_unit_test(wrong_headers_and_entries_are_refused),
        cmocka_unit_test(strings_are_checked_by_their_own_rule),
        cmocka_unit_test(a_graph_has_what_restore_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
