/* test_device_profile.c - profiles as people write them, and those that must be refused. */
#include "device_profile.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD "name = x\nread_mb_per_s = 10\nwrite_mb_per_s = 20\n"

/* The text is given from a block of its own, so that a sanitizer sees a read beside it. */
static int parse(const char *text, size_t len, struct mr_device_profile *out, struct mr_error *err)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    int r = mr_device_profile_parse(copy, len, "the.profile", out, err);
    free(copy);
    return r;
}

static struct mr_device_profile parsed(const char *text)
{
    struct mr_device_profile p = {0};
    struct mr_error err = {0};
    if (parse(text, strlen(text), &p, &err))
        fail_msg("refused: %s", err.text);
    return p;
}

static void keys_have_units_and_defaults(void **state)
{
    (void)state;
    struct mr_device_profile p = parsed(GOOD);
    assert_string_equal(p.name, "x");
    assert_string_equal(p.calibrated, "");
    assert_int_equal(p.read_bytes_per_s, 10000000);
    assert_int_equal(p.write_bytes_per_s, 20000000);
    assert_int_equal(p.targets, 1);
    assert_int_equal(p.stripe_bytes, 1 << 20);
    assert_int_equal(p.queue_depth, 32);
    assert_int_equal(p.seek_ns + p.metadata_ns + p.sync_ns + p.read_latency_ns, 0);
    p = parsed("# a remark = of any kind\r\n\r\n"
               "  name=My-Disk_2.0\r\n\tread_mb_per_s =\t0.001  \r\n"
               "write_mb_per_s = 1968.618001\ncalibrated = a = b, # c \nread_latency_us = 0.5\n"
               "write_latency_us = 1\nsync_us = 2\nmetadata_us = 3.000\nmetadata_parallel = 4\n"
               "seek_us = 5\nseek_shrink = 0.28\nqueue_depth = 6\ntargets = 7\n"
               "stripe_bytes = 8192");
    assert_string_equal(p.name, "My-Disk_2.0");
    assert_string_equal(p.calibrated, "a = b, # c");
    assert_int_equal(p.read_bytes_per_s, 1000);
    assert_int_equal(p.write_bytes_per_s, 1968618001);
    assert_int_equal(p.read_latency_ns, 500);
    assert_int_equal(p.write_latency_ns, 1000);
    assert_int_equal(p.sync_ns, 2000);
    assert_int_equal(p.metadata_ns, 3000);
    assert_int_equal(p.metadata_parallel, 4);
    assert_int_equal(p.seek_ns, 5000);
    assert_int_equal(p.seek_shrink, 280);
    assert_int_equal(p.queue_depth, 6);
    assert_int_equal(p.targets, 7);
    assert_int_equal(p.stripe_bytes, 8192);
}

