/* test_digest.c - the fingerprint sees every byte, every length and every division. */
#include "digest.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

static uint64_t digest_of(const void *bytes, size_t len)
{
    struct mr_digest d;
    mr_digest_init(&d);
    mr_digest_add(&d, bytes, len);
    return mr_digest_value(&d);
}

static void fill(uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 37 + 11);
}

static void every_bit_counts(void **state)
{
    uint8_t bytes[200];
    fill(bytes, sizeof bytes);
    for (size_t len = 1; len <= sizeof bytes; len += 13) {
        uint64_t was = digest_of(bytes, len);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
            assert_true(digest_of(bytes, len) != was);
            bytes[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        }
        assert_true(digest_of(bytes, len) == was);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_all_different(uint64_t *value, size_t n)
{
    qsort(value, n, sizeof *value, by_value);
    for (size_t i = 1; i < n; i++)
        assert_true(value[i - 1] < value[i]);
}

static void every_length_counts_even_of_zeros(void **state)
{
    enum { N = 300 };
    uint8_t zeros[N] = {0};
    uint64_t value[N];
    for (size_t len = 0; len < N; len++)
        value[len] = digest_of(zeros, len);
    check_all_different(value, N);
}

static void every_division_counts(void **state)
{
    enum { N = 150 };
    uint8_t bytes[N];
    uint64_t value[N + 1];
    fill(bytes, N);
    for (size_t cut = 0; cut < N; cut++) {
        struct mr_digest d;
        mr_digest_init(&d);
        mr_digest_add(&d, bytes, cut);
        mr_digest_add(&d, bytes + cut, N - cut);
        value[cut] = mr_digest_value(&d);
    }
    value[N] = digest_of(bytes, N);
    check_all_different(value, N + 1);
}

static void the_order_of_blocks_counts(void **state)
{
    uint8_t ab[64], ba[64];
    fill(ab, 64);
    memcpy(ba, ab + 32, 32);
    memcpy(ba + 32, ab, 32);
    assert_true(digest_of(ab, 64) != digest_of(ba, 64));
    /* Words swapped between lanes. */
    memcpy(ba, ab, 64);
    memcpy(ba, ab + 8, 8);
    memcpy(ba + 8, ab, 8);
    assert_true(digest_of(ab, 64) != digest_of(ba, 64));
}

static void numbers_count_and_differ_from_bytes(void **state)
{
    enum { N = 1000 };
    uint64_t value[2 * N];
    for (uint64_t i = 0; i < N; i++) {
        struct mr_digest d;
        mr_digest_init(&d);
        mr_digest_add_u64(&d, i);
        value[i] = mr_digest_value(&d);
        value[N + i] = digest_of(&i, sizeof i);
    }
    check_all_different(value, 2 * N);
}

static void alignment_does_not_count(void **state)
{
    uint8_t bytes[100], moved[110];
    fill(bytes, sizeof bytes);
    for (size_t by = 0; by < 9; by++) {
        memcpy(moved + by, bytes, sizeof bytes);
        assert_true(digest_of(moved + by, sizeof bytes) == digest_of(bytes, sizeof bytes));
    }
}

/* Results of one machine are compared with those of another, so the values may not change. */
static void known_values_stay(void **state)
{
    uint8_t bytes[100];
    fill(bytes, sizeof bytes);
    assert_true(digest_of("", 0) == UINT64_C(0x7c9b34f58aaf949e));
    assert_true(digest_of("millrace", 8) == UINT64_C(0x26e475a9e7a48dda));
    assert_true(digest_of(bytes, sizeof bytes) == UINT64_C(0x2624f81f7dba48a7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(every_length_counts_even_of_zeros),
        cmocka_unit_test(every_division_counts),
        cmocka_unit_test(the_order_of_blocks_counts),
        cmocka_unit_test(numbers_count_and_differ_from_bytes),
        cmocka_unit_test(alignment_does_not_count),
        cmocka_unit_test(known_values_stay),
    };
    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
