/* values.h - option arguments as people type them: 64K, 10%, 2/8, window:1024, 1,2,4,8. */
#ifndef MR_VALUES_H
#define MR_VALUES_H

/* Each returns 0, or -1 when the text is not of that kind; *field is written only on success. */
int value_flag(const char *text, void *int_field);
int value_string(const char *text, void *string_field);
int value_unsigned(const char *text, void *unsigned_field); /* 0 .. 2^32 - 2 */
int value_positive(const char *text, void *unsigned_field); /* 1 .. 2^32 - 2 */
int value_u64(const char *text, void *u64_field);
int value_size(const char *text, void *u64_field); /* bytes, or with K, M, G, T (powers of 1024) */
int value_threads(const char *text, void *unsigned_list_field);
int value_shuffle(const char *text, void *shuffle_choice_field);
int value_shard(const char *text, void *shard_choice_field);
int value_budget(const char *text, void *error_budget_field);
/* The position of the text in a list like "skip|fail". */
int value_engine(const char *text, void *unsigned_field);
int value_map(const char *text, void *unsigned_field);
int value_on_error(const char *text, void *unsigned_field);

#endif
