/* test_extending.c - the examples of docs/extending.md do what the page says: the null experiment
 * goes through a study, its page and a comparison; the column has its value, or none. */
#include "unit.h"

#include "busy_column.h"
#include "lab.h"
#include "null_experiment.h"
#include "photo_set.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct mr_experiment_row experiment = {"null", &mr_experiment_null};
static const struct mr_section_row section = {"null", &mr_section_null};

struct seen {
    struct mr_json *results;
    unsigned n_progress, n_csv;
    int stop;
    char csv[64]; /* the id of the last */
};

static void on_finished(void *ctx, const char *name, struct mr_json *result)
{
    struct seen *seen = ctx;
    assert_string_equal(name, "null");
    mr_json_append(seen->results, result);
}

static void on_progress(void *ctx, const struct mr_study_progress *now)
{
    struct seen *seen = ctx;
    assert_string_equal(now->experiment, "null");
    seen->n_progress++;
}

static int should_stop(void *ctx)
{
    return ((struct seen *)ctx)->stop;
}

static int on_csv(void *ctx, const char *id, const char *text, size_t len)
{
    struct seen *seen = ctx;
    assert_int_equal(strlen(text), len);
    snprintf(seen->csv, sizeof seen->csv, "%s", id);
    seen->n_csv++;
    return 0;
}

/* A study of the null experiment alone, which ends with `code`; its results go to `seen`. */
static void run_study(struct tempdir *t, struct seen *seen, int code)
{
    struct mr_error err = {0};
    photo_set_write(t, 3);
    struct mr_dataset *data = photo_set_open(t->path);
    seen->results = mr_json_array();
    struct mr_study_opts o = {.data = data,
                              .n_images = mr_dataset_size(data),
                              .data_path = t->path,
                              .scratch = t->path,
                              .runs = 2,
                              .experiments = &experiment,
                              .n_experiments = 1,
                              .finished = on_finished,
                              .progress = on_progress,
                              .should_stop = should_stop,
                              .ctx = seen};
    assert_true(mr_study_estimate(&o) == 1);
    assert_int_equal(mr_study_run(&o, &err), code);
    mr_dataset_unref(data);
}

/* results.json with these results, which it takes. */
static struct mr_json *results_json(struct mr_json *results)
{
    struct mr_study_results all = {.command = "study", .version = "x", .results = results};
    return mr_study_results_json(&all);
}

static void the_null_experiment_runs_and_has_a_page(void **state)
{
    struct seen seen = {0};
    struct mr_error err = {0};
    struct mr_markup page = {0};
    run_study(*state, &seen, 0);
    assert_int_equal(mr_json_len(seen.results), 1);
    struct mr_result result = mr_result_of(mr_json_item(seen.results, 0));
    assert_string_equal(result.experiment, "null");
    assert_true(result.finished && !result.missing && result.foreseen_s == 1);
    assert_int_equal(mr_json_len(result.points), 3);
    assert_true(mr_json_number(mr_json_at(result.points, "2.loops")) == 100000);
    assert_true(mr_json_number(mr_json_at(result.points, "2.ns_per_loop")) > 0);
    assert_int_equal(mr_json_len(mr_json_at(result.points, "2.each_ns")), 3);
    assert_true(seen.n_progress >= 3);

    struct mr_json *root = results_json(seen.results);
    struct mr_report_opts o = {
        .on_csv = on_csv, .ctx = &seen, .sections = &section, .n_sections = 1};
    assert_int_equal(mr_report_render(root, &o, &page, &err), 0);
    assert_int_equal(seen.n_csv, 1);
    assert_string_equal(seen.csv, "null");
    assert_non_null(strstr(page.data, "<section id=\"null\"><h2>Empty loops</h2>"));
    assert_non_null(strstr(page.data, "100000 loops: "));
    assert_non_null(strstr(page.data, "3 points of 3 runs each"));
    assert_null(strstr(page.data, "<section id=\"overlap\">"));
    mr_markup_fini(&page);
    mr_json_free(root);
}

static void a_stopped_one_hands_on_nothing(void **state)
{
    struct seen seen = {.stop = 1};
    run_study(*state, &seen, -ECANCELED);
    assert_int_equal(mr_json_len(seen.results), 0);
    mr_json_free(seen.results);
}

static struct mr_json *made_up(double ns)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "[{\"experiment\": \"null\", \"points\": [{\"loops\": 1000, "
                     "\"ns_per_loop\": %g, \"each_ns\": [%g, %g, %g]}]}]",
                     ns, 0.99 * ns, ns, 1.01 * ns);
    return results_json(mr_json_parse(text, (size_t)n));
}

static void two_of_them_are_compared(void **state)
{
    struct mr_json *a = made_up(2), *b = made_up(3);
    struct seen seen = {0};
    struct mr_error err = {0};
    struct mr_report_opts o = {
        .on_csv = on_csv, .ctx = &seen, .sections = &section, .n_sections = 1};
    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        struct mr_markup page = {0};
        assert_int_equal(mr_report_compare(a, "a", same ? a : b, "b", &o, &page, &err), 0);
        assert_string_equal(seen.csv, "compare-null");
        assert_non_null(strstr(page.data, "<td>1000 loops</td>"));
        assert_int_equal(strstr(page.data, "+50.0% ▲ worse") == NULL, same);
        mr_markup_fini(&page);
    }
    mr_json_free(a);
    mr_json_free(b);
}

static void the_column_has_its_value_or_none(void **state)
{
    struct mr_system_counts counts = {
        .cpu.ticks = {
            [MR_CPU_USER] = 30, [MR_CPU_SYSTEM] = 10, [MR_CPU_IDLE] = 50, [MR_CPU_IOWAIT] = 10}};
    struct mr_system_sample sample = {.known = MR_KNOWN_CPU};
    struct mr_sampled at = {&sample, &counts, 1.0};
    (void)state;
    assert_true(fabs(mr_system_column_value(&busy_column, &at, MR_KNOWN_CPU) - 40) < 1e-9);
    assert_true(isnan(mr_system_column_value(&busy_column, &at, MR_KNOWN_MEMORY)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(the_null_experiment_runs_and_has_a_page),
        WITH_TEMPDIR(a_stopped_one_hands_on_nothing),
        cmocka_unit_test(two_of_them_are_compared),
        cmocka_unit_test(the_column_has_its_value_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
