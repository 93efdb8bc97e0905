/* study_files.h - a study's folder: its results in, its page and tables out. */
#ifndef MR_STUDY_FILES_H
#define MR_STUDY_FILES_H

#include "json.h"

#include <stddef.h>

/* DIR/name, or NULL when it is not there or no JSON. */
struct mr_json *study_read(const char *dir, const char *name);
/* Remove a folder of ours with all that is in it. */
void study_remove(const char *dir);
/* DIR/results.json, or NULL with a message on stderr. */
struct mr_json *study_load(const char *dir);
/* DIR/name, replaced only when all of it is written.  0, or -errno without a message. */
int study_write(const char *dir, const char *name, const char *text, size_t len);
/* A CSV file of a plot to the folder `dir`; fits as on_csv. */
int study_write_csv(void *dir, const char *id, const char *text, size_t len);
/* DIR/report.html and the CSV files.  Exit status; says what went wrong. */
int study_render(const char *dir, const struct mr_json *results);

#endif
