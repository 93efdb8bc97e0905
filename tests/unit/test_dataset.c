/* test_dataset.c - data sets of every kind: open, share, divide, and what they cost. */
#include <millrace/dataset.h>

#include "clock.h"
#include "sample_set.h"
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mr_dataset *open_set(const char *path)
{
    struct mr_dataset *d = NULL;
    struct mr_error err = {0};
    if (mr_dataset_open(path, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static void a_folder_is_opened_by_its_kind(void **state)
{
    struct tempdir *t = *state;
    char path[PATH_MAX], want[PATH_MAX];
    tempdir_text(t, "cat/1.jpg", "x");
    tempdir_text(t, "dog/1.jpg", "x");
    tempdir_text(t, "dog/2.jpg", "x");
    struct mr_dataset *d = open_set(t->path);
    assert_int_equal(mr_dataset_size(d), 3);
    assert_int_equal(mr_dataset_n_classes(d), 2);
    assert_string_equal(mr_dataset_class_name(d, 0), "cat");
    assert_string_equal(mr_dataset_class_name(d, 1), "dog");
    assert_null(mr_dataset_class_name(d, 2));
    assert_null(mr_dataset_class_name(d, UINT32_MAX));
    assert_int_equal(mr_dataset_label(d, 2), 1);
    snprintf(want, sizeof want, "%s", tempdir_path(t, "dog/2.jpg"));
    int len = mr_dataset_name(d, 2, path, sizeof path);
    assert_int_equal(len, strlen(want));
    assert_string_equal(path, want);
    assert_int_equal(mr_dataset_name(d, 2, path, (size_t)len + 1), len);
    assert_int_equal(mr_dataset_name(d, 2, path, (size_t)len), -ENAMETOOLONG);
    assert_int_equal(mr_dataset_name(d, 2, path, 0), -ENAMETOOLONG);
    mr_dataset_unref(d);
}

static void a_list_is_opened_by_its_kind(void **state)
{
    struct tempdir *t = *state;
    char path[PATH_MAX], want[PATH_MAX];
    struct mr_dataset *d = open_set(tempdir_text(t, "x.csv", "a.jpg,7\nb.jpg,3\n"));
    assert_int_equal(mr_dataset_size(d), 2);
    assert_int_equal(mr_dataset_n_classes(d), 8);
    assert_null(mr_dataset_class_name(d, 7));
    assert_int_equal(mr_dataset_label(d, 0), 7);
    snprintf(want, sizeof want, "%s", tempdir_path(t, "b.jpg"));
    assert_int_equal(mr_dataset_name(d, 1, path, sizeof path), strlen(want));
    assert_string_equal(path, want);
    mr_dataset_unref(d);
}

static void what_paths_have_in_common_is_a_folder(void **state)
{
    struct tempdir *t = *state;
    static const struct {
        const char *list, *common;
    } cases[] = {
        {"/a/b/1\n/a/b/2\n", "/a/b/"},   {"/a/bird/1\n/a/b/2\n", "/a/"},
        {"/a/b/1\n/a/bird/2\n", "/a/"},  {"/a/b/c/1\n/a/b/2\n", "/a/b/"},
        {"/a/1\n/b/1\n", "/"},           {"/1\n/2\n", "/"},
        {"/a/b/1\n/a/b/2\n/c/3\n", "/"}, {"/a/b/1\n", "/a/b/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tempdir_text(t, "list.csv", cases[i].list);
        struct mr_dataset *d = open_set(tempdir_path(t, "list.csv"));
        assert_int_equal(mr_blob_table_common(mr_dataset_blobs(d)), strlen(cases[i].common));
        mr_dataset_unref(d);
    }
    /* Of paths that begin at the list's folder, too. */
    tempdir_text(t, "list.csv", "x/1\nx/2\n");
    struct mr_dataset *d = open_set(tempdir_path(t, "list.csv"));
    assert_int_equal(mr_blob_table_common(mr_dataset_blobs(d)), strlen(t->path) + strlen("/x/"));
    mr_dataset_unref(d);
}

static void a_flat_folder_has_a_class_without_a_name(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "1.jpg", "x");
    struct mr_dataset *d = open_set(t->path);
    assert_int_equal(mr_dataset_n_classes(d), 1);
    assert_null(mr_dataset_class_name(d, 0));
    mr_dataset_unref(d);
}

static void a_failure_says_why_and_writes_no_output(void **state)
{
    struct tempdir *t = *state;
    struct mr_dataset *d = (struct mr_dataset *)state;
    struct mr_error err = {0};
    assert_int_equal(mr_dataset_open(tempdir_path(t, "missing"), &d, &err), -ENOENT);
    assert_int_equal(err.code, -ENOENT);
    assert_non_null(strstr(err.text, "/missing: No such file"));
    assert_int_equal(mr_dataset_open(tempdir_text(t, "bad.csv", "a,-1\n"), &d, NULL), -EBADMSG);
    assert_int_equal(mr_dataset_open(tempdir_mkdir(t, "empty"), &d, NULL), -ENODATA);
    assert_int_equal(mr_dataset_open(tempdir_text(t, "empty.csv", ""), &d, NULL), -ENODATA);
    assert_int_equal(mr_dataset_range(0, &d, NULL), -EINVAL);
    assert_int_equal(mr_dataset_range(UINT64_MAX, &d, NULL), -EINVAL);
    assert_ptr_equal(d, state);
}

static void a_range_has_samples_without_files(void **state)
{
    struct mr_dataset *d;
    char path[16];
    assert_int_equal(mr_dataset_range(UINT64_C(1) << 62, &d, NULL), 0);
    assert_true(mr_dataset_size(d) == UINT64_C(1) << 62);
    assert_int_equal(mr_dataset_n_classes(d), 1);
    assert_null(mr_dataset_class_name(d, 0));
    assert_int_equal(mr_dataset_label(d, 12345), 0);
    assert_int_equal(mr_dataset_name(d, 0, path, sizeof path), -ENOENT);
    assert_in_range(mr_dataset_memory(d), 1, 1000);
    mr_dataset_unref(d);
}

/* A list of n samples whose label is their number. */
static struct mr_dataset *numbered(struct tempdir *t, unsigned n)
{
    size_t cap = (size_t)n * 24 + 1, len = 0;
    char *text = malloc(cap);
    assert_non_null(text);
    for (unsigned i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, cap - len, "%u.jpg,%u\n", i, i);
    struct mr_dataset *d = open_set(tempdir_write(t, "numbered.csv", text, len));
    free(text);
    return d;
}

/* The parts are in order, do not overlap and are everything. */
static void check_division(const struct mr_dataset *all, const struct mr_dataset *rest,
                           const struct mr_dataset *held)
{
    uint64_t r = 0, h = 0, n = mr_dataset_size(all), n_rest = mr_dataset_size(rest),
             n_held = mr_dataset_size(held);
    assert_int_equal(n_rest + n_held, n);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t label = mr_dataset_label(all, i);
        if (r < n_rest && mr_dataset_label(rest, r) == label)
            r++;
        else if (h < n_held && mr_dataset_label(held, h) == label)
            h++;
        else
            fail_msg("sample %llu is in no part", (unsigned long long)i);
    }
}

static void a_split_has_the_exact_size_and_loses_nothing(void **state)
{
    static const double parts[] = {0, 0.001, 0.1, 0.2, 1.0 / 3, 0.5, 0.9, 0.9999, 1};
    static const unsigned sizes[] = {1, 2, 3, 10, 101, 1000};
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        struct mr_dataset *d = numbered(*state, sizes[s]), *rest, *held;
        for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
            assert_int_equal(mr_dataset_split(d, parts[k], 9, &rest, &held, NULL), 0);
            assert_int_equal(mr_dataset_size(held), (uint64_t)llround(parts[k] * sizes[s]));
            assert_int_equal(mr_dataset_n_classes(held), sizes[s]);
            check_division(d, rest, held);
            mr_dataset_unref(rest);
            mr_dataset_unref(held);
        }
        mr_dataset_unref(d);
    }
}

