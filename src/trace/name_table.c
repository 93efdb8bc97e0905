/* name_table.c - see name_table.h.  Open addressing; the table is never more than half full. */
#include "name_table.h"

#include "byte_hash.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

unsigned mr_name_add(struct mr_name_table *t, const char *name, unsigned full)
{
    char key[MR_NAME_BYTES];
    snprintf(key, sizeof key, "%s", name);
    unsigned n = atomic_load_explicit(&t->n, memory_order_relaxed);
    uint32_t at = mr_byte_hash(key, strlen(key)) % (2 * MR_MAX_NAMES);
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
