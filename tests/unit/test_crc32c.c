/* test_crc32c.c - every way of computing agrees with a loop over bits. */
#include "crc32c.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

static uint32_t by_bits(uint32_t crc, const uint8_t *p, size_t len)
{
    crc = ~crc;
    for (; len; len--) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void fill(uint8_t *p, size_t len)
{
    uint64_t x = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < len; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        p[i] = (uint8_t)(x >> 56);
    }
}

static void published_values_come_out(void **state)
{
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 255, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    assert_int_equal(mr_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(mr_crc32c(0, "", 0), 0);
    assert_int_equal(mr_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(mr_crc32c(0, ones, 32), 0x62a8ab43); /* RFC 3720 */
    assert_int_equal(mr_crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(mr_crc32c_mask(0xe3069283), 0xc78ab0e5);
    assert_int_equal(mr_crc32c_mask(0), 0xa282ead8);
    assert_int_equal(mr_crc32c_mask(0x8a9136aa), 0x0fd7fffa);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(mr_crc32c_unmask(mr_crc32c_mask(i * 4294967u)), i * 4294967u);
}

/* One call, checked against bits; the copy must be exact and stay inside its place. */
static void check_one(enum mr_crc32c_way way, const uint8_t *src, uint8_t *dst, size_t len)
{
    uint32_t expected = by_bits(0x12345678, src, len);
    assert_int_equal(mr_crc32c_by(way, 0x12345678, NULL, src, len), expected);
    memset(dst - 1, 0xa5, len + 2);
    assert_int_equal(mr_crc32c_by(way, 0x12345678, dst, src, len), expected);
    assert_memory_equal(dst, src, len);
    assert_int_equal(dst[-1], 0xa5);
    assert_int_equal(dst[len], 0xa5);
}

static void every_way_agrees_at_every_alignment_and_length(void **state)
{
    enum { SPACE = 2048 };
    uint8_t *src = malloc(SPACE + 128), *dst = malloc(SPACE + 128);
    assert_true(src && dst);
    fill(src, SPACE + 128);
    for (int w = 0; w < MR_CRC32C_N_WAYS; w++) {
        enum mr_crc32c_way way = (enum mr_crc32c_way)w;
        if (!mr_crc32c_has(way))
            continue;
        for (size_t len = 0; len <= 600; len++)
            check_one(way, src + len % 64, dst + 1 + len * 7 % 64, len);
        for (size_t align = 0; align < 64; align++)
            for (size_t len = 1000; len < SPACE; len += 173)
                check_one(way, src + align, dst + 64 - align, len);
    }
    free(src);
    free(dst);
}

/* Large enough for stores around the cache. */
static void large_copies_agree(void **state)
{
    size_t len = ((size_t)1 << 20) + 4097;
    uint8_t *src = malloc(len + 64), *dst = malloc(len + 80);
    assert_true(src && dst);
    fill(src, len + 64);
    for (int w = 0; w < MR_CRC32C_N_WAYS; w++)
        for (size_t align = 0; align < 64; align += 21)
            if (mr_crc32c_has((enum mr_crc32c_way)w))
                check_one((enum mr_crc32c_way)w, src + align / 2, dst + 1 + align, len + align % 5);
    assert_int_equal(mr_crc32c_copy(0, dst, src, len), mr_crc32c(0, src, len));
    free(src);
    free(dst);
}

static void pieces_join_to_the_whole(void **state)
{
    uint8_t bytes[3000];
    fill(bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 111) {
        uint32_t whole = mr_crc32c(0, bytes, sizeof bytes);
        uint32_t a = mr_crc32c(0, bytes, cut);
        uint32_t b = mr_crc32c(0, bytes + cut, sizeof bytes - cut);
        assert_int_equal(mr_crc32c(a, bytes + cut, sizeof bytes - cut), whole);
        assert_int_equal(mr_crc32c_combine(a, b, sizeof bytes - cut), whole);
    }
    /* 2^40 zero bytes, joined by doubling. */
    uint32_t one = mr_crc32c(0, "", 1), zeros = one;
    for (int i = 0; i < 40; i++)
        zeros = mr_crc32c_combine(zeros, zeros, (uint64_t)1 << i);
    assert_int_equal(mr_crc32c_combine(0, zeros, (uint64_t)1 << 40), zeros);
    assert_int_equal(mr_crc32c_combine(one, zeros, (uint64_t)1 << 40),
                     mr_crc32c_combine(zeros, one, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values_come_out),
        cmocka_unit_test(every_way_agrees_at_every_alignment_and_length),
        cmocka_unit_test(large_copies_agree),
        cmocka_unit_test(pieces_join_to_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
