/* predict.h - how fast a pipeline will be before it is built.
 *
 * What the storage delivers over the number of outstanding reads (a curve, measured or computed
 * from a profile), what an image costs in CPU time, and how many of each may be under way at once:
 * from these a small simulation plays some thousand samples through the pipeline. */
#ifndef MR_PREDICT_H
#define MR_PREDICT_H

struct mr_device_profile;

#define MR_CURVE_POINTS 8
#define MR_SPREAD       64

/* Files a second with `depth` reads under way; both rise. */
struct mr_read_curve {
    unsigned n;
    double depth[MR_CURVE_POINTS], per_s[MR_CURVE_POINTS];
};

/* What single images cost compared with the average one: their mean is 1. */
struct mr_spread {
    unsigned n; /* 0 = all cost the same */
    double share[MR_SPREAD];
};

struct mr_predict_input {
    struct mr_read_curve storage;
    struct mr_spread spread;
    double image_cpu_s; /* decoding, resizing and the CPU's part of reading, one image */
    double read_cpu_s;  /* of that, the CPU's part of reading */
    double wake_s;      /* how late a thread that slept goes on when every core computes */
    unsigned cores;
    unsigned workers;
    unsigned io_depth; /* not 0: reads are under way on their own (uring engine) */
    unsigned batch;    /* at least 1 */
    unsigned prefetch;
    double step_s; /* of the accelerator; 0: nobody trains */
};

/* What an emulated device yields of files of this size at depths 1, 2, 4, ... 128. */
void mr_predict_curve(const struct mr_device_profile *p, double file_bytes,
                      struct mr_read_curve *out);
/* Images a second that the pipeline delivers, and that the accelerator, if any, trains on;
 * INFINITY where nothing takes any time.  0 or -ENOMEM. */
int mr_predict_rate(const struct mr_predict_input *in, double *per_s);

#endif
