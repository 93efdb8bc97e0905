/* test_trace_log.c - traces of other programs, cut and broken ones: read as far as they go. */
#include "unit.h"

#include "json_scan.h"
#include "trace_log.h"
#include "trace_writer.h"

#include <errno.h>
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

static void refused(const char *text, size_t len, int code, const char *words)
{
    struct mr_error err = {0};
    struct mr_trace_log *log = NULL;
    assert_int_equal(mr_trace_log_parse(text, len, "test", &log, &err), code);
    assert_null(log);
    if (!strstr(err.text, words))
        fail_msg("'%s' is not in: %s", words, err.text);
}

static const char *name(const struct mr_trace_log *log, size_t i)
{
    return mr_log_string(log, log->event[i].name);
}

/* As Kineto writes it: strings for process and thread, steps in names, the base at the end. */
static const char pytorch[] =
    "{\n \"schemaVersion\": 1,\n"
    " \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA A100\", \"list\": [1, [2], {}]}],\n"
    " \"traceEvents\": [\n"
    "  {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::conv2d\", \"pid\": 77, \"tid\": 78,\n"
    "   \"ts\": 1000.5, \"dur\": 20.25, \"args\": {\"External id\": 1, \"Input Dims\": [[8, "
    "3]]}},\n"
    "  {\"ph\": \"X\", \"name\": \"ProfilerStep#12\", \"pid\": \"Spans\", \"tid\": \"Prof (0)\",\n"
    "   \"ts\": 900, \"dur\": 500, \"args\": {}},\n"
    "  {\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD\", \"pid\": 0, \"tid\": "
    "7,\n"
    "   \"ts\": 1.1e3, \"dur\": 4, \"args\": {\"bytes\": 602112, \"device\": 0}},\n"
    "  {\"ph\": \"s\", \"id\": 9, \"pid\": 77, \"tid\": 78, \"ts\": 1001, \"name\": \"ac2g\"},\n"
    "  {\"ph\": \"i\", \"s\": \"t\", \"name\": \"[memory]\", \"pid\": 77, \"tid\": 0, \"ts\": "
    "1002},\n"
    "  {\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 77, \"args\": {\"name\": "
    "\"p\"}}\n"
    " ],\n \"traceName\": \"x.json\", \"displayTimeUnit\": \"ms\",\n"
    " \"baseTimeNanoseconds\": 1700000000000000000\n}\n";

static void a_trace_of_pytorch_is_read(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(pytorch);
    assert_int_equal(log->n, 4);
    assert_string_equal(name(log, 0), "aten::conv2d");
    assert_true(log->event[0].begin_ns == 1700000000001000500);
    assert_int_equal(log->event[0].end_ns - log->event[0].begin_ns, 20250);
    assert_string_equal(name(log, 1), "ProfilerStep");
    assert_int_equal(log->event[1].step, 12);
    assert_int_equal(log->event[2].bytes, 602112);
    assert_true(log->event[2].begin_ns == 1700000000001100000);
    assert_int_equal(log->event[3].kind, MR_EVENT_MARK);
    assert_int_equal(log->n_other, 1);
    assert_int_equal(log->n_bad, 0);
    assert_int_equal(log->n_threads, 4);
    assert_true(log->has_wall);
    mr_trace_log_free(log);
}

/* As TensorFlow writes it: relative times, an empty object at the end. */
static void a_trace_of_tensorflow_is_read(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(
        "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true}, \"traceEvents\":["
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"/host:CPU\"}},"
        "{\"ph\":\"X\",\"pid\":1,\"tid\":3,\"ts\":15.25,\"dur\":3.5,\"name\":\"MatMul\"},{}]}");
    assert_int_equal(log->n, 1);
    assert_int_equal(log->event[0].begin_ns, 15250);
    assert_false(log->has_wall);
    mr_trace_log_free(log);
}

static void times_since_1970_need_no_base(void **state)
{
    (void)state;
    struct mr_trace_log *log =
        parse("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1700000000000000.125,\"dur\":1}]");
    assert_true(log->has_wall);
    assert_true(log->event[0].begin_ns == 1700000000000000125);
    mr_trace_log_free(log);
}

