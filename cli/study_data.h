/* study_data.h - the images of a study: the user's own, or photos that are made for it.
 *
 * Nothing is made before study_data_make: until then there is a plan, which says how many photos
 * there will be, how long they take, and why there are fewer than a study wants. */
#ifndef MR_STUDY_DATA_H
#define MR_STUDY_DATA_H

#include <millrace/dataset.h>

#include "options.h"

#include <limits.h>

struct study_data {
    const char *path;        /* as results name it; NULL: not even a name */
    struct mr_dataset *data; /* NULL: not there, or not yet */
    int generated;           /* by us, now or earlier */
    uint64_t n_images;       /* that there are, or will be */
    uint64_t n_wanted;       /* generated: that a study of this kind wants */
    double seconds;          /* that making them takes, roughly; 0: they are there */
    struct mr_error err;     /* why there are none */
    char own_path[PATH_MAX];
};

/* Open what is there, or plan what has to be made in `dir`.  Exit status; said on stderr. */
int study_data_plan(struct study_data *d, const struct options *o, const char *dir);
/* Make what was planned, whole or not at all.  Exit status: 0, 1, or 130 when interrupted. */
int study_data_make(struct study_data *d, uint64_t seed);
void study_data_fini(struct study_data *d);

#endif