static void what_is_wrong_is_named_with_its_line_and_key(void **state)
{
    static const struct {
        const char *text, *says[2];
    } cases[] = {
        {"", {"name", "the.profile"}},
        {"name = x\n", {"read_mb_per_s", "no line"}},
        {"name = x\nread_mb_per_s = 1\n", {"write_mb_per_s", "no line"}},
        {"read_mb_per_s = 1\nwrite_mb_per_s = 1\n", {"name", "no line"}},
        {GOOD "latency = 3\n", {"line 4", "'latency'"}},
        {GOOD "\n\nname = y\n", {"line 6", "name is there twice"}},
        {GOOD "seek_us = 1\nseek_us = 1\n", {"line 5", "seek_us is there twice"}},
        {GOOD "hello\n", {"line 4", "'hello' is not of the form"}},
        {GOOD "= 3\n", {"line 4", "there is no key ''"}},
        {GOOD "seek_us\n", {"line 4", "key = value"}},
        {GOOD "seek_us =\n", {"line 4: seek_us is ''", "from 0 to 3600000000"}},
        {GOOD "seek_us = -1\n", {"line 4: seek_us is '-1'", "a number"}},
        {GOOD "seek_us = +1\n", {"seek_us is '+1'", "a number"}},
        {GOOD "seek_us = 1e3\n", {"seek_us is '1e3'", "a number"}},
        {GOOD "seek_us = 0x10\n", {"seek_us is '0x10'", "a number"}},
        {GOOD "seek_us = nan\n", {"seek_us is 'nan'", "a number"}},
        {GOOD "seek_us = inf\n", {"seek_us is 'inf'", "a number"}},
        {GOOD "seek_us = 1,5\n", {"seek_us is '1,5'", "a number"}},
        {GOOD "seek_us = 1.\n", {"seek_us is '1.'", "a number"}},
        {GOOD "seek_us = .5\n", {"seek_us is '.5'", "a number"}},
        {GOOD "seek_us = 1.2345\n", {"seek_us is '1.2345'", "up to 3 decimals"}},
        {GOOD "seek_us = 1 2\n", {"seek_us is '1 2'", "a number"}},
        {GOOD "seek_us = 3600000001\n", {"seek_us is", "to 3600000000"}},
        {GOOD "seek_us = 99999999999999999999999999999\n", {"seek_us is", "to 3600000000"}},
        {GOOD "seek_shrink = 1.001\n", {"seek_shrink is '1.001'", "from 0 to 1"}},
        {GOOD "targets = 0\n", {"targets is '0'", "from 1 to 256"}},
        {GOOD "targets = 257\n", {"targets is '257'", "from 1 to 256"}},
        {GOOD "targets = 2.0\n", {"targets is '2.0'", "a number from 1"}},
        {GOOD "queue_depth = 65\n", {"queue_depth", "from 1 to 64"}},
        {GOOD "stripe_bytes = 4095\n", {"stripe_bytes", "from 4096"}},
        {"read_mb_per_s = 0\n", {"line 1: read_mb_per_s is '0'", "from 0.001 to 1000000000"}},
        {"read_mb_per_s = 18446744073709551616\n", {"line 1", "read_mb_per_s"}},
        {"name =\n", {"line 1: name is ''", "1 to 31"}},
        {"name = a b\n", {"name is 'a b'", "letters"}},
        {"name = ../x\n", {"name is '../x'", "letters"}},
        {"name = \xc3\xa4\n",
         {"name is '?"
          "?'",
          "letters"}},
        {"name = 12345678901234567890123456789012\n", {"name is", "1 to 31"}},
        {"calibrated = \x1b[31m\n", {"calibrated is '?[31m'", "plain ASCII"}},
        {"\xef\xbb\xbfname = x\n",
         {"line 1", "there is no key '?"
                    "?"
                    "?name'"}},
        {"{\"name\": \"x\"}\n", {"line 1", "key = value"}},
    };
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct mr_device_profile p = {.targets = 77};
        struct mr_error err = {0};
        if (parse(cases[i].text, strlen(cases[i].text), &p, &err) != -EINVAL)
            fail_msg("accepted: %s", cases[i].text);
        for (unsigned k = 0; k < 2; k++)
            if (!strstr(err.text, cases[i].says[k]))
                fail_msg("case %u: '%s' is not in '%s'", i, cases[i].says[k], err.text);
        assert_int_equal(p.targets, 77); /* untouched */
    }
}

static void bytes_that_are_no_text_are_refused(void **state)
{
    static const char zeros[] = "name = x\0y\nread_mb_per_s = 1\nwrite_mb_per_s = 1\n";
    static char large[MR_PROFILE_MAX_BYTES + 1], line[8000];
    struct mr_device_profile p;
    struct mr_error err = {0};
    (void)state;
    assert_int_equal(parse(zeros, sizeof zeros - 1, &p, &err), -EINVAL);
    memset(large, '\n', sizeof large);
    err = (struct mr_error){0};
    assert_int_equal(parse(large, sizeof large, &p, &err), -EFBIG);
    err = (struct mr_error){0};
    assert_int_equal(parse(large, sizeof large - 1, &p, &err), -EINVAL);
    memset(line, 'k', sizeof line);
    err = (struct mr_error){0};
    assert_int_equal(parse(line, sizeof line, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "kkk...'"));
    memcpy(line, "calibrated=", 11);
    err = (struct mr_error){0};
    assert_int_equal(parse(line, sizeof line, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "at most 239"));
}

static void the_built_in_profiles_are_good_and_say_what_they_were_fitted_to(void **state)
{
    static const char *const names[] = {"hdd", "ssd", "optane", "lustre"};
    static const double read_mb[] = {163.00, 280.55, 1603.06, 1968.618};
    static const double write_mb[] = {133.14, 195.05, 511.78, 991.914};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct mr_device_profile p;
        struct mr_error err = {0};
        const char *text;
        assert_string_equal(mr_device_profile_builtin(i, &text), names[i]);
        assert_int_equal(mr_device_profile_load(names[i], &p, &err), 0);
        assert_string_equal(p.name, names[i]);
        assert_non_null(strstr(p.calibrated, "Table I"));
        assert_int_equal(p.read_bytes_per_s, (uint64_t)(read_mb[i] * 1e6 + 0.5));
        assert_int_equal(p.write_bytes_per_s, (uint64_t)(write_mb[i] * 1e6 + 0.5));
    }
    assert_null(mr_device_profile_builtin(4, NULL));
}

