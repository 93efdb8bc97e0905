/* fields.h - JSON objects as structs: each member has one definition, a writer and a reader.
 *
 * A record is a list of fields, each with its kind and its name:
 *
 *     #define MR_FIELDS_tide(F) F(TEXT, place) F(REAL, height_m) F(LIST, each_height_m)
 *     MR_RECORD(tide)
 *
 * declares struct mr_tide with these members, and the functions
 *
 *     struct mr_json *mr_tide_json(const struct mr_tide *from);       a new object
 *     void mr_tide_put(struct mr_json *object, const struct mr_tide *from);
 *     struct mr_tide mr_tide_of(const struct mr_json *object);
 *
 * kind    member                    JSON
 * TEXT    const char *              string; NULL = null
 * FLAG    int                       true, false
 * REAL    double                    number; not finite = null
 * COUNT   double                    whole number; not finite = null
 * LIST    const struct mr_json *    array of numbers; NULL = null
 * PART    const struct mr_json *    any value, as a rule that of another record; NULL = null
 *
 * Writing takes values of LIST and PART.  Reading borrows them, and texts, from the object: a
 * member that is absent or of another kind reads as NULL, 0 or NaN. */
#ifndef MR_FIELDS_H
#define MR_FIELDS_H

#include "json.h"

enum mr_field_kind {
    MR_FIELD_TEXT,
    MR_FIELD_FLAG,
    MR_FIELD_REAL,
    MR_FIELD_COUNT,
    MR_FIELD_LIST,
    MR_FIELD_PART,
};

struct mr_result_field {
    const char *name;
    enum mr_field_kind kind;
    size_t at; /* of the member in its struct */
};

/* `fields` end with a row without a name. */
struct mr_json *mr_fields_json(const struct mr_result_field *fields, const void *from);
void mr_fields_put(const struct mr_result_field *fields, const void *from, struct mr_json *object);
void mr_fields_read(const struct mr_result_field *fields, const struct mr_json *object, void *to);

/* One field of an object, by MR_FIELD(): NaN, NULL, 0 when it is absent or of another kind. */
double mr_field_number(const struct mr_result_field *field, const struct mr_json *object);
const char *mr_field_text(const struct mr_result_field *field, const struct mr_json *object);
int mr_field_flag(const struct mr_result_field *field, const struct mr_json *object);
const struct mr_json *mr_field_list(const struct mr_result_field *field,
                                    const struct mr_json *object);

/* An array of numbers, for a LIST. */
struct mr_json *mr_number_list(const double *x, size_t n);

#define MR_MEMBER_TEXT  const char *
#define MR_MEMBER_FLAG  int
#define MR_MEMBER_REAL  double
#define MR_MEMBER_COUNT double
#define MR_MEMBER_LIST  const struct mr_json *
#define MR_MEMBER_PART  const struct mr_json *

#define MR_MEMBER(kind, name) MR_MEMBER_##kind name;
#define MR_ROW(kind, name)    {#name, MR_FIELD_##kind, offsetof(struct_of_row, name)},

/* clang counts inline functions of a .c file, too. */
#define MR_MAY_BE_UNUSED __attribute__((unused)) static inline

#define MR_RECORD(id)                                                                              \
    struct mr_##id {                                                                               \
        MR_FIELDS_##id(MR_MEMBER)                                                                  \
    };                                                                                             \
    static inline const struct mr_result_field *mr_##id##_fields(void)                             \
    {                                                                                              \
        typedef struct mr_##id struct_of_row;                                                      \
        static const struct mr_result_field rows[] = {MR_FIELDS_##id(MR_ROW){0}};                  \
        return rows;                                                                               \
    }                                                                                              \
    MR_MAY_BE_UNUSED struct mr_json *mr_##id##_json(const struct mr_##id *from)                    \
    {                                                                                              \
        return mr_fields_json(mr_##id##_fields(), from);                                           \
    }                                                                                              \
    MR_MAY_BE_UNUSED void mr_##id##_put(struct mr_json *object, const struct mr_##id *from)        \
    {                                                                                              \
        mr_fields_put(mr_##id##_fields(), from, object);                                           \
    }                                                                                              \
    MR_MAY_BE_UNUSED struct mr_##id mr_##id##_of(const struct mr_json *object)                     \
    {                                                                                              \
        struct mr_##id to;                                                                         \
        mr_fields_read(mr_##id##_fields(), object, &to);                                           \
        return to;                                                                                 \
    }

/* A field by the names of its record and its member, for a table of fields: MR_FIELD(tide, place).
 */
#define MR_FIELD(id, member)                                                                       \
    (&(const struct mr_result_field){#member,                                                      \
                                     _Generic(((struct mr_##id *)0)->member,                       \
                                     const char *: MR_FIELD_TEXT,                                  \
                                     int: MR_FIELD_FLAG,                                           \
                                     double: MR_FIELD_REAL,                                        \
                                     const struct mr_json *: MR_FIELD_PART),                       \
                                     offsetof(struct mr_##id, member)})

#endif
