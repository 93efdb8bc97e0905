/* fields.c - see fields.h: one loop over a record's fields writes it, one reads it. */
#include "fields.h"

#include <math.h>

static struct mr_json *count_json(double x)
{
    return isfinite(x) ? mr_json_int((int64_t)x) : mr_json_null();
}

/* A LIST or PART; the caller of the writer has given it away. */
static struct mr_json *taken(const struct mr_json *value)
{
    return value ? (struct mr_json *)value : mr_json_null();
}

static struct mr_json *value_json(const struct mr_result_field *f, const void *from)
{
    const void *member = (const char *)from + f->at;
    switch (f->kind) {
    case MR_FIELD_TEXT:
        return mr_json_string(*(const char *const *)member);
    case MR_FIELD_FLAG:
        return mr_json_bool(*(const int *)member);
    case MR_FIELD_REAL:
        return mr_json_real(*(const double *)member);
    case MR_FIELD_COUNT:
        return count_json(*(const double *)member);
    case MR_FIELD_LIST:
    case MR_FIELD_PART:
        break;
    }
    return taken(*(const struct mr_json *const *)member);
}

void mr_fields_put(const struct mr_result_field *fields, const void *from, struct mr_json *object)
{
    for (const struct mr_result_field *f = fields; f->name; f++)
        mr_json_set(object, f->name, value_json(f, from));
}

struct mr_json *mr_fields_json(const struct mr_result_field *fields, const void *from)
{
    struct mr_json *object = mr_json_object();
    mr_fields_put(fields, from, object);
    return object;
}

static const struct mr_json *member_of(const struct mr_result_field *field,
                                       const struct mr_json *object)
{
    return mr_json_is_object(object) ? mr_json_member(object, field->name) : NULL;
}

double mr_field_number(const struct mr_result_field *field, const struct mr_json *object)
{
    const struct mr_json *j = member_of(field, object);
    return j ? mr_json_number(j) : NAN;
}

const char *mr_field_text(const struct mr_result_field *field, const struct mr_json *object)
{
    const struct mr_json *j = member_of(field, object);
    return j ? mr_json_text(j) : NULL;
}

int mr_field_flag(const struct mr_result_field *field, const struct mr_json *object)
{
    const struct mr_json *j = member_of(field, object);
    return j && mr_json_is_true(j);
}

const struct mr_json *mr_field_list(const struct mr_result_field *field,
                                    const struct mr_json *object)
{
    const struct mr_json *j = member_of(field, object);
    return mr_json_is_array(j) ? j : NULL;
}

void mr_fields_read(const struct mr_result_field *fields, const struct mr_json *object, void *to)
{
    for (const struct mr_result_field *f = fields; f->name; f++) {
        void *member = (char *)to + f->at;
        const struct mr_json *j = member_of(f, object);
        switch (f->kind) {
        case MR_FIELD_TEXT:
            *(const char **)member = mr_field_text(f, object);
            break;
        case MR_FIELD_FLAG:
            *(int *)member = mr_field_flag(f, object);
            break;
        case MR_FIELD_REAL:
        case MR_FIELD_COUNT:
            *(double *)member = mr_field_number(f, object);
            break;
        case MR_FIELD_LIST:
            *(const struct mr_json **)member = mr_field_list(f, object);
            break;
        case MR_FIELD_PART:
            *(const struct mr_json **)member = mr_json_is_null(j) ? NULL : j;
            break;
        }
    }
}

struct mr_json *mr_number_list(const double *x, size_t n)
{
    struct mr_json *list = mr_json_array();
    for (size_t i = 0; i < n; i++)
        mr_json_append(list, mr_json_real(x[i]));
    return list;
}
