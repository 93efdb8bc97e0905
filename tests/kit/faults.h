/* faults.h - make the n-th fallible call fail, and count what is not given back.
 *
 * The build links a test that uses this with --wrap for each function of the list in
 * tests/meson.build: calls from our own objects land here, calls inside libc do not. */
#ifndef MR_TEST_FAULTS_H
#define MR_TEST_FAULTS_H

#include <stdint.h>

enum fault_kind {
    FAULT_FAIL,  /* ENOMEM for memory, EIO for files, EAGAIN for threads */
    FAULT_EINTR, /* once; only calls that may report it */
    FAULT_SHORT, /* a read that delivers one byte, a write that takes one */
    FAULT_FULL,  /* ENOSPC; only calls that may report it */
    FAULT_LATE,  /* EINTR of a call that has changed a name all the same: network file systems */
    FAULT_RING,  /* a ring takes what it is given, then fails for good: EBADR */
};

/* Count calls from now on; call number `at` (from 1) fails.  0: none does. */
void faults_begin(enum fault_kind kind, uint64_t at);
/* Stop; nonzero when a call was made to fail. */
int faults_end(void);

/* For a test with wrappers of its own: is it this call's turn to fail?  FAULT_FAIL only. */
int faults_turn(void);

/* Blocks, mappings and descriptors that are alive. */
int64_t faults_live(void);
/* Allocations of any kind since the program began. */
uint64_t faults_n_allocations(void);
/* Bytes of blocks and mappings that are alive, as their allocator rounds them. */
int64_t faults_live_bytes(void);
/* Since the last faults_reset_sizes: the largest size that was asked for, whether there was so much
 * or not, and the most bytes that were alive at once. */
void faults_reset_sizes(void);
uint64_t faults_largest(void);
int64_t faults_peak_bytes(void);

/* Called before each read or statx of ours while set; to change a file under the reader. */
extern void (*faults_before_read)(void);
extern void (*faults_before_statx)(void);
/* An errno that openat2 answers while set: nothing is ever in memory (EAGAIN), or not here (EPERM).
 */
void faults_refuse_openat2(int code);
/* Called with the number of each system call without a function of its own; nonzero: it fails, and
 * errno has been set. */
extern int (*faults_before_syscall)(long number);
/* The n-th successful read completion of io_uring (from 1) becomes this error. */
void faults_break_completion(uint64_t n, int code);

#endif
