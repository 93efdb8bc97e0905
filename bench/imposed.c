/* imposed.c - see imposed.h. */
#include "imposed.h"

#include "device.h"

#include <millrace/pipeline.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Noreturn void imposed_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

struct mr_device *imposed_device(const char *name_or_lines)
{
    struct mr_device_profile p;
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    char text[512];
    if (!name_or_lines)
        return NULL;
    if (!strchr(name_or_lines, '\n')) {
        if (mr_device_open(name_or_lines, &d, &err))
            imposed_die(name_or_lines, err.text);
        return d;
    }
    int n = snprintf(text, sizeof text, "name = imposed\nwrite_mb_per_s = 100\n%s", name_or_lines);
    if (mr_device_profile_parse(text, (size_t)n, "profile", &p, &err) ||
        mr_device_new(&p, &d, &err))
        imposed_die("profile", err.text);
    return d;
}

static struct mr_dataset *make_photos(const char *parent, const char *name, enum mr_preset preset,
                                      unsigned n)
{
    struct mr_generate_opts o = {.preset = preset, .count = n, .classes = 4};
    struct mr_dataset *d = NULL;
    struct mr_error err = {0};
    char dir[4200];
    snprintf(dir, sizeof dir, "%s/%s", parent, name);
    if (mr_generate(dir, &o, NULL, &err) || mr_dataset_open(dir, &d, &err))
        imposed_die(dir, err.text);
    return d;
}

void imposed_photos_init(struct imposed_photos *p, const char *parent, unsigned n_small,
                         unsigned n_large)
{
    snprintf(p->dir, sizeof p->dir, "%s/imposed-XXXXXX", parent);
    if (!mkdtemp(p->dir))
        imposed_die(parent, "cannot make a folder there");
    p->small = make_photos(p->dir, "small", MR_PRESET_CALTECH101, n_small);
    p->large = make_photos(p->dir, "large", MR_PRESET_IMAGENET, n_large);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void imposed_photos_fini(struct imposed_photos *p)
{
    mr_dataset_unref(p->small);
    mr_dataset_unref(p->large);
    nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int imposed_uring_works(struct mr_dataset *data)
{
    struct mr_pipeline_opts o = {.engine = MR_ENGINE_URING};
    struct mr_pipeline *p;
    if (mr_pipeline_open(data, &o, &p, NULL))
        return 0;
    mr_pipeline_close(p);
    return 1;
}
