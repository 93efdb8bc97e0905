/* test_trace_summary.c - what hides behind what, computed by hand and by brute force. */
#include "unit.h"

#include "draw.h"
#include "trace_summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mr_trace_log *parse(const char *text)
{
    struct mr_error err = {0};
    struct mr_trace_log *log = NULL;
    if (mr_trace_log_parse(text, strlen(text), "test", &log, &err))
        fail_msg("%s", err.text);
    return log;
}

static struct mr_trace_summary *sum_up(struct mr_trace_log *a, struct mr_trace_log *b)
{
    const struct mr_trace_log *log[2] = {a, b};
    struct mr_trace_summary *s = NULL;
    assert_int_equal(mr_trace_summarize(log, b ? 2 : 1, &s), 0);
    return s;
}

static const struct mr_phase_summary *phase(const struct mr_trace_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_phases; i++)
        if (!strcmp(s->phase[i].name, name))
            return &s->phase[i];
    fail_msg("no phase %s", name);
    return NULL;
}

/* us:     0    10   20   30   40   50   60   70
 * Read 0  |=========|                               two reads that overlap: 0-15, 5-20
 * Read 1            |=======|                       20-35
 * Train 0           |=========|                     20-40
 * Train 1                     |=========|           40-60
 * Wait 0  |=========|
 * Drain                                 |====|      60-70, after the end of the run at 60 */
static const char small[] =
    "[{\"ph\":\"X\",\"name\":\"Read\",\"ts\":0,\"dur\":15,\"args\":{\"epoch\":0,\"step\":0,\"id\":"
    "1,"
    "\"bytes\":1000,\"file\":\"one\"}},"
    "{\"ph\":\"X\",\"name\":\"Read\",\"ts\":5,\"dur\":15,\"args\":{\"epoch\":0,\"step\":0,\"id\":2,"
    "\"bytes\":2000}},"
    "{\"ph\":\"X\",\"name\":\"Read\",\"ts\":20,\"dur\":15,\"args\":{\"epoch\":0,\"step\":1,\"id\":"
    "1,"
    "\"bytes\":1000,\"file\":\"one\"}},"
    "{\"ph\":\"X\",\"name\":\"Read\",\"ts\":35,\"dur\":1,\"args\":{\"epoch\":0,\"step\":1,\"id\":4}"
    "},"
    "{\"ph\":\"X\",\"name\":\"Train\",\"ts\":20,\"dur\":20,\"args\":{\"epoch\":0,\"step\":0}},"
    "{\"ph\":\"X\",\"name\":\"Train\",\"ts\":40,\"dur\":20,\"args\":{\"epoch\":0,\"step\":1}},"
    "{\"ph\":\"X\",\"name\":\"Wait\",\"ts\":0,\"dur\":20,\"args\":{\"epoch\":0,\"step\":0}},"
    "{\"ph\":\"i\",\"name\":\"end of run\",\"ts\":30},"
    "{\"ph\":\"i\",\"name\":\"end of run\",\"ts\":60},"
    "{\"ph\":\"X\",\"name\":\"Drain\",\"ts\":60,\"dur\":10}]";

