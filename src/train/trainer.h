/* trainer.h - the mini-application: next batch, forward, backward, update, and the account of where
 * the time of every step went. */
#ifndef MR_TRAINER_H
#define MR_TRAINER_H

#include <millrace/pipeline.h>

#include "accelerator.h"
#include "cores.h"
#include "json.h"
#include "run_saver.h"

struct mr_train_progress {
    uint64_t step, steps;  /* done, of how many */
    double loss, accuracy; /* of the last step's images; NaN when emulated */
    double held_accuracy;  /* of the last evaluation, NaN before the first */
    const char *what;      /* "filling", "training", "evaluating", "saving" */
    double wait_share;     /* mr_train_wait_share so far */
    int saves_none; /* checkpoints are wanted, but the run ends before the first one is due */
};

struct mr_train_opts {
    struct mr_dataset *data; /* borrows; NULL: synthetic, random pixels */
    struct mr_dataset *held; /* borrows; evaluated after every epoch and at the end; NULL: never */
    struct mr_pipeline_opts pipe; /* decode, threads, hold, epochs, batches are filled in */
    struct mr_decoder_opts decode;
    struct mr_accelerator_spec device;
    unsigned n_classes;       /* 0: what the data say */
    unsigned compute_threads; /* 0: mr_cores_divide decides, and for pipe.threads too */
    unsigned epochs;
    uint64_t steps; /* 0: all of the epochs */
    int synthetic;  /* one batch, drawn once, again and again */
    double learning_rate;
    const struct mr_checkpoint_opts *checkpoint; /* borrows; NULL = none */
    unsigned checkpoint_every;                   /* steps */
    int final_checkpoint; /* one of the last step too, also when the run is stopped or input fails
                           */
    int resume;
    void (*passed_over)(void *ctx, const char *path, const char *why); /* while resuming */
    double until_accuracy; /* stop when an evaluation reaches it; 0 = never */
    void (*progress)(void *ctx, const struct mr_train_progress *now);
    void *progress_ctx;
};

/* The first step begins when its batch is there: the first fill stands before it. */
struct mr_step_record {
    double step_s; /* from asking for the batch to the end of the step */
    double wait_s; /* for the batch */
    double compute_s;
    double stall_s; /* for a checkpoint */
    double loss;
};

struct mr_train_result {
    struct mr_cores cores;
    uint64_t steps, images;
    struct mr_step_record *step; /* [steps] */
    double first_fill_s;         /* before the first step: the wait for the very first batch */
    double seconds;              /* all steps; evaluations left out */
    double input_wait_s, compute_s, checkpoint_stall_s; /* of these */
    double harness_s;      /* what the loop itself costs a step, from a trial without input */
    double au;             /* accelerator utilization, first step left out, harness taken off */
    double accuracy;       /* of the last evaluation; NaN */
    double train_accuracy; /* over the last epoch's images as they were trained on; NaN */
    double eval_s;
    int reached;                         /* until_accuracy was */
    double reached_s;                    /* seconds of training and evaluating until then */
    int partial;                         /* stopped before all steps were through */
    struct mr_pipeline_stats stats;      /* of the input; zero when synthetic */
    uint64_t state_bytes;                /* that a checkpoint holds; 0 without one */
    struct mr_resume_point from;         /* where it began */
    struct mr_checkpoint_record *record; /* [n_records] the checkpoints, in order */
    unsigned n_records;
    struct mr_checkpoint_stats checkpoint; /* at the end; all zero without one */
    double drain_s; /* from the last step until everything was durable everywhere, the final
                     * checkpoint included */
};

/* 0, -ECANCELED (the result holds what was done until then), or -errno with words in err.  The
 * result must be freed in any case. */
int mr_train_run(const struct mr_train_opts *o, struct mr_train_result *out, struct mr_error *err);
void mr_train_result_fini(struct mr_train_result *r);

/* The share of the steps' time that training waited for input, 0 to 1; 0 before the first step. */
double mr_train_wait_share(const struct mr_train_result *r);
/* Images/s, the first fill included. */
double mr_train_images_per_s(const struct mr_train_result *r);

/* The fields of docs/json.md, "train", but for `storage` and `verdict`, which the caller adds. */
struct mr_json *mr_train_result_json(const struct mr_train_opts *o,
                                     const struct mr_train_result *r);
/* Who decoded how many images: {own, turbo, png}. */
struct mr_json *mr_decoded_by_json(const struct mr_pipeline_stats *s);

#endif
