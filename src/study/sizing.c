/* sizing.c - see sizing.h. */
#include "sizing.h"

#include "points.h"
#include "trainer.h"

#include <math.h>
#include <stdio.h>

#define MOST_CORES 64.0 /* of the curve, unless there are more here */
#define STEPS      16   /* of a curve */

static const char *const accelerators[] = {"resnet50-v100", "resnet50-a100", "resnet50-h100"};

#define N_ACCELERATORS (sizeof accelerators / sizeof *accelerators)

/* Images a second that one accelerator takes; 0 when it is not known. */
static double taken_by(const char *accelerator)
{
    struct mr_accelerator_spec a;
    char name[64];
    snprintf(name, sizeof name, "emulated:%s", accelerator);
    if (mr_accelerator_spec_parse(name, &a, NULL))
        return 0;
    return a.own_batch / mr_accelerator_spec_seconds(&a, a.own_batch);
}

void mr_sizing_take(const struct mr_findings *f, const struct mr_advice *a, double image_bytes,
                    const struct mr_sizing_known *known, struct mr_sizing *out)
{
    double best = a->on_tier ? f->cold : fmax(f->cold, a->measured.per_s);
    double decoded = fmax(fmax(f->warm, a->measured.per_s), known->decoded_per_s);
    *out = (struct mr_sizing){
        .cores = f->cores,
        .image_bytes = image_bytes,
        .storage_per_s = fmax(fmax(f->fetched, known->read_per_s), best),
        .cores_per_s = fmax(fmax(f->cores / f->image_cpu_s, decoded), best),
        .measured_per_s = best,
    };
}

struct mr_json *mr_sizing_json(const struct mr_sizing *s)
{
    struct mr_json *list = mr_json_array();
    double feeds = fmin(fmin(s->storage_per_s, s->cores_per_s), s->measured_per_s);
    for (unsigned i = 0; i < N_ACCELERATORS; i++) {
        double need = taken_by(accelerators[i]);
        if (need <= 0)
            continue;
        struct mr_fed_accelerators fed = {.accelerator = accelerators[i],
                                          .images_per_s_each = need,
                                          .by_storage = s->storage_per_s / need,
                                          .by_cores = s->cores_per_s / need,
                                          .by_measured = s->measured_per_s / need,
                                          .feeds = floor(feeds / need)};
        mr_json_append(list, mr_fed_accelerators_json(&fed));
    }
    return list;
}

/* Images a second with that number of cores, or that bandwidth, and all else as it is. */
static double with_cores(const struct mr_sizing *s, double cores)
{
    return fmin(cores * s->cores_per_s / s->cores, s->storage_per_s);
}

static double with_bandwidth(const struct mr_sizing *s, double mb_per_s)
{
    return fmin(mb_per_s * 1e6 / s->image_bytes, s->cores_per_s);
}

/* How many accelerators that would feed, up to `most`. */
static struct mr_json *curves(const struct mr_sizing *s, double most,
                              double (*with)(const struct mr_sizing *s, double x))
{
    struct mr_json *list = mr_json_array();
    for (unsigned i = 0; i < N_ACCELERATORS; i++) {
        double need = taken_by(accelerators[i]);
        if (need <= 0)
            continue;
        struct mr_json *curve = mr_json_array();
        for (unsigned k = 0; k <= STEPS; k++) {
            double x = most * k / STEPS;
            mr_json_append(curve, mr_number_list((double[]){x, with(s, x) / need}, 2));
        }
        mr_json_append(list, mr_fed_curve_json(&(struct mr_fed_curve){
                                 .accelerator = accelerators[i], .curve = curve}));
    }
    return list;
}

struct mr_json *mr_sizing_by_bandwidth(const struct mr_sizing *s)
{
    double most = fmax(2 * s->cores_per_s, 1.25 * s->storage_per_s);
    return curves(s, most * s->image_bytes / 1e6, with_bandwidth);
}

struct mr_json *mr_sizing_by_cores(const struct mr_sizing *s)
{
    return curves(s, fmax(MOST_CORES, 2.0 * s->cores), with_cores);
}
