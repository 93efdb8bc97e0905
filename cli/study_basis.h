/* study_basis.h - what a study's result rests on: machine, storages, data, and how it was asked
 * for.  A finished experiment is taken over by a later study only where all of that is the same,
 * and the verdict only with advice by today's rules. */
#ifndef MR_STUDY_BASIS_H
#define MR_STUDY_BASIS_H

#include "json.h"

#include <stddef.h>
#include <stdint.h>

struct study_basis {
    const char *mode; /* "quick" or "full" */
    const char *data; /* as the user named it */
    uint64_t n_images;
    uint64_t seed;
    unsigned runs;
    /* Paths that exist: of a sample, where experiments write, where results go. */
    const char *data_at, *scratch_at, *out_at;
};

/* The members of docs/json.md that say it; to be freed. */
struct mr_json *study_basis_json(const struct study_basis *b);
/* Copy them into a result that was just measured, with the time. */
void study_basis_stamp(const struct mr_json *basis, struct mr_json *result);
/* 1 when the result rests on something else, and what that is in words; else 0. */
int study_basis_differs(const struct mr_json *basis, const struct mr_json *result, char *why,
                        size_t cap);

#endif
