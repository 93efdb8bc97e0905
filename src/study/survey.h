/* survey.h - what a data set is: counts, sizes, formats, what is cached, what is broken. */
#ifndef MR_SURVEY_H
#define MR_SURVEY_H

#include <millrace/dataset.h>

#include "cache_sweep.h"
#include "json.h"

#define MR_SURVEY_BINS      40 /* files of 2^(i-1) < size <= 2^i bytes are in bin i; bin 0: up to 1 */
#define MR_SURVEY_PROBES    1000 /* files whose header is read without `check` */
#define MR_SURVEY_SAMPLINGS 8

struct mr_quantiles {
    uint64_t min, p10, p25, p50, p75, p90, max;
};

struct mr_survey {
    uint64_t samples;
    uint32_t classes;
    uint64_t smallest_class, largest_class; /* samples */
    uint64_t files, bytes;                  /* usable ones */
    struct mr_quantiles size;               /* of them, in bytes */
    uint64_t bin[MR_SURVEY_BINS];
    struct mr_cache_sweep cache;
    uint64_t n_broken;

    uint64_t n_probed; /* files whose header was looked at */
    uint64_t n_jpeg, n_png, n_other;
    uint64_t n_progressive, n_grey, n_cmyk;
    struct mr_quantiles width, height; /* of the images among them */
    struct {
        char name[8]; /* "4:2:0"; "" ends the list */
        uint64_t n;
    } sampling[MR_SURVEY_SAMPLINGS];

    size_t memory_bytes; /* of the table of samples */
    uint64_t n_looked_at;
    int checked, partial;
};

struct mr_survey_opts {
    int check;        /* read every file to its end and decode it if it is an image */
    unsigned threads; /* 0 = one per online CPU */
    /* In the caller's thread, at the end, in the order of the samples. */
    void (*on_broken)(void *ctx, const char *path, const char *reason);
    /* In the caller's thread, now and then. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    int (*should_stop)(void *ctx);
    void *ctx;
    /* Look at samples in a random order for this many seconds, so that they are a fair choice,
     * and at no more than 131,072; where there are more, samples per class are not counted.  0 =
     * at all of them, in order. */
    double box_s;
};

/* 0, -ECANCELED with what was seen so far, or -ENOMEM. */
int mr_survey_run(const struct mr_dataset *data, const struct mr_survey_opts *o,
                  struct mr_survey *out);
/* The fields of docs/json.md, "inspect". */
struct mr_json *mr_survey_json(const struct mr_survey *s);

#endif
