/* terminal.h - what the program shows while it works: progress, and Ctrl-C. */
#ifndef MR_TERMINAL_H
#define MR_TERMINAL_H

#include <stdint.h>

/* From now on Ctrl-C, SIGTERM and a closed terminal ask for an orderly end; a second Ctrl-C or
 * SIGTERM ends at once. */
void terminal_catch_signals(void);
/* Nonzero after such a request; fits as a should_stop callback. */
int terminal_interrupted(void *unused);

/* One line on standard error that is redrawn, with the time that is left; only on a terminal. */
void progress_show(const char *what, uint64_t done, uint64_t total);
/* The same with words that change while the work, known by its key, is one. */
void progress_step(const char *key, const char *what, uint64_t done, uint64_t total);
/* Take the line away for something else to be printed; the work goes on, and its time. */
void progress_hide(void);
/* The work is at its end: what comes next begins anew, whatever its key. */
void progress_clear(void);

#endif
