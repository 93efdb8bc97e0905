/* stage.h - how far a sample came: the step that failed, as one enum with one table of words. */
#ifndef MR_STAGE_H
#define MR_STAGE_H

enum mr_stage {
    MR_STAGE_OPEN,   /* find the blob, open it, ask for its type and size */
    MR_STAGE_READ,   /* read the extent's bytes */
    MR_STAGE_RECORD, /* take the payload out of those bytes, as the format has it */
    MR_STAGE_MAP,    /* decode the payload, or run the user's map on it */
    MR_N_STAGES
};

/* "open", "read", "record", "map". */
const char *mr_stage_name(enum mr_stage stage);

#endif
