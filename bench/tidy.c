/* tidy.c - see tidy.h.  The parent ignores what the terminal sends to both and waits. */
#include "tidy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int tidy_run(int (*body)(int argc, char **argv), int argc, char **argv,
             void (*clean)(const void *ctx), const void *ctx)
{
    int status = 0;
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (!child)
        exit(body(argc, argv));
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    clean(ctx);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
