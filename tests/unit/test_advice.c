/* test_advice.c - the differential runs and the advice that follows from them.  What is advised is
 * checked with findings that are made up, so that no figure depends on this machine. */
#include "unit.h"

#include "advice_words.h"
#include "cache_sweep.h"
#include "device.h"
#include "differential.h"
#include "microbench.h"
#include "train_set.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define N 12

static const struct mr_decoder_opts decode = {.width = 16, .height = 16};

static struct mr_device *device(const char *text)
{
    struct mr_device_profile p;
    struct mr_device *d;
    assert_int_equal(mr_device_profile_parse(text, strlen(text), "profile", &p, NULL), 0);
    assert_int_equal(mr_device_new(&p, &d, NULL), 0);
    return d;
}

/* A pipeline with one worker on a storage with a latency of 1 ms. */
static struct mr_advice_opts example(struct tempdir *t)
{
    struct mr_advice_opts o = {
        .data = train_set_new(t, "set", N, 3),
        .decode = &decode,
        .storage = device("name = far\nread_mb_per_s = 1000\nwrite_mb_per_s = 1\n"
                          "read_latency_us = 1000\n"),
        .now = {.threads = 1, .batch = 4, .prefetch = 1},
        .scratch = t->path,
        .runs = 1,
        .box_s = 0.01,
    };
    return o;
}

static void clean_up(struct mr_advice_opts *o)
{
    mr_dataset_unref(o->data);
    mr_device_close(o->storage);
    mr_device_close(o->tier);
}

/* As measured where a read takes 10 ms, however many are under way, and an image 0.1 ms of CPU. */
static struct mr_findings far_away(void)
{
    return (struct mr_findings){
        .cores = 2,
        .image_cpu_s = 1e-4,
        .read_cpu_s = 1e-5,
        .file_bytes = 14e3,
        .curve = {6, {1, 2, 4, 8, 16, 32}, {100, 200, 400, 800, 1600, 3200}}};
}

static struct mr_advice prove(const struct mr_advice_opts *o, const struct mr_findings *f)
{
    struct mr_advice a;
    struct mr_error err = {0};
    if (mr_advice_prove(o, f, &a, &err))
        fail_msg("%s", err.text);
    assert_true(a.predicted_per_s >= a.now_per_s && a.measured.per_s > 0);
    struct mr_advice again = a;
    mr_advice_settle(f, &again);
    assert_int_equal(a.standing, again.standing); /* it was settled */
    return a;
}

static void a_pipeline_is_taken_apart(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f;
    struct mr_error err = {0};
    unsigned entries = tempdir_count(o.scratch);
    if (mr_findings_take(&o, &f, &err))
        fail_msg("%s", err.text);
    assert_true(f.hand_over > 0 && f.one_decoded > 0 && f.warm > 0 && f.cold > 0);
    assert_true(f.image_cpu_s >= f.read_cpu_s && f.read_cpu_s > 0);
    assert_true(f.file_bytes > 100 && f.file_bytes < 1e6);
    assert_true(f.warm_cpu_s > 0 && f.crowded_cpu_s > 0 && f.wake_s >= 0);
    double shares = 0;
    assert_in_range(f.spread.n, 4, N); /* a few, and as many as there is time for */
    for (unsigned i = 0; i < f.spread.n; i++)
        shares += f.spread.share[i];
    assert_true(fabs(shares - f.spread.n) < 1e-6);
    assert_null(f.cold_proof);
    assert_null(f.proof); /* of an emulated storage there is none */
    assert_true(f.curve.n >= 3 && f.curve.n <= MR_CURVE_POINTS);
    for (unsigned i = 0; i < f.curve.n; i++) {
        assert_true(f.curve.depth[i] == (double)(1u << i));
        assert_true(f.curve.per_s[i] > (i ? f.curve.per_s[i - 1] : 0));
    }
    assert_true(f.fetched == f.curve.per_s[f.curve.n - 1]);
    prove(&o, &f);
    assert_int_equal(tempdir_count(o.scratch), entries);
    clean_up(&o);
}

