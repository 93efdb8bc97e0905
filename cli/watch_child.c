/* watch_child.c - see watch_child.h.
 *
 *     fork -> child waits on `go` -> sampler opens, knowing the pid -> go -> exec
 *                                                       `failed` closes by exec, or tells errno
 *
 * So no byte of the command's I/O escapes the sampler, and a command that is not there is known by
 * its errno.  The main thread waits for signals; there is no handler.  What the terminal sends
 * (Ctrl-C) reaches the command by itself; what somebody sends to us alone is passed on.  We end
 * when the command does, whatever it makes of the signal.  Should we die before `go`, the child
 * reads the end of the pipe and ends, too. */
#include "watch_child.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { N_ENDING = sizeof ending / sizeof *ending };

static int is_ignored(int sig)
{
    struct sigaction act;
    return !sigaction(sig, NULL, &act) && act.sa_handler == SIG_IGN;
}

void watch_child_init(struct watch_child *c)
{
    *c = (struct watch_child){.go = -1, .failed = -1};
    signal(SIGCHLD, SIG_DFL); /* who ignores it cannot wait */
    sigemptyset(&c->signals);
    sigaddset(&c->signals, SIGCHLD);
    for (unsigned i = 0; i < N_ENDING; i++)
        if (!is_ignored(ending[i])) /* nohup */
            sigaddset(&c->signals, ending[i]);
    sigprocmask(SIG_BLOCK, &c->signals, &c->before);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Only what may be called between fork and exec. */
static void become(const struct watch_child *c, char **argv, int go, int failed, int hide_output)
{
    char byte;
    ssize_t n;
    signal(SIGPIPE, SIG_DFL); /* a command expects it; this program ignores it */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    if (hide_output)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    while ((n = read(go, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (n == 1) {
        execvp(argv[0], argv);
        int code = errno;
        n = write(failed, &code, sizeof code);
    }
    _exit(127);
}

int watch_child_fork(struct watch_child *c, char **argv, int hide_output)
{
    int go[2], failed[2];
    if (pipe2(go, O_CLOEXEC))
        return -errno;
    if (pipe2(failed, O_CLOEXEC)) {
        int r = -errno;
        close(go[0]);
        close(go[1]);
        return r;
    }
    pid_t pid = fork();
    int r = pid < 0 ? -errno : 0;
    if (pid == 0) {
        close(go[1]); /* else it would never see our end */
        become(c, argv, go[0], failed[1], hide_output);
    }
    close(go[0]);
    close(failed[1]);
    c->go = go[1];
    c->failed = failed[0];
    c->pid = r ? 0 : pid;
    c->name = argv[0];
    if (r)
        watch_child_fini(c);
    return r;
}

/* Has any folder of PATH a file of this name, as far as we may know? */
static int is_in_path(const char *name)
{
    char standard[256] = "", file[PATH_MAX];
    const char *path = getenv("PATH");
    if (!path && confstr(_CS_PATH, standard, sizeof standard))
        path = standard;
    while (path) {
        struct stat st;
        size_t n = strcspn(path, ":");
        int len = snprintf(file, sizeof file, "%.*s%s%s", (int)n, path, n ? "/" : "", name);
        if (len < (int)sizeof file && !stat(file, &st) && !S_ISDIR(st.st_mode))
            return 1;
        path = path[n] ? path + n + 1 : NULL;
    }
    return 0;
}

/* Why the command could not be run.  execvp says EACCES also when it found none, but a folder of
 * PATH could not be searched; shells call that "not found". */
static int real_reason(const char *name, int code)
{
    return code == EACCES && !strchr(name, '/') && !is_in_path(name) ? ENOENT : code;
}

int watch_child_go(struct watch_child *c)
{
    int code = 0;
    ssize_t n = write(c->go, "", 1); /* a child that was killed: the end of `failed` tells */
    close_end(&c->go);
    while ((n = read(c->failed, &code, sizeof code)) < 0 && errno == EINTR)
        ;
    close_end(&c->failed);
    if (n != sizeof code)
        return 0;
    watch_child_reap(c, &(int){0});
    return -real_reason(c->name, code);
}

static int has_ended(const struct watch_child *c)
{
    siginfo_t info = {0};
    int r;
    do
        r = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    while (r && errno == EINTR);
    return r || info.si_pid == c->pid;
}

/* The next signal; -1 when the time is up. */
static int next_signal(const struct watch_child *c, uint64_t end_ns, siginfo_t *info)
{
    for (;;) {
        uint64_t now = mr_clock_ns(), left = end_ns > now ? end_ns - now : 0;
        struct timespec t = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        int sig = end_ns ? sigtimedwait(&c->signals, info, &t) : sigwaitinfo(&c->signals, info);
        if (sig > 0)
            return sig;
        if (errno != EINTR && end_ns && mr_clock_ns() >= end_ns)
            return -1;
    }
}

int watch_child_wait(struct watch_child *c, uint64_t duration_ns)
{
    uint64_t end_ns = duration_ns ? mr_clock_ns() + duration_ns : 0;
    siginfo_t info;
    while (!c->pid || !has_ended(c)) {
        int sig = next_signal(c, end_ns, &info);
        if (sig < 0)
            return 0;
        if (sig == SIGCHLD)
            continue;
        if (!c->pid)
            return sig;
        if (info.si_code != SI_KERNEL)
            kill(c->pid, sig);
    }
    return 0;
}

void watch_child_unblock(const struct watch_child *c)
{
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}

int watch_child_reap(struct watch_child *c, int *signal_number)
{
    int status = 0;
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
    *signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return *signal_number ? 128 + *signal_number : WEXITSTATUS(status);
}

void watch_child_fini(struct watch_child *c)
{
    close_end(&c->go);
    close_end(&c->failed);
    if (c->pid)
        watch_child_reap(c, &(int){0});
}
