/* fuzz_safetensors.c - whatever the bytes are, a header is refused with words or yields tensors
 * that fill the file without holes.
 *
 * The bytes are the JSON; the first one says how many bytes of data follow it in the file. */
#include "safetensors.h"

#include "fuzz_check.h"
#include "fuzz_entry.h"

static void check_table(const struct mr_safetensors *s, uint64_t file_bytes)
{
    uint64_t at = s->header_bytes;
    for (size_t i = 0; i < s->tensors.n; i++) {
        const struct mr_tensor *t = &s->tensors.tensors[i];
        REQUIRE(t->offset == at);
        REQUIRE(t->n_dims <= MR_TENSOR_MAX_DIMS);
        at += t->bytes;
    }
    REQUIRE(at == file_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_safetensors s;
    struct mr_bytes b;
    struct mr_error err = {0};
    if (!size)
        return 0;
    mr_bytes_init(&b);
    mr_bytes_add_u64(&b, size - 1);
    mr_bytes_add(&b, data + 1, size - 1);
    uint64_t file_bytes = b.len + data[0];
    int r = mr_safetensors_parse("fuzz", b.data, b.len, file_bytes, &s, &err);
    REQUIRE(r <= 0 && r == err.code && !r == !err.text[0]);
    if (!r) {
        check_table(&s, file_bytes);
        mr_safetensors_fini(&s);
    }
    mr_bytes_fini(&b);
    return 0;
}
