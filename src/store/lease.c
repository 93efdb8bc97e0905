/* lease.c - ownership of a folder, by a file in it.
 *
 *   .millrace-lease     millrace lease 1
 *                       host node7
 *                       boot 4c1f...           /proc/sys/kernel/random/boot_id
 *                       namespaces 4026531836 4026531834    of process numbers and of time; 0: unknown
 *                       pid 4711
 *                       started 1234567        field 22 of /proc/PID/stat
 *                       locked 1               the owner holds an fcntl lock on this file,
 *                       device 2049            and reached it through this device
 *                       token 0123456789abcdef drawn at random for this lease
 *                       count 00000000000000000042
 *
 * The file is made with O_EXCL, which every network file system has.  A thread of the owner
 * rewrites the count in place, six times in the silence that others wait for.  Beside it the owner
 * holds an open-file-description lock, which ends with the owner, however that ended.  A lease is
 * taken over with proof only:
 *
 *   same boot    the lock was held and can be had now, through the same device: two mounts of one
 *                folder do not see each other's locks; or the process has ended, or another one has
 *                its number, in the same namespaces only
 *   otherwise    every byte of the lease stayed as it was for `silence_ms`, and nobody has the lock
 *
 * Taking over replaces the file by rename.  Where the lock is the proof, it lets one contender do
 * that at a time.  Otherwise a contender reads the lease again right before the rename, waits, and
 * owns the folder only if its own lease is still there then.
 *
 * A full disk must not keep an owner from making room on it: then the lease is an empty file, held
 * by its lock and its inode, until the thread finds room to write it.
 *
 * An owner that was stopped for longer than the silence finds another token in the file.  It asks
 * before it creates, renames or removes (out_dir.c), so it stops there.
 *
 * A forked child inherits the descriptor and with it the lock, but not the process number: the
 * parent's end is proven by that, and the child neither renews nor removes the lease.
 *
 * Lock: l->mu guards `stop`; the rest is set when acquiring and read only, `count` is the
 * thread's. */
#include "lease.h"

#include "errtext.h"
#include "write_all.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_TEXT        1024
#define LOOKS           60 /* in the time of silence */
#define RENEWALS        6  /* in the time of silence */
#define SETTLE_PART     20 /* of the silence: the wait after a rename that no lock guards */
#define MAX_TRIES       100
#define TEMPORARY_BYTES (sizeof MR_LEASE_NAME + 24)

/* What a lease says of its owner. */
struct owner {
    char host[72], boot[40];
    uint64_t pid_namespace, time_namespace, pid, started, locked, device, token;
};

struct mr_lease {
    int dir_fd, fd; /* fd: the lease; has the lock */
    unsigned silence_ms;
    struct owner self;
    uint64_t count;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t mu;
    pthread_cond_t stopped;
    int stop;
};

/* A lease that was found. */
struct found {
    int fd;
    int has_lock; /* we have it, and that is the proof */
    int is_whole; /* `owner` says something */
    struct owner owner;
    char text[MAX_TEXT];
};

/* ---- what it says ---- */

static void write_text(const struct owner *o, uint64_t count, char text[MAX_TEXT])
{
    snprintf(text, MAX_TEXT,
             "millrace lease 1\nhost %s\nboot %s\nnamespaces %" PRIu64 " %" PRIu64 "\npid %" PRIu64
             "\nstarted %" PRIu64 "\nlocked %" PRIu64 "\ndevice %" PRIu64 "\ntoken %016" PRIx64
             "\ncount %020" PRIu64 "\n",
             o->host, o->boot, o->pid_namespace, o->time_namespace, o->pid, o->started, o->locked,
             o->device, o->token, count);
}

static int parse_text(const char *text, struct owner *o)
{
    uint64_t count;
    return sscanf(text,
                  "millrace lease 1 host %71s boot %39s namespaces %" SCNu64 " %" SCNu64
                  " pid %" SCNu64 " started %" SCNu64 " locked %" SCNu64 " device %" SCNu64
                  " token %" SCNx64 " count %" SCNu64,
                  o->host, o->boot, &o->pid_namespace, &o->time_namespace, &o->pid, &o->started,
                  &o->locked, &o->device, &o->token, &count) == 10;
}

