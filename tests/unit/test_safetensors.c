/* test_safetensors.c - headers of safetensors files: every rule, each broken in turn. */
#include "safetensors.h"

#include "ckpt_samples.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of this header and `data` bytes of zeros. */
static int parse(const char *json, size_t len, uint64_t data)
{
    struct mr_bytes b;
    struct mr_safetensors s;
    struct mr_error err = {0};
    mr_bytes_init(&b);
    mr_bytes_add_u64(&b, len);
    mr_bytes_add(&b, json, len);
    int r = mr_safetensors_parse("file", b.data, b.len, b.len + data, &s, &err);
    assert_int_equal(r, err.code);
    assert_int_equal(!r, !err.text[0]);
    if (!r)
        mr_safetensors_fini(&s);
    mr_bytes_fini(&b);
    return r;
}

#define PARSE(json, data) parse(json, sizeof json - 1, data)
#define T(dtype, shape, offsets)                                                                   \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void legal_headers_are_read(void **state)
{
    assert_int_equal(PARSE("{}", 0), 0);
    assert_int_equal(PARSE(" \n{}  ", 0), 0);
    assert_int_equal(PARSE("{\"__metadata__\":{}}", 0), 0);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[2,2]", "[0,16]") "}", 16), 0);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[]", "[0,4]") "}", 4), 0);
    assert_int_equal(
        PARSE("{\"a\":" T("F32", "[0]", "[0,0]") ",\"b\":" T("U8", "[1]", "[0,1]") "}", 1), 0);
    assert_int_equal(
        PARSE("{\"b\":" T("I64", "[1]", "[2,10]") ",\"a\":" T("F16", "[1]", "[0,2]") "}", 10), 0);
    assert_int_equal(PARSE("{\"a\":" T("F4", "[4]", "[0,2]") "}", 2), 0);
}

