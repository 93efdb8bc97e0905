/* blob_table.c - ten million names in little memory.
 *
 * A name is kept as a directory number and what follows.  Directories repeat (a class has hundreds
 * of files), so each is stored once; names stand in one long string:
 *
 *     blob[i]    { name: offset into names, dir }             9 bytes
 *     names      "image_0001.jpg\0image_0002.jpg\0..."        length + 1
 *     dirs       "/data/train/cat/", "/data/train/dog/"       once each
 *     sizes[i]   what the last reader saw                     4 bytes
 *
 * Lists are usually sorted by directory, so the last directory is tried before the hash table. */
#include "blob_table.h"

#include "draw.h"
#include "grow.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Packed: ten million of them are to be small. */
struct mr_blob {
    uint32_t name, dir;
    uint8_t name_high; /* bits 32 .. 39 of the offset */
} __attribute__((packed));

#define MOST_NAMES ((uint64_t)1 << 40) /* bytes */

static uint64_t name_at(const struct mr_blob *b)
{
    return (uint64_t)b->name_high << 32 | b->name;
}

void mr_blob_table_fini(struct mr_blob_table *t)
{
    for (uint32_t i = 0; i < t->n_dirs; i++)
        free(t->dirs[i]);
    free(t->dirs);
    free(t->dir_hash);
    free(t->blob);
    free(t->names);
    free(t->sizes);
    *t = (struct mr_blob_table){0};
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

static int same_dir(const struct mr_blob_table *t, uint32_t d, const char *dir, size_t len)
{
    return !strncmp(t->dirs[d], dir, len) && !t->dirs[d][len];
}

/* Double the hash table when it is half full. */
static int grow_hash(struct mr_blob_table *t)
{
    if (2 * (t->n_dirs + 1) <= t->dir_hash_size)
        return 0;
    uint32_t size = t->dir_hash_size ? 2 * t->dir_hash_size : 64;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table)
        return -ENOMEM;
    for (uint32_t d = 0; d < t->n_dirs; d++) {
        uint32_t at = (uint32_t)hash_bytes(t->dirs[d], strlen(t->dirs[d])) & (size - 1);
        while (table[at])
            at = (at + 1) & (size - 1);
        table[at] = d + 1;
    }
    free(t->dir_hash);
    t->dir_hash = table;
    t->dir_hash_size = size;
    return 0;
}

int64_t mr_blob_table_dir(struct mr_blob_table *t, const char *dir, size_t len)
{
    if (t->n_dirs && same_dir(t, t->last_dir, dir, len))
        return t->last_dir;
    if (grow_hash(t))
        return -ENOMEM;
    uint32_t at = (uint32_t)hash_bytes(dir, len) & (t->dir_hash_size - 1);
    for (; t->dir_hash[at]; at = (at + 1) & (t->dir_hash_size - 1))
        if (same_dir(t, t->dir_hash[at] - 1, dir, len))
            return t->last_dir = t->dir_hash[at] - 1;
    if (t->n_dirs == t->cap_dirs) {
        uint32_t cap = t->cap_dirs ? 2 * t->cap_dirs : 16;
        char **dirs = realloc(t->dirs, cap * sizeof *dirs);
        if (!dirs)
            return -ENOMEM;
        t->dirs = dirs;
        t->cap_dirs = cap;
    }
    char *copy = strndup(dir, len);
    if (!copy)
        return -ENOMEM;
    t->dirs[t->n_dirs] = copy;
    t->dir_hash[at] = t->n_dirs + 1;
    return t->last_dir = t->n_dirs++;
}

int mr_blob_table_add(struct mr_blob_table *t, uint32_t dir, const char *name, size_t len)
{
    if (t->names_len >= MOST_NAMES ||
        mr_grow_to((void **)&t->blob, &t->cap, t->n + 1, sizeof *t->blob) ||
        mr_grow_to((void **)&t->names, &t->names_cap, t->names_len + len + 1, 1))
        return -ENOMEM;
    t->blob[t->n++] = (struct mr_blob){(uint32_t)t->names_len, dir, (uint8_t)(t->names_len >> 32)};
    memcpy(t->names + t->names_len, name, len);
    t->names[t->names_len + len] = 0;
    t->names_len += len + 1;
    return 0;
}

static int by_name(const void *a, const void *b, void *names)
{
    return strcmp((const char *)names + name_at(a), (const char *)names + name_at(b));
}

void mr_blob_table_sort_from(struct mr_blob_table *t, uint64_t first)
{
    if (t->n > first + 1)
        qsort_r(t->blob + first, t->n - first, sizeof *t->blob, by_name, t->names);
}

int mr_blob_table_finish(struct mr_blob_table *t)
{
    /* Shrinking cannot fail in a way that matters: the larger block stays valid. */
    struct mr_blob *blob = realloc(t->blob, (t->n + 1) * sizeof *blob);
    char *names = realloc(t->names, t->names_len + 1);
    if (blob) {
        t->blob = blob;
        t->cap = t->n + 1;
    }
    if (names) {
        t->names = names;
        t->names_cap = t->names_len + 1;
    }
    free(t->dir_hash);
    t->dir_hash = NULL;
    t->dir_hash_size = 0;
    t->sizes = calloc(t->n + 1, sizeof *t->sizes);
    return t->sizes ? 0 : -ENOMEM;
}

int mr_blob_table_name(const struct mr_blob_table *t, uint64_t i, char *buf, size_t cap)
{
    const char *dir = t->dirs[t->blob[i].dir], *name = t->names + name_at(&t->blob[i]);
    size_t dir_len = strlen(dir), name_len = strlen(name);
    if (dir_len + name_len + 1 > cap)
        return -ENAMETOOLONG;
    memcpy(buf, dir, dir_len);
    memcpy(buf + dir_len, name, name_len + 1);
    return (int)(dir_len + name_len);
}

size_t mr_blob_table_common(const struct mr_blob_table *t)
{
    const char *first = t->n_dirs ? t->dirs[0] : "";
    size_t n = strlen(first);
    for (uint32_t i = 1; i < t->n_dirs && n; i++) {
        const char *dir = t->dirs[i];
        size_t same = 0;
        while (same < n && dir[same] == first[same])
            same++;
        while (same && first[same - 1] != '/')
            same--;
        n = same;
    }
    return n;
}

void mr_blob_table_prefetch(const struct mr_blob_table *t, uint64_t next, uint64_t later)
{
    __builtin_prefetch(&t->blob[later]);
    __builtin_prefetch((const void *)&t->sizes[later]);
    __builtin_prefetch(t->names + name_at(&t->blob[next]));
}

size_t mr_blob_table_known(const struct mr_blob_table *t, uint64_t i)
{
    return atomic_load_explicit(&t->sizes[i], memory_order_relaxed);
}

void mr_blob_table_know(struct mr_blob_table *t, uint64_t i, size_t bytes)
{
    if (bytes <= UINT_MAX)
        atomic_store_explicit(&t->sizes[i], (unsigned)bytes, memory_order_relaxed);
}

size_t mr_blob_table_memory(const struct mr_blob_table *t)
{
    size_t bytes = t->cap * sizeof *t->blob + t->names_cap + t->cap_dirs * sizeof *t->dirs +
                   t->dir_hash_size * sizeof *t->dir_hash +
                   (t->sizes ? t->n * sizeof *t->sizes : 0);
    for (uint32_t i = 0; i < t->n_dirs; i++)
        bytes += strlen(t->dirs[i]) + 1;
    return bytes;
}