static unsigned n_equal(const struct mr_dataset *a, const struct mr_dataset *b)
{
    unsigned same = 0;
    assert_int_equal(mr_dataset_size(a), mr_dataset_size(b));
    for (uint64_t i = 0; i < mr_dataset_size(a); i++)
        for (uint64_t j = 0; j < mr_dataset_size(b); j++)
            same += mr_dataset_label(a, i) == mr_dataset_label(b, j);
    return same;
}

static void a_split_depends_on_the_seed_alone(void **state)
{
    struct mr_dataset *d = numbered(*state, 1000), *rest[3], *held[3];
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(mr_dataset_split(d, 0.2, k / 2, &rest[k], &held[k], NULL), 0);
    assert_int_equal(n_equal(held[0], held[1]), 200);
    assert_in_range(n_equal(held[0], held[2]), 10, 80); /* 40 expected */
    /* Every tenth of the list is represented. */
    unsigned tenth[10] = {0};
    for (uint64_t i = 0; i < 200; i++)
        tenth[mr_dataset_label(held[0], i) / 100]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(tenth[i], 5, 40); /* 20 expected */
    for (unsigned k = 0; k < 3; k++) {
        mr_dataset_unref(rest[k]);
        mr_dataset_unref(held[k]);
    }
    mr_dataset_unref(d);
}