static void the_real_storage_says_whether_it_was_cold(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f;
    struct mr_error err = {0};
    mr_device_close(o.storage);
    o.storage = NULL;
    if (mr_findings_take(&o, &f, &err))
        fail_msg("%s", err.text);
    assert_non_null(f.proof);
    assert_non_null(f.cold_proof);
    struct mr_advice a = prove(&o, &f);
    assert_non_null(a.measured.cold);
    o.step_s = 0.001;
    a = prove(&o, &f);
    assert_non_null(a.measured.cold);
    assert_true(a.measured.late_share == 0);
    clean_up(&o);
}

static int64_t cached_bytes(struct mr_dataset *d, uint64_t i)
{
    struct mr_cache_state st;
    char path[PATH_MAX];
    assert_true(mr_dataset_name(d, i, path, sizeof path) > 0);
    assert_int_equal(mr_cache_query(path, &st, NULL), 0);
    return st.cached_bytes;
}

static void two_runs_are_as_cold_as_the_warmer_one(void **state)
{
    (void)state;
    assert_null(mr_cold_of_both(NULL, NULL));
    assert_string_equal(mr_cold_of_both(NULL, "data"), "data");
    assert_string_equal(mr_cold_of_both("unproven", NULL), "unproven");
    assert_string_equal(mr_cold_of_both("unproven", "data"), "unproven");
    assert_string_equal(mr_cold_of_both("data", "unproven"), "unproven");
    assert_string_equal(mr_cold_of_both("data+metadata", "data"), "data");
    assert_string_equal(mr_cold_of_both("data", "data+metadata"), "data");
}

/* The first samples of each kind of order are cold then, and no more files were looked at.  (That
 * the others are still cached cannot be asked for: anybody may drop the system's caches.) */
static void only_what_a_run_touches_is_evicted(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    for (enum mr_shuffle how = MR_SHUFFLE_GLOBAL; how <= MR_SHUFFLE_NONE; how++) {
        struct mr_pipeline_opts o = {
            .threads = 1, .batch = 5, .shuffle = how, .window = 4, .seed = 7, .batches = 1};
        struct mr_cache_sweep sweep = {0}, all = {0};
        struct mr_pipeline *p;
        struct mr_batch *b;
        int touched[N] = {0};
        assert_int_equal(mr_pipeline_open(d, &(struct mr_pipeline_opts){.batch = N}, &p, NULL), 0);
        assert_int_equal(mr_pipeline_next(p, &b), 1); /* everything is cached */
        mr_batch_unref(b);
        mr_pipeline_close(p);
        assert_int_equal(mr_pipeline_open(d, &o, &p, NULL), 0);
        assert_int_equal(mr_pipeline_next(p, &b), 1);
        for (unsigned i = 0; i < b->n; i++)
            touched[b->samples[i].index] = 1;
        mr_batch_unref(b);
        mr_pipeline_close(p);
        assert_int_equal(mr_cache_sweep_first(&sweep, d, &o, 5, 1), 0);
        assert_int_equal(sweep.files, 5);
        if (sweep.n_unproven)
            skip(); /* a file system that keeps its pages */
        for (unsigned i = 0; i < N; i++)
            assert_true(!touched[i] || cached_bytes(d, i) == 0);
        assert_int_equal(mr_cache_sweep_first(&all, d, &o, UINT64_MAX, 1), 0);
        assert_int_equal(all.files, N);
    }
    mr_dataset_unref(d);
}

static void more_reads_where_the_storage_is_far_away(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f = far_away();
    char text[96], head[16];
    o.tier = device("name = near\nread_mb_per_s = 5000\nwrite_mb_per_s = 1\n");
    struct mr_advice a = prove(&o, &f);
    assert_false(a.on_tier); /* although it would be quicker still */
    assert_true(a.predicted_per_s > 10 * a.now_per_s);
    unsigned reads = a.best.engine == MR_ENGINE_URING ? a.best.io_depth : a.best.threads;
    assert_true(reads >= 16 && a.best.batch * (a.best.prefetch + 1) >= reads);
    mr_advice_text(&o, &a, text, sizeof text);
    assert_non_null(strstr(text, a.without_ring.text[0] ? "--threads 16" : "--engine uring"));
    assert_non_null(strstr(text, " --prefetch "));
    assert_null(strstr(text, "--storage"));
    mr_advice_text(&o, &a, head, sizeof head);
    assert_memory_equal(head, text, sizeof head - 1);
    clean_up(&o);
}

