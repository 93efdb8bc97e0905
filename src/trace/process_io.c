/* process_io.c - see process_io.h.
 *
 * When a process is waited for, the kernel adds its counters to its parent's.  So the sum over the
 * root and its living descendants is the whole truth about the tree, also about processes that
 * lived shorter than an interval, as long as nobody detaches: a daemon leaves the tree for init
 * and takes its counters along.
 *
 * Parents are read before their children.  A child that ends in between is then missing from this
 * sum (it is in the parent's next one) and never there twice.  Such dips are not shown: the sum
 * that is handed out never falls, so what left with a daemon makes it a lower bound.
 *
 * Descendants are found by looking at the parent of every process (lists of children are an option
 * of the kernel's).  That costs microseconds a process, so between two walks there is a pause of at
 * least PAUSE times what the last one took. */
#include "process_io.h"

#include "clock.h"
#include "grow.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE       300
#define MAX_MEMBERS 512 /* descriptors that may be kept open */

struct mr_process_member {
    pid_t pid;
    unsigned depth; /* below the root, which has 1 */
    int fd;         /* -1: has ended */
};

struct mr_process_entry {
    pid_t pid, parent;
    unsigned depth; /* 0: not in the tree */
    int known;      /* has a member */
};

int mr_process_io_parse(const char *text, struct mr_process_io *out)
{
    static const char *const key[MR_IO_KINDS] = {"rchar:",
                                                 "wchar:",
                                                 "syscr:",
                                                 "syscw:",
                                                 "read_bytes:",
                                                 "write_bytes:",
                                                 "cancelled_write_bytes:"};
    struct mr_process_io io = {0};
    unsigned found = 0;
    for (const char *p = text; *p; p = mr_next_line(p))
        for (unsigned i = 0; i < MR_IO_KINDS; i++) {
            const char *q = p;
            if (mr_scan_literal(&q, key[i]) && !mr_scan_u64(&q, &io.count[i]))
                found |= 1u << i;
        }
    if (found != (1u << MR_IO_KINDS) - 1)
        return -EBADMSG;
    *out = io;
    return 0;
}

/* "42 (a name) with ) in it) S 1 ...": the name ends at the last parenthesis. */
int mr_process_stat_parse(const char *text, pid_t *pid, pid_t *parent)
{
    const char *p = text, *end = strrchr(text, ')');
    uint64_t a, b;
    if (mr_scan_u64(&p, &a) || !end || end < p || end[1] != ' ' || !end[2])
        return -EBADMSG;
    p = end + 3; /* behind the state */
    if (mr_scan_u64(&p, &b) || !a || a > INT_MAX || b > INT_MAX)
        return -EBADMSG;
    *pid = (pid_t)a;
    *parent = (pid_t)b;
    return 0;
}

static int open_of(const struct mr_process_tree *t, pid_t pid, const char *file)
{
    char name[64];
    snprintf(name, sizeof name, "%d/%s", (int)pid, file);
    return mr_proc_open(t->root, name);
}

static int add_member(struct mr_process_tree *t, pid_t pid, unsigned depth)
{
    if (t->n == MAX_MEMBERS)
        return -ENFILE;
    struct mr_process_member *m = mr_grown(t->member, t->n, &t->cap, sizeof *m);
    if (!m)
        return -ENOMEM;
    t->member = m;
    int fd = open_of(t, pid, "io");
    if (fd < 0)
        return fd;
    t->member[t->n++] = (struct mr_process_member){pid, depth, fd};
    return 0;
}

int mr_process_tree_init(struct mr_process_tree *t, const char *root, pid_t pid)
{
    *t = (struct mr_process_tree){.root = root, .pid = pid};
    t->proc = opendir(root);
    if (!t->proc)
        return -errno;
    int r = add_member(t, pid, 1);
    if (r)
        mr_process_tree_fini(t);
    return r;
}

void mr_process_tree_fini(struct mr_process_tree *t)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->member[i].fd >= 0)
            close(t->member[i].fd);
    free(t->member);
    free(t->entry);
    if (t->proc)
        closedir(t->proc);
    *t = (struct mr_process_tree){0};
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct mr_process_entry *)a)->pid,
          y = ((const struct mr_process_entry *)b)->pid;
    return (x > y) - (x < y);
}

static int add_entry(struct mr_process_tree *t, pid_t pid, pid_t parent)
{
    struct mr_process_entry *e = mr_grown(t->entry, t->n_entries, &t->cap_entries, sizeof *e);
    if (!e)
        return -ENOMEM;
    t->entry = e;
    t->entry[t->n_entries++] = (struct mr_process_entry){pid, parent, pid == t->pid, 0};
    return 0;
}

/* Errors that say no more than that there is nothing to be read (any more). */
static int is_gone(int r)
{
    return r == -ENOENT || r == -ESRCH || r == -EACCES || r == -EPERM;
}

