/* test_plot.c - every kind of plot as XML that nests, with marks, axes, legend and table; and no
 * value that breaks it. */
#include "chart.h"
#include "plot.h"
#include "report.h"
#include "scale.h"

#include "faults.h"
#include "unit.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checking ---- */

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *s = text; (s = strstr(s, what)); s += strlen(what))
        n++;
    return n;
}

/* Tags nest and are closed, attributes are quoted, & begins an entity. */
static void expect_xml(const char *text)
{
    char open[32][16];
    unsigned depth = 0;
    for (const char *s = text; *s; s++) {
        if (*s == '&') {
            size_t n = strspn(s + 1, "#abcdefghijklmnopqrstuvwxyz0123456789");
            assert_true(n && s[1 + n] == ';');
        }
        if (*s != '<')
            continue;
        int closing = s[1] == '/';
        const char *name = s + 1 + closing;
        size_t len = strcspn(name, " />");
        assert_in_range(len, 1, 15);
        int quoted = 0;
        for (s = name + len; *s && (quoted || *s != '>'); s++) {
            quoted ^= *s == '"';
            assert_true(*s != '<');
        }
        assert_true(*s == '>');
        if (closing) {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strlen(open[depth]), len);
            assert_memory_equal(open[depth], name, len);
        } else if (s[-1] != '/') {
            assert_true(depth < 32);
            memcpy(open[depth], name, len);
            open[depth++][len] = 0;
        }
    }
    assert_int_equal(depth, 0);
}

/* No coordinate may be "nan" or "inf": outside of tags these words may stand. */
static void expect_numbers(const char *text)
{
    for (const char *s = strchr(text, '<'); s; s = strchr(s, '<')) {
        const char *end = strchr(s, '>');
        for (; s < end; s++)
            if ((!strncmp(s, "nan", 3) || !strncmp(s, "inf", 3)) && !isalpha((unsigned char)s[3]))
                fail_msg("%.60s", s - 20 < text ? text : s - 20);
    }
}

static char *figure(const struct mr_plot *p)
{
    struct mr_markup m = {0};
    mr_plot_figure(p, &m);
    assert_true(mr_markup_ok(&m));
    expect_xml(m.data);
    expect_numbers(m.data);
    return m.data;
}

static void check_and_free(const struct mr_plot *p)
{
    struct mr_markup csv = {0};
    free(figure(p));
    mr_plot_csv(p, &csv);
    assert_true(mr_markup_ok(&csv));
    assert_null(strstr(csv.data, "nan"));
    assert_null(strstr(csv.data, "inf"));
    mr_markup_fini(&csv);
}

/* ---- samples ---- */

static const char *const names[] = {"one", "two <&>", "three"};
static const struct mr_point first[] = {{1, 10, 9, 11}, {2, 20, 0, 0}, {4, 5, 4, 6}};
static const struct mr_point second[] = {{1, 3, 0, 0}, {2, 4, 0, 0}, {4, 1, 0, 0}};
static const struct mr_point spans[] = {{0, 0, 0, 1}, {0, 1, 0.5, 2}, {0, 2, 2, 2.5}};

static const struct mr_series both[] = {
    {.name = "a & b", .colour = 0, .n = 3, .point = first},
    {.name = "other", .colour = 9, .dashed = 1, .n = 3, .point = second}};
static const struct mr_series of_spans[] = {{.name = "spans", .n = 3, .point = spans}};

static struct mr_plot sample(enum mr_plot_kind kind)
{
    int timeline = kind == MR_PLOT_TIMELINE;
    return (struct mr_plot){.kind = kind,
                            .id = "sample",
                            .title = "A <title>",
                            .x_label = "threads",
                            .y_label = "images/s",
                            .summary = "what it shows",
                            .n_series = timeline ? 1 : 2,
                            .series = timeline ? of_spans : both,
                            .n_names = 3,
                            .names = names};
}

#define FOR_EACH_KIND(k) for (enum mr_plot_kind k = MR_PLOT_BARS; k <= MR_PLOT_TIMELINE; k++)

/* ---- tests ---- */

