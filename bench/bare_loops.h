/* bare_loops.h - the least that reading files can cost: peers of the two engines. */
#ifndef MR_BARE_LOOPS_H
#define MR_BARE_LOOPS_H

#include <stdint.h>

struct file_list {
    char **path;
    uint64_t n;
    uint64_t mean_bytes;
};

/* Files per second of `threads` threads that open, fstat, read and close.  keep 0: each reads every
 * file into the same buffer, which stays in the CPU's cache.  Else files lie one behind the other
 * in `keep` bytes (of all threads together) before the first is overwritten; two batches are the
 * least that delivering files in batches can do with. */
double bare_threads(const struct file_list *files, unsigned threads, uint64_t keep);
/* The same by io_uring: chains of open, read, close, `depth` of them under way in all, each into a
 * buffer of its own with keep 0.  0: failed. */
double bare_uring(const struct file_list *files, unsigned threads, unsigned depth, uint64_t keep);

#endif
