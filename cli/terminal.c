/* terminal.c - see terminal.h.  The program has one terminal, so its state is here, in one place;
 * the signal handler only sets a flag. */
#include "terminal.h"

#include "clock.h"
#include "say.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REDRAW_NS 100000000
#define BAR       30

#define SAME_NS 300000000 /* signals nearer than that are one wish: some senders reach us twice */

static volatile sig_atomic_t interrupted;
static uint64_t first_signal_ns; /* written by the handler only */

static struct {
    char key[96], what[96];
    uint64_t start_ns, drawn_ns;
    int shown;
} bar;

static void on_signal(int sig)
{
    uint64_t now = mr_clock_ns(); /* clock_gettime may be called here */
    /* A terminal that goes away may say so several times, and nobody is there to be impatient. */
    if (interrupted && sig != SIGHUP && now - first_signal_ns > SAME_NS)
        _exit(130);
    if (!interrupted)
        first_signal_ns = now;
    interrupted = 1;
}

void terminal_catch_signals(void)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, had;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (!sigaction(SIGHUP, NULL, &had) && had.sa_handler != SIG_IGN) /* nohup wants it ignored */
        sigaction(SIGHUP, &act, NULL);
}

int terminal_interrupted(void *unused)
{
    (void)unused;
    return interrupted != 0;
}

static void draw(uint64_t done, uint64_t total, uint64_t now)
{
    char line[BAR + 1];
    unsigned filled = total ? (unsigned)(done * BAR / total) : 0;
    memset(line, '.', BAR);
    memset(line, '#', filled > BAR ? BAR : filled);
    line[BAR] = 0;
    double elapsed = (double)(now - bar.start_ns) / 1e9;
    if (total)
        say_to(stderr, "\r\033[K%s [%s] %3.0f%%", bar.what, line,
               100.0 * (double)done / (double)total);
    else
        say_to(stderr, "\r\033[K%s %llu", bar.what, (unsigned long long)done);
    if (done && done < total && elapsed > 0.5)
        say_to(stderr, "  %.0f s left", elapsed * (double)(total - done) / (double)done);
    fflush(stderr);
    bar.shown = 1;
}

void progress_step(const char *key, const char *what, uint64_t done, uint64_t total)
{
    if (!isatty(STDERR_FILENO))
        return;
    uint64_t now = mr_clock_ns();
    if (strncmp(key, bar.key, sizeof bar.key - 1)) {
        snprintf(bar.key, sizeof bar.key, "%s", key);
        bar.start_ns = now;
        bar.drawn_ns = 0;
    }
    if (bar.drawn_ns && now - bar.drawn_ns < REDRAW_NS)
        return;
    snprintf(bar.what, sizeof bar.what, "%s", what);
    bar.drawn_ns = now;
    draw(done, total, now);
}

void progress_show(const char *what, uint64_t done, uint64_t total)
{
    progress_step(what, what, done, total);
}

void progress_hide(void)
{
    if (bar.shown)
        say_to(stderr, "\r\033[K");
    fflush(stderr);
    bar.shown = 0;
    bar.drawn_ns = 0;
}

void progress_clear(void)
{
    progress_hide();
    bar.key[0] = 0;
}
