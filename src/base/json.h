/* json.h - JSON values, built, written and read.  A thin face of jansson, which only base knows.
 *
 * A value that is put into an array or object is taken over by it; mr_json_free the root only.
 * Builders do not report failure: a member that finds no memory is left out. */
#ifndef MR_JSON_H
#define MR_JSON_H

#include <stddef.h>
#include <stdint.h>

struct mr_json;

struct mr_json *mr_json_object(void);
struct mr_json *mr_json_array(void);
struct mr_json *mr_json_string(const char *s); /* NULL becomes null */
struct mr_json *mr_json_int(int64_t v);
struct mr_json *mr_json_real(double v); /* not finite becomes null */
struct mr_json *mr_json_bool(int v);
struct mr_json *mr_json_null(void);

void mr_json_set(struct mr_json *object, const char *key, struct mr_json *value);
void mr_json_append(struct mr_json *array, struct mr_json *value);
void mr_json_free(struct mr_json *root);

/* Write indented text to a file descriptor; 0 or -errno. */
int mr_json_write(const struct mr_json *root, int fd);

/* Parse a whole text; NULL when it is not JSON, is not UTF-8, or has an object with two members of
 * one name. */
struct mr_json *mr_json_parse(const char *text, size_t len);
/* Borrowed member, NULL when absent.  `path` walks objects and arrays: "results.0.threads". */
const struct mr_json *mr_json_at(const struct mr_json *root, const char *path);
size_t mr_json_len(const struct mr_json *array);
double mr_json_number(const struct mr_json *v);    /* NaN when it is no number */
const char *mr_json_text(const struct mr_json *v); /* NULL when it is no string */
int mr_json_is_null(const struct mr_json *v);
int mr_json_is_object(const struct mr_json *v);
int mr_json_is_array(const struct mr_json *v);
/* 0, or -EINVAL when it is no whole number of 64 bits. */
int mr_json_integer(const struct mr_json *v, int64_t *out);
/* Borrowed, NULL when absent; for names with dots and long ones, where mr_json_at does not fit. */
const struct mr_json *mr_json_member(const struct mr_json *object, const char *key);
const struct mr_json *mr_json_item(const struct mr_json *array, size_t i);
/* Call for every member, in the order of the text; a result other than 0 ends it. */
int mr_json_each(const struct mr_json *object,
                 int (*each)(void *ctx, const char *key, const struct mr_json *value), void *ctx);

/* Is it valid UTF-8? */
int mr_json_is_utf8(const char *text);
int mr_json_is_true(const struct mr_json *v);
/* The value as indented text, to be freed by the caller; NULL when there is no memory. */
char *mr_json_format(const struct mr_json *v);
/* A copy, all the way down; NULL for NULL. */
struct mr_json *mr_json_copy(const struct mr_json *v);

#endif
