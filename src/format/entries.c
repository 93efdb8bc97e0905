/* entries.c - ten million samples in little memory.
 *
 * A path is kept as a directory number and a name.  Directories repeat (a class has hundreds of
 * files), so each is stored once; names stand in one long string:
 *
 *     entry[i]   { name: offset into names, dir, label }     16 bytes
 *     names      "image_0001.jpg\0image_0002.jpg\0..."        length + 1
 *     dirs       "/data/train/cat/", "/data/train/dog/"       once each
 *
 * Lists are usually sorted by directory, so the last directory is tried before the hash table. */
#include "entries.h"

#include "draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mr_entry {
    uint64_t name;
    uint32_t dir, label;
};

void mr_entries_init(struct mr_entries *e)
{
    *e = (struct mr_entries){0};
}

void mr_entries_fini(struct mr_entries *e)
{
    for (uint32_t i = 0; i < e->n_dirs; i++)
        free(e->dirs[i]);
    for (uint32_t i = 0; i < e->n_class_names; i++)
        free(e->class_names[i]);
    free(e->dirs);
    free(e->class_names);
    free(e->dir_hash);
    free(e->entry);
    free(e->names);
    mr_entries_init(e);
}

static uint64_t hash_bytes(const char *s, size_t len)
{
    uint64_t h = len;
    for (; len >= 8; s += 8, len -= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = mr_mix(h ^ w);
    }
    uint64_t w = 0;
    memcpy(&w, s, len);
    return mr_mix(h ^ w);
}

static int same_dir(const struct mr_entries *e, uint32_t d, const char *dir, size_t len)
{
    return !strncmp(e->dirs[d], dir, len) && !e->dirs[d][len];
}

/* Double the hash table when it is half full. */
static int grow_hash(struct mr_entries *e)
{
    if (2 * (e->n_dirs + 1) <= e->dir_hash_size)
        return 0;
    uint32_t size = e->dir_hash_size ? 2 * e->dir_hash_size : 64;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return -ENOMEM;
    for (uint32_t d = 0; d < e->n_dirs; d++) {
        uint32_t at = (uint32_t)hash_bytes(e->dirs[d], strlen(e->dirs[d])) & (size - 1);
        while (table[at])
            at = (at + 1) & (size - 1);
        table[at] = d + 1;
    }
    free(e->dir_hash);
    e->dir_hash = table;
    e->dir_hash_size = size;
    return 0;
}

int64_t mr_entries_dir(struct mr_entries *e, const char *dir, size_t len)
{
    if (e->n_dirs && same_dir(e, e->last_dir, dir, len))
        return e->last_dir;
    if (grow_hash(e))
        return -ENOMEM;
    uint32_t at = (uint32_t)hash_bytes(dir, len) & (e->dir_hash_size - 1);
    for (; e->dir_hash[at]; at = (at + 1) & (e->dir_hash_size - 1))
        if (same_dir(e, e->dir_hash[at] - 1, dir, len))
            return e->last_dir = e->dir_hash[at] - 1;
    if (e->n_dirs == e->cap_dirs) {
        uint32_t cap = e->cap_dirs ? 2 * e->cap_dirs : 16;
        char **dirs = realloc(e->dirs, cap * sizeof *dirs);
        if (!dirs)
            return -ENOMEM;
        e->dirs = dirs;
        e->cap_dirs = cap;
    }
    char *copy = strndup(dir, len);
    if (!copy)
        return -ENOMEM;
    e->dirs[e->n_dirs] = copy;
    e->dir_hash[at] = e->n_dirs + 1;
    return e->last_dir = e->n_dirs++;
}

static int grow(void **array, uint64_t *cap, uint64_t need, size_t item)
{
    if (need <= *cap)
        return 0;
    uint64_t want = *cap + *cap / 2 + 1024;
    if (want < need)
        want = need;
    size_t bytes;
    if (__builtin_mul_overflow(want, item, &bytes))
        return -ENOMEM;
    void *p = realloc(*array, bytes);
    if (!p)
        return -ENOMEM;
    *array = p;
    *cap = want;
    return 0;
}

