/* name_table.h - names of phases, counters and marks as small numbers.
 *
 * Names are only ever added.  Adding locks; reading a name that was handed out does not. */
#ifndef MR_NAME_TABLE_H
#define MR_NAME_TABLE_H

#include <stdatomic.h>

#define MR_MAX_NAMES  4096
#define MR_NAME_BYTES 64

struct mr_name_table {
    atomic_uint n;
    char name[MR_MAX_NAMES][MR_NAME_BYTES];
    unsigned short
        place[2 * MR_MAX_NAMES]; /* hash -> number + 1; 0: free.  Under the owner's lock */
};

/* The number of `name`, added if it is new; with the owner's lock held.  `full` when there is no
 * room. */
unsigned mr_name_add(struct mr_name_table *t, const char *name, unsigned full);

#endif
