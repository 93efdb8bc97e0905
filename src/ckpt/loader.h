/* loader.h - read a checkpoint back: every byte of every tensor, verified, at the device's speed.
 */
#ifndef MR_LOADER_H
#define MR_LOADER_H

#include "ckpt_view.h"

struct mr_loader;

/* `depth` reads under way at once, with buffers of 4 MiB each. */
int mr_loader_open(unsigned depth, struct mr_loader **out);
/* NULL is a no-op. */
void mr_loader_close(struct mr_loader *l);
/* Read all of it: tensors with .data get their bytes, all are compared with their checksums.
 * -EBADMSG names the tensor of the first bad byte.  *bytes: of all files. */
int mr_loader_run(struct mr_loader *l, struct mr_ckpt_view *v, struct mr_device *device,
                  uint64_t *bytes, struct mr_error *err);

#endif
