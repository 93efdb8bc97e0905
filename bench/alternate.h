/* alternate.h - compare two programs on a noisy machine.
 *
 * One round runs ours, the peer, and the peer again, in an order that rotates from round to round.
 * A round yields two ratios: ours / peer, and peer / peer, the A/A control.  What is reported is
 * the median over the rounds with the range from the first to the third quartile.  A target that is
 * nearer to the ratio than the control strays from 1 cannot be told from noise, and is reported so.
 */
#ifndef MR_ALTERNATE_H
#define MR_ALTERNATE_H

#define ALTERNATE_MAX_ROUNDS 99

struct contender {
    const char *name;
    double (*run)(void *ctx); /* a rate: more is better; not above 0 is a failure */
    void *ctx;
};

struct ratio {
    double median, q1, q3;
};

struct comparison {
    unsigned rounds;
    double ours, peer; /* median rates */
    struct ratio ratio, control;
};

/* 9 to ALTERNATE_MAX_ROUNDS rounds after one that is left out.  0, or -1 when a run failed. */
int alternate(const struct contender *ours, const struct contender *peer, unsigned rounds,
              struct comparison *out);

/* One line: names, rates, ratio, control, and the word about the target (0: none). */
void alternate_print(const char *what, const struct contender *ours, const struct contender *peer,
                     const struct comparison *c, double target);

#endif
