/* publish_set.h - the files of one checkpoint, published together.
 *
 *   begin -> (open, write, sync | small)* -> commit      abort afterwards in any case
 *
 * Files get their names in the order in which they were opened, so the one that makes a checkpoint
 * valid is opened last. */
#ifndef MR_PUBLISH_SET_H
#define MR_PUBLISH_SET_H

#include "durable.h"

struct mr_publish_set {
    char dir[PATH_MAX], prefix[PATH_MAX];
    struct mr_durable *files;
    size_t n, cap;
    int is_bundle;
};

/* For the checkpoint that is named as the last component of `like`, in `dir`, made if need be.
 * -EEXIST when its `head` (".index", ".safetensors") is there already. */
int mr_publish_set_begin(struct mr_publish_set *s, const char *dir, const char *like,
                         const char *head, struct mr_error *err);
/* PREFIX + end; borrowed until the next open. */
int mr_publish_set_open(struct mr_publish_set *s, const char *end, struct mr_durable **out,
                        struct mr_error *err);
/* A whole file, synced. */
int mr_publish_set_small(struct mr_publish_set *s, const char *end, const void *bytes, size_t len,
                         struct mr_error *err);
/* Give them their names, sync the folder, and for TensorFlow note it in `checkpoint`. */
int mr_publish_set_commit(struct mr_publish_set *s, struct mr_error *err);
/* Remove what has no name yet, free. */
void mr_publish_set_abort(struct mr_publish_set *s);

#endif
