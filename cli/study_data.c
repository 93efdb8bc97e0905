/* study_data.c - see study_data.h.
 *
 * Photos take at most half of the room that is free: experiments write there too, and a study must
 * not fill a disk.  A set that cannot be finished is removed, unless its folder was there before.
 */
#include "study_data.h"

#include "errtext.h"
#include "generate.h"
#include "input.h"
#include "output.h"
#include "say.h"
#include "study_files.h"
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define QUICK_IMAGES 2048
#define FULL_IMAGES  16384                 /* the study's */
#define FEWEST       64                    /* a batch */
#define IMAGE_BYTES  ((uint64_t)128 << 10) /* 110 KB on average, and what a file system adds */
#define IMAGE_CPU_S  0.012                 /* to paint and encode one */

static int refuse(struct study_data *d)
{
    say_to(stderr, "millrace study: %s\n", d->err.text);
    return 1;
}

/* How many photos there is room for; 0 with words when these are too few. */
static uint64_t that_fit(struct study_data *d, const char *dir)
{
    struct statvfs fs;
    if (statvfs(dir, &fs)) {
        mr_fail(&d->err, -errno, "%s: %s", dir, mr_errno_text(errno));
        return 0;
    }
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize, n = room / 2 / IMAGE_BYTES;
    if (n < FEWEST)
        mr_fail(&d->err, -ENOSPC,
                "%s has %llu MB free, and %u photos need %llu MB; name another folder by --out, "
                "or your own images by --data",
                dir, (unsigned long long)(room >> 20), FEWEST,
                (unsigned long long)(2 * FEWEST * IMAGE_BYTES >> 20));
    return n < FEWEST ? 0 : n;
}

static int open_list(struct study_data *d)
{
    char list[PATH_MAX + 16];
    snprintf(list, sizeof list, "%s/list.csv", d->path);
    if (mr_dataset_open(list, &d->data, &d->err))
        return refuse(d);
    d->n_images = mr_dataset_size(d->data);
    return 0;
}

static int plan_photos(struct study_data *d, const char *dir, int full)
{
    char list[PATH_MAX + 16];
    struct stat st;
    d->generated = 1;
    d->n_wanted = full ? FULL_IMAGES : QUICK_IMAGES;
    snprintf(d->own_path, sizeof d->own_path, "%s/%s", dir, full ? "data-full" : "data");
    d->path = d->own_path;
    snprintf(list, sizeof list, "%s/list.csv", d->path);
    if (!stat(list, &st))
        return open_list(d);
    uint64_t fit = that_fit(d, dir);
    if (!fit)
        return refuse(d);
    d->n_images = fit < d->n_wanted ? fit : d->n_wanted;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    d->seconds = IMAGE_CPU_S * (double)d->n_images / (cpus > 1 ? (double)cpus : 1);
    if (fit < d->n_wanted)
        say_to(stderr, "millrace study: %llu photo%s instead of %llu: %s has no room for more\n",
               (unsigned long long)d->n_images, plural(d->n_images),
               (unsigned long long)d->n_wanted, dir);
    return 0;
}

int study_data_plan(struct study_data *d, const struct options *o, const char *dir)
{
    if (!o->data && !o->list)
        return plan_photos(d, dir, o->full);
    int status = input_open_data(o, &d->data, &d->path);
    if (!status)
        d->n_images = mr_dataset_size(d->data);
    else if (d->path && !mr_dataset_open(d->path, &d->data, &d->err)) /* for the reason, in words */
        study_data_fini(d);
    return status;
}

static int on_generated(void *arg, uint64_t done, uint64_t all)
{
    (void)arg;
    progress_show("making photos", done, all);
    return terminal_interrupted(NULL);
}

int study_data_make(struct study_data *d, uint64_t seed)
{
    /* A set without a list, left by a study that was killed, is made anew. */
    struct mr_generate_opts g = {
        .count = d->n_images, .seed = seed, .again = 1, .progress = on_generated};
    if (d->data)
        return 0;
    int ours = !mkdir(d->path, 0777);
    int r = mr_generate(d->path, &g, NULL, &d->err);
    progress_clear();
    if (!r)
        return open_list(d);
    if (ours) {
        study_remove(d->path);
    } else if (r != -ENOTEMPTY) { /* without its list a set is not taken for a data set */
        char list[PATH_MAX + 16];
        snprintf(list, sizeof list, "%s/list.csv", d->path);
        unlink(list);
    }
    return r == -ECANCELED ? 130 : refuse(d);
}

void study_data_fini(struct study_data *d)
{
    mr_dataset_unref(d->data);
    d->data = NULL;
}
