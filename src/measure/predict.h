/* predict.h - how fast a pipeline will be before it is built.
 *
 * Three numbers decide: what the storage delivers with so many reads under way (a curve, measured
 * or computed from a profile), what an image costs in CPU time, and how many of each may be under
 * way at once. */
#ifndef MR_PREDICT_H
#define MR_PREDICT_H

struct mr_device_profile;

#define MR_CURVE_POINTS 8

/* Files a second with `depth` reads under way; both rise. */
struct mr_read_curve {
    unsigned n;
    double depth[MR_CURVE_POINTS], per_s[MR_CURVE_POINTS];
};

struct mr_predict_input {
    struct mr_read_curve storage;
    double image_cpu_s; /* decoding, resizing and the CPU's part of reading, one image */
    double read_cpu_s;  /* of that, the CPU's part of reading */
    unsigned cores;
    unsigned workers;
    unsigned io_depth;        /* not 0: reads are under way on their own (uring engine) */
    unsigned batch, prefetch; /* batch 0: there is always room */
    double step_s;            /* of the accelerator; 0: nobody trains */
};

/* What an emulated device yields of files of this size at depths 1, 2, 4, ... 128. */
void mr_predict_curve(const struct mr_device_profile *p, double file_bytes,
                      struct mr_read_curve *out);
/* Images a second that the pipeline makes, nobody waiting for anything else. */
double mr_predict_input_rate(const struct mr_predict_input *in);
/* Images a second that are trained on. */
double mr_predict_training_rate(const struct mr_predict_input *in);

#endif
