/* csv_list.h - a list of samples as lines `path,label`. */
#ifndef MR_CSV_LIST_H
#define MR_CSV_LIST_H

#include <millrace/api.h>

#include "entries.h"

struct mr_store;

/* Read the list `path` of the store; errors name the line.  `out` must be initialised. */
int mr_csv_list_load(struct mr_store *store, const char *path, struct mr_entries *out,
                     struct mr_error *err);

/* The same from memory; relative paths get `base` ("" or ending in '/') in front. */
int mr_csv_list_parse(const char *text, size_t len, const char *base, const char *list_name,
                      struct mr_entries *out, struct mr_error *err);

#endif
