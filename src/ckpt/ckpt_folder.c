/* ckpt_folder.c - see ckpt_folder.h.
 *
 * The heads of all formats are listed first.  The sizes of data and side files are added in a
 * second pass over the folder. */
#include "ckpt_folder.h"

#include "ckpt_format.h"
#include "ckpt_mark.h"
#include "errtext.h"
#include "grow.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int64_t mr_ckpt_step_of(const char *name)
{
    const char *dash = strrchr(name, '-');
    if (!dash || !isdigit((unsigned char)dash[1]) ||
        strspn(dash + 1, "0123456789") != strlen(dash + 1))
        return -1;
    errno = 0;
    long long v = strtoll(dash + 1, NULL, 10);
    return errno ? -1 : v;
}

static int add(struct mr_ckpt_folder *f, const char *dir, const char *name, size_t stem, int format,
               const struct stat *st)
{
    char path[PATH_MAX];
    const struct mr_ckpt_format *row = mr_ckpt_format_row((unsigned)format);
    struct mr_ckpt_found *grown = mr_grown(f->found, f->n, &f->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    f->found = grown;
    int n = snprintf(path, sizeof path, "%s/%.*s", dir, (int)stem, name);
    if (n < 0 || (size_t)n + 32 >= sizeof path)
        return -ENAMETOOLONG;
    struct mr_ckpt_found e = {.format = (enum mr_checkpoint_format)format,
                              .step = mr_ckpt_step_of(path),
                              .stem_len = (size_t)n,
                              .bytes = (uint64_t)st->st_size,
                              .mtime_s = (int64_t)st->st_mtime};
    if (row->shown_with_ending)
        strcat(path, row->ending);
    e.path = strdup(path);
    if (!e.path)
        return -ENOMEM;
    f->found[f->n++] = e;
    return 0;
}

/* Does `name` belong to it: a data file, or the side file? */
static int belongs(const struct mr_ckpt_found *e, size_t dir_len, const char *name)
{
    const struct mr_ckpt_format *row = mr_ckpt_format_row(e->format);
    size_t n = e->stem_len - dir_len - 1;
    if (strncmp(name, e->path + dir_len + 1, n))
        return 0;
    return (row->is_data && row->is_data(name + n)) ||
           (row->side_ending && !strcmp(name + n, row->side_ending));
}

/* A look at every name in the folder. */
struct look {
    struct mr_ckpt_folder *f;
    int at;
    const char *dir;
    int second;
    size_t first; /* of this folder */
};

static int look_at(void *ctx, const char *name)
{
    const struct look *l = ctx;
    struct stat st;
    char path[PATH_MAX + NAME_MAX + 2];
    size_t stem;
    int format = mr_ckpt_format_of(name, &stem);
    if (name[0] == '.' || (format >= 0) == l->second)
        return 0;
    snprintf(path, sizeof path, "%s/%s", l->dir, name);
    if (fstatat(l->at, path, &st, 0) || !S_ISREG(st.st_mode))
        return 0;
    if (!l->second)
        return add(l->f, l->dir, name, stem, format, &st);
    for (size_t i = l->first; i < l->f->n; i++)
        if (belongs(&l->f->found[i], strlen(l->dir), name))
            l->f->found[i].bytes += (uint64_t)st.st_size;
    return 0;
}

/* When a run saved it. */
static uint64_t generation_of(int at, const struct mr_ckpt_found *e)
{
    char path[PATH_MAX];
    struct mr_ckpt_view v;
    struct mr_ckpt_mark mark = {0};
    snprintf(path, sizeof path, "%.*s", (int)e->stem_len, e->path);
    if (e->step < 0)
        return 0;
    if (mr_ckpt_view_open(at, path, e->format, NULL, &v, NULL))
        return UINT64_MAX;
    int ours = mr_ckpt_mark_of(&v, (uint64_t)e->step, NULL, &mark, NULL);
    mr_ckpt_view_fini(&v);
    return ours < 0 ? UINT64_MAX : mark.generation;
}

static int by_age(const void *a, const void *b)
{
    const struct mr_ckpt_found *x = a, *y = b;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->mtime_s != y->mtime_s)
        return x->mtime_s < y->mtime_s ? -1 : 1;
    return strcmp(x->path, y->path);
}

int mr_ckpt_folder_scan(struct mr_ckpt_folder *f, int at, const char *dir, struct mr_error *err)
{
    struct look l = {.f = f, .at = at, .dir = dir, .first = f->n};
    int r = mr_ckpt_each_name(at, dir, look_at, &l);
    l.second = 1;
    if (!r)
        r = mr_ckpt_each_name(at, dir, look_at, &l);
    if (r)
        return mr_fail(err, r, "%s: %s", dir, mr_errno_text(r));
    for (size_t i = l.first; i < f->n; i++)
        f->found[i].generation = generation_of(at, &f->found[i]);
    if (f->n)
        qsort(f->found, f->n, sizeof *f->found, by_age);
    return 0;
}

void mr_ckpt_folder_fini(struct mr_ckpt_folder *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->found[i].path);
    free(f->found);
    memset(f, 0, sizeof *f);
}
