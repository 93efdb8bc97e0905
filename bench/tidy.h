/* tidy.h - a program that leaves nothing behind, however it ends. */
#ifndef MR_TIDY_H
#define MR_TIDY_H

/* Run body() in a process of its own and, when that has ended, by itself, by an error or by Ctrl-C,
 * clean(ctx).  Returns body's result; 1 when it did not get so far. */
int tidy_run(int (*body)(int argc, char **argv), int argc, char **argv,
             void (*clean)(const void *ctx), const void *ctx);

#endif
