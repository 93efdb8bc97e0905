/* ring_setup.h - a ring as this kernel makes it best.  Known only to the files that use liburing.
 */
#ifndef MR_RING_SETUP_H
#define MR_RING_SETUP_H

#include <liburing.h>

/* A ring for one thread that submits and waits.  0 or -errno. */
int mr_ring_init(struct io_uring *ring, unsigned entries);

/* Codes that say "not now".  A signal in the wrong moment keeps the kernel from starting a worker,
 * and it cancels the request; nobody else cancels requests of ours. */
int mr_ring_is_passing(int code);

#endif
