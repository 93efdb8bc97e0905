/* accelerator_spec.c - see accelerator_spec.h.  The published workloads are those of MLPerf Storage
 * (DLIO's accelerator emulation): seconds of compute a step on one accelerator, at the batch they
 * state. */
#include "accelerator_spec.h"

#include "errtext.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct workload {
    const char *name;
    unsigned batch;
    double seconds, minimum_au;
} workloads[] = {
    {"resnet50-v100", 64, 0.195, 0.90},
    {"resnet50-a100", 400, 0.435, 0.90},
    {"resnet50-h100", 400, 0.224, 0.90},
};

#define N_WORKLOADS (sizeof workloads / sizeof *workloads)
#define LONGEST_S   3600.0
#define MOST        4096u

static int refuse(const char *text, struct mr_error *err)
{
    char names[160] = "";
    for (size_t i = 0; i < N_WORKLOADS; i++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", workloads[i].name);
    }
    return mr_fail(
        err, -EINVAL,
        "device '%.60s' is not known: cpu, emulated:SECONDS, emulated:SECONDS+PER_IMAGE, or "
        "emulated:NAME or emulated:NAMExN with NAME one of %s",
        text, names);
}

/* Seconds at the start of text; 0 and *end behind them, or -1. */
static int seconds(const char *text, double *out, const char **end)
{
    char *stop;
    if (*text < '0' || *text > '9' || text[1] == 'x' || text[1] == 'X') /* no hexadecimal */
        return -1;
    double v = strtod(text, &stop);
    if (stop == text || !isfinite(v) || v > LONGEST_S)
        return -1;
    *out = v;
    *end = stop;
    return 0;
}

/* SECONDS[+PER_IMAGE] */
static int parse_times(const char *text, struct mr_accelerator_spec *s)
{
    const char *end;
    if (seconds(text, &s->step_s, &end))
        return -1;
    if (*end == '+' && seconds(end + 1, &s->image_s, &end))
        return -1;
    return *end ? -1 : 0;
}

/* NAME[xN] */
static int parse_workload(const char *text, struct mr_accelerator_spec *s)
{
    for (size_t i = 0; i < N_WORKLOADS; i++) {
        const struct workload *w = &workloads[i];
        size_t len = strlen(w->name);
        if (strncmp(text, w->name, len))
            continue;
        const char *rest = text + len;
        if (*rest) {
            char *end;
            if (rest[0] != 'x' || rest[1] < '1' || rest[1] > '9')
                return -1;
            unsigned long n = strtoul(rest + 1, &end, 10);
            if (*end || n > MOST)
                return -1;
            s->n = (unsigned)n;
        }
        s->step_s = w->seconds;
        s->own_batch = w->batch;
        s->minimum_au = w->minimum_au;
        return 0;
    }
    return -1;
}

int mr_accelerator_spec_parse(const char *text, struct mr_accelerator_spec *out,
                              struct mr_error *err)
{
    static const char prefix[] = "emulated:";
    struct mr_accelerator_spec s = {.kind = MR_ON_CPU, .n = 1};
    if (strlen(text) >= sizeof s.name)
        return refuse(text, err);
    strcpy(s.name, text);
    if (strcmp(text, "cpu")) {
        if (strncmp(text, prefix, sizeof prefix - 1))
            return refuse(text, err);
        const char *rest = text + sizeof prefix - 1;
        s.kind = MR_EMULATED;
        if (parse_times(rest, &s) && parse_workload(rest, &s))
            return refuse(text, err);
    }
    *out = s;
    return 0;
}

double mr_accelerator_spec_seconds(const struct mr_accelerator_spec *spec, unsigned batch)
{
    if (spec->own_batch)
        return spec->step_s * batch / spec->own_batch;
    return spec->step_s + spec->image_s * batch * spec->n;
}
