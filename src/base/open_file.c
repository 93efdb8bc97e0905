/* open_file.c - see open_file.h.  Opening may be interrupted where a file system waits for a
 * server; the file is not at fault then. */
#include "open_file.h"

#include <errno.h>
#include <fcntl.h>

int mr_open_file(const char *path, int flags, unsigned mode)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}
