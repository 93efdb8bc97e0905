/* test_study_late.c - a quick study that is behind its time leaves points out, and says so.
 *
 * The clock is slow until the experiment has looked at it for the first time.  After that
 * it is right: what waits for a moment waits for that of the system's clock. */
#include "unit.h"

#include "json.h"
#include "study.h"
#include "train_set.h"

#include <string.h>

/* More than `read` may take, and no more than that: the system's clock begins when it is booted. */
#define SLOW_NS 100000000000u

uint64_t __real_mr_clock_ns(void);
uint64_t __wrap_mr_clock_ns(void);

/* The wrapped clock has no context.  Changed only while nothing but the study's own thread runs. */
static uint64_t slow_ns;

uint64_t __wrap_mr_clock_ns(void)
{
    return __real_mr_clock_ns() - slow_ns;
}

static void on_progress(void *ctx, const struct mr_study_progress *now)
{
    (void)ctx;
    if (!strcmp(now->what, "starting"))
        slow_ns = 0;
}

static void on_finished(void *ctx, const char *experiment, struct mr_json *result)
{
    struct mr_json **to = ctx;
    assert_string_equal(experiment, "read");
    assert_null(*to);
    *to = result;
}

/* The experiment `read`; its result is to be freed. */
static struct mr_json *study(struct tempdir *t, struct mr_dataset *data, int late, int full)
{
    static const char *const only[] = {"read", NULL};
    struct mr_json *result = NULL;
    struct mr_study_opts o = {.data = data,
                              .data_path = t->path,
                              .scratch = t->path,
                              .full = full,
                              .runs = 1,
                              .only = only,
                              .finished = on_finished,
                              .progress = on_progress,
                              .ctx = &result};
    struct mr_error err = {0};
    slow_ns = late ? SLOW_NS : 0;
    if (mr_study_run(&o, &err))
        fail_msg("%s", err.text);
    assert_non_null(result);
    assert_true(mr_json_is_true(mr_json_at(result, "finished")));
    return result;
}

static unsigned n_left_out(const struct mr_json *result)
{
    return (unsigned)mr_json_number(mr_json_at(result, "left_out"));
}

static int has_warning(const struct mr_json *result, const char *words)
{
    const struct mr_json *list = mr_json_at(result, "warnings");
    for (size_t i = 0; i < mr_json_len(list); i++)
        if (strstr(mr_json_text(mr_json_item(list, i)), words))
            return 1;
    return 0;
}

/* Points of one storage and engine with as many threads. */
static unsigned n_points(const struct mr_json *result, const char *storage, int64_t threads)
{
    const struct mr_json *list = mr_json_at(result, "points");
    unsigned n = 0;
    for (size_t i = 0; i < mr_json_len(list); i++) {
        const struct mr_json *p = mr_json_item(list, i);
        n += !strcmp(mr_json_text(mr_json_at(p, "storage")), storage) &&
             !strcmp(mr_json_text(mr_json_at(p, "engine")), "threads") &&
             mr_json_number(mr_json_at(p, "threads")) == (double)threads;
    }
    return n;
}

static void a_late_study_leaves_out_what_lies_between(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 8, 2);
    struct mr_json *late = study(*state, d, 1, 0);
    assert_int_equal(n_left_out(late), 8); /* 2 and 4 threads: disk and hdd, both engines */
    assert_true(has_warning(late, "8 points were left out"));
    for (int64_t threads = 1; threads <= 8; threads *= 2) {
        assert_int_equal(n_points(late, "disk", threads), threads == 1 || threads == 8);
        assert_int_equal(n_points(late, "hdd", threads), threads == 1 || threads == 8);
    }
    assert_int_equal(n_points(late, "ssd", 1), 1);
    assert_int_equal(n_points(late, "ssd", 8), 1);
    mr_json_free(late);
    mr_dataset_unref(d);
}

static void a_study_in_time_or_a_full_one_leaves_out_nothing(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 8, 2);
    for (int full = 0; full < 2; full++) {
        struct mr_json *all = study(*state, d, full, full); /* the full one is late */
        assert_int_equal(n_left_out(all), 0);
        assert_false(has_warning(all, "left out"));
        for (int64_t threads = 1; threads <= 8; threads *= 2)
            assert_int_equal(n_points(all, "hdd", threads), 1);
        mr_json_free(all);
    }
    mr_dataset_unref(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_late_study_leaves_out_what_lies_between),
        WITH_TEMPDIR(a_study_in_time_or_a_full_one_leaves_out_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