static void another_storage_where_nothing_else_helps(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f = far_away();
    char text[96];
    f.curve = (struct mr_read_curve){2, {1, 2}, {100, 100.01}};
    o.now.threads = 4;
    struct mr_advice a = prove(&o, &f);
    assert_false(a.on_tier);
    assert_memory_equal(&a.best, &o.now, sizeof a.best); /* nothing to change */
    o.tier = device("name = near\nread_mb_per_s = 5000\nwrite_mb_per_s = 1\n");
    a = prove(&o, &f);
    assert_true(a.on_tier);
    mr_advice_text(&o, &a, text, sizeof text);
    assert_non_null(strstr(text, "--storage near"));
    clean_up(&o);
}

static void prefetch_where_input_and_training_take_turns(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f = far_away();
    o.now = (struct mr_setup){.threads = 8, .batch = 4};
    o.step_s = 0.02; /* as long as input takes for a batch */
    struct mr_advice a = prove(&o, &f);
    assert_true(a.best.prefetch >= 3); /* one would hide it, but leaves nothing in reserve */
    assert_true(a.predicted_per_s <= 4 / 0.02 * (1 + 1e-9));
    clean_up(&o);
}

/* Whoever evicted them: a proof on real storage does. */
static void the_control_decodes_cached_images(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f = {.cores = 2, .warm = 1000};
    struct mr_error err = {0};
    struct mr_control control;
    struct mr_cache_sweep sweep = {0};
    mr_device_close(o.storage);
    o.storage = NULL;
    assert_int_equal(mr_cache_sweep_data(&sweep, o.data, 1, NULL, NULL), 0);
    if (mr_findings_control(&o, &f, &control, &err))
        fail_msg("%s", err.text);
    assert_true(control.times > 0);
    assert_true(control.device_bytes < (int64_t)sweep.bytes / 4); /* others may read, too */
    clean_up(&o);
}

/* A pipeline of two threads that measured `now`, while the model has `model` for it; four threads
 * are predicted to deliver `best`, and measured `then` on cores `control` times as fast. */
struct example {
    double now, model, best, then, control;
};

static struct mr_json *advised(const struct example *e, enum mr_advice_standing standing)
{
    struct mr_advice_opts o = {.now = {.threads = 2, .batch = 64, .prefetch = 1}};
    struct mr_findings f = {.cores = 2, .image_cpu_s = 1e-3, .fetched = 5000, .cold = e->now};
    struct mr_advice a = {.best = {.threads = 4, .batch = 64, .prefetch = 1},
                          .now_per_s = e->model,
                          .predicted_per_s = e->best,
                          .measured = {.per_s = e->then, .control = e->control}};
    mr_advice_settle(&f, &a);
    assert_string_equal(mr_advice_standing_name(a.standing), mr_advice_standing_name(standing));
    struct mr_advice in_use = mr_advice_in_use(&o, &f, &a);
    int changed = standing == MR_ADVICE_CHANGE;
    assert_int_equal(in_use.best.threads, changed ? 4 : 2);
    assert_true(in_use.measured.per_s == (changed ? e->then : e->now));
    assert_true(in_use.predicted_per_s == (changed ? e->best : e->model));
    struct mr_json *j = mr_advice_json(&o, &f, &a);
    assert_string_equal(mr_json_text(mr_json_at(j, "tried")), "--threads 4");
    assert_true(mr_json_number(mr_json_at(j, "now_per_s")) == e->now);
    assert_true(mr_json_number(mr_json_at(j, "predicted_per_s")) == e->best);
    assert_true(mr_json_number(mr_json_at(j, "measured_per_s")) == e->then);
    if (changed)
        assert_string_equal(mr_json_text(mr_json_at(j, "change")), "--threads 4");
    else
        assert_true(mr_json_is_null(mr_json_at(j, "change")));
    return j;
}

