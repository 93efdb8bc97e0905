/* png_reader.h - PNG files: the plain ones by png_plain.h, all others through libspng. */
#ifndef MR_PNG_READER_H
#define MR_PNG_READER_H

#include "frame.h"

struct mr_png;

int mr_png_new(struct mr_png **out);
void mr_png_free(struct mr_png *p);

/* Decode into the frame's slot. */
int mr_png_run(struct mr_png *p, const struct mr_frame *f);
/* Read the header only; bytes, len, opts and error of the frame are used. */
int mr_png_probe(const struct mr_frame *f, struct mr_image_info *out);

#endif
