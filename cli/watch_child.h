/* watch_child.h - run a command, pass signals on to it, wait for its end. */
#ifndef MR_WATCH_CHILD_H
#define MR_WATCH_CHILD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct watch_child {
    pid_t pid;        /* 0: there is no command */
    int go, failed;   /* our ends of two pipes, -1: closed */
    const char *name; /* of the command; borrowed */
    sigset_t signals, before;
};

/* Block the signals that watch_child_wait answers, so that threads started later leave them alone.
 */
void watch_child_init(struct watch_child *c);
/* Make a process that waits for watch_child_go before it becomes the command.  Its standard output
 * goes to standard error with `hide_output`.  0 or -errno. */
int watch_child_fork(struct watch_child *c, char **argv, int hide_output);
/* Let it go.  0 once it is the command, or -errno: why it could not be run (and is no more);
 * -ENOENT when there is no such command in the folders of PATH that may be searched. */
int watch_child_go(struct watch_child *c);
/* Until the command has ended (it stays to be reaped: its counters can still be read), or without
 * one until a signal asks for the end or duration_ns have passed (0: never).  The number of the
 * signal, or 0. */
int watch_child_wait(struct watch_child *c, uint64_t duration_ns);
/* Signals do again what they did before watch_child_init. */
void watch_child_unblock(const struct watch_child *c);
/* Reap: the exit status as a shell tells it; *signal_number is 0 when it ended by itself. */
int watch_child_reap(struct watch_child *c, int *signal_number);
/* A process that was never let go is ended and reaped. */
void watch_child_fini(struct watch_child *c);

#endif
