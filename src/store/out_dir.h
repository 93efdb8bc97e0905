/* out_dir.h - a folder whose files are made durable in an order that the caller decides.
 *
 * Every change goes through one small set of operations.  Each of them can be charged to an
 * emulated device, recorded (tests replay what a power cut might leave) and made to fail.
 * Names are relative to the folder and hold no '/'.
 *
 * Lifetime: open -> operations -> close.  Any thread, any number at once.
 * Errors:   0 or -errno; -EINTR is retried by every operation, short writes are continued.  Nothing
 *           else is: an operation that failed has failed.  -EBUSY: the folder has another owner
 * now, and nothing is created, renamed or removed.  A quota that is used up is -ENOSPC. */
#ifndef MR_OUT_DIR_H
#define MR_OUT_DIR_H

#include "lease.h"

#include <millrace/api.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct mr_device;

enum mr_out_kind {
    MR_OUT_CREATE,   /* name: an empty file that was not there */
    MR_OUT_ALLOCATE, /* name, len: it has that length, zero where not written */
    MR_OUT_WRITE,    /* name, offset, len, data */
    MR_OUT_TRUNCATE, /* name, len */
    MR_OUT_SYNC,     /* name: its bytes and its size */
    MR_OUT_RENAME,   /* name, to */
    MR_OUT_UNLINK,   /* name */
    MR_OUT_SYNC_DIR, /* the folder: creations, renames and removals */
};

/* One operation.  Strings and data are valid during the call. */
struct mr_out_op {
    enum mr_out_kind kind;
    unsigned tag; /* of the folder */
    const char *name, *to;
    uint64_t offset, len;
    const void *data;
};

/* For tests.  Called by whichever thread makes the operation. */
struct mr_out_hook {
    /* Before it is made; a negative result is its result, and it is not made.  May be NULL. */
    int (*before)(void *ctx, const struct mr_out_op *op);
    /* After it was made with success.  May be NULL. */
    void (*after)(void *ctx, const struct mr_out_op *op);
    void *ctx;
};

struct mr_out_dir;

struct mr_out_opts {
    struct mr_device *device;       /* borrowed; NULL = the real storage */
    const struct mr_out_hook *hook; /* borrowed; NULL = none */
    unsigned tag;                   /* handed to the hook */
    struct mr_lease_opts lease;
};

/* A file that is being written; the caller's memory. */
struct mr_out_file {
    struct mr_out_dir *dir;
    int fd;            /* -1: not open */
    atomic_int direct; /* written around the page cache; 0 after a write that was refused that */
    uint64_t inode;
    atomic_uint_fast64_t charged; /* bytes that the emulated device was told of */
    char name[256];
};

/* Open `path`, made with its parents if it is missing, and own it (lease.h): -EBUSY when another
 * process, here or on another host, or another mr_out_dir writes there. */
int mr_out_dir_open(const char *path, const struct mr_out_opts *opts, struct mr_out_dir **out,
                    struct mr_error *err);
/* NULL is a no-op. */
void mr_out_dir_close(struct mr_out_dir *d);
/* For words only: files are named relative to the descriptor, which stays valid until close, so
 * that chdir and renamed folders change nothing. */
const char *mr_out_dir_path(const struct mr_out_dir *d);
int mr_out_dir_fd(const struct mr_out_dir *d);
/* Of the lease: temporaries of two owners never have the same name. */
uint32_t mr_out_dir_token(const struct mr_out_dir *d);

/* Create a file and reserve `len` bytes: -ENOSPC comes here and not in the middle.  With `direct`
 * it is written around the page cache where the file system can, and writes are then multiples of
 * 4096 at such offsets from such addresses.  After a failure nothing is left of it. */
int mr_out_create(struct mr_out_dir *d, const char *name, uint64_t len, int direct,
                  struct mr_out_file *f);
int mr_out_write(struct mr_out_file *f, const void *data, size_t len, uint64_t offset);
int mr_out_truncate(struct mr_out_file *f, uint64_t len);
/* On stable storage when it returns 0; its pages have left the page cache. */
int mr_out_sync(struct mr_out_file *f);
/* Closes only; the file stays. */
void mr_out_close(struct mr_out_file *f);

/* The whole life of a small file: create, write, sync, close.  Removed after a failure. */
int mr_out_small_file(struct mr_out_dir *d, const char *name, const void *data, size_t len);

int mr_out_rename(struct mr_out_dir *d, const char *name, const char *to);
/* 0 also when it is not there. */
int mr_out_unlink(struct mr_out_dir *d, const char *name);
int mr_out_sync_dir(struct mr_out_dir *d);
/* 1 or 0, or -errno. */
int mr_out_exists(struct mr_out_dir *d, const char *name);

#endif
