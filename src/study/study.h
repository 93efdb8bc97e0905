/* study.h - the characterization of a machine: experiments, one after the other.
 *
 * Each experiment is a file of its own (exp_NAME.c) that yields an object of docs/json.md, "study".
 * The study gives them what they share, and passes results to the caller, who has the files and the
 * terminal. */
#ifndef MR_STUDY_H
#define MR_STUDY_H

#include <millrace/dataset.h>

#include "json.h"

struct mr_experiment_row;

struct mr_study_progress {
    const char *experiment, *what; /* "read", "hdd, 4 threads" */
    double done_s, total_s;        /* of the whole study, as far as it can be foreseen */
};

struct mr_study_opts {
    struct mr_dataset *data; /* borrows; may be NULL for an estimate */
    uint64_t n_images;       /* that it has, or will have */
    const char *data_path;
    const char
        *scratch;  /* a folder on the storage that is studied; what is made there is removed */
    int full;      /* the studies' sizes instead of what fits into ten minutes */
    unsigned runs; /* 0 = 3, or 6 with `full` */
    uint64_t seed;
    /* Names of experiments to run, NULL-terminated; NULL = all. */
    const char *const *only;
    /* What is run instead of the experiments of experiments.h; NULL = these. */
    const struct mr_experiment_row *experiments; /* experiment.h */
    unsigned n_experiments;
    /* The result of an earlier study of the same kind, to be used instead of a run; NULL = none.
     * Borrowed until the next call. */
    const struct mr_json *(*earlier)(void *ctx, const char *experiment);
    /* An experiment is through; takes `result`. */
    void (*finished)(void *ctx, const char *experiment, struct mr_json *result);
    void (*progress)(void *ctx, const struct mr_study_progress *now);
    int (*should_stop)(void *ctx);
    void *ctx;
};

/* Seconds that it will take, roughly. */
double mr_study_estimate(const struct mr_study_opts *o);
/* The mean size of a file; of more than 100,000 by every second, third... of them.  NaN when none
 * can be looked at. */
double mr_study_file_bytes(const struct mr_dataset *data);
/* 0, -ECANCELED, or -errno with words.  The result of an experiment that fails has the
 * reason in its `missing`, and the study continues. */
int mr_study_run(const struct mr_study_opts *o, struct mr_error *err);

#endif
