/* wait_policy.c - see wait_policy.h.  A mark in the environment guards against starting forever; it
 * is removed in the second start, so that programs started from here decide for themselves. */
#include "wait_policy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define POLICY "OMP_WAIT_POLICY"
#define MARK   "MILLRACE_RESTARTED"

int mr_wait_policy_restart(char **argv)
{
    char path[PATH_MAX];
    if (getenv(MARK)) {
        unsetenv(MARK);
        return 0;
    }
    if (getenv(POLICY))
        return 0;
    if (setenv(POLICY, "passive", 1) || setenv(MARK, "1", 1))
        return -errno;
    /* By its name, so that ps shows it; by the link when the file has been replaced meanwhile. */
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0) {
        path[n] = 0;
        execv(path, argv);
    }
    execv("/proc/self/exe", argv);
    int r = -errno;
    unsetenv(MARK);
    return r;
}
