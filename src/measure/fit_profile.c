/* fit_profile.c - see fit_profile.h.
 *
 * The model of device.c with one target, R and W bytes/s, and the unknowns s (seek), l (latency),
 * m (metadata), y (sync):
 *
 *     random 16 KiB, many at once:   1 / iops = s + 16 KiB / R      the target is always busy
 *     random 4 KiB, one at a time:   1 / iops = s + 4 KiB / R + l
 *     small files, one at a time:    1 / files = m + s + 4 KiB / R + l
 *     sync after 4 KiB:              latency  = s + 4 KiB / W + y
 *
 * so each follows from the one before.  A seek does not shrink with the queue: what it is with many
 * at once is what was measured, and the rest of a lone read's time is latency, which overlaps.
 * Nothing measures a lone write without a sync, so its latency is taken to be a read's. */
#include "fit_profile.h"

#include "errtext.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

/* The part of a duration (ns) that is left for a cause. */
static uint64_t rest(double whole_ns, double known_ns)
{
    return whole_ns > known_ns ? (uint64_t)(whole_ns - known_ns + 0.5) : 0;
}

static void fit_name(const char *name, char *out, size_t cap)
{
    size_t n = 0;
    for (; *name && n + 1 < cap; name++)
        out[n++] = isalnum((unsigned char)*name) || *name == '.' || *name == '_' ? *name : '-';
    out[n] = 0;
    if (!n)
        snprintf(out, cap, "measured");
}

/* One line of plain text. */
static void fit_text(const char *text, char *out, size_t cap)
{
    size_t n = 0;
    for (; *text && n + 1 < cap; text++)
        out[n++] = isprint((unsigned char)*text) ? *text : '?';
    out[n] = 0;
}

int mr_fit_profile(const struct mr_baseline *b, const char *name, const char *measured,
                   struct mr_device_profile *out, struct mr_error *err)
{
    const struct mr_baseline_result *r = b->result;
    for (unsigned i = 0; i < MR_N_PATTERNS; i++)
        if (i >= b->n_results || !r[i].n_runs || !(r[i].iops > 0))
            return mr_fail(err, -ENODATA, "no profile can be made: %s was not measured",
                           mr_pattern_name(i));
    double read_rate = r[MR_PATTERN_SEQ].read_mb_per_s * 1e6;
    double write_rate = r[MR_PATTERN_SEQ].write_mb_per_s * 1e6;
    double read_4k = 4096e9 / read_rate;
    struct mr_device_profile p = {
        .read_bytes_per_s = (uint64_t)read_rate,
        .write_bytes_per_s = (uint64_t)write_rate,
        .queue_depth = 1,
        .targets = 1,
        .stripe_bytes = 1 << 20,
    };
    p.seek_ns = rest(1e9 / r[MR_PATTERN_RANDOM_16K].iops, 16384e9 / read_rate);
    double known = (double)p.seek_ns + read_4k;
    p.read_latency_ns = rest(1e9 / r[MR_PATTERN_RANDOM_4K].iops, known);
    p.write_latency_ns = p.read_latency_ns;
    p.metadata_ns = rest(1e9 / r[MR_PATTERN_SMALL_FILES].iops, known + (double)p.read_latency_ns);
    p.sync_ns = rest((double)mr_histogram_at(&r[MR_PATTERN_FSYNC].latency, 0.5),
                     (double)p.seek_ns + 4096e9 / write_rate);
    fit_name(name, p.name, sizeof p.name);
    fit_text(measured, p.calibrated, sizeof p.calibrated);
    *out = p;
    return 0;
}