static void every_kind_has_marks_axes_legend_and_table(void **state)
{
    (void)state;
    FOR_EACH_KIND(k)
    {
        struct mr_plot p = sample(k);
        char *text = figure(&p);
        assert_int_equal(count(text, "class=\"key\""), p.n_series);
        assert_int_equal(count(text, "<g class=\"series"), p.n_series);
        /* an area tells all series at a moment */
        assert_int_equal(count(text, "data-tip="),
                         k == MR_PLOT_AREAS || k == MR_PLOT_TIMELINE ? 3 : 6);
        assert_true(count(text, "class=\"tick\"") >= 3);
        assert_int_equal(count(text, "class=\"axis\""), 1);
        int lying = k == MR_PLOT_ROWS || k == MR_PLOT_DOTS;
        assert_true(lying || strstr(text, ">threads</text>"));
        assert_true(k == MR_PLOT_TIMELINE || strstr(text, ">images/s</text>"));
        assert_int_equal(count(text, "<tr>"), 1 + 3 * p.n_series);
        assert_non_null(strstr(text, "A &lt;title&gt;"));
        assert_non_null(strstr(text, "what it shows"));
        free(text);
    }
}

static void error_marks_are_drawn_where_there_is_a_spread(void **state)
{
    (void)state;
    struct mr_plot p = sample(MR_PLOT_BARS);
    char *text = figure(&p);
    assert_int_equal(count(text, "class=\"err\""), 2);
    assert_non_null(strstr(text, "10 (9 to 11)"));
    free(text);
    p.kind = MR_PLOT_LINES;
    text = figure(&p);
    assert_int_equal(count(text, "class=\"err\""), 2);
    free(text);
}

static void a_moment_is_marked_across_the_areas(void **state)
{
    (void)state;
    static const double places[] = {2, -5, 1e300, NAN, INFINITY};
    for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
        struct mr_plot p = sample(MR_PLOT_AREAS);
        p.mark = "end of <it>";
        p.mark_x = places[i];
        char *text = figure(&p);
        const char *at = strstr(text, "class=\"mark\"");
        assert_int_equal(count(text, "class=\"mark\""), 1);
        assert_non_null(strstr(text, "end of &lt;it&gt;"));
        double x = strtod(strchr(at, 'M') + 1, NULL); /* within the picture, wherever it is */
        assert_true(!isfinite(places[i]) || (x >= 0 && x <= 1000));
        free(text);
    }
}

static void nothing_to_draw_is_drawn(void **state)
{
    (void)state;
    static const struct mr_series empty[] = {{.name = "empty"}, {.name = "empty too"}};
    FOR_EACH_KIND(k)
    {
        struct mr_plot p = sample(k);
        p.n_series = 0;
        check_and_free(&p);
        p.n_series = 2;
        p.series = empty;
        check_and_free(&p);
        p.n_names = 0;
        p.log_x = p.log_y = 1;
        check_and_free(&p);
    }
}

static void hostile_values_do_not_reach_the_picture(void **state)
{
    (void)state;
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -1, 1e308, -1e308, 5e-324};
    FOR_EACH_KIND(k)
    for (unsigned i = 0; i < ARRAY_LEN(odd); i++)
        for (unsigned field = 0; field < 16; field++)
            for (int log = 0; log < 2; log++) {
                struct mr_point point[3] = {{1, 2, 0, 0}, {2, 1, 0, 1}, {4, 1, 1, 2}};
                struct mr_series s[2] = {{.name = "s", .n = 3, .point = point},
                                         {.name = "t", .n = 2, .point = point}};
                struct mr_plot p = sample(k);
                point[1] = (struct mr_point){field & 1 ? odd[i] : 2, field & 2 ? odd[i] : 1,
                                             field & 4 ? odd[i] : 0, field & 8 ? odd[i] : 1};
                p.series = s;
                p.n_series = 2;
                p.log_x = p.log_y = log;
                check_and_free(&p);
            }
}

static void names_that_do_not_fit_are_turned(void **state)
{
    (void)state;
    static const char *const long_names[] = {"hdd (emulated), 1 thread",
                                             "ssd (emulated), 8 threads",
                                             "a name of more than thirty characters \xc3\xa9"};
    char many[60][16];
    const char *list[60];
    struct mr_plot p = sample(MR_PLOT_BARS);
    char *text = figure(&p);
    assert_null(strstr(text, "text-anchor=\"end\">two"));
    free(text);
    p.names = long_names;
    text = figure(&p);
    assert_int_equal(count(text, "rotate(-90)\" text-anchor=\"end\""), 0);
    free(text);
    for (unsigned i = 0; i < 60; i++) {
        snprintf(many[i], sizeof many[i], "category %u", i);
        list[i] = many[i];
    }
    p.names = list;
    p.n_names = 20;
    text = figure(&p);
    assert_int_equal(count(text, "rotate(-40)"), 20);
    free(text);
    p.n_names = 60;
    text = figure(&p);
    assert_int_equal(count(text, "rotate(-90)\" text-anchor=\"end\""), 60);
    free(text);
}

