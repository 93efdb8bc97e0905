/* no_cached_open.c - linked with --wrap=mr_open_cached: no file's name is ever in memory, so that
 * the uring engine reads all of them by chains. */
#include "whole_file.h"

#include <errno.h>

int __wrap_mr_open_cached(int dir, const char *path, int flags, struct stat *st);

int __wrap_mr_open_cached(int dir, const char *path, int flags, struct stat *st)
{
    (void)dir;
    (void)path;
    (void)flags;
    (void)st;
    return -EAGAIN;
}