static void phases_steps_and_marks_of_a_small_trace(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(small);
    struct mr_trace_summary *s = sum_up(log, NULL);
    const struct mr_phase_summary *read = phase(s, "Read"), *train = phase(s, "Train");
    assert_int_equal(read->count, 4);
    assert_int_equal(read->union_ns, 36000);
    assert_int_equal(read->sum_ns, 46000);
    assert_int_equal(read->bytes, 4000);
    assert_int_equal(read->max_ns, 15000);
    assert_int_equal(train->union_ns, 40000);
    assert_string_equal(s->phase[0].name, "Train"); /* the longest first */
    assert_int_equal(mr_summary_overlap(s, (size_t)(read - s->phase), (size_t)(train - s->phase)),
                     16000);
    assert_int_equal(s->n_steps, 2);
    assert_int_equal(s->step[0].read_ns, 20000);
    assert_int_equal(s->step[0].read_hidden_ns, 0);
    assert_int_equal(s->step[0].wait_ns, 20000);
    assert_int_equal(s->step[0].compute_ns, 20000);
    assert_int_equal(s->step[1].read_ns, 16000);
    assert_int_equal(s->step[1].read_hidden_ns, 16000);
    assert_int_equal(s->read_hidden_ns, 16000);
    assert_int_equal(s->n_slow, 3); /* "one" was read twice */
    assert_string_equal(s->slow[0].file, "one");
    assert_int_equal(s->slow[2].id, 4);
    assert_int_equal(s->n_marks, 2);
    assert_int_equal(s->after_end_ns, 10000);
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

static void percentiles_of_few_spans_are_of_the_right_ones(void **state)
{
    static const struct {
        unsigned n, p50, p99; /* of spans of 1, 2, ... n us */
    } row[] = {{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {4, 2, 4}, {100, 50, 99}, {101, 51, 100}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char text[16384];
        size_t at = 0;
        for (unsigned k = 1; k <= row[i].n; k++)
            at += (size_t)snprintf(text + at, sizeof text - at,
                                   "%s{\"ph\":\"X\",\"name\":\"Read\",\"ts\":%u,\"dur\":%u}",
                                   k == 1 ? "[" : ",", 1000 * k, k);
        snprintf(text + at, sizeof text - at, "]");
        struct mr_trace_log *log = parse(text);
        struct mr_trace_summary *s = sum_up(log, NULL);
        assert_int_equal(s->phase[0].p50_ns, 1000 * row[i].p50);
        assert_int_equal(s->phase[0].p99_ns, 1000 * row[i].p99);
        mr_trace_summary_free(s);
        mr_trace_log_free(log);
    }
}

static void a_summary_as_json_has_its_fields(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(small);
    struct mr_trace_summary *s = sum_up(log, NULL);
    struct mr_json *o = mr_trace_summary_json(s);
    assert_string_equal(mr_json_text(mr_json_at(o, "kind")), "trace");
    assert_string_equal(mr_json_text(mr_json_at(o, "compute")), "Train");
    assert_int_equal(mr_json_len(mr_json_at(o, "steps")), 2);
    assert_true(mr_json_number(mr_json_at(o, "steps.1.read_hidden_s")) == 16e-6);
    assert_true(mr_json_number(mr_json_at(o, "after_end_s")) == 10e-6);
    assert_true(mr_json_number(mr_json_at(o, "phases.1.mb_per_s")) == 4000 / 36e-6 / 1e6);
    assert_int_equal(mr_json_len(mr_json_at(o, "overlap")), 6);
    mr_json_free(o);
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

static void two_traces_are_joined_on_the_wall_clock(void **state)
{
    (void)state;
    struct mr_trace_log *a = parse("{\"baseTimeNanoseconds\":1700000000000000000,\"traceEvents\":["
                                   "{\"ph\":\"X\",\"name\":\"Read\",\"ts\":100,\"dur\":50,"
                                   "\"args\":{\"step\":3}}]}");
    struct mr_trace_log *b = parse("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"ProfilerStep#3\","
                                   "\"ts\":20,\"dur\":100}],"
                                   "\"baseTimeNanoseconds\":1700000000000100000}");
    struct mr_trace_summary *s = sum_up(a, b);
    assert_string_equal(s->clock, "wall clock");
    assert_int_equal(s->n_phases, 2);
    assert_int_equal(s->phase[1].source, 1);
    assert_int_equal(mr_summary_overlap(s, 0, 1), 30000); /* 100-150 and 120-220 */
    assert_int_equal(s->compute, 1);
    assert_int_equal(s->step[0].read_hidden_ns, 30000);
    assert_true(s->end_ns - s->begin_ns == 120000);
    mr_trace_summary_free(s);
    mr_trace_log_free(a);
    mr_trace_log_free(b);
}

#define OF_CLOCK(wall, monotonic, clock)                                                           \
    "{\"baseTimeNanoseconds\":" wall ",\"otherData\":{\"writer\":\"x\",\"more\":[1],"              \
    "\"monotonic_start_ns\":\"" monotonic "\",\"monotonic_clock\":\"" clock                        \
    "\"},\"traceEvents\":[{\"ph\":\"X\",\"name\":\"Read\",\"ts\":100,\"dur\":50}]}"

/* The second began 80 us after the first; meanwhile the system's time was set by `step_ns`. */
static void check_join(const char *first, const char *second, const char *clock, int64_t step_ns,
                       int64_t all_ns)
{
    struct mr_trace_log *a = parse(first), *b = parse(second);
    struct mr_trace_summary *s = sum_up(a, b);
    assert_string_equal(s->clock, clock);
    assert_true(s->step_ns == step_ns);
    assert_true(s->end_ns - s->begin_ns == all_ns);
    struct mr_json *o = mr_trace_summary_json(s);
    const struct mr_json *told = mr_json_at(o, "clock_step_s");
    if (clock[0] == 'm')
        assert_true(mr_json_number(told) == (double)step_ns / 1e9);
    mr_json_free(o);
    mr_trace_summary_free(s);
    mr_trace_log_free(a);
    mr_trace_log_free(b);
}

static void traces_of_one_boot_are_joined_on_the_clock_that_nobody_can_set(void **state)
{
    (void)state;
    const char *first = OF_CLOCK("1700000000000000000", "5000000", "boot 1");
    check_join(first, OF_CLOCK("1700000000000080000", "5080000", "boot 1"), "monotonic clock", 0,
               130000);
    check_join(first, OF_CLOCK("1700003600000080000", "5080000", "boot 1"), "monotonic clock",
               3600000000000, 130000);
    check_join(first, OF_CLOCK("1699996400000080000", "5080000", "boot 1"), "monotonic clock",
               -3600000000000, 130000);
}

static void traces_of_two_machines_are_joined_on_the_wall_clock(void **state)
{
    (void)state;
    const char *first = OF_CLOCK("1700000000000000000", "5000000", "boot 1");
    check_join(first, OF_CLOCK("1700000000000080000", "77", "boot 2"), "wall clock", 0, 130000);
    check_join(first, OF_CLOCK("1700000000000080000", "77", ""), "wall clock", 0, 130000);
    check_join(first, OF_CLOCK("1700000000000080000", "later", "boot 1"), "wall clock", 0, 130000);
    check_join(first, OF_CLOCK("1700000000000080000", "-9223372036854775807", "boot 1"),
               "wall clock", 0, 130000);
}

static void without_a_wall_clock_starts_are_aligned(void **state)
{
    (void)state;
    struct mr_trace_log *a = parse(small);
    struct mr_trace_log *b = parse("[{\"ph\":\"X\",\"name\":\"Train\",\"ts\":777777,\"dur\":10}]");
    struct mr_trace_summary *s = sum_up(a, b);
    assert_string_equal(s->clock, "starts aligned");
    assert_int_equal(s->phase[s->n_phases - 1].source, 1);
    assert_true(s->phase[s->n_phases - 1].when[0].begin == 0);
    mr_trace_summary_free(s);
    mr_trace_log_free(a);
    mr_trace_log_free(b);
}

static void an_empty_trace_has_an_empty_summary(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse("[]");
    struct mr_trace_summary *s = sum_up(log, log);
    assert_int_equal(s->n_phases + s->n_steps + s->n_marks + s->n_slow, 0);
    assert_int_equal(s->compute, -1);
    mr_json_free(mr_trace_summary_json(s));
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

#define SPAN(name, step, from, took)                                                               \
    "{\"ph\":\"X\",\"name\":\"" name "\",\"ts\":" #from ",\"dur\":" #took                          \
    ",\"args\":{\"epoch\":0,\"step\":" #step ",\"bytes\":100}},"
#define MARK(name, at) "{\"ph\":\"i\",\"name\":\"" name "\",\"ts\":" #at "},"
#define THE_END        "{\"ph\":\"M\",\"name\":\"process_name\"}]"

static void steps_are_what_was_trained_on_not_what_was_read_ahead(void **state)
{
    (void)state;
    /* Steps of two batches: 0 and 1, 2 and 3.  Batch 4 was waited for when the run was stopped, 5
     * was read ahead. */
    struct mr_trace_log *log =
        parse("[" SPAN("Read", 0, 0, 5) SPAN("Wait", 0, 0, 5) SPAN("Read", 1, 5, 5)
                  SPAN("Wait", 1, 5, 5) SPAN("Train", 0, 10, 10) SPAN("Read", 2, 11, 5)
                      SPAN("Wait", 2, 20, 1) SPAN("Read", 3, 20, 2) SPAN("Wait", 3, 21, 1)
                          SPAN("Train", 2, 22, 10) SPAN("Read", 4, 25, 2) SPAN("Wait", 4, 32, 1)
                              SPAN("Read", 5, 27, 2) MARK("end of run", 34) THE_END);
    struct mr_trace_summary *s = sum_up(log, NULL);
    assert_int_equal(s->n_all_steps, 2);
    assert_int_equal(s->n_unused, 2);
    assert_int_equal(s->step[0].step, 0);
    assert_int_equal(s->step[0].read_ns, 10000);
    assert_int_equal(s->step[0].wait_ns, 10000);
    assert_int_equal(s->step[1].step, 2);
    assert_int_equal(s->step[1].read_ns, 7000);
    assert_int_equal(s->step[1].wait_ns, 2000);
    assert_int_equal(s->read_ns, 17000);
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

static void shares_are_of_the_runs_without_what_lies_around_them(void **state)
{
    (void)state;
    /* Two runs of 20 us with the same batches, 960 us of start-up, and a pass in between. */
    struct mr_trace_log *log = parse(
        "[" MARK("emulated accelerator: x", 0) MARK("run begins", 960) SPAN("Wait", 0, 960, 10)
            SPAN("Read", 0, 961, 9) MARK("end of run", 980) SPAN("Read", 0, 981, 5)
                MARK("run begins", 990) SPAN("Wait", 0, 990, 5) SPAN("Read", 0, 990, 4)
                    SPAN("Write", 0, 1000, 90) MARK("end of run", 1010) THE_END);
    struct mr_trace_summary *s = sum_up(log, NULL);
    assert_int_equal(s->n_runs, 2);
    assert_int_equal(s->run_ns, 40000);
    assert_int_equal(s->run[0].reads, 1);
    assert_int_equal(s->run[1].bytes, 100);
    assert_int_equal(s->run[1].end_ns - s->run[1].begin_ns, 20000);
    assert_int_equal(phase(s, "Wait")->run_ns, 15000);
    assert_int_equal(phase(s, "Read")->run_ns, 13000);
    assert_int_equal(phase(s, "Read")->union_ns, 18000);
    assert_int_equal(phase(s, "Write")->run_ns, 10000);
    assert_int_equal(s->n_all_steps, 2); /* batch 0 of each run */
    assert_int_equal(s->step[1].run, 1);
    assert_int_equal(s->step[1].read_ns, 4000);
    struct mr_json *o = mr_trace_summary_json(s);
    assert_true(mr_json_number(mr_json_at(o, "run_s")) == 40e-6);
    assert_true(mr_json_number(mr_json_at(o, "runs.1.seconds")) == 20e-6);
    assert_true(mr_json_number(mr_json_at(o, "runs.1.reads_per_s")) == 1 / 20e-6);
    mr_json_free(o);
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

static void without_marks_shares_are_of_the_time_from_span_to_span(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(
        "[{\"ph\":\"C\",\"name\":\"CPU\",\"ts\":0,\"args\":{\"v\":1}}," SPAN("Read", 0, 500, 10)
            SPAN("Read", 1, 530, 10) THE_END);
    struct mr_trace_summary *s = sum_up(log, NULL);
    assert_int_equal(s->n_runs, 0);
    assert_int_equal(s->run_ns, 40000);
    assert_int_equal(phase(s, "Read")->run_ns, 20000);
    assert_int_equal(s->n_all_steps, 2);
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

/* From the first to the last nanosecond that there is. */
static void times_that_no_clock_has_are_counted_as_far_as_it_goes(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse("[{\"ph\":\"X\",\"name\":\"Read\",\"ts\":-9.2e15,\"dur\":1},"
                                     "{\"ph\":\"i\",\"name\":\"end of run\",\"ts\":9.2e15},"
                                     "{\"ph\":\"X\",\"name\":\"Read\",\"ts\":9.2e15,\"dur\":1}]");
    struct mr_trace_summary *s = sum_up(log, NULL);
    struct mr_json *o = mr_trace_summary_json(s);
    assert_true(s->mark[0].at_ns > 0);
    assert_true(s->after_end_ns >= 0);
    assert_true(mr_json_number(mr_json_at(o, "seconds")) > 1.8e10);
    assert_true(mr_json_number(mr_json_at(o, "run_s")) > 1.8e10);
    mr_json_free(o);
    mr_trace_summary_free(s);
    mr_trace_log_free(log);
}

#define STEPS 6
#define TIME  300

/* Random spans; every length is found again by counting microseconds one by one. */
static void steps_match_a_count_of_every_moment(void **state)
{
    (void)state;
    static char text[64 * 1024];
    static const char *const names[] = {"Read", "Load", "Wait", "Train"};
    for (uint64_t round = 0; round < 300; round++) {
        unsigned char in[4][STEPS][TIME] = {0}, any_train[TIME] = {0};
        size_t n = 1 + mr_draw(round, MR_DRAW_SYNTHETIC, 0, 0, 0) % 60;
        char *p = text;
        *p++ = '[';
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = mr_draw(round, MR_DRAW_SYNTHETIC, 1, i, 0);
            unsigned kind = bits % 4, step = bits / 4 % STEPS, at = bits / 64 % (TIME - 50);
            unsigned len = bits >> 20 & 31;
            p += sprintf(p,
                         "%s{\"ph\":\"X\",\"name\":\"%s\",\"ts\":%u,\"dur\":%u,\"tid\":%zu,"
                         "\"args\":{\"step\":%u,\"epoch\":0}}",
                         i ? "," : "", names[kind], at, len, i, step);
            memset(&in[kind][step][at], 1, len);
            if (kind == 3)
                memset(&any_train[at], 1, len);
        }
        for (unsigned step = 0; step < STEPS; step++) /* every one is a step */
            p += sprintf(p,
                         ",{\"ph\":\"X\",\"name\":\"Train\",\"ts\":0,\"dur\":0,\"args\":"
                         "{\"step\":%u,\"epoch\":0}}",
                         step);
        strcpy(p, "]");
        struct mr_trace_log *log = parse(text);
        struct mr_trace_summary *s = sum_up(log, NULL);
        assert_int_equal(s->n_steps, STEPS);
        for (size_t i = 0; i < s->n_steps; i++) {
            const struct mr_step_summary *step = &s->step[i];
            uint64_t want[6] = {0};
            for (int t = 0; t < TIME; t++) {
                for (int k = 0; k < 4; k++)
                    want[k] += in[k][step->step][t];
                want[4] += in[0][step->step][t] && any_train[t];
                want[5] += in[1][step->step][t] && any_train[t];
            }
            assert_int_equal(step->read_ns, want[0] * 1000);
            assert_int_equal(step->load_ns, want[1] * 1000);
            assert_int_equal(step->wait_ns, want[2] * 1000);
            /* Train, when there is any, is what others hide behind. */
            assert_int_equal(step->compute_ns, want[3] * 1000);
            assert_int_equal(step->read_hidden_ns, want[4] * 1000);
            assert_int_equal(step->load_hidden_ns, want[5] * 1000);
        }
        mr_trace_summary_free(s);
        mr_trace_log_free(log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_steps_and_marks_of_a_small_trace),
        cmocka_unit_test(percentiles_of_few_spans_are_of_the_right_ones),
        cmocka_unit_test(a_summary_as_json_has_its_fields),
        cmocka_unit_test(two_traces_are_joined_on_the_wall_clock),
        cmocka_unit_test(traces_of_one_boot_are_joined_on_the_clock_that_nobody_can_set),
        cmocka_unit_test(traces_of_two_machines_are_joined_on_the_wall_clock),
        cmocka_unit_test(without_a_wall_clock_starts_are_aligned),
        cmocka_unit_test(an_empty_trace_has_an_empty_summary),
        cmocka_unit_test(steps_are_what_was_trained_on_not_what_was_read_ahead),
        cmocka_unit_test(shares_are_of_the_runs_without_what_lies_around_them),
        cmocka_unit_test(without_marks_shares_are_of_the_time_from_span_to_span),
        cmocka_unit_test(times_that_no_clock_has_are_counted_as_far_as_it_goes),
        cmocka_unit_test(steps_match_a_count_of_every_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
