/* jpeg_baseline.h - our own decoder for plain baseline JPEG files: grey, or YCbCr of any sampling,
 * in one scan.  It is fast, and it never says no: what it does not take goes to jpeg_reader.h. */
#ifndef MR_JPEG_BASELINE_H
#define MR_JPEG_BASELINE_H

#include "frame.h"

struct mr_own_jpeg;

int mr_own_jpeg_new(const struct mr_kernels *kernels, struct mr_own_jpeg **out);
void mr_own_jpeg_free(struct mr_own_jpeg *b);

/* Decode into the frame's slot.  0: done; 1: not a plain file, or options that this decoder has
 * nothing for, and the slot may have been written to; -ENOMEM.  The frame's error is set only with
 * the last. */
int mr_own_jpeg_run(struct mr_own_jpeg *b, const struct mr_frame *f);

#endif
