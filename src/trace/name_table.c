/* name_table.c - see name_table.h.  Open addressing; the table is never more than half full. */
#include "name_table.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

unsigned mr_name_add(struct mr_name_table *t, const char *name, unsigned full)
{
    char key[MR_NAME_BYTES];
    snprintf(key, sizeof key, "%s", name);
    unsigned n = atomic_load_explicit(&t->n, memory_order_relaxed);
    uint32_t at = hash(key) % (2 * MR_MAX_NAMES);
    for (; t->place[at]; at = (at + 1) % (2 * MR_MAX_NAMES))
        if (!strcmp(t->name[t->place[at] - 1], key))
            return t->place[at] - 1u;
    if (n == MR_MAX_NAMES)
        return full;
    memcpy(t->name[n], key, sizeof key);
    t->place[at] = (unsigned short)(n + 1);
    atomic_store_explicit(&t->n, n + 1, memory_order_release);
    return n;
}
