/* tempdir.h - a fresh folder for each test, and small files in it.
 *
 *     cmocka_unit_test_setup_teardown(a_test, tempdir_setup, tempdir_teardown)
 *
 * *state is the struct tempdir.  Helpers fail the test when they fail. */
#ifndef MR_TEST_TEMPDIR_H
#define MR_TEST_TEMPDIR_H

#include <stddef.h>

struct tempdir {
    char path[256];
    char name[4352]; /* of the last tempdir_path */
};

int tempdir_setup(void **state);
/* In memory if possible: for hundreds of runs with a dozen syncs each. */
int tempdir_setup_in_memory(void **state);
int tempdir_teardown(void **state);

/* The same anywhere: in folder `parent`. */
struct tempdir *tempdir_new(const char *parent);
void tempdir_free(struct tempdir *t);

/* "path/name", valid until the next call. */
const char *tempdir_path(struct tempdir *t, const char *name);
/* Make a file, and the folders above it; returns its path, valid until the next call. */
const char *tempdir_write(struct tempdir *t, const char *name, const void *bytes, size_t len);
const char *tempdir_text(struct tempdir *t, const char *name, const char *text);
/* Make a folder and those above it. */
const char *tempdir_mkdir(struct tempdir *t, const char *name);

/* How many entries a folder has. */
unsigned tempdir_count(const char *path);

/* Run `check(arg)` as a user who owns nothing here: at once when we are no root, else in a child
 * process with another user id.  0 when it returned 0. */
int as_stranger(int (*check)(void *arg), void *arg);

#endif
