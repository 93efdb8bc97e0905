/* folder_tree.h - a folder with one sub-folder per class. */
#ifndef MR_FOLDER_TREE_H
#define MR_FOLDER_TREE_H

#include <millrace/api.h>

#include "entries.h"

/* Collect the samples below `path`; `out` must be initialised. */
int mr_folder_tree_load(const char *path, struct mr_entries *out, struct mr_error *err);

#endif