static void illegal_headers_are_refused(void **state)
{
    char many[1024] = "{";
    assert_int_equal(PARSE("{", 0), -EBADMSG);
    assert_int_equal(PARSE("[]", 0), -EBADMSG);
    assert_int_equal(PARSE("", 0), -EBADMSG);
    assert_int_equal(PARSE("{} x", 0), -EBADMSG);
    assert_int_equal(PARSE("{\"\xff\":1}", 0), -EBADMSG);
    assert_int_equal(PARSE("{\"__metadata__\":{\"a\":1}}", 0), -EBADMSG);
    assert_int_equal(PARSE("{\"__metadata__\":[]}", 0), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":1}", 0), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":{}}", 0), -EBADMSG);
    assert_int_equal(
        PARSE("{\"a\":" T("F32", "[2,2]", "[0,16]") ",\"a\":" T("F32", "[2,2]", "[0,16]") "}", 16),
        -EBADMSG); /* twice */
    assert_int_equal(PARSE("{\"a\":" T("F33", "[1]", "[0,4]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1.0]", "[0,4]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[-1]", "[0,4]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "{}", "[0,4]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[0]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[0,4,4]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[4,0]") "}", 4), -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[0,3]") "}", 3), -EBADMSG); /* size */
    assert_int_equal(PARSE("{\"a\":" T("F4", "[3]", "[0,2]") "}", 2), -EBADMSG);  /* half bytes */
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[0,4]") "}", 5), -EBADMSG); /* trailing */
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[0,4]") "}", 2), -ENODATA); /* missing */
    assert_int_equal(PARSE("{\"a\":" T("F32", "[1]", "[4,8]") "}", 8), -EBADMSG); /* hole */
    assert_int_equal(PARSE("{\"a\":" T("U8", "[2,18446744073709551614]", "[0,4]") "}", 4),
                     -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("F32", "[2,9223372036854775807]", "[0,4]") "}", 4),
                     -EBADMSG);
    assert_int_equal(PARSE("{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1), -ENOTSUP);
    for (int i = 0; i < 10; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%s\"t%d\":%s", i ? "," : "", i,
                 T("F32", "[2,2]", "[0,16]"));
    strcat(many, "}");
    assert_int_equal(parse(many, strlen(many), 16), -EBADMSG); /* ten on one range */
}

static void lengths_are_checked_before_anything_is_read(void **state)
{
    uint64_t n;
    const uint8_t large[8] = {0, 0xe1, 0xf5, 5, 0, 0, 0, 0},
                  all[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t too_large[8] = {1, 0xe1, 0xf5, 5}, ten[8] = {10};
    assert_int_equal(mr_safetensors_header_bytes("f", large, 100000008, &n, NULL), 0);
    assert_int_equal(n, 100000008);
    assert_int_equal(mr_safetensors_header_bytes("f", too_large, 200000000, &n, NULL), -EBADMSG);
    assert_int_equal(mr_safetensors_header_bytes("f", all, 200000000, &n, NULL), -EBADMSG);
    assert_int_equal(mr_safetensors_header_bytes("f", ten, 17, &n, NULL), -ENODATA);
    assert_int_equal(mr_safetensors_header_bytes("f", ten, 18, &n, NULL), 0);
    assert_int_equal(mr_safetensors_header_bytes("f", ten, 0, &n, NULL), -ENODATA);
}

static void what_is_written_comes_back_in_the_formats_order(void **state)
{
    struct mr_tensor_table t;
    struct mr_bytes b;
    struct mr_safetensors s;
    uint64_t header_bytes, bytes;
    sample_table(&t);
    mr_bytes_init(&b);
    assert_int_equal(mr_safetensors_layout(&t, &header_bytes, &bytes, NULL), 0);
    assert_int_equal(header_bytes % MR_SAFETENSORS_ALIGN, 0);
    assert_int_equal(t.tensors[0].offset, header_bytes);
    assert_int_equal(mr_safetensors_write_header(&t, &b, NULL), 0);
    assert_int_equal(b.len, header_bytes);
    assert_int_equal(mr_safetensors_parse("file", b.data, b.len, bytes, &s, NULL), 0);
    assert_true(s.sealed);
    assert_int_equal(s.tensors.n, t.n);
    for (size_t i = 0; i < t.n; i++) {
        const struct mr_tensor *x = &t.tensors[i], *y = mr_tensor_table_find(&s.tensors, x->name);
        assert_non_null(y);
        assert_int_equal(y->offset, x->offset);
        assert_int_equal(y->crc, x->crc);
        assert_int_equal(y->dtype, x->dtype);
        assert_int_equal(y->n_dims, x->n_dims);
        assert_memory_equal(y->dims, x->dims, x->n_dims * sizeof *x->dims);
    }
    assert_string_equal(t.tensors[0].name, "global_step"); /* I64 before F64, F32, U8, BOOL */
    assert_string_equal(t.tensors[t.n - 1].name, "flags");
    mr_safetensors_fini(&s);
    mr_bytes_fini(&b);
    mr_tensor_table_fini(&t);
}

static int layout_of(const char *name, const char *other)
{
    struct mr_tensor_table t;
    uint64_t a, b;
    mr_tensor_table_init(&t);
    mr_tensor_table_add(&t, &(struct mr_tensor){.name = name, .dtype = MR_DT_U8});
    mr_tensor_table_add(&t, &(struct mr_tensor){.name = other, .dtype = MR_DT_F32});
    int r = mr_safetensors_layout(&t, &a, &b, NULL);
    mr_tensor_table_fini(&t);
    return r;
}

static void names_that_json_cannot_have_are_refused(void **state)
{
    assert_int_equal(layout_of("a", "b"), 0);
    assert_int_equal(layout_of("a", "a"), -EINVAL);
    assert_int_equal(layout_of("a\xff", "b"), -EINVAL);
    assert_int_equal(layout_of("__metadata__", "b"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_headers_are_read),
        cmocka_unit_test(illegal_headers_are_refused),
        cmocka_unit_test(lengths_are_checked_before_anything_is_read),
        cmocka_unit_test(what_is_written_comes_back_in_the_formats_order),
        cmocka_unit_test(names_that_json_cannot_have_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
