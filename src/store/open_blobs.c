/* open_blobs.c - see open_blobs.h. */
#include "open_blobs.h"

#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int mr_open_blobs_init(struct mr_open_blobs *t, unsigned depth)
{
    *t = (struct mr_open_blobs){.n = MR_OPEN_BLOBS + depth};
    t->place = malloc(t->n * sizeof *t->place);
    for (unsigned i = 0; t->place && i < t->n; i++)
        t->place[i] = (struct mr_open_blob){.fd = -1};
    return t->place ? 0 : -ENOMEM;
}

void mr_open_blobs_fini(struct mr_open_blobs *t)
{
    for (unsigned i = 0; t->place && i < t->n; i++)
        if (t->place[i].fd >= 0)
            close(t->place[i].fd);
    free(t->place);
    t->place = NULL;
}

/* Where the blob is, or else a place that nobody uses: the next one in turn. */
static struct mr_open_blob *find_place(struct mr_open_blobs *t, uint64_t blob)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->place[i].fd >= 0 && t->place[i].blob == blob)
            return &t->place[i];
    for (unsigned i = 0; i < t->n; i++) {
        t->next = (t->next + 1) % t->n;
        if (!t->place[t->next].n_users)
            break;
    }
    return &t->place[t->next];
}

int mr_open_blobs_take(struct mr_open_blobs *t, uint64_t blob, int dir, const char *name,
                       int direct, struct mr_open_blob **out)
{
    struct mr_open_blob *p = find_place(t, blob);
    struct stat st;
    if (p->fd < 0 || p->blob != blob) {
        int fd = mr_open_for_reading(dir, name, &st);
        int r = fd < 0 ? fd : mr_whole_file_allowed(st.st_mode, (uint64_t)st.st_size, UINT64_MAX);
        if (r) {
            if (fd >= 0)
                close(fd);
            return r;
        }
        if (direct)
            mr_set_direct(fd, 1); /* without it, it just stays off */
        if (p->fd >= 0)
            close(p->fd);
        *p = (struct mr_open_blob){fd, 0, blob, (uint64_t)st.st_size, st.st_ino};
    }
    p->n_users++;
    *out = p;
    return 0;
}
