/* smaller_advice.c - see smaller_advice.h.
 *
 * Training crops and turns its images, so a seventh more than the side of a tensor is wanted: 256
 * pixels for 224, as it is usual.  What lies above that is read and decoded for nothing.
 *
 * The prediction is the simulation's, as for every other change: with the curve of reads of smaller
 * files and the CPU time of a smaller image, each measured alone.  The run that it is compared with
 * does both at once. */
#include "smaller_advice.h"

#include "differential.h"
#include "errtext.h"
#include "points.h"
#include "studied_disk.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define MAKE_S       1.0 /* for making images smaller */
#define DEFAULT_SIDE 224

static unsigned side_for(const struct mr_decoder_opts *d)
{
    unsigned side = d->width > d->height ? d->width : d->height;
    if (!side)
        side = DEFAULT_SIDE;
    return (side * 8 + 6) / 7;
}

static int try_it(const struct mr_advice_opts *o, const struct mr_findings *f,
                  const struct mr_advice *a, struct mr_smaller_advice *s, struct mr_error *err)
{
    struct mr_advice_opts with = *o;
    struct mr_findings found;
    with.data = s->set.data;
    if (s->set.n_files < with.now.batch)
        return mr_fail(err, -ENOSPC, "there is room for %u files, fewer than a batch has",
                       s->set.n_files);
    unsigned reads = a->best.engine == MR_ENGINE_URING ? a->best.io_depth : a->best.threads;
    int r = mr_findings_retake(&with, s->set.bytes_after, reads, f, &found, err);
    if (!r && mr_advice_predict(&with, &found, a, &s->predicted_per_s))
        r = mr_fail(err, -ENOMEM, "no memory");
    if (r)
        return r;
    s->image_cpu_s = found.image_cpu_s;
    s->proof = found.proof;
    /* That a model which is off sees no gain says nothing. */
    if (s->predicted_per_s <= MR_WORTH_IT * a->predicted_per_s && a->standing != MR_ADVICE_NO_MODEL)
        return 0;
    mr_advice_say(o, "smaller images");
    r = mr_advice_measure(&with, &found, a, s->predicted_per_s, &s->measured, err);
    if (!r)
        s->proof = mr_cold_of_both(s->proof, s->measured.cold);
    return r;
}

int mr_smaller_prove(const struct mr_advice_opts *o, const struct mr_findings *f,
                     const struct mr_advice *a, struct mr_smaller_advice *out, struct mr_error *err)
{
    struct mr_smaller_advice s = {.side = side_for(o->decode),
                                  .image_cpu_s = NAN,
                                  .predicted_per_s = NAN,
                                  .measured = {NAN, NAN, NAN, NULL, 0}};
    struct mr_smaller_opts how = {.data = o->data,
                                  .side = s.side,
                                  .scratch = o->scratch,
                                  .of_its_own = !o->storage,
                                  .box_s = MAKE_S,
                                  .should_stop = o->should_stop,
                                  .ctx = o->ctx};
    if (!o->storage && !mr_is_on_storage(o->data, o->scratch))
        return mr_fail(err, -EXDEV,
                       "nothing can be written where the images are, and %s is on "
                       "another storage",
                       o->scratch);
    mr_advice_say(o, "making images smaller");
    int r = mr_smaller_set_make(&how, &s.set, err);
    if (!r && s.set.data)
        r = try_it(o, f, a, &s, err);
    mr_smaller_set_fini(&s.set);
    if (!r)
        *out = s;
    return r;
}

void mr_smaller_text(const struct mr_smaller_advice *s, char *text, size_t cap)
{
    snprintf(text, cap, "shorter side %u instead of %u, JPEG quality %d", s->side,
             s->set.shorter_side, MR_SMALLER_QUALITY);
}

/* Did they measure better than the images as they are? */
static int helped(const struct mr_smaller_advice *s, const struct mr_advice *a)
{
    return s->measured.per_s > MR_WORTH_IT * a->measured.per_s;
}

/* A sentence or two. */
static void explain(const struct mr_smaller_advice *s, const struct mr_advice *a, char *text,
                    size_t cap)
{
    char change[96];
    double base = a->measured.per_s, off = s->measured.per_s / base - 1;
    mr_smaller_text(s, change, sizeof change);
    if (isnan(s->predicted_per_s))
        snprintf(text, cap,
                 "The stored images are no larger than training needs: their shorter side is %u "
                 "pixels, and %u are enough.",
                 s->set.shorter_side, s->side);
    else if (isnan(s->measured.per_s))
        snprintf(text, cap, "Smaller stored images (%s) would not help: something else limits.",
                 change);
    else if (!helped(s, a))
        snprintf(text, cap,
                 "Smaller stored images (%s) were tried and are not recommended: they measured "
                 "%.0f images/s, %.0f%% %s than the %.0f with the images as they are.",
                 change, s->measured.per_s, 100 * fabs(off), off < 0 ? "less" : "more", base);
    else
        snprintf(text, cap,
                 "Store the images smaller (%s: %.0f KB a file instead of %.0f): they measured "
                 "%.0f images/s, %.0f%% more than the %.0f with the images as they are.",
                 change, s->set.bytes_after / 1e3, s->set.bytes_before / 1e3, s->measured.per_s,
                 fmin(100 * off, 1e6), base);
}

struct mr_json *mr_smaller_json(const struct mr_smaller_advice *s, const struct mr_advice *a,
                                const char *why)
{
    char text[400];
    if (!s) {
        snprintf(text, sizeof text, "Smaller stored images were not tried: %s.", why);
        return mr_attempt_json(&(struct mr_attempt){.tried = 0, .text = text});
    }
    const struct mr_smaller_set *set = &s->set;
    explain(s, a, text, sizeof text);
    struct mr_smaller_images r = {
        .tried = !isnan(s->predicted_per_s),
        .text = text,
        .recommended = helped(s, a),
        .side = s->side,
        .quality = MR_SMALLER_QUALITY,
        .shorter_side = set->shorter_side,
        .looked_at = set->n_looked_at,
        .broken = set->n_broken,
        .larger = set->n_larger,
        .images = set->n_images,
        .files = set->n_files,
        .file_bytes = set->n_images ? set->bytes_before : NAN,
        .smaller_file_bytes = set->n_images ? set->bytes_after : NAN,
        .smaller_image_cpu_s = s->image_cpu_s,
        .predicted_images_per_s = s->predicted_per_s,
        .measured_images_per_s = s->measured.per_s,
        .base_images_per_s = a->measured.per_s,
        .error = fabs(s->predicted_per_s / s->measured.per_s - 1),
        .control = s->measured.control,
        .cold = s->proof,
    };
    return mr_smaller_images_json(&r);
}
