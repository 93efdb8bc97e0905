/* generate.h - make a data set of JPEG files that look, weigh and decode like a real one.
 *
 * Which files that are says generated_set.h; list.csv names them in the order of their numbers.
 *
 * Image i is a pure function of (preset, seed, number of classes, i): the same options give the
 * same bytes, whatever the number of threads, and a smaller set is the beginning of a larger one.
 * Classes look alike under every seed, so sets of two seeds can train and test one network. */
#ifndef MR_GENERATE_H
#define MR_GENERATE_H

#include "photo_model.h"

struct mr_generate_opts { /* zero means default */
    enum mr_preset preset;
    uint64_t count;   /* images; 0 = 16384 (imagenet), 9144 (caltech101) */
    uint32_t classes; /* at most `count`; 0 = 1000 or 102, or `count` if that is less */
    uint64_t seed;
    unsigned threads; /* 0 = one per online CPU */
    int again;        /* replace a set that is there */
    /* Called in the calling thread, now and then, while the last files are written back, and at
     * the end; nonzero = stop. */
    int (*progress)(void *arg, uint64_t n_done, uint64_t n_all);
    void *arg;
};

struct mr_generate_result {
    uint64_t n_images; /* written and listed */
    uint64_t n_bytes;  /* their files together */
};

/* Make the set in `dir`, which is created if need be (its parent must exist) and otherwise empty.
 * -EEXIST: it has a set, and `again` was not asked for.  -ENOTEMPTY: it has something else; that is
 * left alone, in any case.
 *
 * 0 when all images are there, and on the disk; -ECANCELED when `progress` asked to stop: the
 * images made so far are complete, and list.csv names just these.  After another error there is no
 * list.csv, and the file that could not be written is gone.  `result` may be NULL; it is filled in
 * both the first two cases. */
int mr_generate(const char *dir, const struct mr_generate_opts *opts,
                struct mr_generate_result *result, struct mr_error *err);

#endif
