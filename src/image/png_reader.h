/* png_reader.h - PNG through libspng. */
#ifndef MR_PNG_READER_H
#define MR_PNG_READER_H

#include "frame.h"

/* Decode into the frame's slot.  `memory` holds a row, or the image if it is interlaced. */
int mr_png_run(struct mr_buffer *memory, const struct mr_frame *f);
/* Read the header only; bytes, len and error of the frame are used. */
int mr_png_probe(const struct mr_frame *f, struct mr_image_info *out);

#endif
