/* class_table.h - names of classes as they come, numbered in alphabetical order at the end.
 *
 * Lifetime: {0} -> add* -> finish -> fini. */
#ifndef MR_CLASS_TABLE_H
#define MR_CLASS_TABLE_H

#include "entries.h"

struct mr_class_table { /* all zero = empty */
    char **name;
    uint32_t n, cap;
    uint32_t *hash; /* open addressing, number + 1; 0 = empty */
    uint32_t hash_size;
};

/* The number of a name so far: in the order of their coming.  -ENOMEM. */
int64_t mr_class_table_add(struct mr_class_table *t, const char *name, size_t len);
/* Give the entries, labelled with these numbers, the names and labels in alphabetical order, as
 * folders of these names would have them.  0 or -ENOMEM. */
int mr_class_table_finish(struct mr_class_table *t, struct mr_entries *e);
void mr_class_table_fini(struct mr_class_table *t);

#endif
