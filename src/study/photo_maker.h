/* photo_maker.h - from the plan of a photo to the bytes of a JPEG file.
 * Lifetime: new -> make* -> free.  One maker per thread. */
#ifndef MR_PHOTO_MAKER_H
#define MR_PHOTO_MAKER_H

#include "photo_model.h"

struct mr_photo_maker;

int mr_photo_maker_new(struct mr_photo_maker **out);
/* NULL is a no-op. */
void mr_photo_maker_free(struct mr_photo_maker *m);

/* Make the photo; `key` is what makes it differ from others of its class.  The bytes are the
 * maker's and stay until its next call.  The same arguments give the same bytes. */
int mr_photo_make(struct mr_photo_maker *m, const struct mr_photo_plan *plan, uint64_t key,
                  uint32_t class_id, const uint8_t **bytes, size_t *n_bytes, struct mr_error *err);

#endif
