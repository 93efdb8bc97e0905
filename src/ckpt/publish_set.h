/* publish_set.h - the files of one checkpoint, published together: all of them, or none.
 *
 *   begin -> (create, write, finish | small)* -> commit -> end      undo after a failure
 *
 * Files get their names in the order in which they were made, so the one that makes a checkpoint
 * valid comes last.  Until then they are temporaries that a start after a crash recognises
 * (ckpt_clean.h).  One thread at a time. */
#ifndef MR_PUBLISH_SET_H
#define MR_PUBLISH_SET_H

#include "ckpt_name.h"
#include "out_dir.h"

struct mr_publish_file {
    char name[MR_CKPT_MAX_NAME], temp[MR_CKPT_MAX_NAME];
    int exists; /* the temporary */
};

struct mr_publish_set {
    struct mr_out_dir *dir;
    const char *way_out; /* what to do when there is no space, for the error's text */
    int replaces;        /* the one file's rename replaces an older checkpoint */
    struct mr_publish_file *files;
    size_t n, cap, n_renamed;
};

/* Borrows both. */
void mr_publish_begin(struct mr_publish_set *s, struct mr_out_dir *dir, const char *way_out);
/* The next file, under its temporary name, as mr_out_create does it.  -ENAMETOOLONG: there would
 * be no room for the temporary's. */
int mr_publish_create(struct mr_publish_set *s, const char *name, uint64_t len, int direct,
                      struct mr_out_file *f, struct mr_error *err);
/* It is written, or writing it failed with `r`: sync and close it. */
int mr_publish_finish(struct mr_publish_set *s, struct mr_out_file *f, int r, struct mr_error *err);
/* The next file, a small one: all three at once. */
int mr_publish_small(struct mr_publish_set *s, const char *name, const void *bytes, size_t len,
                     struct mr_error *err);
/* Give them their names.  0: it exists, and survives a power cut. */
int mr_publish_commit(struct mr_publish_set *s, struct mr_error *err);
/* After a failure: nothing of it is left, and what it was to replace is as it was.  Where that
 * fails too, temporaries remain that tell the next start what to remove. */
void mr_publish_undo(struct mr_publish_set *s);
/* Has the last file got its name? */
int mr_publish_is_named(const struct mr_publish_set *s);
void mr_publish_end(struct mr_publish_set *s);

/* Words for an error of a file in `dir`. */
int mr_publish_fail(const struct mr_publish_set *s, int code, const char *name,
                    struct mr_error *err);

/* A small file under the temporary name of `name`, which is returned in `temp`. */
int mr_publish_temp(struct mr_out_dir *dir, const char *name, const void *bytes, size_t len,
                    char temp[MR_CKPT_MAX_NAME]);
/* Remove a published checkpoint: `head` makes it valid, `rest` are its other files. */
int mr_publish_remove(struct mr_out_dir *dir, const char *head, char (*rest)[MR_CKPT_MAX_NAME],
                      size_t n_rest);
/* Write TensorFlow's file `checkpoint`; the last name is the latest. */
int mr_publish_state(struct mr_out_dir *dir, const char *const *names, size_t n);

#endif
