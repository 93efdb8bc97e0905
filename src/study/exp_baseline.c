/* exp_baseline.c - raw limits (Table I): the real storage with every pattern, each profile in
 * order and at random with ImageNet's sizes, against which reading files is judged.
 *
 * What an emulated device yields was put into it; it is measured all the same, because a page that
 * shows a figure should have measured it. */
#include "lab.h"

#include "baseline.h"
#include "device.h"
#include "device_profile.h"
#include "errtext.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define FULL_BYTES     ((uint64_t)5 << 30)
#define QUICK_BYTES    ((uint64_t)1 << 30)
#define EMULATED_BYTES ((uint64_t)192 << 20) /* seconds on the slowest profile */
#define QUICK_RATE     300000000u            /* bytes a second */

struct watched {
    struct mr_lab *lab;
    const char *storage;
};

static int on_progress(void *ctx, const struct mr_baseline_progress *now)
{
    struct watched *w = ctx;
    mr_lab_say(w->lab, "%s, %s, %s", w->storage, mr_pattern_name(now->pattern), now->doing);
    return mr_lab_stopped(w->lab);
}

static void take(struct mr_lab *lab, struct mr_lab_storage *s, const struct mr_baseline *b,
                 const struct mr_baseline_opts *o)
{
    for (unsigned i = 0; i < b->n_results; i++) {
        const struct mr_baseline_result *r = &b->result[i];
        struct mr_baseline_point p = mr_baseline_result_point(b, r, o);
        p.storage = s->name;
        mr_lab_point(lab, mr_baseline_point_json(&p));
        if (r->pattern == MR_PATTERN_RANDOM_IMAGENET && (s->device || lab->same_storage))
            s->random_mb_per_s = r->read_mb_per_s;
    }
    if (b->warning[0])
        mr_lab_warn(lab, "%s: %s", s->name, b->warning);
}

/* Bytes of the large file: as many as are wanted, or half of what is free. */
static uint64_t size_that_fits(struct mr_lab *lab, const char *storage, uint64_t wanted)
{
    struct statvfs fs;
    if (statvfs(lab->o->scratch, &fs))
        return wanted;
    uint64_t half = (uint64_t)fs.f_bavail * fs.f_frsize / 2 >> 20 << 20;
    if (half >= wanted || half < MR_BASELINE_MIN_SIZE)
        return wanted;
    mr_lab_warn(lab, "%s: a file of %llu MB instead of %llu, because of the room on the disk",
                storage, (unsigned long long)(half >> 20), (unsigned long long)(wanted >> 20));
    return half;
}

/* By hand it is done beside the scratch folder, which is gone by then. */
static void tell_command(struct mr_lab *lab, const struct mr_lab_storage *s,
                         const struct mr_baseline_opts *o)
{
    char dir[PATH_MAX], quoted[2 * PATH_MAX];
    snprintf(dir, sizeof dir, "%s", lab->o->scratch);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = 0;
    mr_lab_command(lab, "millrace baseline %s --size %lluM --runs %u%s%s",
                   mr_lab_quote(slash ? dir : ".", quoted, sizeof quoted),
                   (unsigned long long)(o->size >> 20), o->runs, s->device ? " --storage " : "",
                   s->device ? s->name : "");
}

/* The first run is left out.  A quick study has time for one more on a slow profile, and for
 * three on one that takes a fraction of a second, where a single late fsync would show. */
static unsigned n_runs(const struct mr_lab *lab, const struct mr_lab_storage *s)
{
    if (!s->device || lab->o->full)
        return lab->o->runs;
    return mr_device_profile_of(s->device)->write_bytes_per_s > QUICK_RATE ? 4 : 2;
}

static int measure(struct mr_lab *lab, struct mr_lab_storage *s)
{
    struct watched w = {lab, s->name};
    struct mr_baseline b = {0};
    struct mr_baseline_opts o = {
        .dir = lab->o->scratch,
        .size = size_that_fits(lab, s->name,
                               lab->o->full ? FULL_BYTES
                               : s->device  ? EMULATED_BYTES
                                            : QUICK_BYTES),
        .runs = n_runs(lab, s),
        .n_patterns = s->device ? MR_PATTERN_RANDOM_IMAGENET + 1 : 0,
        .device = s->device,
        .device_name = s->name,
        .progress = on_progress,
        .ctx = &w,
    };
    tell_command(lab, s, &o);
    int r = mr_baseline_run(&o, &b, lab->err);
    take(lab, s, &b, &o);
    mr_baseline_fini(&b);
    return r;
}

static int run(struct mr_lab *lab)
{
    int r = 0;
    if (!lab->same_storage)
        mr_lab_warn(lab, "The limits of this disk are those of the storage that the study writes "
                         "to. The images are on another one, whose limits are not known.");
    for (unsigned i = 0; !r && i < MR_LAB_STORAGES; i++)
        r = measure(lab, &lab->storage[i]);
    return r;
}

const struct mr_experiment mr_experiment_baseline = {.quick_s = 60, .full_s = 1150, .run = run};