static void expect_advice(struct example e, enum mr_advice_standing standing, const char *text)
{
    struct mr_json *j = advised(&e, standing);
    assert_string_equal(mr_json_text(mr_json_at(j, "text")), text);
    assert_int_equal(!strncmp(text, "Use ", 4), standing == MR_ADVICE_CHANGE);
    mr_json_free(j);
}

static void a_gain_is_one_that_was_measured(void **state)
{
    (void)state;
    expect_advice((struct example){1000, 1050, 1500, 1200, 1}, MR_ADVICE_CHANGE,
                  "Use --threads 4: it measured 1200 images/s, 20% more than the 1000 of now.");
    expect_advice((struct example){1000, 1000, 1500, 1320, 1.1}, MR_ADVICE_CHANGE,
                  "Use --threads 4: it measured 1320 images/s, and 1000 were measured before. The "
                  "cores had become 1.10 times as fast by then; without that the gain is 20%.");
    /* slower cores make a gain no larger than it measured */
    expect_advice((struct example){1000, 1000, 1500, 1200, 0.5}, MR_ADVICE_CHANGE,
                  "Use --threads 4: it measured 1200 images/s, 20% more than the 1000 of now.");
}

static void a_change_that_did_not_measure_better_is_withdrawn(void **state)
{
    (void)state;
    expect_advice((struct example){1328, 1300, 1400, 1161, 1}, MR_ADVICE_WITHDRAWN,
                  "No change is recommended: --threads 4 was tried and measured 1161 images/s, 13% "
                  "less than the 1328 of now.");
    expect_advice((struct example){1000, 1000, 1500, 1020, 1}, MR_ADVICE_WITHDRAWN,
                  "No change is recommended: --threads 4 was tried and measured 1020 images/s, 2% "
                  "more than the 1000 of now.");
    expect_advice((struct example){1000, 1000, 1500, 1200, 1.19}, MR_ADVICE_WITHDRAWN,
                  "No change is recommended: --threads 4 was tried and measured 1200 images/s, 20% "
                  "more than the 1000 of now, on cores that had become 1.19 times as fast.");
}

static void a_model_that_is_off_gives_no_advice(void **state)
{
    (void)state;
    /* whatever the change measured */
    for (double then = 500; then < 3000; then += 1000)
        expect_advice((struct example){1328, 884, 932, then, 1}, MR_ADVICE_NO_MODEL,
                      "No configuration is recommended: the model says 884 images/s for the "
                      "present one, 33% less than the 1328 measured, so its predictions are not "
                      "reliable.");
    expect_advice((struct example){1000, 1110, 1500, 1500, 1}, MR_ADVICE_NO_MODEL,
                  "No configuration is recommended: the model says 1110 images/s for the present "
                  "one, 11% more than the 1000 measured, so its predictions are not reliable.");
    mr_json_free(advised(&(struct example){0, 1000, 1500, 1500, 1}, MR_ADVICE_NO_MODEL));
}

static void without_a_better_one_the_present_configuration_stays(void **state)
{
    (void)state;
    struct mr_json *j = advised(&(struct example){1000, 1000, 1010, 700, 1}, MR_ADVICE_KEEP);
    assert_non_null(strstr(mr_json_text(mr_json_at(j, "text")), "is as good as any here"));
    mr_json_free(j);
}

