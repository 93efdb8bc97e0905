/* test_lease.c - who owns a folder: processes that live, that were killed, that only forked; owners
 * on other hosts that speak or are silent; and an owner that was replaced. */
#include "unit.h"

#include "lease.h"
#include "out_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENCE_MS 300

static int open_dir(const struct tempdir *t)
{
    int fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static int acquire(const struct tempdir *t, int fd, struct mr_lease **out, struct mr_error *err)
{
    return mr_lease_acquire(fd, t->path, &(struct mr_lease_opts){.silence_ms = SILENCE_MS}, out,
                            err);
}

static int is_there(struct tempdir *t)
{
    return access(tempdir_path(t, MR_LEASE_NAME), F_OK) == 0;
}

/* What the file says, with `from` (up to the end of its line) replaced by `to`. */
static void edit(struct tempdir *t, const char *from, const char *to)
{
    char text[1024], out[2048];
    int fd = open(tempdir_path(t, MR_LEASE_NAME), O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    close(fd);
    char *at = strstr(text, from);
    assert_non_null(at);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to, strchr(at, '\n'));
    unlink(tempdir_path(t, MR_LEASE_NAME));
    tempdir_text(t, MR_LEASE_NAME, out);
}

/* A child that owns the folder and says so; it lives until it is killed. */
static pid_t start_owner(const struct tempdir *t)
{
    int pipes[2];
    char byte;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (!pid) {
        struct mr_lease *l;
        int r = acquire(t, open_dir(t), &l, NULL);
        if (r || write(pipes[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    close(pipes[0]);
    return pid;
}

static void stop_owner(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void a_folder_has_one_owner_in_a_process(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l, *second = NULL;
    struct mr_error err = {0};
    int fd = open_dir(t);
    assert_int_equal(acquire(t, fd, &l, NULL), 0);
    assert_int_equal(mr_lease_check(l), 0);
    assert_int_equal(acquire(t, fd, &second, &err), -EBUSY);
    assert_null(second);
    assert_non_null(strstr(err.text, "another run"));
    mr_lease_release(l);
    assert_false(is_there(t));
    assert_int_equal(acquire(t, fd, &second, NULL), 0);
    mr_lease_release(second);
    close(fd);
}

static void a_living_process_is_respected_and_a_killed_one_is_not(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    struct mr_error err = {0};
    int fd = open_dir(t);
    pid_t pid = start_owner(t);
    char who[32];
    snprintf(who, sizeof who, "process %d", (int)pid);
    assert_int_equal(acquire(t, fd, &l, &err), -EBUSY);
    assert_non_null(strstr(err.text, who));
    kill(pid, SIGSTOP); /* it says nothing any more, but it lives */
    assert_int_equal(acquire(t, fd, &l, NULL), -EBUSY);
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(acquire(t, fd, &l, NULL), 0); /* not waited for yet, but it is gone */
    mr_lease_release(l);
    waitpid(pid, NULL, 0);
    close(fd);
}

static void without_locks_the_number_of_the_process_tells(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    int fd = open_dir(t);
    pid_t pid = start_owner(t);
    edit(t, "locked 1", "locked 0"); /* another file: the lock is not on it */
    assert_int_equal(acquire(t, fd, &l, NULL), -EBUSY);
    stop_owner(pid);
    assert_int_equal(acquire(t, fd, &l, NULL), 0);
    mr_lease_release(l);
    close(fd);
}

static void a_number_that_another_process_has_now_is_no_owner(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    int fd = open_dir(t);
    pid_t pid = start_owner(t);
    edit(t, "started ", "started 1");
    assert_int_equal(acquire(t, fd, &l, NULL), 0);
    mr_lease_release(l);
    stop_owner(pid);
    close(fd);
}

/* Until the owner has renewed its lease so often; the suite's time limit ends this if it never
 * does.
 */
static void wait_for_count(struct tempdir *t, uint64_t n)
{
    char text[1024];
    do {
        int f = open(tempdir_path(t, MR_LEASE_NAME), O_RDONLY);
        ssize_t len = read(f, text, sizeof text - 1);
        text[len > 0 ? len : 0] = 0;
        close(f);
    } while (strtoull(strstr(text, "count ") + 6, NULL, 10) < n);
}

static void a_forked_child_owns_nothing(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    int fd = open_dir(t), up[2], down[2], status;
    char byte;
    assert_true(!pipe(up) && !pipe(down));
    pid_t owner = fork();
    if (!owner) { /* owns the folder and leaves a child behind that has all its descriptors */
        if (acquire(t, fd, &l, NULL))
            _exit(1);
        wait_for_count(t, 1); /* its thread is at work */
        if (!fork()) {
            int bad = mr_lease_check(l) != -EBUSY;
            mr_lease_release(l); /* as a destructor might */
            bad |= !is_there(t);
            bad |= write(up[1], bad ? "b" : "g", 1) != 1;
            bad |= read(down[0], &byte, 1) != 1;
            _exit(bad);
        }
        _exit(read(down[0], &byte, 1) != 1);
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    assert_int_equal(byte, 'g');
    struct mr_lease *mine = NULL;
    assert_int_equal(acquire(t, fd, &mine, NULL), -EBUSY);
    siginfo_t info;
    kill(owner, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)owner, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(acquire(t, fd, &mine, NULL), 0); /* the child lives on and has the lock */
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_int_equal(write(down[1], "x", 1), 1);
    mr_lease_release(mine);
    close(fd);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
}

static void note(void *ctx, const char *text)
{
    snprintf(ctx, 256, "%s", text);
}

/* A lock that can be had through another device than the owner's proves nothing. */
static void a_lock_of_another_mount_is_no_proof(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    int fd = open_dir(t);
    pid_t pid = start_owner(t);
    edit(t, "device ", "device 1"); /* another file, without a lock */
    assert_int_equal(acquire(t, fd, &l, NULL), -EBUSY);
    stop_owner(pid);
    assert_int_equal(acquire(t, fd, &l, NULL), 0);
    mr_lease_release(l);
    close(fd);
}

static void a_process_without_a_known_start_is_waited_for(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    char said[256] = "";
    int fd = open_dir(t);
    struct mr_lease_opts o = {.silence_ms = SILENCE_MS, .waiting = note, .ctx = said};
    stop_owner(start_owner(t));
    edit(t, "started ", "started 0");
    edit(t, "locked ", "locked 0");
    assert_int_equal(mr_lease_acquire(fd, t->path, &o, &l, NULL), 0);
    assert_true(said[0]);
    mr_lease_release(l);
    close(fd);
}

static void a_silent_owner_elsewhere_is_replaced_after_the_wait(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    char said[256] = "";
    int fd = open_dir(t);
    pid_t pid = start_owner(t);
    edit(t, "boot ", "boot 00000000-0000-0000-0000-000000000000");
    edit(t, "host ", "host elsewhere");
    stop_owner(pid);
    struct mr_lease_opts o = {.silence_ms = SILENCE_MS, .waiting = note, .ctx = said};
    assert_int_equal(mr_lease_acquire(fd, t->path, &o, &l, NULL), 0);
    assert_non_null(strstr(said, "elsewhere"));
    assert_int_equal(mr_lease_check(l), 0);
    mr_lease_release(l);
    /* Torn by a crash of whoever made it. */
    tempdir_text(t, MR_LEASE_NAME, "millrace le");
    assert_int_equal(mr_lease_acquire(fd, t->path, &o, &l, NULL), 0);
    mr_lease_release(l);
    close(fd);
}

struct speaker {
    struct tempdir *t;
    atomic_int stop;
};

/* Another host that renews its lease. */
static void *speak(void *arg)
{
    struct speaker *s = arg;
    int fd = open(tempdir_path(s->t, MR_LEASE_NAME), O_RDWR);
    char text[1024] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    for (unsigned i = 1; !atomic_load(&s->stop); i++) {
        snprintf(strstr(text, "count "), 32, "count %020u\n", i);
        if (pwrite(fd, text, (size_t)n, 0) != n)
            break;
        usleep(SILENCE_MS * 1000 / 10);
    }
    close(fd);
    return NULL;
}

static void an_owner_elsewhere_that_speaks_is_respected(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    struct mr_error err = {0};
    struct speaker s = {.t = t};
    pthread_t thread;
    int fd = open_dir(t);
    pid_t pid = start_owner(t);
    edit(t, "boot ", "boot 00000000-0000-0000-0000-000000000000");
    stop_owner(pid);
    assert_int_equal(pthread_create(&thread, NULL, speak, &s), 0);
    assert_int_equal(acquire(t, fd, &l, &err), -EBUSY);
    atomic_store(&s.stop, 1);
    pthread_join(thread, NULL);
    close(fd);
}

static void an_owner_renews_its_lease(void **state)
{
    struct tempdir *t = *state;
    struct mr_lease *l = NULL;
    int fd = open_dir(t);
    assert_int_equal(acquire(t, fd, &l, NULL), 0);
    wait_for_count(t, 2);
    assert_int_equal(mr_lease_check(l), 0);
    mr_lease_release(l);
    close(fd);
}

static void ignore(int sig)
{
}

static void a_signal_ends_the_wait(void **state)
{
    struct tempdir *t = *state;
    int fd = open_dir(t), status;
    pid_t pid = start_owner(t);
    edit(t, "boot ", "boot 00000000-0000-0000-0000-000000000000");
    stop_owner(pid);
    int up[2];
    char byte;
    assert_int_equal(pipe(up), 0);
    pid = fork();
    if (!pid) {
        struct mr_lease *l;
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ignore}, NULL);
        if (write(up[1], "x", 1) != 1)
            _exit(1);
        int r =
            mr_lease_acquire(fd, t->path, &(struct mr_lease_opts){.silence_ms = 600000}, &l, NULL);
        _exit(r == -EINTR ? 42 : 1);
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGUSR1);
        usleep(1000);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    close(up[0]);
    close(up[1]);
    close(fd);
}

struct contender {
    struct tempdir *t;
    pthread_barrier_t *start;
    struct mr_lease *lease;
    int fd, code;
};

static void *contend(void *arg)
{
    struct contender *c = arg;
    pthread_barrier_wait(c->start);
    c->code = acquire(c->t, c->fd, &c->lease, NULL);
    return NULL;
}

static void one_of_many_takes_over(void **state)
{
    enum { N = 6 };
    struct tempdir *t = *state;
    for (unsigned round = 0; round < 40; round++) {
        struct contender c[N];
        pthread_t threads[N];
        pthread_barrier_t start;
        unsigned n_owners = 0;
        stop_owner(start_owner(t));
        if (round % 4 == 3) /* no lock can tell, nor a process */
            edit(t, "boot ", "boot 00000000-0000-0000-0000-000000000000");
        pthread_barrier_init(&start, NULL, N);
        for (unsigned i = 0; i < N; i++) {
            c[i] = (struct contender){.t = t, .start = &start, .fd = open_dir(t)};
            assert_int_equal(pthread_create(&threads[i], NULL, contend, &c[i]), 0);
        }
        for (unsigned i = 0; i < N; i++)
            pthread_join(threads[i], NULL);
        for (unsigned i = 0; i < N; i++) {
            n_owners += !c[i].code && !mr_lease_check(c[i].lease);
            assert_true(!c[i].code || c[i].code == -EBUSY);
        }
        assert_int_equal(n_owners, 1);
        for (unsigned i = 0; i < N; i++) {
            mr_lease_release(c[i].code ? NULL : c[i].lease);
            close(c[i].fd);
        }
        pthread_barrier_destroy(&start);
        assert_false(is_there(t));
    }
}

/* It stood still for so long that another host took the folder. */
static void an_owner_that_was_replaced_touches_nothing(void **state)
{
    struct tempdir *t = *state;
    struct mr_out_dir *d;
    struct mr_out_file f;
    struct mr_out_opts o = {.lease.silence_ms = 600000};
    assert_int_equal(mr_out_dir_open(t->path, &o, &d, NULL), 0);
    assert_int_equal(mr_out_small_file(d, "mine", "a", 1), 0);
    edit(t, "token ", "token 00000000000000aa");
    assert_int_equal(mr_out_create(d, "new", 0, 0, &f), -EBUSY);
    assert_int_equal(mr_out_rename(d, "mine", "yours"), -EBUSY);
    assert_int_equal(mr_out_unlink(d, "mine"), -EBUSY);
    assert_int_equal(mr_out_exists(d, "mine"), 1);
    assert_int_equal(mr_out_exists(d, "new"), 0);
    mr_out_dir_close(d);
    assert_true(is_there(t)); /* the other one's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_folder_has_one_owner_in_a_process),
        WITH_TEMPDIR(a_living_process_is_respected_and_a_killed_one_is_not),
        WITH_TEMPDIR(without_locks_the_number_of_the_process_tells),
        WITH_TEMPDIR(a_number_that_another_process_has_now_is_no_owner),
        WITH_TEMPDIR(a_forked_child_owns_nothing),
        WITH_TEMPDIR(a_lock_of_another_mount_is_no_proof),
        WITH_TEMPDIR(a_process_without_a_known_start_is_waited_for),
        WITH_TEMPDIR(a_silent_owner_elsewhere_is_replaced_after_the_wait),
        WITH_TEMPDIR(an_owner_elsewhere_that_speaks_is_respected),
        WITH_TEMPDIR(an_owner_renews_its_lease),
        WITH_TEMPDIR(a_signal_ends_the_wait),
        WITH_TEMPDIR(one_of_many_takes_over),
        WITH_TEMPDIR(an_owner_that_was_replaced_touches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
