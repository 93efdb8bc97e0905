/* survey.h - what a data set is: counts, sizes, what is cached, what is broken. */
#ifndef MR_SURVEY_H
#define MR_SURVEY_H

#include <millrace/dataset.h>

#include "cache_sweep.h"
#include "json.h"

#define MR_SURVEY_BINS                                                                             \
    40 /* files of 2^(i-1) < size <= 2^i bytes are in bin i; bin 0: 0 and 1 byte */

struct mr_survey {
    uint64_t samples;
    uint32_t classes;
    uint64_t smallest_class, largest_class; /* samples */
    uint64_t files, bytes;                  /* readable ones */
    uint64_t smallest, largest;
    uint64_t p10, p25, p50, p75, p90; /* file size */
    uint64_t bin[MR_SURVEY_BINS];
    struct mr_cache_sweep cache;
    uint64_t n_broken;
    size_t memory_bytes; /* of the table of samples */
    int checked, partial;
};

struct mr_survey_opts {
    int check; /* read every file to its end */
    void (*on_broken)(void *ctx, const char *path, const char *reason);
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    int (*should_stop)(void *ctx);
    void *ctx;
};

/* 0, -ECANCELED with what was seen so far, or -ENOMEM. */
int mr_survey_run(const struct mr_dataset *data, const struct mr_survey_opts *o,
                  struct mr_survey *out);
/* The fields of docs/json.md, "inspect". */
struct mr_json *mr_survey_json(const struct mr_survey *s);

#endif
