/* loader.h - read a checkpoint back: every byte of every tensor, verified, at the device's speed. */
#ifndef MR_LOADER_H
#define MR_LOADER_H

#include "ckpt_scan.h"
#include "tensor_table.h"

#include <stdatomic.h>

struct mr_device;
struct mr_loader;

/* What a checkpoint says about itself, before its data are read. */
struct mr_ckpt_view {
    char path[1024]; /* without the ending */
    enum mr_checkpoint_format format;
    uint32_t n_shards;
    struct mr_tensor_table table; /* offsets in the file of `shard`; .data NULL, to be set by who
                                   * wants the bytes */
    size_t head_bytes;            /* safetensors: in front of the tensors */
    uint64_t small_bytes;         /* index and meta */
    uint32_t meta_crc;            /* of .meta, */
    int has_meta;                 /* if it belongs to it */
};

/* Read and check the index or header.  *out is written on success only, and then finished. */
int mr_ckpt_view_open(const char *dir, const struct mr_ckpt_item *item, struct mr_device *device,
                      struct mr_ckpt_view *out, struct mr_error *err);
void mr_ckpt_view_fini(struct mr_ckpt_view *v);
/* Name of the file of shard s, with the folder. */
void mr_ckpt_view_file(const struct mr_ckpt_view *v, uint32_t s, char out[1280]);

/* `depth` reads under way at once, with buffers of 4 MiB each. */
int mr_loader_open(unsigned depth, struct mr_loader **out);
/* NULL is a no-op. */
void mr_loader_close(struct mr_loader *l);
/* Read all of it: tensors with .data get their bytes, all are compared with their checksums.
 * -EBADMSG names the tensor of the first bad byte.  *bytes: of all files.  Nonzero *stop (may be
 * NULL) ends it with -ECANCELED. */
int mr_loader_run(struct mr_loader *l, struct mr_ckpt_view *v, struct mr_device *device,
                  const atomic_int *stop, uint64_t *bytes, struct mr_error *err);

#endif
