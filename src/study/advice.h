/* advice.h - what another configuration of the pipeline would gain, predicted and then measured.
 *
 * mr_findings_take() makes the differential runs, mr_advice_prove() picks the best configuration by
 * its prediction, runs it, and sets the two side by side. */
#ifndef MR_ADVICE_H
#define MR_ADVICE_H

#include <millrace/pipeline.h>
#include <millrace/store.h>

#include "predict.h"

#define MR_WORTH_IT 1.03 /* times as fast: below it a change is not worth its trouble */

struct mr_setup {
    enum mr_engine engine;
    unsigned threads;
    unsigned io_depth; /* uring engine */
    unsigned batch;
    unsigned prefetch; /* 0 = a batch is begun when it is asked for */
};

struct mr_advice_opts {
    struct mr_dataset *data; /* borrows */
    const struct mr_decoder_opts *decode;
    struct mr_device *storage; /* NULL = the real one, read cold */
    struct mr_device *tier;    /* a storage that may be recommended instead; NULL = none */
    struct mr_setup now;
    double step_s;       /* of an accelerator that trains on every batch; 0 = none does */
    const char *scratch; /* a folder for a list of files */
    unsigned runs;
    unsigned cpu_rounds; /* of decoding cached images in three ways; 0 = twice as many as runs */
    double box_s;        /* of a run, */
    uint64_t
        least; /* or more, up to MR_LONGER times, until it has this many samples of a storage */
    uint64_t seed;
    void (*say)(void *ctx, const char *what);
    int (*should_stop)(void *ctx);
    void *ctx;
};

struct mr_findings {
    unsigned cores;
    /* Images/s: one sample from the cache, read and decoded; all of them, cached and decoded, cold
     * and not decoded, cold and decoded as `now` says. */
    double hand_over, one_decoded, warm, fetched, cold;
    /* CPU time of an image from the cache, as long as it holds a core: with a worker for each core,
     * and with more of them, which take turns. */
    double warm_cpu_s, crowded_cpu_s;
    double image_cpu_s; /* the first of these, read from the storage, */
    double read_cpu_s;  /* and how much of that is for reading */
    double ring_cpu_s;  /* what a sample takes more by io_uring; 0 where there is none */
    struct mr_spread spread;
    double wake_s;     /* how late a thread that slept goes on while all cores decode */
    double file_bytes; /* on average */
    struct mr_read_curve curve;
    struct mr_pipeline_stats stats; /* of the cold run, */
    double cold_s;                  /* and how long it took */
    const char *cold_proof;         /* of that run: "data", "unproven"; NULL: emulated */
    const char *proof;              /* the same of the runs that read only, all of them */
};

/* What a configuration was measured to deliver, with a control: the rate of decoding cached
 * images, divided by that rate when the findings were taken.  The control runs in turns with the
 * configuration, or after it where runs begin by evicting those images.  Other programs change
 * within seconds how much of the cores is left, and a prediction holds for the cores as they
 * were. */
struct mr_measured {
    double per_s;
    double control;
    double error; /* of the prediction for cores as fast as the control's: 0.1 is 10% too much */
    const char *cold;  /* "data", "unproven"; NULL: an emulated storage */
    double late_share; /* emulated: of the samples that the real one had later, at the most */
};

/* What became of the best configuration. */
enum mr_advice_standing {
    MR_ADVICE_KEEP,      /* no other one is predicted to be better than the present one */
    MR_ADVICE_CHANGE,    /* it measured better than the present one: recommended */
    MR_ADVICE_WITHDRAWN, /* it was predicted to be better, and did not measure so */
    MR_ADVICE_NO_MODEL,  /* the model is too far from what was measured now: no advice */
};

struct mr_advice {
    struct mr_setup best; /* by the model's prediction; it was run, whatever its standing */
    int on_tier;          /* the storage should change as well */
    double now_per_s;     /* predicted for the configuration as it is */
    double predicted_per_s;
    struct mr_measured measured;
    enum mr_advice_standing standing;
    struct mr_error without_ring; /* why io_uring was left out; empty when it was not */
};

/* 0, -ECANCELED, or -errno with words. */
int mr_findings_take(const struct mr_advice_opts *o, struct mr_findings *out, struct mr_error *err);
int mr_advice_prove(const struct mr_advice_opts *o, const struct mr_findings *f,
                    struct mr_advice *out, struct mr_error *err);
/* The recommended configuration with other findings or other data: images a second, predicted,
 * or measured where about `expected_per_s` are expected. */
int mr_advice_predict(const struct mr_advice_opts *o, const struct mr_findings *f,
                      const struct mr_advice *a, double *per_s);
int mr_advice_measure(const struct mr_advice_opts *o, const struct mr_findings *f,
                      const struct mr_advice *a, double expected_per_s, struct mr_measured *out,
                      struct mr_error *err);
/* Set `standing` from the other members.  mr_advice_prove() does. */
void mr_advice_settle(const struct mr_findings *f, struct mr_advice *a);
/* What was gained over the present rate as measured: 0.1 is 10%. */
double mr_advice_gain(const struct mr_findings *f, const struct mr_advice *a);
/* The configuration to continue with, as advice: the recommended one, or else the present one
 * with its own prediction and measurement. */
struct mr_advice mr_advice_in_use(const struct mr_advice_opts *o, const struct mr_findings *f,
                                  const struct mr_advice *a);

#endif
