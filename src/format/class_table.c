/* class_table.c - see class_table.h. */
#include "class_table.h"

#include "byte_hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the name is in the hash table, or the empty place for it. */
static uint32_t place_of(const struct mr_class_table *t, const char *name, size_t len)
{
    uint32_t at = mr_byte_hash(name, len) & (t->hash_size - 1);
    for (; t->hash[at]; at = (at + 1) & (t->hash_size - 1)) {
        const char *there = t->name[t->hash[at] - 1];
        if (!strncmp(there, name, len) && !there[len])
            break;
    }
    return at;
}

/* Room for twice as many; the hash table stays less than half full. */
static int grow(struct mr_class_table *t)
{
    uint32_t cap = t->cap ? 2 * t->cap : 64;
    char **name = realloc(t->name, cap * sizeof *name);
    if (!name)
        return -ENOMEM;
    t->name = name;
    uint32_t *hash = calloc(4 * (size_t)cap, sizeof *hash);
    if (!hash)
        return -ENOMEM;
    free(t->hash);
    t->hash = hash;
    t->hash_size = 4 * cap;
    t->cap = cap;
    for (uint32_t i = 0; i < t->n; i++)
        t->hash[place_of(t, t->name[i], strlen(t->name[i]))] = i + 1;
    return 0;
}

int64_t mr_class_table_add(struct mr_class_table *t, const char *name, size_t len)
{
    if (t->n == t->cap && (t->cap > UINT32_MAX / 16 || grow(t)))
        return -ENOMEM;
    uint32_t at = place_of(t, name, len);
    if (!t->hash[at]) {
        t->name[t->n] = strndup(name, len);
        if (!t->name[t->n])
            return -ENOMEM;
        t->hash[at] = ++t->n;
    }
    return t->hash[at] - 1;
}

static int by_name(const void *a, const void *b, void *names)
{
    const uint32_t *x = a, *y = b;
    return strcmp(((char **)names)[*x], ((char **)names)[*y]);
}

int mr_class_table_finish(struct mr_class_table *t, struct mr_entries *e)
{
    uint32_t *order = malloc(2 * (size_t)t->n * sizeof *order + 1), *label = order + t->n;
    int r = order ? 0 : -ENOMEM;
    for (uint32_t i = 0; !r && i < t->n; i++)
        order[i] = i;
    if (!r)
        qsort_r(order, t->n, sizeof *order, by_name, t->name);
    for (uint32_t i = 0; !r && i < t->n; i++) {
        label[order[i]] = i;
        r = mr_entries_add_class(e, t->name[order[i]]);
    }
    if (!r)
        mr_entries_relabel(e, label);
    free(order);
    return r;
}

void mr_class_table_fini(struct mr_class_table *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        free(t->name[i]);
    free(t->name);
    free(t->hash);
}
