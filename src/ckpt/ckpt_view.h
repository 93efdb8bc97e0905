/* ckpt_view.h - what a checkpoint on disk says about itself, in either format. */
#ifndef MR_CKPT_VIEW_H
#define MR_CKPT_VIEW_H

#include "ckpt_scan.h"
#include "tensor_table.h"

struct mr_device;

/* What a checkpoint says about itself, before its data are read. */
struct mr_ckpt_view {
    char path[1024]; /* without the ending */
    enum mr_checkpoint_format format;
    uint32_t n_shards;
    struct mr_tensor_table table; /* offsets in the file of `shard`; .data NULL, to be set by who
                                   * wants the bytes.  One saved in parts has 0 bytes; its parts
                                   * follow under names of their own */
    size_t head_bytes;            /* safetensors: in front of the tensors, */
    uint32_t head_crc;            /* and their crc32c */
    uint64_t index_bytes;         /* of the .index file */
};

/* Read and check the index or header.  *out is written on success only, and then finished. */
int mr_ckpt_view_open(const char *dir, const struct mr_ckpt_item *item, struct mr_device *device,
                      struct mr_ckpt_view *out, struct mr_error *err);
void mr_ckpt_view_fini(struct mr_ckpt_view *v);
/* A small file, whole, charged to `device`.  *out is the caller's to free. */
int mr_ckpt_read_small(const char *file, size_t max, struct mr_device *device, uint8_t **out,
                       size_t *len, struct mr_error *err);
/* Name of the file of shard s, with the folder. */
void mr_ckpt_view_file(const struct mr_ckpt_view *v, uint32_t s, char out[1280]);

#endif
