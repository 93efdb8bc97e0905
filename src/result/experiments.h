/* experiments.h - the experiments of a study, by name: the one list of them.
 *
 * An experiment NAME has
 *
 *     MR_FIELDS_NAME_point      points.h             what a point of its result holds
 *     mr_experiment_NAME        study/exp_NAME.c     how it is run, and how long it takes
 *     mr_section_NAME           report/view_NAME.c   how its result is shown and compared
 *
 * Study and report make their tables from this list, so the compiler or the linker names what an
 * experiment does not have.  docs/extending.md adds one, step by step. */
#ifndef MR_EXPERIMENTS_H
#define MR_EXPERIMENTS_H

#include "json.h"

/* In the order in which they run.  The verdict rests on the others. */
#define MR_EXPERIMENTS(ROW)                                                                        \
    ROW(baseline)                                                                                  \
    ROW(read)                                                                                      \
    ROW(decode)                                                                                    \
    ROW(overlap)                                                                                   \
    ROW(batch)                                                                                     \
    ROW(activity)                                                                                  \
    ROW(checkpoint)                                                                                \
    ROW(phases)                                                                                    \
    ROW(files)                                                                                     \
    ROW(verdict)

#define MR_EXPERIMENT_NUMBER(name) MR_EXPERIMENT_##name,
enum mr_experiment_number { MR_EXPERIMENTS(MR_EXPERIMENT_NUMBER) MR_N_EXPERIMENTS };
#undef MR_EXPERIMENT_NUMBER

/* "overlap", as --only takes it; NULL behind the last. */
const char *mr_experiment_name(unsigned number);
/* Its number, -1 when there is no experiment of that name. */
int mr_experiment_of(const char *name);

/* Result `name` of a list of results (struct mr_study_results), NULL when it is not there. */
const struct mr_json *mr_result_find(const struct mr_json *results, const char *name);
/* Points of a result, NULL when absent. */
size_t mr_result_n_points(const struct mr_json *result);
const struct mr_json *mr_result_point(const struct mr_json *result, size_t i);

#endif
