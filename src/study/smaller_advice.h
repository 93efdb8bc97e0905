/* smaller_advice.h - what images stored smaller would gain, predicted and then measured.
 *
 * Beside the configuration that is recommended, and with it: some images are made smaller, what one
 * of them takes is measured, the prediction follows from that, and then the pipeline runs. */
#ifndef MR_SMALLER_ADVICE_H
#define MR_SMALLER_ADVICE_H

#include "advice.h"
#include "json.h"
#include "smaller_set.h"

struct mr_smaller_advice {
    unsigned side;             /* that the shorter side of an image should have */
    struct mr_smaller_set set; /* what was made; its files are gone */
    double image_cpu_s;     /* of a smaller image, and how many of them a second: NAN if images */
    double predicted_per_s; /* are no larger than they need be */
    struct mr_measured measured; /* NAN: no gain was predicted */
    const char *proof;           /* as in struct mr_findings */
};

/* 0, -ECANCELED, or -errno with words why it could not be tried.  Images of a real storage must lie
 * where o->scratch is, or the smaller ones would be read from another. */
int mr_smaller_prove(const struct mr_advice_opts *o, const struct mr_findings *f,
                     const struct mr_advice *a, struct mr_smaller_advice *out,
                     struct mr_error *err);
/* "shorter side 256 instead of 375, JPEG quality 90" */
void mr_smaller_text(const struct mr_smaller_advice *s, char *text, size_t cap);
/* For docs/json.md; `a` is the advice that was given to mr_smaller_prove.  NULL with `why` it could
 * not be tried. */
struct mr_json *mr_smaller_json(const struct mr_smaller_advice *s, const struct mr_advice *a,
                                const char *why);

#endif