int mr_entries_add(struct mr_entries *e, uint32_t dir, const char *name, size_t len, uint32_t label)
{
    if (grow((void **)&e->entry, &e->cap, e->n + 1, sizeof *e->entry) ||
        grow((void **)&e->names, &e->names_cap, e->names_len + len + 1, 1))
        return -ENOMEM;
    e->entry[e->n++] = (struct mr_entry){e->names_len, dir, label};
    memcpy(e->names + e->names_len, name, len);
    e->names[e->names_len + len] = 0;
    e->names_len += len + 1;
    if (label >= e->n_classes)
        e->n_classes = label + 1;
    return 0;
}

int mr_entries_add_class(struct mr_entries *e, const char *name)
{
    char **names = realloc(e->class_names, (e->n_class_names + 1) * sizeof *names);
    if (!names)
        return -ENOMEM;
    e->class_names = names;
    names[e->n_class_names] = strdup(name);
    if (!names[e->n_class_names])
        return -ENOMEM;
    if (++e->n_class_names > e->n_classes)
        e->n_classes = e->n_class_names;
    return 0;
}

void mr_entries_relabel(struct mr_entries *e, const uint32_t *new_label)
{
    for (uint64_t i = 0; i < e->n; i++)
        e->entry[i].label = new_label[e->entry[i].label];
}

static int by_name(const void *a, const void *b, void *names)
{
    const struct mr_entry *x = a, *y = b;
    return strcmp((const char *)names + x->name, (const char *)names + y->name);
}

void mr_entries_sort_from(struct mr_entries *e, uint64_t first)
{
    if (e->n > first + 1)
        qsort_r(e->entry + first, e->n - first, sizeof *e->entry, by_name, e->names);
}

void mr_entries_finish(struct mr_entries *e)
{
    /* Shrinking cannot fail in a way that matters: the larger block stays valid. */
    struct mr_entry *entry = realloc(e->entry, (e->n + 1) * sizeof *entry);
    char *names = realloc(e->names, e->names_len + 1);
    if (entry) {
        e->entry = entry;
        e->cap = e->n + 1;
    }
    if (names) {
        e->names = names;
        e->names_cap = e->names_len + 1;
    }
    free(e->dir_hash);
    e->dir_hash = NULL;
    e->dir_hash_size = 0;
}

uint32_t mr_entries_label(const struct mr_entries *e, uint64_t i)
{
    return e->entry[i].label;
}

int mr_entries_path(const struct mr_entries *e, uint64_t i, char *buf, size_t cap)
{
    const char *dir = e->dirs[e->entry[i].dir], *name = e->names + e->entry[i].name;
    size_t dir_len = strlen(dir), name_len = strlen(name);
    if (dir_len + name_len + 1 > cap)
        return -ENAMETOOLONG;
    memcpy(buf, dir, dir_len);
    memcpy(buf + dir_len, name, name_len + 1);
    return (int)(dir_len + name_len);
}

size_t mr_entries_common(const struct mr_entries *e)
{
    const char *first = e->n_dirs ? e->dirs[0] : "";
    size_t n = strlen(first);
    for (uint32_t i = 1; i < e->n_dirs && n; i++) {
        const char *dir = e->dirs[i];
        size_t same = 0;
        while (same < n && dir[same] == first[same])
            same++;
        while (same && first[same - 1] != '/')
            same--;
        n = same;
    }
    return n;
}

void mr_entries_prefetch(const struct mr_entries *e, uint64_t next, uint64_t later)
{
    __builtin_prefetch(&e->entry[later]);
    __builtin_prefetch(e->names + e->entry[next].name);
}

size_t mr_entries_memory(const struct mr_entries *e)
{
    size_t bytes = e->cap * sizeof *e->entry + e->names_cap + e->cap_dirs * sizeof *e->dirs +
                   e->dir_hash_size * sizeof *e->dir_hash;
    for (uint32_t i = 0; i < e->n_dirs; i++)
        bytes += strlen(e->dirs[i]) + 1;
    for (uint32_t i = 0; i < e->n_class_names; i++)
        bytes += strlen(e->class_names[i]) + 1 + sizeof *e->class_names;
    return bytes;
}
