/* stage.c - see stage.h. */
#include "stage.h"

const char *mr_stage_name(enum mr_stage stage)
{
    static const char *const names[MR_N_STAGES] = {
        [MR_STAGE_OPEN] = "open",
        [MR_STAGE_READ] = "read",
        [MR_STAGE_RECORD] = "record",
        [MR_STAGE_MAP] = "map",
    };
    return names[stage];
}
