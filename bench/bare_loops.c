/* bare_loops.c - see bare_loops.h.
 *
 * Clocks run from the start signal to the end of the last file, as a pipeline's do to the last
 * batch: buffers are touched before, and given back after. */
#include "bare_loops.h"

#include "buffer.h"
#include "clock.h"

#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_THREADS 64
#define BUFFER      ((size_t)256 << 10) /* apart; a larger file runs into the next one */
#define LARGEST     ((size_t)1 << 20)
#define PAGE        ((size_t)4096)

struct loop {
    const struct file_list *files;
    atomic_uint_fast64_t next;
    pthread_barrier_t start;
    unsigned depth;
    size_t keep; /* of each thread */
    atomic_uint_fast64_t end_ns;
    atomic_int failed;
};

static size_t page_round(size_t n)
{
    return (n + PAGE - 1) & ~(PAGE - 1);
}

/* The same kind of memory as the pipeline's: touched, and in huge pages when there is much of it.
 */
static char *buffers(size_t size, struct mr_buffer *b)
{
    *b = (struct mr_buffer){0};
    if (mr_buffer_reserve(b, size + LARGEST))
        abort();
    mr_buffer_prefault(b);
    return (char *)b->data;
}

/* This thread has read its last file. */
static void note_end(struct loop *l)
{
    uint_fast64_t now = mr_clock_ns(), latest = atomic_load(&l->end_ns);
    while (now > latest && !atomic_compare_exchange_weak(&l->end_ns, &latest, now))
        ;
}

static void *read_files(void *arg)
{
    struct loop *l = arg;
    struct mr_buffer memory;
    char *buf = buffers(l->keep, &memory);
    pthread_barrier_wait(&l->start);
    uint64_t i;
    size_t at = 0;
    while ((i = atomic_fetch_add(&l->next, 1)) < l->files->n) {
        struct stat st;
        int fd = open(l->files->path[i], O_RDONLY);
        if (fd < 0 || fstat(fd, &st) || read(fd, buf + at, LARGEST) != st.st_size)
            atomic_store(&l->failed, 1);
        close(fd);
        at += page_round((size_t)st.st_size);
        at = at < l->keep ? at : 0;
    }
    note_end(l);
    mr_buffer_fini(&memory);
    return NULL;
}

/* Queue the chain that reads file i into place s. */
static void queue_chain(struct io_uring *ring, const char *path, unsigned s, char *buf)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    io_uring_prep_openat_direct(sqe, AT_FDCWD, path, O_RDONLY, 0, s);
    sqe->flags |= IOSQE_IO_LINK;
    sqe->user_data = UINT64_MAX;
    sqe = io_uring_get_sqe(ring);
    io_uring_prep_read(sqe, (int)s, buf, LARGEST, 0);
    sqe->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
    sqe->user_data = UINT64_MAX;
    sqe = io_uring_get_sqe(ring);
    io_uring_prep_close_direct(sqe, s);
    sqe->user_data = s;
}

static void *ring_files(void *arg)
{
    struct loop *l = arg;
    struct io_uring ring;
    unsigned depth = l->depth, under_way = 0;
    /* How long a file is, is not known when its place is chosen: as long as the mean. */
    size_t apart = l->keep ? page_round(l->files->mean_bytes) : BUFFER;
    uint64_t k = 0, n_places = l->keep / apart > depth ? l->keep / apart : depth;
    struct mr_buffer memory;
    char *buf = buffers(n_places * apart, &memory);
    int bad = io_uring_queue_init(depth * 3, &ring,
                                  IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) ||
              io_uring_register_files_sparse(&ring, depth);
    atomic_fetch_or(&l->failed, bad);
    unsigned workers[2] = {depth, depth};
    io_uring_register_iowq_max_workers(&ring, workers);
    pthread_barrier_wait(&l->start);
    uint64_t i;
    for (unsigned s = 0; !bad && s < depth && (i = atomic_fetch_add(&l->next, 1)) < l->files->n;
         s++) {
        queue_chain(&ring, l->files->path[i], s, buf + k++ % n_places * apart);
        under_way++;
    }
    while (under_way) {
        struct io_uring_cqe *cqe;
        io_uring_submit_and_wait(&ring, 1);
        while (!io_uring_peek_cqe(&ring, &cqe)) {
            if (cqe->res < 0)
                atomic_store(&l->failed, 1);
            unsigned s = (unsigned)cqe->user_data;
            int closed = cqe->user_data != UINT64_MAX;
            io_uring_cqe_seen(&ring, cqe);
            if (!closed)
                continue;
            under_way--;
            if ((i = atomic_fetch_add(&l->next, 1)) < l->files->n) {
                queue_chain(&ring, l->files->path[i], s, buf + k++ % n_places * apart);
                under_way++;
            }
        }
    }
    note_end(l);
    io_uring_queue_exit(&ring);
    mr_buffer_fini(&memory);
    return NULL;
}

static double run(struct loop *l, unsigned threads, void *(*body)(void *))
{
    pthread_t t[MAX_THREADS];
    threads = threads > MAX_THREADS ? MAX_THREADS : threads;
    pthread_barrier_init(&l->start, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&t[i], NULL, body, l))
            abort();
    pthread_barrier_wait(&l->start);
    uint64_t start = mr_clock_ns();
    for (unsigned i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    double seconds = (double)(atomic_load(&l->end_ns) - start) / 1e9;
    pthread_barrier_destroy(&l->start);
    return atomic_load(&l->failed) ? 0 : (double)l->files->n / seconds;
}

double bare_threads(const struct file_list *files, unsigned threads, uint64_t keep)
{
    struct loop l = {.files = files, .keep = keep / threads};
    return run(&l, threads, read_files);
}

double bare_uring(const struct file_list *files, unsigned threads, unsigned depth, uint64_t keep)
{
    struct loop l = {
        .files = files, .depth = (depth + threads - 1) / threads, .keep = keep / threads};
    return run(&l, threads, ring_files);
}
