/* entries.h - the table of samples that a list or a folder yields: path and label of each.
 *
 * Lifetime: init -> (dir, add)* -> finish -> path, label -> fini. */
#ifndef MR_ENTRIES_H
#define MR_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

struct mr_entries {
    uint64_t n;
    uint32_t n_classes; /* largest label + 1 */
    char **class_names; /* [n_class_names], or NULL */
    uint32_t n_class_names;
    int unlabelled; /* a list without a single label */

    /* Private */
    struct mr_entry *entry;
    uint64_t cap;
    char *names; /* all names, each closed by NUL */
    uint64_t names_len, names_cap;
    char **dirs; /* each ends in '/' or is "" */
    uint32_t n_dirs, cap_dirs;
    uint32_t *dir_hash; /* open addressing, dir number + 1, 0 = empty */
    uint32_t dir_hash_size;
    uint32_t last_dir;
};

void mr_entries_init(struct mr_entries *e);
void mr_entries_fini(struct mr_entries *e);

/* The number of a directory (a prefix that ends in '/', or ""), or -ENOMEM. */
int64_t mr_entries_dir(struct mr_entries *e, const char *dir, size_t len);
/* Append a sample: `name` of `len` bytes in directory number `dir`.  0 or -ENOMEM. */
int mr_entries_add(struct mr_entries *e, uint32_t dir, const char *name, size_t len,
                   uint32_t label);
/* Append the name of the next class.  0 or -ENOMEM. */
int mr_entries_add_class(struct mr_entries *e, const char *name);
/* Label l becomes new_label[l], for all samples. */
void mr_entries_relabel(struct mr_entries *e, const uint32_t *new_label);
/* Sort samples first .. n-1 by name; they must be of one directory. */
void mr_entries_sort_from(struct mr_entries *e, uint64_t first);
/* Give spare capacity back and drop what only adding needs. */
void mr_entries_finish(struct mr_entries *e);

uint32_t mr_entries_label(const struct mr_entries *e, uint64_t i);
/* Length of the path written to buf, or -ENAMETOOLONG. */
int mr_entries_path(const struct mr_entries *e, uint64_t i, char *buf, size_t cap);
/* How many of the first bytes of their paths all samples have in common: a folder and its '/'. */
size_t mr_entries_common(const struct mr_entries *e);
/* Fetch into the CPU's cache what the path and label of sample `next` need, and of `later` what
 * that will need. */
void mr_entries_prefetch(const struct mr_entries *e, uint64_t next, uint64_t later);
size_t mr_entries_memory(const struct mr_entries *e);

#endif
