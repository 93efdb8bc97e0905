/* process_io.h - what a process and all its descendants read and wrote: /proc/PID/io. */
#ifndef MR_PROCESS_IO_H
#define MR_PROCESS_IO_H

#include "proc_text.h"

#include <dirent.h>
#include <sys/types.h>

enum {
    MR_IO_RCHAR, /* bytes asked for by read(), cached or not */
    MR_IO_WCHAR,
    MR_IO_SYSCR, /* calls */
    MR_IO_SYSCW,
    MR_IO_READ_BYTES,  /* bytes fetched from devices */
    MR_IO_WRITE_BYTES, /* bytes of pages made dirty, to be written */
    MR_IO_CANCELLED_BYTES,
    MR_IO_KINDS
};

struct mr_process_io {
    uint64_t count[MR_IO_KINDS];
};

struct mr_process_tree {
    const char *root; /* borrowed */
    pid_t pid;
    DIR *proc;
    struct mr_process_member *member; /* its row 0 is `pid` */
    unsigned n;
    size_t cap;
    struct mr_process_entry *entry; /* of the last walk */
    unsigned n_entries;
    size_t cap_entries;
    uint64_t walk_at_ns; /* not before */
    int walked;          /* with success */
    struct mr_process_io most;
};

/* Begin with {0}; fini accepts that and half-built ones.  `root` is borrowed. */
int mr_process_tree_init(struct mr_process_tree *t, const char *root, pid_t pid);
void mr_process_tree_fini(struct mr_process_tree *t);

/* The sum so far, of processes that have ended and been waited for by their parent too.  Looks for
 * new descendants when `walk` is set, and else no more often than is cheap.  *out is what was
 * reached; 0, or -errno when nothing could be read (-ESRCH: it has ended and was waited for). */
int mr_process_tree_read(struct mr_process_tree *t, struct mr_text *scratch, uint64_t now_ns,
                         int walk, struct mr_process_io *out);
/* Processes alive at the last walk. */
unsigned mr_process_tree_size(const struct mr_process_tree *t);

/* The text of one such file; 0 or -EBADMSG. */
int mr_process_io_parse(const char *text, struct mr_process_io *out);
/* Process and parent from the text of /proc/PID/stat; 0 or -EBADMSG. */
int mr_process_stat_parse(const char *text, pid_t *pid, pid_t *parent);

#endif
