/* png_plain.h - the fast path for the PNG files that are nearly all of them. */
#ifndef MR_PNG_PLAIN_H
#define MR_PNG_PLAIN_H

#include "frame.h"

struct mr_png_plain;

int mr_png_plain_new(struct mr_png_plain **out);
void mr_png_plain_free(struct mr_png_plain *p);

#define MR_PNG_UNUSUAL 1 /* not a plain file, or not in order: ask libspng, which decides */

/* 0, MR_PNG_UNUSUAL, or -errno with words. */
int mr_png_plain_run(struct mr_png_plain *p, const struct mr_frame *f);

#endif
