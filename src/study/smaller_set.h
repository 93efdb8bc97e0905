/* smaller_set.h - some images of a data set, stored as small as training allows.
 *
 * Images from all over the data set become JPEG files with a given shorter side; those
 * that are no larger already, or would need more bytes, stay as they are.  They lie in a folder of
 * their own, which goes with the set. */
#ifndef MR_SMALLER_SET_H
#define MR_SMALLER_SET_H

#include <millrace/dataset.h>

struct mr_scratch;

#define MR_SMALLER_QUALITY 90 /* of JPEG, libjpeg's scale */

struct mr_smaller_opts {
    const struct mr_dataset *data; /* borrows */
    unsigned side;                 /* that the shorter side of an image is to have */
    const char *scratch;           /* a folder, in which another one is made */
    int of_its_own; /* as many files as the data set has, up to 2,048: images are written several
                     * times, so that each read is one from the storage; else every image once */
    double box_s;   /* for making images smaller; a few are, in any case */
    int (*should_stop)(void *ctx);
    void *ctx;
};

struct mr_smaller_set {
    struct mr_dataset *data; /* NULL: most images are about as small already */
    struct mr_scratch *folder;
    unsigned n_looked_at, n_broken;   /* files that were opened, and that are no image */
    unsigned n_larger;                /* images that are clearly larger than `side` */
    unsigned shorter_side;            /* of half of the images it is less, of half more */
    unsigned n_images, n_files;       /* that were made smaller, or stayed; written */
    double bytes_before, bytes_after; /* an image, on average */
};

/* 0, -ECANCELED, or -errno with words: no room, for instance.  Nothing is left behind then. */
int mr_smaller_set_make(const struct mr_smaller_opts *o, struct mr_smaller_set *out,
                        struct mr_error *err);
/* Remove the files. */
void mr_smaller_set_fini(struct mr_smaller_set *s);

#endif
