/* experiments.c - see experiments.h. */
#include "experiments.h"

#include "points.h"

#include <string.h>

#define NAME(name) #name,
static const char *const names[] = {MR_EXPERIMENTS(NAME)};

const char *mr_experiment_name(unsigned number)
{
    return number < MR_N_EXPERIMENTS ? names[number] : NULL;
}

int mr_experiment_of(const char *name)
{
    for (int i = 0; i < MR_N_EXPERIMENTS; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

const struct mr_json *mr_result_find(const struct mr_json *results, const char *name)
{
    for (size_t i = 0; mr_json_is_array(results) && i < mr_json_len(results); i++) {
        const struct mr_json *result = mr_json_item(results, i);
        const char *experiment = mr_field_text(MR_FIELD(result, experiment), result);
        if (experiment && !strcmp(experiment, name))
            return result;
    }
    return NULL;
}

static const struct mr_json *points_of(const struct mr_json *result)
{
    return mr_field_list(MR_FIELD(result, points), result);
}

size_t mr_result_n_points(const struct mr_json *result)
{
    const struct mr_json *points = points_of(result);
    return points ? mr_json_len(points) : 0;
}

const struct mr_json *mr_result_point(const struct mr_json *result, size_t i)
{
    const struct mr_json *points = points_of(result);
    return points && i < mr_json_len(points) ? mr_json_item(points, i) : NULL;
}
