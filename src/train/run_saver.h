/* run_saver.h - a training run's checkpoints: which arrays there are, when one is due, what they
 * cost, and how to take one up again.
 *
 * Lifetime: open (-> restored) -> (before_write, after_step)* -> close. */
#ifndef MR_RUN_SAVER_H
#define MR_RUN_SAVER_H

#include <millrace/checkpoint.h>
#include <millrace/pipeline.h>

#include "accelerator.h"

struct mr_run_saver;

/* What decides the order of samples. */
struct mr_run_order {
    uint64_t seed;
    enum mr_shuffle shuffle;
    unsigned window; /* 0 unless shuffle is MR_SHUFFLE_WINDOW */
    unsigned batch, world;
    uint64_t n_samples; /* of the data set, without what is held out */
};

struct mr_run_saver_opts {
    /* Borrows during open.  `fresh` is for a new run; `run` is filled in for a resumed one. */
    const struct mr_checkpoint_opts *how;
    unsigned every;            /* steps from one to the next */
    int resume;                /* begin from the newest that verifies, if there is one */
    struct mr_run_order order; /* a run resumes only where it goes on as it was */
    /* A checkpoint that could not be taken up, and why. */
    void (*passed_over)(void *ctx, const char *path, const char *why);
    void *ctx;
};

/* Where a resumed run goes on. */
struct mr_resume_point {
    int resumed;
    uint64_t step; /* updates done */
    uint64_t run;  /* that saved it; 0: a new one */
    struct mr_position position;
    char path[1024];
};

/* Borrows the accelerator until close. */
int mr_run_saver_open(struct mr_accelerator *a, const struct mr_run_saver_opts *o,
                      struct mr_run_saver **out, struct mr_resume_point *from,
                      struct mr_error *err);
/* State tensor `tensor` of the accelerator is about to change. */
void mr_run_saver_before_write(struct mr_run_saver *s, unsigned tensor);
/* Update number `step` is done, and the input has come to `next`.  Begins a checkpoint when one is
 * due: 0 = no, 1 = yes, -errno with words. */
int mr_run_saver_after_step(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                            struct mr_error *err);
/* The run ends after update `step`: begin a checkpoint of it unless one was begun already.  It
 * waits for room whatever `if_busy` says, and it is also tried after an earlier one has failed.  0:
 * there is one already; 1: it is begun; -errno with words: this one or an earlier one failed. */
int mr_run_saver_last_step(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                           struct mr_error *err);
/* Does a run of `steps` updates in all, of which `first` are done, come to one that is due? */
int mr_run_saver_is_due(const struct mr_run_saver *s, uint64_t first, uint64_t steps);
/* The newest step that is known to be safe, -1: none. */
int64_t mr_run_saver_last_good(struct mr_run_saver *s);
/* Wait until everything is durable everywhere; then records and status are final. */
int mr_run_saver_finish(struct mr_run_saver *s, struct mr_error *err);
unsigned mr_run_saver_n(struct mr_run_saver *s); /* checkpoints begun */
int mr_run_saver_record(struct mr_run_saver *s, unsigned i, struct mr_checkpoint_record *out);
void mr_run_saver_status(struct mr_run_saver *s, struct mr_checkpoint_stats *out);
/* NULL is a no-op. */
void mr_run_saver_close(struct mr_run_saver *s);

#endif
