/* study_basis.c - see study_basis.h.
 *
 * Kernel and program are recorded and not compared: an update of either would throw hours of
 * measurements away.  Advice is no measurement: that of older rules is not taken over.  The place
 * where results go is recorded only, since nothing is measured there unless experiments write
 * there, too. */
#include "study_basis.h"

#include "environment.h"
#include "points.h"

#include <millrace/api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *path, *name;
} compared[] = {
    {"mode", "the study is"},
    {"data", "the data are"},
    {"images", "images:"},
    {"measured_on.host", "the host is"},
    {"measured_on.cpu", "the processor is"},
    {"measured_on.cpus", "processors:"},
    {"measured_on.data_storage.file_system", "the data's file system is"},
    {"measured_on.data_storage.source", "the data's storage is"},
    {"measured_on.data_storage.device", "the data's device is"},
    {"measured_on.scratch_storage.file_system", "the file system written to is"},
    {"measured_on.scratch_storage.source", "the storage written to is"},
    {"measured_on.scratch_storage.device", "the device written to is"},
    {"measured_on.seed", "the seed is"},
    {"measured_on.runs", "runs:"},
};

static void copy_member(struct mr_json *to, const struct mr_json *from, const char *name)
{
    const struct mr_json *j = mr_json_at(from, name);
    if (j)
        mr_json_set(to, name, mr_json_copy(j));
}

struct mr_json *study_basis_json(const struct study_basis *b)
{
    static const char *const of_machine[] = {"host", "kernel", "architecture",
                                             "cpu",  "cpus",   "memory_bytes"};
    struct mr_json *root = mr_json_object(), *on = mr_json_object();
    struct mr_json *machine = mr_environment(NULL);
    mr_json_set(root, "mode", mr_json_string(b->mode));
    mr_json_set(root, "data", mr_json_string(b->data));
    mr_json_set(root, "images", mr_json_int((int64_t)b->n_images));
    for (unsigned i = 0; i < sizeof of_machine / sizeof *of_machine; i++)
        copy_member(on, machine, of_machine[i]);
    mr_json_free(machine);
    mr_json_set(on, "data_storage", mr_environment_storage(b->data_at));
    mr_json_set(on, "scratch_storage", mr_environment_storage(b->scratch_at));
    mr_json_set(on, "out_storage", mr_environment_storage(b->out_at));
    mr_json_set(on, "version", mr_json_string(mr_version()));
    mr_json_set(on, "seed", mr_json_int((int64_t)b->seed));
    mr_json_set(on, "runs", mr_json_int(b->runs));
    mr_json_set(root, "measured_on", on);
    return root;
}

void study_basis_stamp(const struct mr_json *basis, struct mr_json *result)
{
    static const char *const members[] = {"mode", "data", "images", "measured_on"};
    char now[32];
    for (unsigned i = 0; i < sizeof members / sizeof *members; i++)
        copy_member(result, basis, members[i]);
    mr_json_set(result, "measured_at", mr_json_string(mr_environment_now(now, sizeof now)));
}

/* A value as text, to be freed; what is not known is like what is not there. */
static char *value(const struct mr_json *j)
{
    char *text = j && !mr_json_is_null(j) ? mr_json_format(j) : strdup("unknown");
    if (text)
        text[strcspn(text, "\n")] = 0;
    return text;
}

/* A verdict without a status recommends what was only predicted to be better. */
static int has_old_advice(const struct mr_json *result)
{
    const char *experiment = mr_result_of(result).experiment;
    struct mr_verdict_point p = mr_verdict_point_of(mr_result_point(result, 0));
    return experiment && mr_experiment_of(experiment) == MR_EXPERIMENT_verdict &&
           !mr_recommendation_of(p.recommendation).status;
}

int study_basis_differs(const struct mr_json *basis, const struct mr_json *result, char *why,
                        size_t cap)
{
    int differs = 0;
    struct mr_result_origin then = mr_result_origin_of(result);
    if (!then.measured_at || !mr_json_is_object(then.measured_on)) {
        snprintf(why, cap, "it is not said when and where they were measured");
        return 1;
    }
    for (unsigned i = 0; !differs && i < sizeof compared / sizeof *compared; i++) {
        char *now = value(mr_json_at(basis, compared[i].path));
        char *before = value(mr_json_at(result, compared[i].path));
        differs = !now || !before || strcmp(now, before);
        if (differs)
            snprintf(why, cap, "%s %s, not %s", compared[i].name, now ? now : "-",
                     before ? before : "-");
        free(now);
        free(before);
    }
    if (!differs && has_old_advice(result)) {
        snprintf(why, cap, "the advice in it was made by rules that no longer hold");
        differs = 1;
    }
    return differs;
}
