/* fuzz_trace.c - whatever the bytes are, a trace is refused with words or yields sound events and a
 * summary that adds up. */
#include "trace_summary.h"

#include "fuzz_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(what) ((what) ? (void)0 : broken(#what))

static void broken(const char *what)
{
    fprintf(stderr, "fuzz_trace: does not hold: %s\n", what);
    abort();
}

static void check_log(const struct mr_trace_log *log)
{
    for (size_t i = 0; i < log->n; i++) {
        const struct mr_log_event *e = &log->event[i];
        REQUIRE(e->begin_ns <= e->end_ns);
        REQUIRE(e->name < log->n_strings);
        REQUIRE(e->file == MR_NO_STRING || e->file < log->n_strings);
        REQUIRE(e->kind == MR_EVENT_COUNTER || e->thread < log->n_threads);
        REQUIRE(e->kind <= MR_EVENT_MARK);
        REQUIRE(strlen(mr_log_string(log, e->name)) < log->text_len);
    }
}

static void check_summary(const struct mr_trace_log *const *log, unsigned n)
{
    struct mr_trace_summary *s = NULL;
    uint64_t spans = 0, counted = 0;
    REQUIRE(!mr_trace_summarize(log, n, &s));
    for (unsigned k = 0; k < n; k++)
        for (size_t i = 0; i < log[k]->n; i++)
            spans += log[k]->event[i].kind == MR_EVENT_SPAN;
    for (size_t i = 0; i < s->n_phases; i++)
        counted += s->phase[i].count;
    REQUIRE(spans == counted);
    REQUIRE(s->begin_ns <= s->end_ns);
    REQUIRE(s->read_hidden_ns <= s->read_ns);
    mr_json_free(mr_trace_summary_json(s));
    mr_trace_summary_free(s);
}

/* Of a boot that the corpus names too. */
static const char other[] =
    "{\"baseTimeNanoseconds\":1700000000000000000,\"otherData\":{\"monotonic_clock\":\"boot 1\","
    "\"monotonic_start_ns\":\"5000000\"},\"traceEvents\":["
    "{\"ph\":\"X\",\"name\":\"Train\",\"ts\":100,\"dur\":50}]}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_trace_log *log = NULL, *second = NULL;
    char *text = malloc(size ? size : 1); /* of its own, so that a sanitizer sees the end */
    if (!text)
        return 0;
    memcpy(text, size ? data : (const uint8_t *)"", size);
    int r = mr_trace_log_parse(text, size, "fuzz", &log, &err);
    REQUIRE(r <= 0 && r == err.code && !r == !err.text[0] && !r == !!log);
    if (!r) {
        const struct mr_trace_log *both[2] = {log, log};
        check_log(log);
        check_summary(both, 1);
        check_summary(both, 2);
        REQUIRE(!mr_trace_log_parse(other, sizeof other - 1, "other", &second, NULL));
        both[1] = second;
        check_summary(both, 2);
    }
    mr_trace_log_free(second);
    mr_trace_log_free(log);
    free(text);
    return 0;
}
