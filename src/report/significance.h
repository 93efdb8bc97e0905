/* significance.h - is the difference between two figures more than noise?
 *
 * A figure is known with a noise that was estimated from a few runs.  Two or three runs say little
 * about it, so the estimate is helped by that of points alike, and Student's distribution says how
 * far two figures may lie apart by chance. */
#ifndef MR_SIGNIFICANCE_H
#define MR_SIGNIFICANCE_H

/* What is known of the noise of a figure.  All zero: nothing. */
struct mr_noise {
    double squares; /* of relative deviations, summed */
    unsigned df;    /* degrees of freedom */
    double weight;  /* variance of the figure, of that of one run */
};

/* Of a figure that is the median of these runs.  Nothing is known of fewer than two, or of values
 * that are not positive on average. */
struct mr_noise mr_noise_of_runs(const double *x, unsigned n);
/* Of a figure of one run, from its steps: what disturbs a whole run is not seen in them, so they
 * are not averaged.  Of eight steps and more the middle half counts, as some always stray.  May
 * sort x. */
struct mr_noise mr_noise_of_steps(double *x, unsigned n);
/* Of a figure that was measured twice, the second time `times` as large. */
struct mr_noise mr_noise_of_two(double times);
/* Add what another point says; `to` keeps its weight. */
void mr_noise_add(struct mr_noise *to, const struct mr_noise *of);

/* The chance that noise alone sets figures a and b that far apart.  `noise` is theirs, `alike` that
 * of other points which should have much the same.  1 when nothing is known. */
double mr_difference_p(double a, double b, const struct mr_noise noise[2],
                       const struct mr_noise *alike);
/* The chance that noise alone sets the mean of these values that far from 0.  1 for fewer than
 * two. */
double mr_zero_p(const double *x, unsigned n);
/* The chance of |t| or more by Student's distribution. */
double mr_student_p(double t, unsigned df);

#endif