static void a_saved_profile_is_the_same_when_loaded(void **state)
{
    struct tempdir *t = *state;
    const char *name;
    char path[512];
    snprintf(path, sizeof path, "%s", tempdir_path(t, "my.profile"));
    for (unsigned i = 0; (name = mr_device_profile_builtin(i, NULL)); i++) {
        struct mr_device_profile a, b;
        struct mr_error err = {0};
        assert_int_equal(mr_device_profile_load(name, &a, &err), 0);
        a.seek_ns += 1;
        a.read_bytes_per_s += 7;
        if (i == 3)
            a.calibrated[0] = 0;
        assert_int_equal(mr_device_profile_save(&a, path, &err), 0);
        assert_int_equal(mr_device_profile_load(path, &b, &err), 0);
        assert_string_equal(a.name, b.name);
        assert_string_equal(a.calibrated, b.calibrated);
        assert_memory_equal(&a.read_bytes_per_s, &b.read_bytes_per_s,
                            sizeof a - offsetof(struct mr_device_profile, read_bytes_per_s));
    }
    assert_int_equal(access(tempdir_path(t, "my.profile.new"), F_OK), -1);
}

static void a_profile_that_cannot_be_written_says_why_and_leaves_nothing(void **state)
{
    struct tempdir *t = *state;
    struct mr_device_profile p = parsed(GOOD);
    struct mr_error err = {0};
    char text[100];
    assert_int_equal(mr_device_profile_save(&p, tempdir_path(t, "no/such/folder"), &err), -ENOENT);
    assert_non_null(strstr(err.text, "no/such/folder"));
    tempdir_mkdir(t, "taken");
    err = (struct mr_error){0};
    assert_int_equal(mr_device_profile_save(&p, tempdir_path(t, "taken"), &err), -EISDIR);
    assert_int_equal(access(tempdir_path(t, "taken.new"), F_OK), -1);
    err = (struct mr_error){0};
    assert_int_equal(mr_device_profile_format(&p, text, sizeof text, &err), -ENOSPC);
    p.targets = 1000;
    err = (struct mr_error){0};
    assert_int_equal(mr_device_profile_save(&p, tempdir_path(t, "x"), &err), -EINVAL);
    assert_non_null(strstr(err.text, "targets is '1000'"));
    assert_int_equal(access(tempdir_path(t, "x"), F_OK), -1);
}

static void a_file_that_cannot_be_read_says_why(void **state)
{
    struct tempdir *t = *state;
    struct mr_device_profile p;
    struct mr_error err = {0};
    assert_int_equal(mr_device_profile_load("floppy", &p, &err), -ENOENT);
    assert_non_null(strstr(err.text, "floppy"));
    assert_non_null(strstr(err.text, "hdd, ssd, optane, lustre"));
    err = (struct mr_error){0};
    assert_int_equal(mr_device_profile_load(t->path, &p, &err), -EISDIR);
    assert_non_null(strstr(err.text, "directory"));
    err = (struct mr_error){0};
    assert_int_equal(mr_device_profile_load(tempdir_text(t, "empty", ""), &p, &err), -ENODATA);
    assert_non_null(strstr(err.text, "empty"));
    static char large[MR_PROFILE_MAX_BYTES + 1];
    err = (struct mr_error){0};
    assert_int_equal(
        mr_device_profile_load(tempdir_write(t, "large", large, sizeof large), &p, &err), -EFBIG);
    assert_non_null(strstr(err.text, "too large"));
    /* A built-in name wins; a file of that name needs a slash. */
    err = (struct mr_error){0};
    assert_int_equal(mr_device_profile_load(tempdir_text(t, "hdd", GOOD), &p, &err), 0);
    assert_string_equal(p.name, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_units_and_defaults),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line_and_key),
        cmocka_unit_test(bytes_that_are_no_text_are_refused),
        cmocka_unit_test(the_built_in_profiles_are_good_and_say_what_they_were_fitted_to),
        WITH_TEMPDIR(a_saved_profile_is_the_same_when_loaded),
        WITH_TEMPDIR(a_profile_that_cannot_be_written_says_why_and_leaves_nothing),
        WITH_TEMPDIR(a_file_that_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
