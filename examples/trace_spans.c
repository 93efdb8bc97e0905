/* trace_spans.c - a program's own phases on a timeline, beside those of the library.
 *
 *     trace_spans FILE.json      then open FILE.json in Perfetto, or: millrace inspect FILE.json */
#include <millrace/trace.h>

#include <stdio.h>

static double work(unsigned n)
{
    double sum = 0;
    for (unsigned i = 1; i <= n * 100000; i++)
        sum += 1.0 / i;
    return sum;
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct mr_trace_stats stats;
    double sum = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    if (mr_trace_start(&(struct mr_trace_opts){.path = argv[1]}, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    enum mr_phase tokenize = mr_trace_phase("Tokenize");
    for (unsigned step = 0; step < 10; step++) {
        mr_trace_context(0, step);
        uint64_t a = mr_trace_now();
        sum += work(1);
        uint64_t b = mr_trace_now();
        sum += work(3);
        uint64_t c = mr_trace_now();
        mr_trace_span(tokenize, a, b, 4096, MR_NONE);
        mr_trace_span(MR_PHASE_TRAIN, b, c, 0, MR_NONE);
        mr_trace_counter("sum", sum, c);
    }
    mr_trace_mark("end of run");
    if (mr_trace_stop(&stats, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%llu events, %llu dropped\n", (unsigned long long)stats.events,
           (unsigned long long)stats.dropped);
    return 0;
}