/* All of a small file, as a string; its length or -errno. */
static ssize_t read_text(int fd, char *text, size_t room)
{
    size_t len = 0;
    while (len < room - 1) {
        ssize_t n = pread(fd, text + len, room - 1 - len, (off_t)len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    text[len] = 0;
    return (ssize_t)len;
}

static int open_at(int dir_fd, const char *name, int flags)
{
    int fd;
    do
        fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

static void read_proc(const char *path, char *text, size_t room)
{
    int fd = open_at(AT_FDCWD, path, O_RDONLY);
    ssize_t n = fd < 0 ? fd : read_text(fd, text, room);
    if (n < 0)
        text[0] = 0;
    if (fd >= 0)
        close(fd);
}

/* When process `pid` began, in ticks since the boot; 0: not to be seen, UINT64_MAX: it has ended
 * and nobody has asked how. */
static uint64_t start_of(uint64_t pid)
{
    char path[64], text[MAX_TEXT];
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
    read_proc(path, text, sizeof text);
    char *at = strrchr(text, ')'), state = at ? at[2] : 0; /* a program's name may hold anything */
    uint64_t n_threads = 0;
    for (unsigned field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
        if (at && field == 19)
            n_threads = strtoull(at + 1, NULL, 10);
    }
    if (at && state == 'Z' && n_threads <= 1)
        return UINT64_MAX;
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* Its process has ended, or another one has its number.  /proc may hide other users' processes. */
static int process_is_gone(const struct owner *o)
{
    uint64_t started = start_of(o->pid);
    return started ? started != o->started : kill((pid_t)o->pid, 0) && errno == ESRCH;
}

/* Words without spaces, so that the lease can be read back. */
static void keep_word(char *s, const char *otherwise)
{
    s[strcspn(s, "\n")] = 0;
    for (char *p = s; *p; p++)
        if (!isgraph((unsigned char)*p))
            *p = '_';
    if (!*s)
        strcpy(s, otherwise);
}

/* Is /proc that of our own pid namespace? */
static int proc_is_ours(void)
{
    char text[32] = "";
    ssize_t n = readlink("/proc/self", text, sizeof text - 1);
    return n > 0 && strtoull(text, NULL, 10) == (uint64_t)getpid();
}

static int describe_self(struct owner *o, int dir_fd)
{
    struct stat st;
    if (gethostname(o->host, sizeof o->host - 1))
        o->host[0] = 0;
    keep_word(o->host, "unknown");
    read_proc("/proc/sys/kernel/random/boot_id", o->boot, sizeof o->boot);
    keep_word(o->boot, "unknown");
    o->pid = (uint64_t)getpid();
    o->device = fstat(dir_fd, &st) ? 0 : (uint64_t)st.st_dev;
    if (proc_is_ours()) {
        o->started = start_of(o->pid);
        o->pid_namespace = stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
        o->time_namespace = stat("/proc/self/ns/time", &st) ? 0 : st.st_ino;
    }
    return getrandom(&o->token, sizeof o->token, 0) == sizeof o->token ? 0 : -EIO;
}

/* ---- the lock ---- */

/* 1: we have it; 0: somebody else does; -1: this file system has no locks. */
static int try_lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int r;
    do
        r = fcntl(fd, F_OFD_SETLK, &whole);
    while (r && errno == EINTR);
    return !r ? 1 : errno == EAGAIN || errno == EACCES ? 0 : -1;
}

/* ---- making one ---- */

static void remove_at(int dir_fd, const char *name)
{
    while (unlinkat(dir_fd, name, 0) && errno == EINTR)
        ;
}

/* `temp` becomes the lease; as in out_dir.c, an interrupted one may have been done. */
static int rename_at(int dir_fd, const char *temp)
{
    int r, interrupted = 0;
    while ((r = renameat(dir_fd, temp, dir_fd, MR_LEASE_NAME) ? -errno : 0) == -EINTR)
        interrupted = 1;
    return interrupted && r == -ENOENT ? 0 : r;
}

/* A new file, opened.  A network file system may make it and then say that it was interrupted: an
 * empty one that nobody has locked is that. */
static int create(int dir_fd, const char *name)
{
    int fd, interrupted = 0;
    struct stat st;
    while ((fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0 &&
           errno == EINTR)
        interrupted = 1;
    if (fd >= 0)
        return fd;
    if (errno != EEXIST || !interrupted)
        return -errno;
    fd = open_at(dir_fd, name, O_RDWR);
    if (fd < 0 || (!fstat(fd, &st) && !st.st_size && try_lock(fd)))
        return fd;
    close(fd);
    return -EEXIST;
}

static int make_at(struct mr_lease *l, const char *name)
{
    char text[MAX_TEXT];
    int fd = create(l->dir_fd, name);
    if (fd < 0)
        return fd;
    l->self.locked = try_lock(fd) > 0;
    write_text(&l->self, 0, text);
    int r = mr_write_all(fd, text, strlen(text));
    if (r == -ENOSPC || r == -EDQUOT)
        r = ftruncate(fd, 0) ? -errno : 0;
    if (!r)
        r = mr_sync_file(fd);
    if (r) {
        close(fd);
        remove_at(l->dir_fd, name);
        return r;
    }
    l->fd = fd;
    return 0;
}

/* ---- whose is it? ---- */

static int look(int dir_fd, struct found *f)
{
    f->fd = open_at(dir_fd, MR_LEASE_NAME, O_RDWR);
    if (f->fd < 0)
        return f->fd;
    ssize_t n = read_text(f->fd, f->text, sizeof f->text);
    f->is_whole = n > 0 && parse_text(f->text, &f->owner);
    return n < 0 ? (int)n : 0;
}

/* The lease under its name is, to the byte, `text`: 1, 0 or -errno. */
static int is_still(int dir_fd, const char *text)
{
    struct found now = {.fd = -1};
    int r = look(dir_fd, &now);
    if (now.fd >= 0)
        close(now.fd);
    return r ? r : !strcmp(now.text, text);
}

static int same_boot(const struct owner *a, const struct owner *b)
{
    return !strcmp(a->boot, b->boot) && strcmp(a->boot, "unknown");
}

static int same_processes(const struct owner *a, const struct owner *b)
{
    return same_boot(a, b) && a->started && b->started && a->pid_namespace &&
           a->pid_namespace == b->pid_namespace && a->time_namespace == b->time_namespace;
}

enum verdict { LIVES, GONE, UNKNOWN };

static enum verdict judge(const struct mr_lease *l, struct found *f)
{
    int lock = try_lock(f->fd);
    f->has_lock = lock > 0;
    if (f->is_whole && same_processes(&f->owner, &l->self) && process_is_gone(&f->owner))
        return GONE;
    if (f->is_whole && same_boot(&f->owner, &l->self) && f->owner.locked && lock > 0 &&
        f->owner.device == l->self.device)
        return GONE;
    f->has_lock = 0; /* it proves nothing */
    if (lock == 0 || (f->is_whole && same_processes(&f->owner, &l->self)))
        return LIVES;
    return UNKNOWN;
}

static int sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    return nanosleep(&t, NULL) ? -EINTR : 0;
}

/* Watch a lease whose owner may be elsewhere: GONE if it never changes. */
static int watch(const struct mr_lease *l, const struct found *f, const char *path,
                 const struct mr_lease_opts *o, enum verdict *out)
{
    char text[512];
    unsigned pause = l->silence_ms / LOOKS + 1;
    snprintf(text, sizeof text,
             "%.200s: host %s, process %" PRIu64 " owns it; taken over if it is silent for %u s",
             path, f->is_whole ? f->owner.host : "unknown", f->is_whole ? f->owner.pid : 0,
             l->silence_ms / 1000);
    if (o && o->waiting)
        o->waiting(o->ctx, text);
    for (unsigned waited = 0; waited <= l->silence_ms; waited += pause) {
        int r = sleep_ms(pause);
        int still = r ? r : is_still(l->dir_fd, f->text);
        if (still <= 0) {
            *out = LIVES;
            return still;
        }
    }
    *out = GONE;
    return 0;
}

/* Put our lease in the place of one whose owner is gone.  -EAGAIN: somebody was quicker. */
static int replace(struct mr_lease *l, const struct found *old)
{
    char temp[TEMPORARY_BYTES];
    snprintf(temp, sizeof temp, "%s.%016" PRIx64, MR_LEASE_NAME, l->self.token);
    int r = make_at(l, temp);
    if (r)
        return r;
    int still = is_still(l->dir_fd, old->text);
    r = still > 0 ? 0 : still ? still : -EAGAIN;
    if (!r)
        r = rename_at(l->dir_fd, temp);
    if (r) {
        remove_at(l->dir_fd, temp);
        return r;
    }
    if (old->has_lock)
        return 0;
    r = sleep_ms(l->silence_ms / SETTLE_PART + 1);
    r = r ? r : mr_lease_check(l);
    return r == -EBUSY ? -EAGAIN : r;
}

static int in_use(const struct found *f, const char *path, struct mr_error *err)
{
    if (!f->is_whole)
        return mr_fail(err, -EBUSY, "%s: another run writes checkpoints here", path);
    return mr_fail(err, -EBUSY,
                   "%s: another run writes checkpoints here (process %" PRIu64 " on host %s); wait "
                   "for it or take another folder",
                   path, f->owner.pid, f->owner.host);
}

/* One try.  -EAGAIN: the lease changed meanwhile. */
static int try_acquire(struct mr_lease *l, const char *path, const struct mr_lease_opts *o,
                       struct mr_error *err)
{
    struct found f = {.fd = -1};
    int r = make_at(l, MR_LEASE_NAME);
    if (r != -EEXIST)
        return r;
    r = look(l->dir_fd, &f);
    if (!r) {
        enum verdict v = judge(l, &f);
        if (v == UNKNOWN)
            r = watch(l, &f, path, o, &v);
        if (!r && v == LIVES)
            r = in_use(&f, path, err);
        else if (!r)
            r = replace(l, &f);
    }
    if (f.fd >= 0)
        close(f.fd);
    return r == -ENOENT ? -EAGAIN : r;
}

/* ---- renewing ---- */

static void renew(struct mr_lease *l)
{
    char text[MAX_TEXT];
    write_text(&l->self, ++l->count, text);
    size_t len = strlen(text);
    ssize_t n;
    do
        n = pwrite(l->fd, text, len, 0);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)len)
        fdatasync(l->fd);
    /* A failure is a silence; the next one may be heard. */
}

static void *renew_main(void *arg)
{
    struct mr_lease *l = arg;
    renew(l); /* at a full disk it may not have been written */
    pthread_mutex_lock(&l->mu);
    while (!l->stop) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        uint64_t ns = (uint64_t)t.tv_nsec + (uint64_t)l->silence_ms * 1000000 / RENEWALS;
        t.tv_sec += (time_t)(ns / 1000000000);
        t.tv_nsec = (long)(ns % 1000000000);
        while (!l->stop && pthread_cond_timedwait(&l->stopped, &l->mu, &t) != ETIMEDOUT)
            ;
        if (l->stop)
            break;
        pthread_mutex_unlock(&l->mu);
        renew(l);
        pthread_mutex_lock(&l->mu);
    }
    pthread_mutex_unlock(&l->mu);
    return NULL;
}