static void tables_that_are_too_long_point_to_the_csv(void **state)
{
    (void)state;
    struct mr_point *many = calloc(1000, sizeof *many);
    assert_non_null(many);
    for (unsigned i = 0; i < 1000; i++)
        many[i] = (struct mr_point){i, i % 7, 0, 0};
    struct mr_series s = {.name = "s", .n = 1000, .point = many};
    struct mr_plot p = sample(MR_PLOT_AREAS);
    p.series = &s;
    p.n_series = 1;
    char *text = figure(&p);
    assert_non_null(strstr(text, "sample.csv"));
    /* what it comes to: mean, peak, where that is, sum over x */
    assert_non_null(strstr(text, "<tr><td>s</td><td>3.00</td><td>6</td><td>6</td><td>2,997</td>"));
    assert_int_equal(count(text, "<tr><td>"), 1);
    free(text);
    free(many);
}

static void csv_holds_every_point(void **state)
{
    (void)state;
    struct mr_markup m = {0};
    struct mr_plot p = sample(MR_PLOT_BARS);
    p.x_label = "a,b";
    mr_plot_csv(&p, &m);
    assert_string_equal(m.data, "series,\"a,b\",images/s,low,high\n"
                                "a & b,one,10,9,11\na & b,two <&>,20,,\na & b,three,5,4,6\n"
                                "other,one,3,,\nother,two <&>,4,,\nother,three,1,,\n");
    mr_markup_fini(&m);
    p = sample(MR_PLOT_TIMELINE);
    mr_plot_csv(&p, &m);
    assert_string_equal(m.data, "series,row,threads of the span,begin,end\nspans,one,1,0,1\n"
                                "spans,two <&>,1.5,0.5,2\nspans,three,0.5,2,2.5\n");
    mr_markup_fini(&m);
}

static void ticks_are_round_and_hold_the_data(void **state)
{
    (void)state;
    static const double ranges[][2] = {{0, 1},       {0, 97},        {3, 3},     {-5, 12},
                                       {0, 0},       {0.001, 0.002}, {1e6, 3e9}, {-2, -1},
                                       {1e-9, 2e-9}, {0, 1e300}};
    for (unsigned i = 0; i < ARRAY_LEN(ranges); i++)
        for (int log = 0; log < 2; log++) {
            struct mr_scale s;
            mr_scale_init(&s, ranges[i][0], ranges[i][1], 0, 100, 5, log, 0);
            double slack = 1e-9 * (fabs(ranges[i][0]) + fabs(ranges[i][1]));
            assert_true(s.lo <= ranges[i][0] + slack);
            assert_true(s.hi >= ranges[i][1] - slack);
            assert_in_range(s.n_ticks, 2, MR_MAX_TICKS);
            for (unsigned k = 1; k < s.n_ticks; k++)
                assert_true(s.tick[k] > s.tick[k - 1]);
            assert_true(fabs(mr_scale_at(&s, s.lo)) < 1e-6);
            assert_true(fabs(mr_scale_at(&s, s.hi) - 100) < 1e-6);
            if (!s.log) {
                double mantissa = s.step / pow(10, floor(log10(s.step) + 1e-9));
                assert_true(fabs(mantissa - 1) < 1e-6 || fabs(mantissa - 2) < 1e-6 ||
                            fabs(mantissa - 5) < 1e-6);
            }
        }
}

static void numbers_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "1"},
                {3.14159, "3.14"},
                {12.34, "12.3"},
                {999.6, "1,000"},
                {1234, "1,234"},
                {-1234567, "-1,234,567"},
                {0.0312, "0.031"},
                {0.0012, "0.00120"},
                {5e-5, "0.0000500"},
                {5e-8, "5.00e-08"},
                {1e15, "1.00e+15"},
                {NAN, "-"},
                {INFINITY, "-"}};
    char buf[32];
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(mr_number_text(rows[i].v, buf, sizeof buf), rows[i].text);
    assert_string_equal(mr_small_text(5e-5, 0.001, buf, sizeof buf), "<0.001");
    assert_string_equal(mr_small_text(0, 0.001, buf, sizeof buf), "0");
    assert_string_equal(mr_small_text(2.5, 0.001, buf, sizeof buf), "2.50");
    assert_string_equal(mr_small_text(NAN, 0.001, buf, sizeof buf), "-");
    struct mr_scale s;
    mr_scale_init(&s, 0, 2e6, 0, 100, 4, 0, 0);
    assert_string_equal(mr_tick_text(&s, 2e6, buf, sizeof buf), "2M");
    mr_scale_init(&s, 0, 1, 0, 100, 5, 0, 0);
    assert_string_equal(mr_tick_text(&s, 0.2, buf, sizeof buf), "0.2");
}