static void begin_and_end_make_spans(void **state)
{
    (void)state;
    struct mr_trace_log *log =
        parse("[{\"ph\":\"B\",\"name\":\"outer\",\"ts\":1,\"tid\":1},"
              "{\"ph\":\"B\",\"name\":\"inner\",\"ts\":2,\"tid\":1},"
              "{\"ph\":\"B\",\"name\":\"elsewhere\",\"ts\":2,\"tid\":2},"
              "{\"ph\":\"E\",\"ts\":3,\"tid\":1},"
              "{\"ph\":\"E\",\"ts\":5,\"tid\":1,\"args\":{\"bytes\":9}},"
              "{\"ph\":\"E\",\"ts\":6,\"tid\":1},"
              "{\"ph\":\"X\",\"name\":\"no time\"},{\"ph\":\"X\",\"ts\":1,\"dur\":1}]");
    assert_int_equal(log->n, 2);
    assert_string_equal(name(log, 0), "outer");
    assert_int_equal(log->event[0].end_ns - log->event[0].begin_ns, 4000);
    assert_int_equal(log->event[0].bytes, 9);
    assert_int_equal(log->event[1].end_ns - log->event[1].begin_ns, 1000);
    assert_int_equal(log->n_unfinished, 1);
    assert_int_equal(log->n_bad, 3);
    mr_trace_log_free(log);
}

static void strings_are_decoded(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(
        "[{\"ph\":\"X\",\"name\":\"\\u00e9\\ud83d\\ude00\\ud83d\\n\\\"\",\"ts\":1,\"dur\":1}]");
    assert_string_equal(name(log, 0), "\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\n\"");
    mr_trace_log_free(log);
}

static void what_is_no_trace_is_refused_with_words(void **state)
{
    (void)state;
    refused("", 0, -EBADMSG, "not a trace");
    refused("hello", 5, -EBADMSG, "not a trace");
    refused("{\"command\":\"bench\"}", 19, -EBADMSG, "without traceEvents");
    refused("{\"traceEvents\":5}", 17, -EBADMSG, "without traceEvents");
    refused("[{\"ph\":\"X\"],", 12, -EBADMSG, "byte 11 makes no sense");
    refused("\x1f\x8b\x08", 3, -EBADMSG, "not a trace");
}

static void a_cut_trace_yields_what_is_before_the_cut(void **state)
{
    (void)state;
    size_t last = 0;
    for (size_t len = 16; len < sizeof pytorch - 1; len++) {
        struct mr_trace_log *log = NULL;
        char *copy = malloc(len); /* of its own, so that a sanitizer sees the end */
        assert_non_null(copy);
        memcpy(copy, pytorch, len);
        int r = mr_trace_log_parse(copy, len, "test", &log, NULL);
        assert_true(r == 0 || r == -EBADMSG);
        if (!r) {
            assert_true(log->cut || len >= sizeof pytorch - 2);
            assert_int_equal(log->damaged_at, 0);
            assert_in_range(log->n, last, 4);
            last = log->n;
        }
        mr_trace_log_free(log);
        free(copy);
    }
    assert_int_equal(last, 4);
}

static void a_damaged_trace_says_where(void **state)
{
    (void)state;
    const char *text = "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},\n!!!";
    struct mr_trace_log *log = parse(text);
    assert_int_equal(log->n, 1);
    assert_int_equal(log->damaged_at, (size_t)(strchr(text, '!') - text) + 1);
    mr_trace_log_free(log);
}

static void depth_is_limited(void **state)
{
    (void)state;
    enum { N = 100000 };
    static char text[N + 64];
    int at = sprintf(text, "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},{\"args\":{\"x\":");
    memset(text + at, '[', N);
    struct mr_trace_log *log = NULL;
    assert_int_equal(mr_trace_log_parse(text, (size_t)at + N, "test", &log, NULL), 0);
    assert_int_equal(log->n, 1);
    assert_true(log->damaged_at > 0);
    mr_trace_log_free(log);
}

static void columns_of_timelogger_are_read(void **state)
{
    (void)state;
    struct mr_trace_log *log = parse(
        MR_TIMELOGGER_HEAD
        "\r\n"
        "1,0,Read,,1700000000.5,1700000001.25,0.75,5,6\r\n"
        "1,0,\"Load, all\",\"step=3 id=4 bytes=5 file=/a b/\"\"c\"\".jpg\",1.0,2.0,1.0,5,7,more\n"
        "\n"
        "0,0,Mark,end of run,3,3,0,5,6\n"
        "0,0,Bad,backwards,3,2,0,5,6\n"
        "0,0,Short\n"
        "0,0,Cut,,1.0");
    assert_int_equal(log->n, 3);
    assert_string_equal(name(log, 0), "Read");
    assert_true(log->event[0].begin_ns == 1700000000500000000);
    assert_int_equal(log->event[0].end_ns - log->event[0].begin_ns, 750000000);
    assert_int_equal(log->event[0].step, MR_NONE);
    assert_string_equal(name(log, 1), "Load, all");
    assert_int_equal(log->event[1].step, 3);
    assert_int_equal(log->event[1].id, 4);
    assert_int_equal(log->event[1].bytes, 5);
    assert_string_equal(mr_log_string(log, log->event[1].file), "/a b/\"c\".jpg");
    assert_string_equal(name(log, 2), "end of run");
    assert_int_equal(log->event[2].kind, MR_EVENT_MARK);
    assert_int_equal(log->n_bad, 2);
    assert_true(log->cut);
    mr_trace_log_free(log);
}