/* ---- the interface ---- */

static struct mr_lease *new_lease(int dir_fd, const struct mr_lease_opts *o)
{
    struct mr_lease *l = calloc(1, sizeof *l);
    pthread_condattr_t monotonic;
    if (!l)
        return NULL;
    l->dir_fd = dir_fd;
    l->fd = -1;
    l->silence_ms = o && o->silence_ms ? o->silence_ms : MR_LEASE_SILENCE_MS;
    pthread_mutex_init(&l->mu, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return l;
}

int mr_lease_acquire(int dir_fd, const char *path, const struct mr_lease_opts *o,
                     struct mr_lease **out, struct mr_error *err)
{
    struct mr_lease *l = new_lease(dir_fd, o);
    if (!l)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    int r = describe_self(&l->self, dir_fd);
    for (unsigned i = 0; !r && i < MAX_TRIES; i++) {
        r = try_acquire(l, path, o, err);
        if (r != -EAGAIN)
            break;
        if (l->fd >= 0)
            close(l->fd);
        l->fd = -1;
        r = i + 1 < MAX_TRIES ? 0 : -EBUSY;
    }
    if (!r) {
        r = -pthread_create(&l->thread, NULL, renew_main, l);
        l->has_thread = !r;
    }
    if (r) {
        mr_fail(err, r, "%s/%s: %s", path, MR_LEASE_NAME, mr_errno_text(r));
        mr_lease_release(l);
        return r;
    }
    *out = l;
    return 0;
}

/* The file under the name is the one that we have open; and it says so, unless it is empty. */
int mr_lease_check(struct mr_lease *l)
{
    struct found f = {.fd = -1};
    struct stat ours, there;
    if (l->self.pid != (uint64_t)getpid())
        return -EBUSY;
    int r = look(l->dir_fd, &f);
    if (!r && (fstat(f.fd, &there) || fstat(l->fd, &ours)))
        r = -errno;
    if (f.fd >= 0)
        close(f.fd);
    if (r)
        return r == -ENOENT ? -EBUSY : r;
    int same = ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
    return same && (!f.text[0] || (f.is_whole && f.owner.token == l->self.token)) ? 0 : -EBUSY;
}

uint32_t mr_lease_token(const struct mr_lease *l)
{
    return (uint32_t)(l->self.token ^ l->self.token >> 32);
}

void mr_lease_release(struct mr_lease *l)
{
    if (!l)
        return;
    int ours = l->self.pid == (uint64_t)getpid();
    if (l->has_thread && ours) {
        pthread_mutex_lock(&l->mu);
        l->stop = 1;
        pthread_cond_signal(&l->stopped);
        pthread_mutex_unlock(&l->mu);
        pthread_join(l->thread, NULL);
    }
    if (l->fd >= 0 && ours && !mr_lease_check(l))
        remove_at(l->dir_fd, MR_LEASE_NAME);
    if (l->fd >= 0)
        close(l->fd);
    if (ours) { /* in a child the thread that waits is not there, and destroying would wait for it
                 */
        pthread_cond_destroy(&l->stopped);
        pthread_mutex_destroy(&l->mu);
    }
    free(l);
}
