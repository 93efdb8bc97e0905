/* test_huge_list.c - what is done to a data set does not grow with its list: a run looks at, and
 * evicts, what it can touch.  Calls that ask for a file's pages are counted. */
#include "unit.h"

#include "differential.h"
#include "smaller_advice.h"
#include "study.h"
#include "survey.h"
#include "train_set.h"

#include <millrace/store.h>

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#define N_FILES 6
#define N_LINES 200000
#define FEW     (N_LINES / 4) /* calls; a walk through the list takes more */

int __real_mr_cache_range(int dir, const char *path, uint64_t offset, uint64_t length, int evict,
                          struct mr_cache_state *before, struct mr_cache_state *after);
int __wrap_mr_cache_range(int dir, const char *path, uint64_t offset, uint64_t length, int evict,
                          struct mr_cache_state *before, struct mr_cache_state *after);

/* The wrapped call has no context. */
static atomic_uint n_calls;

int __wrap_mr_cache_range(int dir, const char *path, uint64_t offset, uint64_t length, int evict,
                          struct mr_cache_state *before, struct mr_cache_state *after)
{
    atomic_fetch_add(&n_calls, 1);
    return __real_mr_cache_range(dir, path, offset, length, evict, before, after);
}

/* The same few photos again and again. */
static struct mr_dataset *huge(struct tempdir *t)
{
    struct mr_dataset *d = train_set_new(t, "set", N_FILES, 1);
    char path[N_FILES][PATH_MAX];
    for (uint64_t i = 0; i < N_FILES; i++)
        assert_true(mr_dataset_name(d, i, path[i], sizeof path[i]) > 0);
    mr_dataset_unref(d);
    FILE *f = fopen(tempdir_path(t, "huge.csv"), "w");
    assert_non_null(f);
    for (unsigned i = 0; i < N_LINES; i++)
        fprintf(f, "%s,0\n", path[i % N_FILES]);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(mr_dataset_open(tempdir_path(t, "huge.csv"), &d, NULL), 0);
    assert_int_equal(mr_dataset_size(d), N_LINES);
    return d;
}

static void the_verdict_looks_at_what_it_touches(void **state)
{
    static const struct mr_decoder_opts decode = {.width = 16, .height = 16};
    struct tempdir *t = *state;
    struct mr_advice_opts o = {.data = huge(t),
                               .decode = &decode,
                               .now = {.threads = 1, .batch = 4, .prefetch = 1},
                               .scratch = t->path,
                               .runs = 1,
                               .box_s = 0.01};
    struct mr_findings f;
    struct mr_advice a;
    struct mr_smaller_advice s;
    struct mr_error err = {0};
    atomic_store(&n_calls, 0);
    if (mr_findings_take(&o, &f, &err) || mr_advice_prove(&o, &f, &a, &err))
        fail_msg("%s", err.text);
    a.predicted_per_s = 1;
    if (mr_smaller_prove(&o, &f, &a, &s, &err))
        fail_msg("%s", err.text);
    assert_true(s.measured.per_s > 0);
    assert_in_range(s.set.n_files, 64, 2048);
    assert_in_range(atomic_load(&n_calls), 1, FEW);
    mr_dataset_unref(o.data);
}

/* Files of different sizes, all of which count. */
static void the_mean_size_is_the_same_in_every_order(void **state)
{
    enum { N = 2501 };
    static const char bytes[N];
    struct tempdir *t = *state;
    double mean[2];
    char name[32];
    for (unsigned i = 0; i < N; i++) {
        snprintf(name, sizeof name, "f%u.jpg", i);
        tempdir_write(t, name, bytes, i + 1);
    }
    for (unsigned k = 0; k < 2; k++) {
        struct mr_dataset *d;
        FILE *f = fopen(tempdir_path(t, "list.csv"), "w");
        assert_non_null(f);
        for (unsigned i = 0; i < N; i++)
            fprintf(f, "%s/f%u.jpg,0\n", t->path, k ? N - 1 - i : i);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(mr_dataset_open(tempdir_path(t, "list.csv"), &d, NULL), 0);
        mean[k] = mr_study_file_bytes(d);
        mr_dataset_unref(d);
    }
    assert_true(mean[0] == (N + 1) / 2.0 && mean[1] == mean[0]);
}

/* The first run of a point evicts what it might draw, later ones what such runs do draw. */
static void cold_runs_evict_what_runs_before_have_drawn(void **state)
{
    struct mr_dataset *d = huge(*state);
    struct mr_bench_opts b = {.data = d,
                              .runs = 9,
                              .cold = 1,
                              .box_s = 1e-9, /* two batches */
                              .pipe = {.batch = 8, .threads = 1}};
    struct mr_bench_result r;
    struct mr_error err = {0};
    atomic_store(&n_calls, 0);
    if (mr_microbench_run(&b, &r, &err))
        fail_msg("%s", err.text);
    assert_int_equal(r.median.samples, 16);
    assert_in_range(atomic_load(&n_calls), 9 * 16, 16384 + 2 * 8 + 8 * 5 * 8);
    mr_bench_result_fini(&r);
    mr_dataset_unref(d);
}

/* So long that no walk through it would end. */
static void a_boxed_survey_does_not_grow_with_the_data_set(void **state)
{
    struct mr_dataset *d;
    struct mr_survey s;
    (void)state;
    assert_int_equal(mr_dataset_range((uint64_t)1 << 50, &d, NULL), 0);
    assert_int_equal(mr_survey_run(d, &(struct mr_survey_opts){.box_s = 1e6}, &s), 0);
    assert_int_equal(s.samples, (uint64_t)1 << 50);
    assert_int_equal(s.n_looked_at, 131072);
    assert_int_equal(s.n_broken, 131072); /* there are no files */
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(the_mean_size_is_the_same_in_every_order),
        WITH_TEMPDIR(the_verdict_looks_at_what_it_touches),
        WITH_TEMPDIR(cold_runs_evict_what_runs_before_have_drawn),
        cmocka_unit_test(a_boxed_survey_does_not_grow_with_the_data_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