static void a_part_can_be_split_again_even_when_empty(void **state)
{
    struct mr_dataset *d = numbered(*state, 100), *rest, *held, *a, *b;
    assert_int_equal(mr_dataset_split(d, 0.5, 1, &rest, &held, NULL), 0);
    assert_int_equal(mr_dataset_split(held, 0.3, 1, &a, &b, NULL), 0);
    assert_int_equal(mr_dataset_size(b), 15);
    check_division(held, a, b);
    mr_dataset_unref(a);
    mr_dataset_unref(b);
    mr_dataset_unref(rest);
    mr_dataset_unref(held);
    assert_int_equal(mr_dataset_split(d, 0, 1, &rest, &held, NULL), 0);
    assert_int_equal(mr_dataset_size(held), 0);
    assert_int_equal(mr_dataset_split(held, 0.5, 1, &a, &b, NULL), 0);
    assert_int_equal(mr_dataset_size(a) + mr_dataset_size(b), 0);
    mr_dataset_unref(a);
    mr_dataset_unref(b);
    mr_dataset_unref(rest);
    mr_dataset_unref(held);
    mr_dataset_unref(d);
}

static void a_senseless_share_is_refused(void **state)
{
    struct mr_dataset *d, *rest = NULL, *held = NULL;
    static const double parts[] = {-0.1, 1.1, NAN, INFINITY, -INFINITY};
    assert_int_equal(mr_dataset_range(10, &d, NULL), 0);
    for (size_t k = 0; k < ARRAY_LEN(parts); k++)
        assert_int_equal(mr_dataset_split(d, parts[k], 1, &rest, &held, NULL), -EINVAL);
    assert_true(!rest && !held);
    mr_dataset_unref(d);
}

static void a_part_outlives_the_whole(void **state)
{
    struct mr_dataset *d = numbered(*state, 50), *rest, *held;
    char path[PATH_MAX];
    assert_ptr_equal(mr_dataset_ref(d), d);
    mr_dataset_unref(d);
    assert_int_equal(mr_dataset_split(d, 0.5, 1, &rest, &held, NULL), 0);
    mr_dataset_unref(d);
    mr_dataset_unref(rest);
    assert_int_equal(mr_dataset_size(held), 25);
    for (uint64_t i = 0; i < 25; i++)
        assert_true(mr_dataset_name(held, i, path, sizeof path) > 0);
    mr_dataset_unref(held);
    mr_dataset_unref(NULL);
}

/* 1,000 folders with long names, and names as ImageNet has them. */
static void a_million_entries_take_under_100_bytes_each(void **state)
{
    enum { N = 1000000, LINE = 200 };
    struct tempdir *t = *state;
    char *text = malloc((size_t)N * LINE), path[PATH_MAX];
    size_t len = 0;
    assert_non_null(text);
    for (unsigned i = 0; i < N; i++)
        len += (size_t)snprintf(text + len, LINE,
                                "/data/sets/imagenet/2012/ILSVRC/Data/CLS-LOC/train/"
                                "a-long-directory-name-that-repeats/n%08u/n%08u_%u.JPEG,%u\n",
                                i / 1000, i / 1000, i, i / 1000);
    const char *list = tempdir_write(t, "million.csv", text, len);
    free(text);
    uint64_t start = mr_clock_ns();
    struct mr_dataset *d = open_set(list);
    double seconds = (double)(mr_clock_ns() - start) * 1e-9;
    double bytes = (double)mr_dataset_memory(d) / N;
    print_message("%.2f s, %.1f bytes an entry\n", seconds, bytes);
    assert_int_equal(mr_dataset_size(d), N);
    assert_int_equal(mr_dataset_n_classes(d), 1000);
    assert_true(bytes < 100);
    assert_true(mr_dataset_name(d, N - 1, path, sizeof path) > 0);
    assert_non_null(strstr(path, "/n00000999/n00000999_999999.JPEG"));

    struct mr_dataset *rest, *held;
    assert_int_equal(mr_dataset_split(d, 0.1, 1, &rest, &held, NULL), 0);
    assert_true((double)mr_dataset_memory(rest) / (double)mr_dataset_size(rest) < 100);
    mr_dataset_unref(rest);
    mr_dataset_unref(held);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_folder_is_opened_by_its_kind),
        WITH_TEMPDIR(a_list_is_opened_by_its_kind),
        WITH_TEMPDIR(what_paths_have_in_common_is_a_folder),
        WITH_TEMPDIR(a_flat_folder_has_a_class_without_a_name),
        WITH_TEMPDIR(a_failure_says_why_and_writes_no_output),
        cmocka_unit_test(a_range_has_samples_without_files),
        WITH_TEMPDIR(a_split_has_the_exact_size_and_loses_nothing),
        WITH_TEMPDIR(a_split_depends_on_the_seed_alone),
        WITH_TEMPDIR(a_part_can_be_split_again_even_when_empty),
        cmocka_unit_test(a_senseless_share_is_refused),
        WITH_TEMPDIR(a_part_outlives_the_whole),
        WITH_TEMPDIR(a_million_entries_take_under_100_bytes_each),
    };
    return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
