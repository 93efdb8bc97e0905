/* batch_layout.h - which fields a batch has, and where each lies in its memory.
 *
 *     slab = | field 0 of all samples | field 1 of all samples | ... | labels |    64-byte aligned
 *
 * Whole files have no room there: their slab holds the labels alone. */
#ifndef MR_BATCH_LAYOUT_H
#define MR_BATCH_LAYOUT_H

#include <millrace/pipeline.h>

#define MR_FIELD_ALIGN ((size_t)64)

struct mr_batch_layout {
    unsigned n; /* fields; the label is the last */
    struct mr_field field[MR_MAX_FIELDS];
    char name[MR_MAX_FIELDS][MR_FIELD_NAME];
    size_t bytes[MR_MAX_FIELDS]; /* of one sample's field */
    size_t at[MR_MAX_FIELDS];    /* where the field's array begins */
    size_t slab_bytes;
    size_t sample_bytes; /* of field 0; 0: samples are whole files */
};

/* From complete options; 0, or -EINVAL with words. */
int mr_batch_layout_init(struct mr_batch_layout *l, const struct mr_pipeline_opts *o,
                         struct mr_error *err);
/* The batch's fields in this slab. */
void mr_batch_layout_set(const struct mr_batch_layout *l, uint8_t *slab, struct mr_field *out);

#endif