static void a_curve_that_stays_level_is_the_storages_ceiling(void **state)
{
    struct mr_findings f = {.cores = 2,
                            .read_cpu_s = 1e-5,
                            .file_bytes = 1e5,
                            .fetched = 203,
                            .cold = 190,
                            .curve = {3, {1, 2, 4}, {200, 202, 203}}};
    (void)state;
    struct mr_read_ceiling most = mr_findings_ceiling(&f);
    assert_int_equal(most.reads, 4);
    assert_true(most.bytes_per_s == 203e5 && !most.open);
    f.cold = 210; /* it has delivered that */
    assert_true(mr_findings_ceiling(&f).bytes_per_s == 210e5);
    f.read_cpu_s = 9e-3; /* both cores do nothing but read */
    assert_true(mr_findings_ceiling(&f).open);
    f = far_away();
    f.fetched = 3200;
    most = mr_findings_ceiling(&f);
    assert_true(most.reads == 32 && most.open);
    f.curve.n = 0;
    most = mr_findings_ceiling(&f);
    assert_true(most.open && most.bytes_per_s == 0);
}

static int always(void *ctx)
{
    (void)ctx;
    return 1;
}

static void it_can_be_stopped(void **state)
{
    struct mr_advice_opts o = example(*state);
    struct mr_findings f = far_away();
    struct mr_advice a;
    unsigned entries = tempdir_count(o.scratch);
    o.should_stop = always;
    assert_int_equal(mr_findings_take(&o, &f, NULL), -ECANCELED);
    assert_int_equal(mr_advice_prove(&o, &f, &a, NULL), -ECANCELED);
    o.step_s = 0.001;
    assert_int_equal(mr_advice_prove(&o, &f, &a, NULL), -ECANCELED);
    assert_int_equal(tempdir_count(o.scratch), entries);
    clean_up(&o);
}

static void a_box_ends_a_run_but_not_before_two_batches(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_bench_opts b = {.data = d, .pipe = {.threads = 1, .batch = 4}, .runs = 2};
    struct mr_bench_result r;
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_int_equal(r.median.samples, N);
    mr_bench_result_fini(&r);
    b.box_s = 1e-9;
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_int_equal(r.median.samples, 8);
    assert_int_equal(r.partial, 0);
    mr_bench_result_fini(&r);
    b.box_s = 1e6;
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_int_equal(r.median.samples, N);
    mr_bench_result_fini(&r);
    mr_dataset_unref(d);
}

static void a_run_with_too_few_samples_has_a_longer_box(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 3);
    struct mr_bench_opts b = {.data = d,
                              .pipe = {.threads = 1, .batch = 4, .epochs = 100000000},
                              .runs = 1,
                              .box_s = 0.005};
    struct mr_bench_result r;
    b.least = UINT64_MAX;
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_true(r.median.seconds >= MR_LONGER * b.box_s);
    mr_bench_result_fini(&r);
    b.box_s = 1e-9; /* even the longer one is over */
    assert_int_equal(mr_microbench_run(&b, &r, NULL), 0);
    assert_int_equal(r.median.samples, 8);
    mr_bench_result_fini(&r);
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_pipeline_is_taken_apart),
        WITH_TEMPDIR(the_real_storage_says_whether_it_was_cold),
        cmocka_unit_test(two_runs_are_as_cold_as_the_warmer_one),
        WITH_TEMPDIR(only_what_a_run_touches_is_evicted),
        WITH_TEMPDIR(more_reads_where_the_storage_is_far_away),
        WITH_TEMPDIR(another_storage_where_nothing_else_helps),
        WITH_TEMPDIR(prefetch_where_input_and_training_take_turns),
        cmocka_unit_test(a_gain_is_one_that_was_measured),
        cmocka_unit_test(a_change_that_did_not_measure_better_is_withdrawn),
        cmocka_unit_test(a_model_that_is_off_gives_no_advice),
        cmocka_unit_test(without_a_better_one_the_present_configuration_stays),
        WITH_TEMPDIR(the_control_decodes_cached_images),
        cmocka_unit_test(a_curve_that_stays_level_is_the_storages_ceiling),
        WITH_TEMPDIR(it_can_be_stopped),
        WITH_TEMPDIR(a_box_ends_a_run_but_not_before_two_batches),
        WITH_TEMPDIR(a_run_with_too_few_samples_has_a_longer_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
