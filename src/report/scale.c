/* scale.c - see scale.h.  Ticks are 1, 2 or 5 times a power of ten apart. */
#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double round_step(double span, unsigned wanted)
{
    double raw = span / (wanted ? wanted : 1), power = pow(10, floor(log10(raw)));
    double m = raw / power;
    return power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

static void log_ticks(struct mr_scale *s)
{
    int first = (int)floor(log10(s->lo) + 1e-9), last = (int)ceil(log10(s->hi) - 1e-9);
    int every = (last - first) / (MR_MAX_TICKS - 1) + 1;
    last = last <= first ? first + 1 : last;
    s->lo = pow(10, first);
    s->hi = pow(10, last);
    for (int e = first; e <= last && s->n_ticks < MR_MAX_TICKS; e += every)
        s->tick[s->n_ticks++] = pow(10, e);
}

void mr_scale_init(struct mr_scale *s, double lo, double hi, double from, double to,
                   unsigned wanted, int log, int from_zero)
{
    *s = (struct mr_scale){
        .from = from,
        .to = to,
    };
    if (!isfinite(hi - lo) || lo > hi) {
        lo = 0;
        hi = 1;
    }
    s->log = log && lo > 0;
    if (from_zero && !s->log) {
        lo = fmin(lo, 0);
        hi = fmax(hi, 0);
    }
    if (hi == lo) /* anything will do, if it is above */
        hi = lo + (lo ? fabs(lo) : 1);
    s->lo = lo;
    s->hi = hi;
    if (s->log) {
        log_ticks(s);
        return;
    }
    wanted = wanted > MR_MAX_TICKS - 3 ? MR_MAX_TICKS - 3 : wanted;
    s->step = round_step(hi - lo, wanted);
    s->lo = floor(lo / s->step + 1e-9) * s->step;
    s->hi = ceil(hi / s->step - 1e-9) * s->step;
    for (double v = s->lo; v <= s->hi + s->step / 2 && s->n_ticks < MR_MAX_TICKS; v += s->step)
        s->tick[s->n_ticks++] = fabs(v) < s->step / 1e6 ? 0 : v;
}

double mr_scale_at(const struct mr_scale *s, double v)
{
    double share = s->log ? log10(fmax(v, s->lo) / s->lo) / log10(s->hi / s->lo)
                          : (v - s->lo) / (s->hi - s->lo);
    share = isfinite(share) ? fmin(fmax(share, -1), 2) : 0; /* a picture has no infinity */
    return s->from + share * (s->to - s->from);
}

/* Put commas between thousands of the whole part, in place. */
static void group(char *buf, size_t cap)
{
    char *start = buf + (*buf == '-');
    size_t whole = strspn(start, "0123456789");
    for (size_t at = whole; at > 3; at -= 3) {
        size_t len = strlen(buf);
        if (len + 2 > cap)
            return;
        memmove(start + at - 2, start + at - 3, strlen(start + at - 3) + 1);
        start[at - 3] = ',';
    }
}

const char *mr_number_text(double v, char *buf, size_t cap)
{
    double size = fabs(v);
    if (!isfinite(v))
        snprintf(buf, cap, "-");
    else if (size && (size < 1e-6 || size >= 1e13))
        snprintf(buf, cap, "%.2e", v);
    else
        snprintf(buf, cap, "%.*f",
                 v == floor(v) || size >= 100 ? 0
                 : size >= 10                 ? 1
                 : size >= 1                  ? 2
                 : size >= 0.01               ? 3
                 : size >= 1e-4               ? 5
                                              : 7,
                 v);
    group(buf, cap);
    return buf;
}

const char *mr_small_text(double v, double least, char *buf, size_t cap)
{
    if (!(v > 0 && v < least))
        return mr_number_text(v, buf, cap);
    snprintf(buf, cap, "<%g", least);
    return buf;
}

const char *mr_tick_text(const struct mr_scale *s, double v, char *buf, size_t cap)
{
    int digits = s->log ? (v < 1 ? (int)ceil(-log10(v) - 1e-9) : 0)
                        : (int)fmax(0, ceil(-log10(s->step) - 1e-9));
    if (fabs(v) >= 1e13)
        snprintf(buf, cap, "%.3g", v);
    else if (fabs(v) >= 1e6 && digits == 0)
        snprintf(buf, cap, "%.*fM", fmod(v, 1e6) ? 1 : 0, v / 1e6);
    else
        snprintf(buf, cap, "%.*f", digits > 9 ? 9 : digits, v);
    group(buf, cap);
    return buf;
}
