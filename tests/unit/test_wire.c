/* test_wire.c - protocol buffers by hand: numbers, bytes, messages in messages, and bad ones. */
#include "wire.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

static void numbers_of_every_length_come_back(void **state)
{
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t v = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - (bits % 2), got;
        struct mr_bytes b;
        mr_bytes_init(&b);
        mr_wire_put_varint(&b, v);
        struct mr_wire w = mr_wire_over(b.data, b.len);
        assert_int_equal(mr_wire_varint(&w, &got), 0);
        assert_true(got == v);
        assert_true(w.at == w.end);
        for (size_t cut = 0; cut < b.len; cut++) {
            w = mr_wire_over(b.data, cut);
            assert_int_equal(mr_wire_varint(&w, &got), -EBADMSG);
        }
        mr_bytes_fini(&b);
    }
    struct mr_wire w = mr_wire_over("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10);
    uint64_t v;
    assert_int_equal(mr_wire_varint(&w, &v), -EBADMSG); /* 65 bits */
}

/* A message of `len` bytes inside another: its length takes one, two or three bytes. */
static void messages_nest_whatever_their_length(void **state)
{
    static uint8_t body[20000];
    static const size_t lens[] = {0, 1, 120, 123, 124, 127, 128, 16378, 16384, 20000};
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        struct mr_bytes b;
        struct mr_wire_field f, g;
        mr_bytes_init(&b);
        memset(body, (int)i + 1, lens[i]);
        size_t outer = mr_wire_begin(&b, 3);
        mr_wire_put_bytes(&b, 5, body, lens[i]);
        mr_wire_put_i32(&b, 6, 0xdeadbeef);
        mr_wire_end(&b, outer);
        mr_wire_put_int(&b, 1, 77);
        struct mr_wire w = mr_wire_over(b.data, b.len), in;
        assert_int_equal(mr_wire_next(&w, &f), 1);
        assert_int_equal(f.number, 3);
        in = f.body;
        assert_int_equal(mr_wire_next(&in, &g), 1);
        assert_int_equal(g.number, 5);
        assert_int_equal(mr_wire_left(&g.body), lens[i]);
        assert_memory_equal(g.body.at, body, lens[i]);
        assert_int_equal(mr_wire_next(&in, &g), 1);
        assert_int_equal(g.value, 0xdeadbeef);
        assert_int_equal(mr_wire_next(&in, &g), 0);
        assert_int_equal(mr_wire_next(&w, &f), 1);
        assert_int_equal(f.value, 77);
        assert_int_equal(mr_wire_next(&w, &f), 0);
        mr_bytes_fini(&b);
    }
}

static int read_all(const void *bytes, size_t len)
{
    struct mr_wire w = mr_wire_over(bytes, len);
    struct mr_wire_field f;
    int r;
    while ((r = mr_wire_next(&w, &f)) > 0)
        ;
    return r;
}

static void bad_messages_are_refused(void **state)
{
    assert_int_equal(read_all("\x08\x01\x15\1\2\3\4\x19\1\2\3\4\5\6\7\x08", 16), 0);
    assert_int_equal(read_all("\x0d\1\2\3", 4), -EBADMSG);         /* short fixed32 */
    assert_int_equal(read_all("\x09\1\2\3\4\5\6\7", 8), -EBADMSG); /* short fixed64 */
    assert_int_equal(read_all("\x12\x05"
                              "abcd",
                              6),
                     -EBADMSG); /* short string */
    assert_int_equal(read_all("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), -EBADMSG);
    assert_int_equal(read_all("\x00\x01", 2), -EBADMSG); /* field 0 */
    assert_int_equal(read_all("\x0b", 1), -EBADMSG);     /* a group */
    assert_int_equal(read_all("\x0e", 1), -EBADMSG);     /* type 6 */
    assert_int_equal(read_all("\x08", 1), -EBADMSG);
    assert_int_equal(read_all("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_length_come_back),
        cmocka_unit_test(messages_nest_whatever_their_length),
        cmocka_unit_test(bad_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
