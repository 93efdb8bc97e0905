/* bare_loops.h - the least that reading files can cost: peers of the two engines. */
#ifndef MR_BARE_LOOPS_H
#define MR_BARE_LOOPS_H

#include <stdint.h>

struct file_list {
    char **path;
    uint64_t n, bytes;
};

/* Files per second of `threads` threads that open, fstat, read and close.  Each reads into `keep`
 * buffers in turn: 1 throws a file away at once and stays in the CPU's cache; the slots of two
 * batches are the least that delivering files in batches can do with. */
double bare_threads(const struct file_list *files, unsigned threads, unsigned keep);
/* The same by io_uring: chains of open, read, close, `depth` of them under way in all.  0: failed.
 */
double bare_uring(const struct file_list *files, unsigned threads, unsigned depth, unsigned keep);

#endif
