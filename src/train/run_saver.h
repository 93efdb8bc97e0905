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

struct mr_run_saver_opts {
    const struct mr_checkpoint_opts *how; /* borrows during open */
    unsigned every;                       /* steps from one to the next */
    int resume;                           /* begin from the newest that verifies, if there is one */
    uint64_t seed;
    /* A checkpoint that could not be taken up, and why. */
    void (*passed_over)(void *ctx, const char *path, const char *why);
    void *ctx;
};

/* Where a resumed run goes on. */
struct mr_resume_point {
    int resumed;
    uint64_t step; /* updates done */
    struct mr_position position;
    char path[1024];
};

/* Borrows the accelerator until close. */
int mr_run_saver_open(struct mr_accelerator *a, const struct mr_run_saver_opts *o,
                      struct mr_run_saver **out, struct mr_resume_point *from,
                      struct mr_error *err);
/* State tensor `tensor` of the accelerator is about to change. */
void mr_run_saver_before_write(struct mr_run_saver *s, unsigned tensor);
/* Update number `step` is done, and `next` is the batch that comes next.  Begins a checkpoint when
 * one is due: 0 = no, 1 = yes, -errno with words. */
int mr_run_saver_after_step(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                            struct mr_error *err);
/* The newest step that is known to be safe, -1: none. */
int64_t mr_run_saver_last_good(struct mr_run_saver *s);
/* Wait until everything is durable everywhere; then records and status are final. */
int mr_run_saver_finish(struct mr_run_saver *s, struct mr_error *err);
unsigned mr_run_saver_n(const struct mr_run_saver *s); /* checkpoints begun */
int mr_run_saver_record(struct mr_run_saver *s, unsigned i, struct mr_checkpoint_record *out);
void mr_run_saver_status(struct mr_run_saver *s, struct mr_checkpoint_status *out);
/* NULL is a no-op. */
void mr_run_saver_close(struct mr_run_saver *s);

#endif