static void charts_gather_series_and_categories_once(void **state)
{
    (void)state;
    struct mr_chart c = {.plot = sample(MR_PLOT_BARS)};
    struct mr_series *a = mr_chart_series(&c, "x %d", 1);
    assert_ptr_equal(mr_chart_series(&c, "x 1"), a);
    assert_int_equal(mr_chart_name(&c, "n0"), 0);
    assert_int_equal(mr_chart_name(&c, "n1"), 1);
    assert_int_equal(mr_chart_name(&c, "n0"), 0);
    mr_chart_put(&c, a, 1, 5, 0, 0);
    assert_int_equal(a->n, 2);
    assert_true(isnan(a->point[0].y));
    assert_true(a->point[1].y == 5);
    for (unsigned i = 2; i < MR_CHART_NAMES + 5; i++)
        mr_chart_put(&c, a, mr_chart_name(&c, "n%u", i), i, 0, 0);
    assert_int_equal(c.n_names, MR_CHART_NAMES);
    assert_int_equal(a->n, MR_CHART_NAMES);
    for (unsigned i = 2; i < MR_CHART_SERIES + 5; i++)
        mr_chart_put(&c, mr_chart_series(&c, "x %u", i), 0, 1, 0, 0);
    assert_int_equal(c.n_series, MR_CHART_SERIES);
    assert_false(c.failed);
    mr_chart_finish(&c);
    check_and_free(&c.plot);
    mr_chart_fini(&c);
}

/* A page whose n-th allocation fails says so and leaves nothing behind.  jansson's own allocations
 * are not among them, so what it yields is whole. */
static void every_allocation_of_a_page_may_fail_once(void **state)
{
    (void)state;
    static const char text[] =
        "{\"command\":\"study\",\"version\":\"1\",\"results\":[{\"experiment\":\"batch\","
        "\"points\":[{\"device\":\"cpu\",\"batch\":16,\"s_per_image\":0.1},"
        "{\"device\":\"cpu\",\"batch\":32,\"s_per_image\":0.05}]},"
        "{\"experiment\":\"files\",\"points\":[{\"histogram\":[{\"to_bytes\":1024,\"n\":3}]}]}]}";
    struct mr_json *root = mr_json_parse(text, sizeof text - 1);
    assert_non_null(root);
    int hit = 1;
    for (uint64_t at = 1; hit; at++) {
        struct mr_markup page = {0}, summary = {0};
        struct mr_error err = {0};
        int64_t before = faults_live();
        faults_begin(FAULT_FAIL, at);
        int r = mr_report_render(root, &(struct mr_report_opts){0}, &page, &err);
        if (!r)
            r = mr_report_summary(root, &summary, &err);
        if (!r) {
            mr_markup_fini(&page);
            r = mr_report_compare(root, "a", root, "b", NULL, &page, &err);
        }
        hit = faults_end();
        if (r && r != -ENOMEM)
            fail_msg("allocation %llu: %d", (unsigned long long)at, r);
        assert_true(hit || !r);
        assert_true(!r || err.text[0]);
        mr_markup_fini(&page);
        mr_markup_fini(&summary);
        if (faults_live() != before)
            fail_msg("allocation %llu leaves %lld blocks behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        assert_in_range(at, 1, 5000);
    }
    mr_json_free(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_marks_axes_legend_and_table),
        cmocka_unit_test(error_marks_are_drawn_where_there_is_a_spread),
        cmocka_unit_test(a_moment_is_marked_across_the_areas),
        cmocka_unit_test(nothing_to_draw_is_drawn),
        cmocka_unit_test(hostile_values_do_not_reach_the_picture),
        cmocka_unit_test(names_that_do_not_fit_are_turned),
        cmocka_unit_test(tables_that_are_too_long_point_to_the_csv),
        cmocka_unit_test(csv_holds_every_point),
        cmocka_unit_test(ticks_are_round_and_hold_the_data),
        cmocka_unit_test(numbers_read_as_people_write_them),
        cmocka_unit_test(charts_gather_series_and_categories_once),
        cmocka_unit_test(every_allocation_of_a_page_may_fail_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
