/* test_size_split.c - fio's notation of block sizes and shares, and draws that keep to it. */
#include "size_split.h"

#include "draw.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static struct mr_size_split parsed(const char *text)
{
    struct mr_size_split s;
    struct mr_error err = {0};
    if (mr_size_split_parse(text, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static void imagenets_split_is_read(void **state)
{
    static const uint32_t bytes[] = {2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
    static const uint32_t up_to[] = {100, 300, 700, 1500, 2800, 6600, 9900, 10000};
    struct mr_size_split s = parsed(MR_SPLIT_IMAGENET);
    (void)state;
    assert_int_equal(s.n, 8);
    for (unsigned i = 0; i < s.n; i++) {
        assert_int_equal(s.bytes[i], bytes[i]);
        assert_int_equal(s.up_to[i], up_to[i]);
    }
    assert_int_equal(mr_size_split_min(&s), 2048);
    assert_int_equal(mr_size_split_max(&s), 262144);
    double mean = 0;
    for (unsigned i = 0; i < s.n; i++)
        mean += bytes[i] * (up_to[i] - (i ? up_to[i - 1] : 0)) / 10000.0;
    assert_true(mr_size_split_mean(&s) > mean - 0.01 && mr_size_split_mean(&s) < mean + 0.01);
}

static void entries_without_a_share_divide_the_rest(void **state)
{
    struct mr_size_split s = parsed("4k/50:64k/:1m");
    (void)state;
    assert_int_equal(s.n, 3);
    assert_int_equal(s.up_to[0], 5000);
    assert_int_equal(s.up_to[1], 7500);
    assert_int_equal(s.up_to[2], 10000);
    assert_int_equal(s.bytes[2], 1 << 20);
    s = parsed("1K:2K:3K"); /* thirds: the last one gets what does not divide */
    assert_int_equal(s.up_to[0], 3333);
    assert_int_equal(s.up_to[1], 6666);
    assert_int_equal(s.up_to[2], 10000);
    s = parsed("512");
    assert_int_equal(s.up_to[0], 10000);
}

static void draws_keep_to_the_shares(void **state)
{
    enum { N = 200000 };
    struct mr_size_split s = parsed(MR_SPLIT_IMAGENET);
    uint64_t seen[MR_SPLIT_MAX] = {0};
    double expected[MR_SPLIT_MAX];
    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        uint32_t bytes = mr_size_split_draw(&s, mr_mix(i + 1));
        unsigned k = 0;
        while (k < s.n && s.bytes[k] != bytes)
            k++;
        assert_true(k < s.n);
        seen[k]++;
    }
    for (unsigned k = 0; k < s.n; k++) {
        expected[k] = N * (s.up_to[k] - (k ? s.up_to[k - 1] : 0)) / 10000.0;
        double off = (double)seen[k] - expected[k];
        /* six standard deviations */
        if (off * off > 36 * expected[k])
            fail_msg("%u bytes: %llu instead of %.0f", s.bytes[k], (unsigned long long)seen[k],
                     expected[k]);
    }
    assert_int_equal(mr_size_split_draw(&s, 0), 2048);
    assert_int_equal(mr_size_split_draw(&s, UINT64_MAX), 262144);
}

static void what_is_no_split_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "4K/",
        "/50",
        "4K/50",
        "4K/50:8K/51",
        "4K/101",
        "x",
        "4K/50,",
        "4X/100",
        "0/100",
        "4K/100:",
        "4K//100",
        "-4K",
        "4K/-1",
        "4K/1e2",
        "2048M",
        "1025M/1",
        "4K/100 :8K/0",
        "99999999999999999999/100",
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
        struct mr_size_split s;
        struct mr_error err = {0};
        memset(&s, 0x5a, sizeof s);
        if (!strcmp(bad[i], "4K/")) { /* that one is allowed: all of it */
            assert_int_equal(mr_size_split_parse(bad[i], &s, &err), 0);
            continue;
        }
        if (mr_size_split_parse(bad[i], &s, &err) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(err.text[0]);
        assert_int_equal(s.n, 0x5a5a5a5a); /* not written */
    }
    char many[MR_SPLIT_MAX * 3 + 16] = "1K";
    for (unsigned i = 0; i < MR_SPLIT_MAX; i++)
        strcat(many, ":1K");
    struct mr_size_split s;
    assert_int_equal(mr_size_split_parse(many, &s, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imagenets_split_is_read),
        cmocka_unit_test(entries_without_a_share_divide_the_rest),
        cmocka_unit_test(draws_keep_to_the_shares),
        cmocka_unit_test(what_is_no_split_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
