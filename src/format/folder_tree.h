/* folder_tree.h - a folder with one sub-folder per class. */
#ifndef MR_FOLDER_TREE_H
#define MR_FOLDER_TREE_H

#include <millrace/api.h>

#include "entries.h"

struct mr_store;

/* Collect the samples below `path` of the store; `out` must be initialised. */
int mr_folder_tree_load(struct mr_store *store, const char *path, struct mr_entries *out,
                        struct mr_error *err);

#endif
