/* ckpt_scan.c - see ckpt_scan.h.  Lists are short (what is kept), so places are found by walking.
 */
#include "ckpt_scan.h"

#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mr_ckpt_each_name(int at, const char *dir, int (*each)(void *ctx, const char *name), void *ctx)
{
    int fd, r = 0;
    do
        fd = openat(at, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    while (!r) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e) {
            r = -errno;
            break;
        }
        r = each(ctx, e->d_name);
    }
    closedir(d);
    return r;
}

static int order(const struct mr_ckpt_item *a, const struct mr_ckpt_item *b)
{
    if (a->mark.generation != b->mark.generation)
        return a->mark.generation < b->mark.generation ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    int r = strcmp(a->prefix, b->prefix);
    if (!r)
        r = (int)a->format - (int)b->format;
    return r ? r : a->resaved - b->resaved;
}

static int make_room(struct mr_ckpt_list *l)
{
    struct mr_ckpt_item *grown = mr_grown(l->items, l->n, &l->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    l->items = grown;
    return 0;
}

/* In its place, beside one of another stem. */
static int insert(struct mr_ckpt_list *l, const struct mr_ckpt_item *item)
{
    size_t at = l->n;
    if (make_room(l))
        return -ENOMEM;
    while (at && order(&l->items[at - 1], item) > 0)
        at--;
    memmove(l->items + at + 1, l->items + at, (l->n - at) * sizeof *l->items);
    l->items[at] = *item;
    l->n++;
    return 0;
}

struct scan {
    const char *prefix;
    struct mr_ckpt_list *out;
};

static int look_at(void *ctx, const char *name)
{
    struct scan *s = ctx;
    struct mr_ckpt_item item;
    if (!mr_ckpt_name_parse(name, &item) || (s->prefix && strcmp(s->prefix, item.prefix)))
        return 0;
    return insert(s->out, &item);
}

int mr_ckpt_scan(int at, const char *dir, const char *prefix, struct mr_ckpt_list *out)
{
    return mr_ckpt_each_name(at, dir, look_at, &(struct scan){prefix, out});
}

int mr_ckpt_list_add(struct mr_ckpt_list *l, const struct mr_ckpt_item *item)
{
    if (make_room(l))
        return -ENOMEM;
    ptrdiff_t same = mr_ckpt_list_find(l, item->prefix, item->step, item->format);
    if (same >= 0)
        mr_ckpt_list_remove(l, (size_t)same);
    return insert(l, item);
}

void mr_ckpt_list_remove(struct mr_ckpt_list *l, size_t i)
{
    memmove(l->items + i, l->items + i + 1, (l->n - i - 1) * sizeof *l->items);
    l->n--;
}

ptrdiff_t mr_ckpt_list_find(const struct mr_ckpt_list *l, const char *prefix, uint64_t step,
                            enum mr_checkpoint_format format)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].step == step && l->items[i].format == format &&
            !strcmp(l->items[i].prefix, prefix))
            return (ptrdiff_t)i;
    return -1;
}

void mr_ckpt_list_fini(struct mr_ckpt_list *l)
{
    free(l->items);
    *l = (struct mr_ckpt_list){0};
}
