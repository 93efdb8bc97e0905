/* ring_setup.c - see ring_setup.h.  The newest set-up that this kernel takes: completions are
 * handled in the submitting thread only when it asks for them, which saves interrupts; then
 * without.
 *
 * Closing a ring's descriptor only begins its end: the kernel cancels what is under way at its
 * leisure, and until then may write to the buffers.  Nothing tells when that is over, hence the
 * witness: the write end of a pipe that only the ring's table of files holds.  The table goes last,
 * after the last request, and the read end then reports that nobody can write any more.  No ring
 * operation is needed for it, so it works for a ring that has failed, and in any thread. */
#include "ring_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

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

int mr_ring_add_witness(struct io_uring *ring, unsigned n_files, int *out)
{
    int end[2];
    if (pipe2(end, O_CLOEXEC))
        return -errno;
    /* A table without free places is older than one with. */
    int r = n_files ? io_uring_register_files_sparse(ring, n_files + 1)
                    : io_uring_register_files(ring, &end[1], 1);
    if (!r && n_files)
        r = io_uring_register_files_update(ring, n_files, &end[1], 1);
    close(end[1]);
    if (r >= 0) {
        *out = end[0];
        return 0;
    }
    close(end[0]);
    return r;
}

void mr_ring_exit(struct io_uring *ring, int witness, int is_busy)
{
    io_uring_queue_exit(ring);
    struct pollfd end = {.fd = witness};
    while (is_busy && poll(&end, 1, -1) != 1)
        ;
    close(witness);
}

int mr_ring_is_passing(int code)
{
    return code == -EINTR || code == -EAGAIN || code == -ECANCELED;
}
