/* ring_setup.h - a ring as this kernel makes it best.  Known only to the files that use liburing.
 */
#ifndef MR_RING_SETUP_H
#define MR_RING_SETUP_H

#include <liburing.h>

/* A ring for one thread that submits and waits.  0 or -errno. */
int mr_ring_init(struct io_uring *ring, unsigned entries);

/* Give the ring a table of files with n_files free places, and behind them what lets mr_ring_exit
 * wait; *out goes there.  0 or -errno. */
int mr_ring_add_witness(struct io_uring *ring, unsigned n_files, int *out);

/* End the ring.  When requests of it are under way, they are cancelled, and it returns when the
 * kernel has let go of their memory and files: also if the ring has failed. */
void mr_ring_exit(struct io_uring *ring, int witness, int is_busy);

/* Codes that say "not now".  A signal in the wrong moment keeps the kernel from starting a worker,
 * and it cancels the request; nobody else cancels requests of ours. */
int mr_ring_is_passing(int code);

#endif
