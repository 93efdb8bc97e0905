/* ckpt_template.c - the smallest useful checkpoint format: one file, a header of text in front.
 *
 *   plain HEAD_BYTES N CRC\n                     16, 16 and 8 hexadecimal digits
 *   DTYPE NDIMS OFFSET BYTES CRC D0 .. D7 NAME\n  16 digits each; one line a tensor
 *   zeros up to HEAD_BYTES, a multiple of 4096; then the tensors
 *
 * CRC of the first line is the crc32c of all HEAD_BYTES, its own eight digits taken as '0'.  With
 * it, and with those of the tensors, no byte of the file but the gaps can change unseen. */
#include "ckpt_template.h"

#include "crc32c.h"
#include "errtext.h"
#include "in_file.h"
#include "whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN      4096u
#define MAX_HEAD   ((uint64_t)64 << 20)
#define FIRST_LINE 49 /* "plain " 16 " " 16 " " 8 "\n" */
#define BYTES_AT   6  /* in it */
#define N_AT       23
#define CRC_AT     40
#define N_FIELDS   (5 + MR_TENSOR_MAX_DIMS)
#define FIELD      17 /* 16 digits and a space */

static uint64_t rounded(uint64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- writing ---- */

/* Strings have no size of their own: they are left to other formats. */
static int holds(int dtype)
{
    return mr_dtype_bits(dtype) != 0;
}

static int lay_out(struct mr_ckpt_plan *p, int packed, struct mr_error *err)
{
    struct mr_tensor_table *t = &p->bundle.tensors;
    uint64_t head = FIRST_LINE;
    mr_tensor_table_sort(t);
    for (size_t i = 0; i < t->n; i++) {
        if (strchr(t->tensors[i].name, '\n'))
            return mr_fail(err, -EINVAL, "'%s': names have one line", t->tensors[i].name);
        head += N_FIELDS * FIELD + strlen(t->tensors[i].name) + 1;
    }
    uint64_t at = rounded(head);
    p->head_bytes = (size_t)at;
    for (size_t i = 0; i < t->n; i++) {
        t->tensors[i].offset = packed ? at : rounded(at);
        if (__builtin_add_overflow(t->tensors[i].offset, t->tensors[i].bytes, &at))
            return mr_fail(err, -EOVERFLOW, "'%s': too large", t->tensors[i].name);
    }
    p->data_bytes = at;
    return head > MAX_HEAD ? mr_fail(err, -EFBIG, "too many tensors") : 0;
}

static int write_head(const struct mr_ckpt_plan *p, struct mr_bytes *out, struct mr_error *err)
{
    size_t begin = out->len;
    (void)err;
    mr_bytes_printf(out, "plain %016llx %016llx 00000000\n", (unsigned long long)p->head_bytes,
                    (unsigned long long)p->bundle.tensors.n);
    for (size_t i = 0; i < p->bundle.tensors.n; i++) {
        const struct mr_tensor *t = &p->bundle.tensors.tensors[i];
        mr_bytes_printf(out, "%016x %016x %016llx %016llx %016x ", (unsigned)t->dtype, t->n_dims,
                        (unsigned long long)t->offset, (unsigned long long)t->bytes, t->crc);
        for (unsigned d = 0; d < MR_TENSOR_MAX_DIMS; d++)
            mr_bytes_printf(out, "%016llx ", (unsigned long long)(d < t->n_dims ? t->dims[d] : 0));
        mr_bytes_printf(out, "%s\n", t->name);
    }
    while (!out->error && out->len - begin < p->head_bytes)
        mr_bytes_add_u8(out, 0);
    if (out->error)
        return out->error;
    char crc[9];
    snprintf(crc, sizeof crc, "%08x", mr_crc32c(0, out->data + begin, out->len - begin));
    memcpy(out->data + begin + CRC_AT, crc, 8);
    return 0;
}

/* ---- reading ---- */

static int bad(const char *file, struct mr_error *err)
{
    return mr_fail(err, -EBADMSG, "%s: not a plain checkpoint, or damaged", file);
}

/* `digits` hexadecimal digits, as they are written. */
static int get_hex(const char *at, unsigned digits, uint64_t *out)
{
    static const char all[] = "0123456789abcdef";
    *out = 0;
    for (unsigned i = 0; i < digits; i++) {
        const char *d = at[i] ? strchr(all, at[i]) : NULL;
        if (!d)
            return -EBADMSG;
        *out = *out << 4 | (uint64_t)(d - all);
    }
    return 0;
}

/* One line: its tensor is added.  Nothing in it is trusted. */
static int read_tensor(const char *line, const char *end, uint64_t head_bytes, uint64_t file_bytes,
                       struct mr_tensor_table *table)
{
    uint64_t field[N_FIELDS], bytes;
    char name[MR_TENSOR_MAX_NAME + 1];
    size_t len = (size_t)(end - line);
    if (len <= N_FIELDS * FIELD || len - N_FIELDS * FIELD >= sizeof name)
        return -EBADMSG;
    for (unsigned i = 0; i < N_FIELDS; i++)
        if (get_hex(line + i * FIELD, FIELD - 1, &field[i]))
            return -EBADMSG;
    snprintf(name, sizeof name, "%.*s", (int)(len - N_FIELDS * FIELD), line + N_FIELDS * FIELD);
    struct mr_tensor t = {.name = name,
                          .dtype = (int)field[0],
                          .n_dims = (unsigned)field[1],
                          .offset = field[2],
                          .bytes = field[3],
                          .crc = (uint32_t)field[4],
                          .has_crc = 1};
    memcpy(t.dims, field + 5, sizeof t.dims);
    if (field[1] > MR_TENSOR_MAX_DIMS || mr_tensor_size(t.dtype, t.n_dims, t.dims, &bytes) ||
        bytes != t.bytes || t.offset < head_bytes || t.offset > file_bytes ||
        t.bytes > file_bytes - t.offset)
        return -EBADMSG;
    return mr_tensor_table_add(table, &t);
}

static int read_lines(const char *head, uint64_t head_bytes, uint64_t n, uint64_t file_bytes,
                      struct mr_tensor_table *table)
{
    const char *at = head + FIRST_LINE, *stop = head + head_bytes;
    int r = 0;
    for (uint64_t i = 0; !r && i < n; i++) {
        const char *end = memchr(at, '\n', (size_t)(stop - at));
        r = end ? read_tensor(at, end, head_bytes, file_bytes, table) : -EBADMSG;
        at = end ? end + 1 : at;
    }
    return r;
}

static int parse(struct mr_ckpt_view *v, char *head, uint64_t head_bytes, uint64_t file_bytes)
{
    uint64_t n, crc;
    if (get_hex(head + N_AT, 16, &n) || get_hex(head + CRC_AT, 8, &crc))
        return -EBADMSG;
    v->head_crc = mr_crc32c(0, head, head_bytes);
    memset(head + CRC_AT, '0', 8);
    if (mr_crc32c(0, head, head_bytes) != crc)
        return -EBADMSG;
    int r = read_lines(head, head_bytes, n, file_bytes, &v->bundle.tensors);
    if (r)
        mr_bundle_fini(&v->bundle);
    v->has_checksums = 1;
    v->head_bytes = (size_t)head_bytes;
    return r;
}

static int read_head(struct mr_ckpt_view *v, const char *file, struct mr_device *device,
                     struct mr_error *err)
{
    struct mr_in_file f;
    uint64_t bytes = 0;
    int r = mr_in_open(v->dir_fd, mr_ckpt_view_name(v, file), device, &f);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    char *head = aligned_alloc(ALIGN, ALIGN);
    r = !head ? -ENOMEM : f.bytes < ALIGN ? -EBADMSG : mr_in_read(&f, head, ALIGN, 0);
    if (!r && (memcmp(head, "plain ", BYTES_AT) || get_hex(head + BYTES_AT, 16, &bytes) || !bytes ||
               bytes % ALIGN || bytes > MAX_HEAD || bytes > f.bytes))
        r = -EBADMSG;
    free(head);
    head = r ? NULL : aligned_alloc(ALIGN, bytes);
    if (!r)
        r = head ? mr_in_read(&f, head, bytes, 0) : -ENOMEM;
    if (!r)
        r = parse(v, head, bytes, f.bytes);
    free(head);
    mr_in_close(&f);
    return !r              ? 0
           : r == -EBADMSG ? bad(file, err)
                           : mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
}

const struct mr_ckpt_format template_format = {
    .name = "plain",
    .title = "a plain checkpoint",
    .ending = ".plain",
    .shown_with_ending = 1,
    .holds = holds,
    .read_head = read_head,
    .lay_out = lay_out,
    .write_head = write_head,
};
