/* faults.c - see faults.h.  One counter numbers all wrapped calls of all threads, in the order in
 * which they happen to come.  Names end in 64 where the build's large-file setting makes them. */
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint_fast64_t n_calls, fail_at, n_allocations, n_reads, break_at;
static atomic_int armed, hit, break_code, openat2_error, broken_ring;
static atomic_int_fast64_t live, live_bytes, peak_bytes;
static atomic_uint_fast64_t largest;
static enum fault_kind kind;
void (*faults_before_read)(void);
void (*faults_before_statx)(void);
int (*faults_before_syscall)(long number);

void faults_begin(enum fault_kind k, uint64_t at)
{
    kind = k;
    atomic_store(&n_calls, 0);
    atomic_store(&fail_at, at);
    atomic_store(&hit, 0);
    atomic_store(&broken_ring, -1);
    atomic_store(&armed, 1);
}

int faults_end(void)
{
    atomic_store(&armed, 0);
    return atomic_load(&hit);
}

int64_t faults_live(void)
{
    return atomic_load(&live);
}

uint64_t faults_n_allocations(void)
{
    return atomic_load(&n_allocations);
}

void faults_break_completion(uint64_t n, int code)
{
    atomic_store(&n_reads, 0);
    atomic_store(&break_code, code);
    atomic_store(&break_at, n);
}

/* Is it this call's turn to fail with one of the kinds in `kinds`? */
static int turn(unsigned kinds)
{
    if (!atomic_load(&armed) || !(kinds & 1u << kind))
        return 0;
    if (atomic_fetch_add(&n_calls, 1) + 1 != atomic_load(&fail_at))
        return 0;
    atomic_store(&hit, 1);
    return 1;
}

#define FAIL      (1u << FAULT_FAIL)
#define EINTR_TOO (1u << FAULT_EINTR)
#define SHORT     (1u << FAULT_SHORT)
#define FULL      (1u << FAULT_FULL)
#define LATE      (1u << FAULT_LATE)
#define RING      (1u << FAULT_RING)

int faults_turn(void)
{
    return turn(FAIL);
}

void faults_reset_sizes(void)
{
    atomic_store(&largest, 0);
    atomic_store(&peak_bytes, atomic_load(&live_bytes));
}

uint64_t faults_largest(void)
{
    return atomic_load(&largest);
}

int64_t faults_live_bytes(void)
{
    return atomic_load(&live_bytes);
}

int64_t faults_peak_bytes(void)
{
    return atomic_load(&peak_bytes);
}

static void grew(int64_t bytes)
{
    int_fast64_t now = atomic_fetch_add(&live_bytes, bytes) + bytes,
                 peak = atomic_load(&peak_bytes);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
        ;
}

/* Somebody wants so much. */
static void asked(size_t n)
{
    uint_fast64_t most = atomic_load(&largest);
    while (n > most && !atomic_compare_exchange_weak(&largest, &most, n))
        ;
}

static void *counted(void *p)
{
    if (p) {
        atomic_fetch_add(&live, 1);
        atomic_fetch_add(&n_allocations, 1);
    }
    return p;
}

static void *allocated(void *p)
{
    if (p)
        grew((int64_t)malloc_usable_size(p));
    return counted(p);
}

static int opened(int fd)
{
    if (fd >= 0)
        atomic_fetch_add(&live, 1);
    return fd;
}

static int file_error(void)
{
    errno = kind == FAULT_EINTR || kind == FAULT_LATE ? EINTR : kind == FAULT_FULL ? ENOSPC : EIO;
    return -1;
}

#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

WRAP(void *, malloc, size_t n)
{
    asked(n);
    return turn(FAIL) ? no_memory() : allocated(__real_malloc(n));
}

WRAP(void *, calloc, size_t n, size_t m)
{
    size_t both;
    asked(__builtin_mul_overflow(n, m, &both) ? SIZE_MAX : both);
    return turn(FAIL) ? no_memory() : allocated(__real_calloc(n, m));
}

