/* imposed.h - what the matrices of imposed bottlenecks share: photos, devices made of a few lines,
 * a folder that is removed.  Whatever fails ends the program with words. */
#ifndef IMPOSED_H
#define IMPOSED_H

#include <millrace/dataset.h>
#include <millrace/store.h>

#include "generate.h"

/* Lines of a profile, behind its name and what it writes. */
#define IMPOSED_WIDE    "read_mb_per_s = 5000\n"
#define IMPOSED_NARROW  "read_mb_per_s = 2\n"
#define IMPOSED_FAR     "read_mb_per_s = 5000\nread_latency_us = 20000\n"
#define IMPOSED_SEEKS   "read_mb_per_s = 200\nseek_us = 8000\n"
#define IMPOSED_OPENS   "read_mb_per_s = 5000\nmetadata_us = 10000\nmetadata_parallel = 1\n"
#define IMPOSED_SORTED  "read_mb_per_s = 200\nseek_us = 12000\nseek_shrink = 0.4\nqueue_depth = 8\n"
#define IMPOSED_NOT_ALL "read_mb_per_s = 100\n"
#define IMPOSED_20      "read_mb_per_s = 20\n"

struct imposed_photos {
    char dir[4096];
    struct mr_dataset *small, *large; /* some 14 KB a file, and 110 */
};

_Noreturn void imposed_die(const char *what, const char *why);
/* Make both sets in a new folder in `parent`. */
void imposed_photos_init(struct imposed_photos *p, const char *parent, unsigned n_small,
                         unsigned n_large);
void imposed_photos_fini(struct imposed_photos *p);
/* A built-in profile's name, or lines; NULL stays NULL: the storage as it is. */
struct mr_device *imposed_device(const char *name_or_lines);
int imposed_uring_works(struct mr_dataset *data);

#endif
