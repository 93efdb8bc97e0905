/* lab.h - what experiments share: storages to compare, one point of a result, the stop watch. */
#ifndef MR_LAB_H
#define MR_LAB_H

#include <millrace/pipeline.h>
#include <millrace/store.h>

#include "experiment.h"
#include "points.h"
#include "sizing.h"
#include "trainer.h"

#include <limits.h>

#define MR_LAB_STORAGES 5

struct mr_lab_storage {
    const char *name;         /* "disk" or a profile's */
    struct mr_device *device; /* NULL: the real one */
    int whole_grid;           /* in a quick study too */
    double random_mb_per_s;   /* its limit with ImageNet's sizes; NaN: not known, or that of another
                                 storage than the samples are on */
};

struct mr_lab {
    const struct mr_study_opts *o;
    struct mr_error *err;
    const char *experiment; /* the one that runs, and lists of its result: */
    struct mr_json *points, *commands, *warnings;
    double foreseen_s;          /* all experiments that are to run */
    double before_s;            /* those that are through, as they were foreseen */
    double started_s, budget_s; /* of this one */
    unsigned n_left_out;        /* points of this one, for lack of time */
    char marked[64];            /* what was said last, in a trace of the study */
    struct mr_lab_storage storage[MR_LAB_STORAGES];

    char input[2 * PATH_MAX]; /* "--data DIR" or "--list FILE", as a shell takes it */

    int same_storage; /* scratch is on the storage that the samples are on */

    /* What later experiments take from earlier ones; NaN: not known. */
    double image_bytes;           /* of a file, on average */
    struct mr_sizing_known known; /* the best rates so far */
};

/* Fill in `input` and return it. */
const char *mr_lab_name_input(struct mr_lab *lab);
double mr_lab_now(void);
int mr_lab_stopped(struct mr_lab *lab);
/* The same as a callback; ctx is the lab. */
int mr_lab_should_stop(void *lab);
void mr_lab_say(struct mr_lab *lab, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Add to the result: a point (taken), a warning, the command that does the same by hand. */
void mr_lab_point(struct mr_lab *lab, struct mr_json *point);
void mr_lab_warn(struct mr_lab *lab, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mr_lab_command(struct mr_lab *lab, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The path of the first sample, or of the data set: it is on the storage that is read. */
const char *mr_lab_sample(const struct mr_lab *lab, char *buf, size_t cap);
/* A path as a shell takes it: in quotes where that is needed. */
const char *mr_lab_quote(const char *path, char *buf, size_t cap);
/* Keep the rate of a point of `read` or `decode` if there was no better one. */
void mr_lab_note_rate(struct mr_lab *lab, int decoded, int emulated, double per_s);
/* Thread counts for a storage: 1, 2, 4, 8, or 1 and 8; their number. */
unsigned mr_lab_threads(const struct mr_lab *lab, const struct mr_lab_storage *s, unsigned out[4]);

/* Options of a training run with the study's batch of 64 and the data set; the accelerator takes
 * `step_s` seconds a step. */
void mr_lab_training(struct mr_lab *lab, double step_s, const struct mr_lab_storage *s,
                     struct mr_train_opts *out);
struct mr_lab_input {  /* where the samples of a run came from */
    const char *cold;  /* the real storage: "data", "unproven"; NULL: there was nothing to evict */
    int all_evicted;   /* the whole data set was */
    double late_share; /* emulated: of the samples that the real one had later; else NaN */
};
/* Evict what a pipeline with these options draws in its first `n_batches`, or as much of it as
 * fits into `box_s` seconds (0: all); the number of batches.  A warning says when coldness is
 * unproven. */
uint64_t mr_lab_make_cold(struct mr_lab *lab, const struct mr_pipeline_opts *pipe,
                          uint64_t n_batches, double box_s, struct mr_lab_input *out);
/* n samples were bad: their substitutes may not have been evicted. */
void mr_lab_note_replaced(struct mr_lab *lab, struct mr_lab_input *input, uint64_t n);
/* Before a training run: evict what it draws and prefetches.  Where its storage is emulated,
 * read that into the page cache instead, as far as memory holds it.  Always writes *out. */
int mr_lab_make_ready(struct mr_lab *lab, const struct mr_train_opts *t, struct mr_lab_input *out);
/* mr_train_run with input from `s`; notes and warns when it came late. */
int mr_lab_train(struct mr_lab *lab, const struct mr_lab_storage *s, const struct mr_train_opts *t,
                 struct mr_lab_input *input, struct mr_train_result *out);
/* Warn when too many samples from an emulated storage came late (mr_late_share). */
void mr_lab_check_late(struct mr_lab *lab, const char *storage, double late_share);
/* Warn when `cold`, as a run reports it, is "unproven". */
void mr_lab_check_cold(struct mr_lab *lab, const char *cold);
/* 1 when point `k` of a row of `n` should be left out, because a quick study has used up the
 * experiment's time; the point is counted as left out.  Never the first or the last. */
int mr_lab_skips(struct mr_lab *lab, unsigned k, unsigned n);
/* Is there room for the study's checkpoints in scratch?  0, or -ENOSPC with words. */
int mr_lab_checkpoint_room(struct mr_lab *lab, struct mr_error *err);
/* An empty folder below scratch, removed by mr_lab_remove_dir. */
int mr_lab_make_dir(struct mr_lab *lab, const char *name, char *path, size_t cap);
void mr_lab_remove_dir(const char *path);

#endif
