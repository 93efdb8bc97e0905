/* inspect_image.h - `millrace inspect` of one image file. */
#ifndef MR_INSPECT_IMAGE_H
#define MR_INSPECT_IMAGE_H

#include "options.h"

/* Does the file begin as a JPEG or PNG file does? */
int inspect_is_image(const char *path);
/* Say what it is and who decodes it; exit status. */
int inspect_image(const struct options *o);

#endif
