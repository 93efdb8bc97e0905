/* jpeg_reader.h - JPEG through libjpeg-turbo. */
#ifndef MR_JPEG_READER_H
#define MR_JPEG_READER_H

#include "frame.h"

struct mr_jpeg;

int mr_jpeg_new(struct mr_jpeg **out);
void mr_jpeg_free(struct mr_jpeg *j);

/* Decode into the frame's slot. */
int mr_jpeg_run(struct mr_jpeg *j, const struct mr_frame *f);
/* Read the header only; bytes, len and error of the frame are used. */
int mr_jpeg_probe(struct mr_jpeg *j, const struct mr_frame *f, struct mr_image_info *out);

#endif
