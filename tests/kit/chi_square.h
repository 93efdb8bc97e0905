/* chi_square.h - is a table of counts as even as chance would make it? */
#ifndef MR_TEST_CHI_SQUARE_H
#define MR_TEST_CHI_SQUARE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Chi-square of `n` counts against equal shares. */
static inline double chi_square(const uint64_t *count, size_t n)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)count[i];
    for (size_t i = 0; i < n; i++) {
        double off = (double)count[i] - total / (double)n;
        sum += off * off;
    }
    return sum / (total / (double)n);
}

/* What chi-square of `n` counts exceeds with the probability that a normal variable exceeds `z`
 * (Wilson and Hilferty). */
static inline double chi_square_quantile(size_t n, double z)
{
    double k = (double)(n - 1), w = 2 / (9 * k), root = 1 - w + z * sqrt(w);
    return root > 0 ? k * root * root * root : 0;
}

/* Uneven with p < 10^-6, or suspiciously even with p < 10^-6. */
static inline int is_even(const uint64_t *count, size_t n)
{
    double x = chi_square(count, n);
    return x < chi_square_quantile(n, 4.76) && x >= chi_square_quantile(n, -4.76);
}

#endif