static void many_threads_and_names_are_told_apart(void **state)
{
    (void)state;
    enum { N = 20000 };
    static char text[N * 64 + 64];
    size_t at = 0;
    for (int i = 0; i < N; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%c{\"ph\":\"X\",\"name\":\"n%d\",\"tid\":%d,\"ts\":1,\"dur\":1}",
                               i ? ',' : '[', i, i);
    snprintf(text + at, sizeof text - at, "]");
    struct mr_trace_log *log = parse(text);
    assert_int_equal(log->n, N);
    assert_int_equal(log->n_threads, N);
    assert_string_equal(name(log, N - 1), "n19999");
    mr_trace_log_free(log);
}

static void decimals_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int digits, ok;
        int64_t value;
    } row[] = {
        {"0", 3, 1, 0},        {"12.3456789", 3, 1, 12345},
        {"-1.5", 3, 1, -1500}, {"1e3", 0, 1, 1000},
        {"1.5E-2", 3, 1, 15},  {"9223372036854775807", 0, 1, INT64_MAX},
        {"1.", 1, 1, 10},      {".5", 1, 1, 5},
        {"123", -2, 1, 1},     {"9223372036854775808", 0, 0, 0},
        {"", 0, 0, 0},         {"-", 0, 0, 0},
        {"1e", 0, 0, 0},       {"1x", 0, 0, 0},
        {"1.2.3", 0, 0, 0},    {"1e99", 0, 0, 0},
        {"0e99", 0, 1, 0},     {"1e-99", 3, 1, 0},
        {"nan", 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        int64_t v = -7;
        int r = mr_decimal(row[i].text, strlen(row[i].text), row[i].digits, &v);
        if ((r == 0) != row[i].ok || (row[i].ok && v != row[i].value))
            fail_msg("'%s': %d, %lld", row[i].text, r, (long long)v);
    }
}

static void files_are_recognised_by_their_first_bytes(void **state)
{
    struct tempdir *t = *state;
    assert_int_equal(mr_trace_recognise(tempdir_text(t, "a", "{\"traceEvents\":[")), 1);
    assert_int_equal(mr_trace_recognise(tempdir_text(t, "a", "\xef\xbb\xbf [ {\"ph\"")), 1);
    assert_int_equal(mr_trace_recognise(tempdir_text(t, "a", MR_TIMELOGGER_HEAD "\n")), 1);
    assert_int_equal(mr_trace_recognise(tempdir_text(t, "a", "cat/1.jpg,0\n")), 0);
    assert_int_equal(mr_trace_recognise(tempdir_text(t, "a", "[old]/1.jpg,0\n")), 0);
    assert_int_equal(mr_trace_recognise(tempdir_text(t, "a", "")), 0);
    assert_int_equal(mr_trace_recognise(t->path), 0);
    assert_int_equal(mr_trace_recognise("/no/such/file"), 0);
    struct mr_trace_log *log = NULL;
    assert_int_equal(mr_trace_log_read("/no/such/file", &log, NULL), -ENOENT);
    assert_int_equal(mr_trace_log_read(t->path, &log, NULL), -EISDIR);
    assert_int_equal(mr_trace_log_read("/dev/null", &log, NULL), -EINVAL);
    assert_null(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_of_pytorch_is_read),
        cmocka_unit_test(a_trace_of_tensorflow_is_read),
        cmocka_unit_test(times_since_1970_need_no_base),
        cmocka_unit_test(begin_and_end_make_spans),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(what_is_no_trace_is_refused_with_words),
        cmocka_unit_test(a_cut_trace_yields_what_is_before_the_cut),
        cmocka_unit_test(a_damaged_trace_says_where),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(columns_of_timelogger_are_read),
        cmocka_unit_test(many_threads_and_names_are_told_apart),
        cmocka_unit_test(decimals_are_exact),
        WITH_TEMPDIR(files_are_recognised_by_their_first_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
