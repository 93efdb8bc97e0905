/* ckpt_scan.h - which checkpoints a folder seems to hold, by the names of its files alone. */
#ifndef MR_CKPT_SCAN_H
#define MR_CKPT_SCAN_H

#include "ckpt_name.h"

struct mr_ckpt_list {
    struct mr_ckpt_item *items; /* oldest first: by generation, then by step */
    size_t n, cap;
};

/* Append the checkpoints in `dir`, those of `prefix` only if it is not NULL; a step that was saved
 * again may have two.  A relative `dir` begins at the folder `at`, or at the present one for
 * AT_FDCWD.  0 or -errno. */
int mr_ckpt_scan(int at, const char *dir, const char *prefix, struct mr_ckpt_list *out);
/* Insert in order, in place of one with the same prefix, step and format, whatever its stem.  0 or
 * -ENOMEM, and then the list is as it was. */
int mr_ckpt_list_add(struct mr_ckpt_list *l, const struct mr_ckpt_item *item);
void mr_ckpt_list_remove(struct mr_ckpt_list *l, size_t i);
/* Its place, or -1. */
ptrdiff_t mr_ckpt_list_find(const struct mr_ckpt_list *l, const char *prefix, uint64_t step,
                            enum mr_checkpoint_format format);
void mr_ckpt_list_fini(struct mr_ckpt_list *l);

/* Call `each` for every name in `dir`; a result other than 0 ends it and is returned. */
int mr_ckpt_each_name(int at, const char *dir, int (*each)(void *ctx, const char *name), void *ctx);

#endif
