/* system_counters.c - see system_counters.h.  Files that grew over the years: what an old kernel
 * does not have is 0, what a new one adds is passed over. */
#include "system_counters.h"

#include "proc_text.h"

#include <errno.h>
#include <stddef.h>

int mr_cpu_parse(const char *text, struct mr_cpu *out)
{
    struct mr_cpu c = {0};
    unsigned n = 0;
    for (const char *p = text; *p; p = mr_next_line(p)) {
        const char *q = p;
        if (mr_scan_literal(&q, "cpu "))
            for (n = 0; n < MR_CPU_KINDS && !mr_scan_u64(&q, &c.ticks[n]);)
                n++;
        else if (mr_scan_literal(&q, "ctxt "))
            mr_scan_u64(&q, &c.switches);
        else if (mr_scan_literal(&q, "procs_running "))
            mr_scan_u64(&q, &c.running);
        else if (mr_scan_literal(&q, "procs_blocked "))
            mr_scan_u64(&q, &c.blocked);
    }
    if (n <= MR_CPU_IDLE)
        return -EBADMSG;
    *out = c;
    return 0;
}

static const struct {
    const char *key;
    size_t offset;
} memory_keys[] = {
    {"MemTotal:", offsetof(struct mr_memory, total_bytes)},
    {"MemFree:", offsetof(struct mr_memory, free_bytes)},
    {"MemAvailable:", offsetof(struct mr_memory, available_bytes)},
    {"Buffers:", offsetof(struct mr_memory, buffers_bytes)},
    {"Cached:", offsetof(struct mr_memory, cached_bytes)},
    {"Dirty:", offsetof(struct mr_memory, dirty_bytes)},
    {"Writeback:", offsetof(struct mr_memory, writeback_bytes)},
};

int mr_memory_parse(const char *text, struct mr_memory *out)
{
    enum { N = sizeof memory_keys / sizeof *memory_keys };
    struct mr_memory m = {0};
    unsigned n = 0;
    for (const char *p = text; *p && n < N; p = mr_next_line(p))
        for (unsigned i = 0; i < N; i++) {
            const char *q = p;
            uint64_t kb;
            if (!mr_scan_literal(&q, memory_keys[i].key))
                continue;
            if (!mr_scan_u64(&q, &kb) && kb <= UINT64_MAX / 1024) {
                *(uint64_t *)((char *)&m + memory_keys[i].offset) = kb * 1024;
                n++;
            }
            break;
        }
    if (!m.total_bytes)
        return -EBADMSG;
    *out = m;
    return 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1802376302" */
static int parse_total(const char *p, uint64_t *us)
{
    for (; *p && *p != '\n'; p++)
        if (mr_scan_literal(&p, "total="))
            return mr_scan_u64(&p, us);
    return -1;
}

int mr_pressure_parse(const char *text, struct mr_pressure *out)
{
    struct mr_pressure v = {0};
    int found = 0;
    for (const char *p = text; *p; p = mr_next_line(p)) {
        const char *q = p;
        if (mr_scan_literal(&q, "some "))
            found |= !parse_total(q, &v.some_us);
        else if (mr_scan_literal(&q, "full "))
            parse_total(q, &v.full_us);
    }
    if (!found)
        return -EBADMSG;
    *out = v;
    return 0;
}

static uint64_t rise(uint64_t was, uint64_t now)
{
    return now > was ? now - was : 0;
}

void mr_cpu_difference(const struct mr_cpu *was, const struct mr_cpu *now, struct mr_cpu *out)
{
    for (unsigned i = 0; i < MR_CPU_KINDS; i++)
        out->ticks[i] = rise(was->ticks[i], now->ticks[i]);
    out->switches = rise(was->switches, now->switches);
    out->running = now->running;
    out->blocked = now->blocked;
}

void mr_pressure_difference(const struct mr_pressure *was, const struct mr_pressure *now,
                            struct mr_pressure *out)
{
    out->some_us = rise(was->some_us, now->some_us);
    out->full_us = rise(was->full_us, now->full_us);
}
