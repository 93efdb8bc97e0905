/* compute_threads.h - how many threads oneDNN uses. */
#ifndef MR_COMPUTE_THREADS_H
#define MR_COMPUTE_THREADS_H

/* What it would use by itself: OMP_NUM_THREADS, or the processors this process may run on. */
unsigned compute_threads_default(void);
/* For work that the calling thread starts from now on. */
void compute_threads_set(unsigned n);

#endif
