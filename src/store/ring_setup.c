/* ring_setup.c - see ring_setup.h.  The newest set-up that this kernel takes: completions are
 * handled in the submitting thread only when it asks for them, which saves interrupts; then
 * without. */
#include "ring_setup.h"

#include <errno.h>

int mr_ring_init(struct io_uring *ring, unsigned entries)
{
    static const unsigned flags[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
        IORING_SETUP_COOP_TASKRUN,
        0,
    };
    int r = -EINVAL;
    for (unsigned i = 0; i < sizeof flags / sizeof *flags && r == -EINVAL; i++)
        r = io_uring_queue_init(entries, ring, flags[i]);
    return r;
}

int mr_ring_is_passing(int code)
{
    return code == -EINTR || code == -EAGAIN || code == -ECANCELED;
}
