/* safetensors_format.c - safetensors as a row of ckpt_format.h: one file, the header in front.
 *
 * The header is read whole; safetensors.c checks it. */
#include "ckpt_format.h"

#include "crc32c.h"
#include "errtext.h"
#include "in_file.h"
#include "safetensors.h"
#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>

/* Read the header's bytes.  The file is read around the page cache, so buffers are aligned. */
static int read_header(const char *file, struct mr_in_file *f, uint8_t **out, uint64_t *bytes,
                       struct mr_error *err)
{
    uint8_t *buf = aligned_alloc(MR_DIRECT_ALIGN, MR_DIRECT_ALIGN);
    int r = !buf ? -ENOMEM : f->bytes < 8 ? -ENODATA : mr_in_read(f, buf, 8, 0);
    if (!r)
        r = mr_safetensors_header_bytes(file, buf, f->bytes, bytes, err);
    free(buf);
    if (r)
        return r;
    *out = aligned_alloc(MR_DIRECT_ALIGN, mr_direct_round((size_t)*bytes));
    if (!*out)
        return -ENOMEM;
    r = mr_in_read(f, *out, (size_t)*bytes, 0);
    if (r)
        free(*out);
    return r;
}

static int read_head(struct mr_ckpt_view *v, const char *file, struct mr_device *device,
                     struct mr_error *err)
{
    struct mr_safetensors s;
    struct mr_in_file f;
    uint8_t *header;
    uint64_t bytes;
    int r = mr_in_open(v->dir_fd, mr_ckpt_view_name(v, file), device, &f);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    r = read_header(file, &f, &header, &bytes, err);
    if (r) {
        mr_fail(err, r, "%s: %s", file,
                r == -ENODATA ? "too short for a safetensors file" : mr_errno_text(r));
    } else {
        r = mr_safetensors_parse(file, header, (size_t)bytes, f.bytes, &s, err);
        v->head_crc = mr_crc32c(0, header, (size_t)bytes);
        free(header);
    }
    mr_in_close(&f);
    if (r)
        return r;
    v->bundle.tensors = s.tensors;
    v->has_checksums = s.sealed;
    v->head_bytes = (size_t)s.header_bytes;
    return 0;
}

/* There are no gaps to leave out: packed or not is the same. */
static int lay_out(struct mr_ckpt_plan *p, int packed, struct mr_error *err)
{
    uint64_t head = 0;
    (void)packed;
    int r = mr_safetensors_layout(&p->bundle.tensors, &head, &p->data_bytes, err);
    p->head_bytes = (size_t)head;
    return r;
}

static int write_head(const struct mr_ckpt_plan *p, struct mr_bytes *out, struct mr_error *err)
{
    return mr_safetensors_write_header(&p->bundle.tensors, out, err);
}

const struct mr_ckpt_format mr_safetensors_format = {
    .name = "safetensors",
    .title = "safetensors",
    .ending = ".safetensors",
    .shown_with_ending = 1,
    .read_head = read_head,
    .lay_out = lay_out,
    .write_head = write_head,
};
