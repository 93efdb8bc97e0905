/* fuzz_tf_index.c - whatever the bytes are, an index is refused with words or yields a sound table.
 *
 * Checksums would keep a fuzzer out, so unless the first byte is 0 those of the blocks that the
 * footer and the index name are made right before. */
#include "tf_bundle.h"

#include "crc32c.h"
#include "fuzz_check.h"
#include "fuzz_entry.h"
#include "wire.h"

#include <stdint.h>
#include <string.h>

static void set_crc(uint8_t *file, size_t len, uint64_t offset, uint64_t size)
{
    if (size > len || len - size < 5 || offset > len - size - 5)
        return;
    uint32_t crc = mr_crc32c_mask(mr_crc32c(0, file + offset, size + 1));
    for (int i = 0; i < 4; i++)
        file[offset + size + 1 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

/* The entries of an index block that is not compressed lead to the data blocks. */
static void mend_data(uint8_t *file, size_t len, uint64_t offset, uint64_t size)
{
    if (size > len || offset > len - size)
        return;
    struct mr_wire w = mr_wire_over(file + offset, size);
    for (int i = 0; i < 64; i++) {
        uint64_t shared, unshared, value_len, at, n;
        if (mr_wire_varint(&w, &shared) || mr_wire_varint(&w, &unshared) ||
            mr_wire_varint(&w, &value_len) || unshared > mr_wire_left(&w) ||
            value_len > mr_wire_left(&w) - unshared)
            return;
        struct mr_wire v = mr_wire_over(w.at + unshared, value_len);
        if (!mr_wire_varint(&v, &at) && !mr_wire_varint(&v, &n))
            set_crc(file, len, at, n);
        w.at += unshared + value_len;
    }
}

static void mend(uint8_t *file, size_t len)
{
    if (len < 48)
        return;
    static const uint8_t magic[8] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
    memcpy(file + len - 8, magic, 8);
    struct mr_wire w = mr_wire_over(file + len - 48, 40);
    uint64_t n[4];
    for (int i = 0; i < 4; i++)
        if (mr_wire_varint(&w, &n[i]))
            return;
    mend_data(file, len - 48, n[2], n[3]);
    set_crc(file, len - 48, n[0], n[1]);
    set_crc(file, len - 48, n[2], n[3]);
}

static void check_table(const struct mr_bundle *b)
{
    for (size_t i = 0; i < b->tensors.n; i++) {
        const struct mr_tensor *t = &b->tensors.tensors[i];
        uint64_t bytes;
        REQUIRE(t->name[0] && t->n_dims <= MR_TENSOR_MAX_DIMS);
        REQUIRE(t->shard < b->n_shards);
        REQUIRE(t->offset <= INT64_MAX && t->bytes <= INT64_MAX);
        REQUIRE(t->dtype == MR_DT_STRING ||
                (!mr_tensor_size(t->dtype, t->n_dims, t->dims, &bytes) && bytes == t->bytes));
        REQUIRE(!i || strcmp(b->tensors.tensors[i - 1].name, t->name) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_bundle b, again;
    struct mr_bytes out;
    struct mr_error err = {0};
    size_t len = size ? size - 1 : 0;
    uint8_t *file = malloc(len ? len : 1);
    if (!file)
        return 0;
    if (len)
        memcpy(file, data + 1, len);
    if (size && data[0])
        mend(file, len);
    int r = mr_bundle_parse("fuzz", file, len, &b, &err);
    REQUIRE(r <= 0 && r == err.code && !r == !err.text[0]);
    if (!r) {
        check_table(&b);
        mr_bytes_init(&out);
        REQUIRE(!mr_bundle_write_index(&b, &out, &err));
        REQUIRE(!mr_bundle_parse("again", out.data, out.len, &again, &err));
        REQUIRE(again.tensors.n == b.tensors.n && again.n_parts == b.n_parts);
        mr_bundle_fini(&again);
        mr_bytes_fini(&out);
        mr_bundle_fini(&b);
    }
    free(file);
    return 0;
}
