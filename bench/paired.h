/* paired.h - compare two pieces of work on a noisy machine: alternate them, and measure the noise
 * with the same schedule. */
#ifndef MR_PAIRED_H
#define MR_PAIRED_H

#define MR_PAIRED_MAX_ROUNDS 101

/* A piece of work: does it once and returns the seconds it took, or a negative number. */
struct mr_paired_work {
    double (*run)(void *arg);
    void *arg;
};

struct mr_paired_result {
    double seconds_a, seconds_b; /* medians of one run */
    double ratio;                /* median over rounds of time A / time B: B's speed in As */
    double control;              /* the same with A in B's place: 1 but for noise */
    double spread;               /* how far the middle half of the control's rounds strays from 1 */
};

/* After one run of each to warm up, `rounds` (9 .. 101, odd) rounds of A B B A, and as many of
 * A A A A in between.  0, or -1 when a run failed. */
int mr_paired_compare(struct mr_paired_work a, struct mr_paired_work b, int rounds,
                      struct mr_paired_result *out);

#endif