static int list_process(struct mr_process_tree *t, const char *name, struct mr_text *scratch)
{
    pid_t pid, parent;
    int fd = open_of(t, (pid_t)atoi(name), "stat");
    int r = fd < 0 ? fd : mr_proc_read(fd, scratch);
    if (fd >= 0)
        close(fd);
    if (r)
        return is_gone(r) ? 0 : r;
    return mr_process_stat_parse(scratch->buf, &pid, &parent) ? 0 : add_entry(t, pid, parent);
}

/* Every process and its parent, sorted. */
static int list_processes(struct mr_process_tree *t, struct mr_text *scratch)
{
    struct dirent *d;
    int r = 0;
    t->n_entries = 0;
    rewinddir(t->proc);
    while (!r && (errno = 0, d = readdir(t->proc)))
        if (d->d_name[0] >= '1' && d->d_name[0] <= '9')
            r = list_process(t, d->d_name, scratch);
    if (!r && errno)
        r = -errno;
    if (t->n_entries)
        qsort(t->entry, t->n_entries, sizeof *t->entry, by_pid);
    return r;
}

static struct mr_process_entry *entry_of(const struct mr_process_tree *t, pid_t pid)
{
    struct mr_process_entry key = {.pid = pid};
    return t->n_entries ? bsearch(&key, t->entry, t->n_entries, sizeof key, by_pid) : NULL;
}

/* Parents usually have smaller numbers, so that one pass finds nearly all. */
static void mark_descendants(struct mr_process_tree *t)
{
    for (int more = 1; more;) {
        more = 0;
        for (unsigned i = 0; i < t->n_entries; i++) {
            struct mr_process_entry *e = &t->entry[i], *parent;
            if (!e->depth && (parent = entry_of(t, e->parent)) && parent->depth) {
                e->depth = parent->depth + 1;
                more = 1;
            }
        }
    }
}

/* Insertion: they are nearly in order. */
static void sort_by_depth(struct mr_process_member *m, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        struct mr_process_member one = m[i];
        unsigned at = i;
        for (; at && m[at - 1].depth > one.depth; at--)
            m[at] = m[at - 1];
        m[at] = one;
    }
}

/* Drop members that are gone, add those that are new.  The root stays. */
static int walk(struct mr_process_tree *t, struct mr_text *scratch)
{
    unsigned kept = 1;
    int r = list_processes(t, scratch);
    if (r)
        return r;
    mark_descendants(t);
    for (unsigned i = 1; i < t->n; i++) {
        struct mr_process_member m = t->member[i];
        struct mr_process_entry *e = entry_of(t, m.pid);
        if (m.fd >= 0 && e && e->depth) {
            e->known = 1;
            m.depth = e->depth;
            t->member[kept++] = m;
        } else if (m.fd >= 0) {
            close(m.fd);
        }
    }
    t->n = kept;
    for (unsigned i = 0; i < t->n_entries; i++) {
        const struct mr_process_entry *e = &t->entry[i];
        int bad = e->depth > 1 && !e->known ? add_member(t, e->pid, e->depth) : 0;
        if (bad && !is_gone(bad))
            r = bad;
    }
    sort_by_depth(t->member, t->n);
    return r;
}

static int read_member(struct mr_process_member *m, struct mr_text *scratch,
                       struct mr_process_io *sum)
{
    struct mr_process_io io;
    int r = m->fd < 0 ? -ESRCH : mr_proc_read(m->fd, scratch);
    if (!r)
        r = mr_process_io_parse(scratch->buf, &io);
    if (r == -ESRCH && m->fd >= 0) { /* its number may go to another process now */
        close(m->fd);
        m->fd = -1;
    }
    for (unsigned i = 0; !r && i < MR_IO_KINDS; i++)
        sum->count[i] += io.count[i];
    return r;
}

int mr_process_tree_read(struct mr_process_tree *t, struct mr_text *scratch, uint64_t now_ns,
                         int walk_now, struct mr_process_io *out)
{
    struct mr_process_io sum = {0};
    if (walk_now || !t->walked || now_ns >= t->walk_at_ns) {
        uint64_t start = mr_clock_ns();
        int bad = walk(t, scratch);
        t->walk_at_ns = now_ns + PAUSE * (mr_clock_ns() - start);
        if (bad && !t->walked)
            return bad; /* who is found later would seem to be new */
        t->walked = 1;
    }
    for (unsigned i = 0; i < t->n; i++) {
        int r = read_member(&t->member[i], scratch, &sum);
        if (r && (i == 0 || !is_gone(r)))
            return r;
    }
    for (unsigned i = 0; i < MR_IO_KINDS; i++)
        if (sum.count[i] > t->most.count[i])
            t->most.count[i] = sum.count[i];
    *out = t->most;
    return 0;
}

unsigned mr_process_tree_size(const struct mr_process_tree *t)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->n; i++)
        n += t->member[i].fd >= 0;
    return n;
}