WRAP(void *, realloc, void *p, size_t n)
{
    if (turn(FAIL))
        return no_memory();
    atomic_fetch_add(&n_allocations, 1);
    asked(n);
    int64_t was = p ? (int64_t)malloc_usable_size(p) : 0;
    void *q = __real_realloc(p, n);
    if (!p && q)
        atomic_fetch_add(&live, 1);
    if (q)
        grew((int64_t)malloc_usable_size(q) - was);
    return q;
}

WRAP(void *, aligned_alloc, size_t align, size_t n)
{
    asked(n);
    return turn(FAIL) ? no_memory() : allocated(__real_aligned_alloc(align, n));
}

WRAP(char *, strdup, const char *s)
{
    return turn(FAIL) ? no_memory() : allocated(__real_strdup(s));
}

WRAP(char *, strndup, const char *s, size_t n)
{
    return turn(FAIL) ? no_memory() : allocated(__real_strndup(s, n));
}

WRAP(void, free, void *p)
{
    if (p) {
        atomic_fetch_sub(&live, 1);
        atomic_fetch_sub(&live_bytes, (int64_t)malloc_usable_size(p));
    }
    __real_free(p);
}

WRAP(void *, mmap64, void *at, size_t n, int prot, int flags, int fd, off_t off)
{
    if (turn(FAIL)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *p = __real_mmap64(at, n, prot, flags, fd, off);
    if (fd < 0)
        asked(n);
    if (p != MAP_FAILED) {
        grew((int64_t)n);
        counted(p);
    }
    return p;
}

/* mremap is variadic in its declaration; ours never passes the fifth argument. */
WRAP(void *, mremap, void *p, size_t was, size_t n, int flags)
{
    if (turn(FAIL)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    atomic_fetch_add(&n_allocations, 1);
    asked(n);
    void *q = __real_mremap(p, was, n, flags);
    if (q != MAP_FAILED)
        grew((int64_t)n - (int64_t)was);
    return q;
}

WRAP(int, munmap, void *p, size_t n)
{
    atomic_fetch_sub(&live, 1);
    atomic_fetch_sub(&live_bytes, (int64_t)n);
    return __real_munmap(p, n);
}

WRAP(int, open64, const char *path, int flags, int mode)
{
    return turn(FAIL | EINTR_TOO) ? file_error() : opened(__real_open64(path, flags, mode));
}

int __real_close(int fd);

WRAP(int, openat64, int dir, const char *path, int flags, int mode)
{
    if (!turn(FAIL | EINTR_TOO | LATE | FULL))
        return opened(__real_openat64(dir, path, flags, mode));
    if (kind == FAULT_LATE)
        __real_close(__real_openat64(dir, path, flags, mode));
    return file_error();
}

void faults_refuse_openat2(int code)
{
    atomic_store(&openat2_error, code);
}

WRAP(ssize_t, pwrite64, int fd, const void *buf, size_t n, off_t at)
{
    if (turn(FAIL | EINTR_TOO | SHORT | FULL))
        return kind == FAULT_SHORT ? __real_pwrite64(fd, buf, n > 1 ? 1 : n, at) : file_error();
    return __real_pwrite64(fd, buf, n, at);
}

WRAP(int, fsync, int fd)
{
    return turn(FAIL | EINTR_TOO | FULL) ? file_error() : __real_fsync(fd);
}

WRAP(int, fallocate64, int fd, int mode, off_t at, off_t n)
{
    return turn(FAIL | EINTR_TOO | FULL) ? file_error() : __real_fallocate64(fd, mode, at, n);
}

WRAP(int, close, int fd)
{
    if (fd >= 0)
        atomic_fetch_sub(&live, 1);
    return __real_close(fd);
}

WRAP(int, fstat64, int fd, struct stat *st)
{
    return turn(FAIL) ? file_error() : __real_fstat64(fd, st);
}

WRAP(int, stat64, const char *path, struct stat *st)
{
    return turn(FAIL) ? file_error() : __real_stat64(path, st);
}

WRAP(ssize_t, read, int fd, void *buf, size_t n)
{
    if (faults_before_read)
        faults_before_read();
    if (turn(FAIL | EINTR_TOO | SHORT))
        return kind == FAULT_SHORT ? __real_read(fd, buf, n > 1 ? 1 : n) : file_error();
    return __real_read(fd, buf, n);
}

/* syscall is variadic in its declaration; no call of ours has more arguments. */
WRAP(long, syscall, long number, long a, long b, long c, long d)
{
    if (faults_before_syscall && faults_before_syscall(number))
        return -1;
    switch (number) { /* those that have a name of their own */
    case SYS_openat:
        return __wrap_openat64((int)a, (const char *)b, (int)c, 0);
    case SYS_read:
        return __wrap_read((int)a, (void *)b, (size_t)c);
    case SYS_close:
        return __wrap_close((int)a);
    case SYS_openat2:
        break;
    default:
        return __real_syscall(number, a, b, c, d);
    }
    if (atomic_load(&openat2_error)) {
        errno = atomic_load(&openat2_error);
        return -1;
    }
    return turn(FAIL | EINTR_TOO) ? file_error() : opened((int)__real_syscall(number, a, b, c, d));
}

WRAP(ssize_t, pread64, int fd, void *buf, size_t n, off_t at)
{
    if (turn(FAIL | EINTR_TOO | SHORT))
        return kind == FAULT_SHORT ? __real_pread64(fd, buf, n > 1 ? 1 : n, at) : file_error();
    return __real_pread64(fd, buf, n, at);
}

WRAP(ssize_t, write, int fd, const void *buf, size_t n)
{
    if (turn(FAIL | EINTR_TOO | SHORT))
        return kind == FAULT_SHORT ? __real_write(fd, buf, n > 1 ? 1 : n) : file_error();
    return __real_write(fd, buf, n);
}

WRAP(int, statx, int fd, const char *path, int flags, unsigned mask, struct statx *st)
{
    if (faults_before_statx)
        faults_before_statx();
    return turn(FAIL) ? file_error() : __real_statx(fd, path, flags, mask, st);
}

WRAP(int, ftruncate64, int fd, off_t len)
{
    return turn(FAIL | EINTR_TOO) ? file_error() : __real_ftruncate64(fd, len);
}

WRAP(int, renameat, int a, const char *from, int b, const char *to)
{
    if (!turn(FAIL | EINTR_TOO | LATE | FULL))
        return __real_renameat(a, from, b, to);
    if (kind == FAULT_LATE)
        __real_renameat(a, from, b, to);
    return file_error();
}

WRAP(int, rename, const char *from, const char *to)
{
    if (!turn(FAIL | EINTR_TOO | LATE | FULL))
        return __real_rename(from, to);
    if (kind == FAULT_LATE)
        __real_rename(from, to);
    return file_error();
}

WRAP(int, unlink, const char *path)
{
    if (!turn(FAIL | EINTR_TOO | LATE))
        return __real_unlink(path);
    if (kind == FAULT_LATE)
        __real_unlink(path);
    return file_error();
}

/* ioctl is variadic in its declaration; ours always pass one argument. */
WRAP(int, ioctl, int fd, unsigned long what, void *arg)
{
    return turn(FAIL) ? file_error() : __real_ioctl(fd, what, arg);
}

WRAP(int, unlinkat, int dir, const char *path, int flags)
{
    if (!turn(FAIL | EINTR_TOO | LATE))
        return __real_unlinkat(dir, path, flags);
    if (kind == FAULT_LATE)
        __real_unlinkat(dir, path, flags);
    return file_error();
}

WRAP(int, mkdir, const char *path, mode_t mode)
{
    if (!turn(FAIL | EINTR_TOO | LATE | FULL))
        return __real_mkdir(path, mode);
    if (kind == FAULT_LATE)
        __real_mkdir(path, mode);
    return file_error();
}

WRAP(int, fstatat64, int dir, const char *path, struct stat *st, int flags)
{
    return turn(FAIL) ? file_error() : __real_fstatat64(dir, path, st, flags);
}

WRAP(DIR *, opendir, const char *path)
{
    if (turn(FAIL)) {
        errno = EIO;
        return NULL;
    }
    DIR *d = __real_opendir(path);
    if (d)
        atomic_fetch_add(&live, 1);
    return d;
}

/* The descriptor, which was counted when it was opened, is the stream's from here on. */
WRAP(DIR *, fdopendir, int fd)
{
    if (turn(FAIL)) {
        errno = EIO;
        return NULL;
    }
    return __real_fdopendir(fd);
}

WRAP(struct dirent *, readdir64, DIR *d)
{
    if (turn(FAIL)) {
        errno = EIO;
        return NULL;
    }
    return __real_readdir64(d);
}

WRAP(int, closedir, DIR *d)
{
    atomic_fetch_sub(&live, 1);
    return __real_closedir(d);
}

WRAP(int, pthread_create, pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    return turn(FAIL) ? EAGAIN : __real_pthread_create(t, a, f, arg);
}

WRAP(int, io_uring_queue_init, unsigned n, struct io_uring *ring, unsigned flags)
{
    if (turn(FAIL))
        return -ENOMEM;
    int r = __real_io_uring_queue_init(n, ring, flags);
    if (!r)
        atomic_fetch_add(&live, 1);
    return r;
}

WRAP(void, io_uring_queue_exit, struct io_uring *ring)
{
    atomic_fetch_sub(&live, 1);
    __real_io_uring_queue_exit(ring);
}

WRAP(int, pipe2, int *end, int flags)
{
    int r = turn(FAIL) ? file_error() : __real_pipe2(end, flags);
    if (!r)
        atomic_fetch_add(&live, 2);
    return r;
}

WRAP(int, io_uring_register_files_update, struct io_uring *ring, unsigned at, const int *fds,
     unsigned n)
{
    return turn(FAIL) ? -ENOMEM : __real_io_uring_register_files_update(ring, at, fds, n);
}

WRAP(int, io_uring_register_files, struct io_uring *ring, const int *fds, unsigned n)
{
    return turn(FAIL) ? -ENOMEM : __real_io_uring_register_files(ring, fds, n);
}

WRAP(int, io_uring_register_files_sparse, struct io_uring *ring, unsigned n)
{
    return turn(FAIL) ? -ENOMEM : __real_io_uring_register_files_sparse(ring, n);
}

/* Reads are requests whose user_data ends in 1 (uring_reader.c); a completion that has been looked
 * at is marked by its flags, which such reads leave 0. */
static void break_completions(struct io_uring *ring)
{
    unsigned head = *ring->cq.khead, tail = __atomic_load_n(ring->cq.ktail, __ATOMIC_ACQUIRE);
    unsigned mask = *ring->cq.kring_mask;
    for (; head != tail; head++) {
        struct io_uring_cqe *cqe = &ring->cq.cqes[head & mask];
        if ((cqe->user_data & 7) != 1 || cqe->res <= 0 || cqe->flags)
            continue;
        cqe->flags = 1u << 31;
        if (atomic_fetch_add(&n_reads, 1) + 1 == atomic_load(&break_at))
            cqe->res = atomic_load(&break_code);
    }
}

int __real_io_uring_submit_and_get_events(struct io_uring *ring);

/* Nonzero when this entry into a ring is to fail.  A ring that fails for good stays so. */
static int ring_error(struct io_uring *ring)
{
    if (atomic_load(&armed) && kind == FAULT_RING && atomic_load(&broken_ring) == ring->ring_fd)
        return -EBADR;
    if (!turn(EINTR_TOO | RING))
        return 0;
    if (kind == FAULT_EINTR)
        return -EINTR;
    __real_io_uring_submit_and_get_events(ring);
    atomic_store(&broken_ring, ring->ring_fd);
    return -EBADR;
}

WRAP(int, io_uring_submit_and_get_events, struct io_uring *ring)
{
    int r = ring_error(ring);
    return r ? r : __real_io_uring_submit_and_get_events(ring);
}

WRAP(int, io_uring_submit_and_wait, struct io_uring *ring, unsigned n)
{
    int r = ring_error(ring);
    if (r)
        return r;
    r = __real_io_uring_submit_and_wait(ring, n);
    if (atomic_load(&break_at))
        break_completions(ring);
    return r;
}

WRAP(int, io_uring_submit_and_wait_timeout, struct io_uring *ring, struct io_uring_cqe **cqe,
     unsigned n, struct __kernel_timespec *ts, sigset_t *mask)
{
    int r = ring_error(ring);
    if (r)
        return r;
    r = __real_io_uring_submit_and_wait_timeout(ring, cqe, n, ts, mask);
    if (atomic_load(&break_at))
        break_completions(ring);
    return r;
}
