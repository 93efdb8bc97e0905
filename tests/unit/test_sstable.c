/* test_sstable.c - tables as LevelDB and TensorFlow write them, and tables that are not. */
#include "sstable.h"

#include "crc32c.h"
#include "unit.h"
#include "wire.h"

#include <errno.h>
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys and values that a table holds, in a row. */
struct log {
    struct mr_bytes keys, values;
    unsigned n;
};

static int note(void *ctx, const uint8_t *key, size_t key_len, const uint8_t *value,
                size_t value_len, struct mr_error *err)
{
    struct log *l = ctx;
    mr_bytes_add(&l->keys, key, key_len);
    mr_bytes_add_u8(&l->keys, '|');
    mr_bytes_add(&l->values, value, value_len);
    l->n++;
    return 0;
}

static int read_table(const uint8_t *bytes, size_t len, struct log *l)
{
    struct mr_error err = {0};
    memset(l, 0, sizeof *l);
    int r = mr_sstable_read("table", bytes, len, note, l, &err);
    assert_int_equal(r, err.code);
    return r;
}

static void drop(struct log *l)
{
    mr_bytes_fini(&l->keys);
    mr_bytes_fini(&l->values);
}

/* The smallest real file, written by TensorFlow. */
static const uint8_t counter[123] = {
    0,    0,    6,    8,    1,    0x1a, 2,    8,    1,    0,
    7,    0x0b, 'c',  'o',  'u',  'n',  't',  'e',  'r',  8,
    1,    0x12, 0,    0x28, 4,    0x35, 0xa6, 0x7b, 0x11, 0x3a,
    0,    0,    0,    0,    1,    0,    0,    0,    0,    0x5f,
    0xa0, 0x10, 0x73, 0,    0,    0,    0,    1,    0,    0,
    0,    0,    0xc0, 0xf2, 0xa1, 0xb0, 0,    1,    2,    'd',
    0,    0x26, 0,    0,    0,    0,    1,    0,    0,    0,
    0,    0x22, 0xb1, 0x61, 0x03, 0x2b, 8,    0x38, 0x0e, [115] = 0x57,
    0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

static void write_counter(struct mr_bytes *out)
{
    struct mr_sstable_writer w;
    mr_bytes_init(out);
    mr_sstable_init(&w, out);
    assert_int_equal(mr_sstable_add(&w, "", 0, counter + 3, 6), 0);
    assert_int_equal(mr_sstable_add(&w, "counter", 7, counter + 19, 11), 0);
    assert_int_equal(mr_sstable_finish(&w), 0);
    mr_sstable_fini(&w);
}

static void a_real_table_is_written_byte_for_byte(void **state)
{
    struct mr_bytes out;
    struct log l;
    write_counter(&out);
    assert_int_equal(out.len, sizeof counter);
    assert_memory_equal(out.data, counter, sizeof counter);
    assert_int_equal(read_table(out.data, out.len, &l), 0);
    assert_int_equal(l.n, 2);
    assert_memory_equal(l.keys.data, "|counter|", 9);
    drop(&l);
    mr_bytes_fini(&out);
}

static void every_flipped_bit_is_noticed(void **state)
{
    struct mr_bytes out;
    struct log l;
    write_counter(&out);
    for (size_t bit = 0; bit < 8 * out.len; bit++) {
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(read_table(out.data, out.len, &l) < 0);
        drop(&l);
        out.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t len = 0; len < out.len; len++) {
        assert_true(read_table(out.data, len, &l) < 0);
        drop(&l);
    }
    mr_bytes_fini(&out);
}

/* So many that there are dozens of blocks, with values of up to three blocks' size. */
static void a_large_table_comes_back(void **state)
{
    struct mr_sstable_writer w;
    struct mr_bytes out, keys, values;
    struct log l;
    char key[64];
    mr_bytes_init(&out);
    mr_bytes_init(&keys);
    mr_bytes_init(&values);
    uint8_t *value = calloc(1, 800000);
    assert_non_null(value);
    mr_sstable_init(&w, &out);
    for (unsigned i = 0; i < 20000; i++) {
        int n = snprintf(key, sizeof key, "layer%06u/%s", i, i % 3 ? "weights" : "biases");
        size_t len = i % 5000 == 77 ? 800000 : i % 400;
        value[0] = (uint8_t)i;
        assert_int_equal(mr_sstable_add(&w, key, (size_t)n, value, len), 0);
        mr_bytes_add(&keys, key, (size_t)n);
        mr_bytes_add_u8(&keys, '|');
        mr_bytes_add(&values, value, len);
    }
    assert_int_equal(mr_sstable_add(&w, key, strlen(key), "", 0), -EINVAL);
    assert_int_equal(mr_sstable_add(&w, "a", 1, "", 0), -EINVAL);
    assert_int_equal(mr_sstable_finish(&w), 0);
    mr_sstable_fini(&w);
    assert_int_equal(read_table(out.data, out.len, &l), 0);
    assert_int_equal(l.n, 20000);
    assert_int_equal(l.keys.len, keys.len);
    assert_memory_equal(l.keys.data, keys.data, keys.len);
    assert_int_equal(l.values.len, values.len);
    assert_memory_equal(l.values.data, values.data, values.len);
    drop(&l);
    free(value);
    mr_bytes_fini(&out);
    mr_bytes_fini(&keys);
    mr_bytes_fini(&values);
}

static void put_block(struct mr_bytes *out, const void *bytes, size_t len, uint8_t type)
{
    size_t begin = out->len;
    mr_bytes_add(out, bytes, len);
    mr_bytes_add_u8(out, type);
    mr_bytes_add_u32(out, mr_crc32c_mask(mr_crc32c(0, out->data + begin, len + 1)));
}

static size_t put_snappy(struct mr_bytes *out, const struct mr_bytes *block)
{
    size_t n = snappy_max_compressed_length(block->len);
    char *packed = malloc(n);
    assert_non_null(packed);
    assert_int_equal(snappy_compress((const char *)block->data, block->len, packed, &n), SNAPPY_OK);
    put_block(out, packed, n, 1);
    free(packed);
    return n;
}

static void put_footer(struct mr_bytes *out, size_t metaindex, size_t metaindex_len, size_t index,
                       size_t index_len)
{
    size_t begin = out->len;
    mr_wire_put_varint(out, metaindex);
    mr_wire_put_varint(out, metaindex_len);
    mr_wire_put_varint(out, index);
    mr_wire_put_varint(out, index_len);
    mr_bytes_add(out, NULL, begin + 40 - out->len);
    mr_bytes_add_u64(out, 0xdb4775248b80fb57u);
}

/* Data and index blocks in snappy, as TensorFlow 1.14 wrote them. */
static void compressed_blocks_are_read(void **state)
{
    struct mr_bytes out, block, index;
    struct log l;
    mr_bytes_init(&out);
    mr_bytes_init(&block);
    mr_bytes_init(&index);
    mr_bytes_add(&block, "\0\4\0name\3\1\4s1111\3\1\4t2222", 23);
    mr_bytes_add(&block, "\0\0\0\0\1\0\0\0", 8);
    size_t n = put_snappy(&out, &block), metaindex = out.len;
    put_block(&out, "\0\0\0\0\1\0\0\0", 8, 0);
    size_t at = out.len;
    mr_bytes_add(&index, "\0\1\2o\0", 5);
    mr_bytes_add_u8(&index, (uint8_t)n);
    mr_bytes_add(&index, "\0\0\0\0\1\0\0\0", 8);
    size_t index_len = put_snappy(&out, &index);
    put_footer(&out, metaindex, 8, at, index_len);
    assert_int_equal(read_table(out.data, out.len, &l), 0);
    assert_int_equal(l.n, 3);
    assert_memory_equal(l.keys.data, "name|nams|namt|", 15);
    drop(&l);
    mr_bytes_fini(&out);
    mr_bytes_fini(&block);
    mr_bytes_fini(&index);
}

/* One data block with right crcs and wrong insides. */
static int read_block(const void *bytes, size_t len, uint8_t type)
{
    struct mr_bytes out, index;
    struct log l;
    mr_bytes_init(&out);
    mr_bytes_init(&index);
    put_block(&out, bytes, len, type);
    size_t metaindex = out.len;
    put_block(&out, "\0\0\0\0\1\0\0\0", 8, 0);
    size_t at = out.len;
    mr_bytes_add(&index, "\0\1\2z\0", 5);
    mr_bytes_add_u8(&index, (uint8_t)len);
    mr_bytes_add(&index, "\0\0\0\0\1\0\0\0", 8);
    put_block(&out, index.data, index.len, 0);
    put_footer(&out, metaindex, 8, at, index.len);
    int r = read_table(out.data, out.len, &l);
    drop(&l);
    mr_bytes_fini(&out);
    mr_bytes_fini(&index);
    return r;
}

#define BLOCK(text, type) read_block(text, sizeof text - 1, type)

static void wrong_blocks_are_refused(void **state)
{
    assert_int_equal(BLOCK("\0\1\1ab\0\0\0\0\1\0\0\0", 0), 0);
    assert_int_equal(BLOCK("\0\1\1ab\0\0\0\0\1\0\0\0", 2), -ENOTSUP);
    assert_int_equal(BLOCK("\0\1\1ab\0\0\0\0\1\0\0\0", 1), -EBADMSG); /* is not snappy */
    assert_int_equal(BLOCK("\xff\xff\xff\xff\x0f", 1), -EBADMSG);     /* claims 4 GiB */
    assert_int_equal(BLOCK("\0\1\1ab\0\0\0\0\2\0\0\0", 0), -EBADMSG); /* two restarts, one fits */
    assert_int_equal(BLOCK("\0\1\1ab\0\0\0\0\0\0\0\0", 0), -EBADMSG); /* none */
    assert_int_equal(BLOCK("\0\1\1ab\0\0\0\0\xff\xff\xff\xff", 0), -EBADMSG);
    assert_int_equal(BLOCK("\0\1\1ab\1\0\0\0\1\0\0\0", 0), -EBADMSG); /* not at an entry */
    assert_int_equal(BLOCK("\1\1\1ab\0\0\0\0\1\0\0\0", 0), -EBADMSG); /* shares with nothing */
    assert_int_equal(BLOCK("\0\1\x7f"
                           "ab\0\0\0\0\1\0\0\0",
                           0),
                     -EBADMSG);                                               /* cut off */
    assert_int_equal(BLOCK("\0\1\1ab\0\1\1ab\0\0\0\0\1\0\0\0", 0), -EBADMSG); /* same key twice */
    assert_int_equal(BLOCK("\0\1\1{b\0\0\0\0\1\0\0\0", 0), -EBADMSG); /* above the index's key */
    assert_int_equal(BLOCK("\1\0\0", 0), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_real_table_is_written_byte_for_byte),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(a_large_table_comes_back),
        cmocka_unit_test(compressed_blocks_are_read),
        cmocka_unit_test(wrong_blocks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
