/* ckpt_reader.c - the public reader of checkpoints: finds one, and checks what callers ask of it.
 *
 * ckpt_file.c does the reading, ckpt_slice.c the slices.
 *
 * No lock: one thread at a time uses a reader. */
#include <millrace/checkpoint.h>

#include "ckpt_folder.h"
#include "ckpt_slice.h"
#include "errtext.h"
#include "sized.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct mr_checkpoint_reader {
    struct mr_ckpt_file *file;
};

/* The newest one of a folder that opens. */
static int open_newest(const char *dir, struct mr_ckpt_file **out, struct mr_error *err)
{
    struct mr_ckpt_folder f = {0};
    struct mr_error first = {0};
    int r = mr_ckpt_folder_scan(&f, AT_FDCWD, dir, err);
    if (!r && !f.n)
        r = mr_fail(err, -ENOENT, "%s: no checkpoint", dir);
    for (size_t i = f.n; !r && i-- > 0;) {
        struct mr_error why = {0};
        int e = mr_ckpt_file_open(f.found[i].path, out, &why);
        if (!e || e == -ENOMEM) {
            first = e ? why : (struct mr_error){0};
            break;
        }
        mr_fail(&first, e, "%s", why.text);
    }
    if (!r && first.code)
        r = mr_fail(err, first.code, "%s", first.text);
    mr_ckpt_folder_fini(&f);
    return r;
}

int mr_checkpoint_reader_open(const char *path, struct mr_checkpoint_reader **out,
                              struct mr_error *err)
{
    struct stat st;
    struct mr_checkpoint_reader *r = calloc(1, sizeof *r);
    if (!r)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    int is_folder = !stat(path, &st) && S_ISDIR(st.st_mode);
    int e = is_folder ? open_newest(path, &r->file, err) : mr_ckpt_file_open(path, &r->file, err);
    if (e)
        free(r);
    else
        *out = r;
    return e;
}

void mr_checkpoint_reader_close(struct mr_checkpoint_reader *r)
{
    if (!r)
        return;
    mr_ckpt_file_close(r->file);
    free(r);
}

void mr_checkpoint_reader_get_info_sized(const struct mr_checkpoint_reader *r,
                                         struct mr_checkpoint_info *out, size_t size)
{
    const char *path = mr_ckpt_file_prefix(r->file);
    struct mr_checkpoint_info info = {.format = mr_ckpt_file_format(r->file),
                                      .has_checksums = mr_ckpt_file_has_checksums(r->file),
                                      .step = mr_ckpt_step_of(path),
                                      .bytes = mr_ckpt_file_bytes(r->file),
                                      .n_tensors = mr_ckpt_file_tensors(r->file)->n};
    snprintf(info.path, sizeof info.path, "%.1023s", path);
    mr_give_sized(out, size, &info, sizeof info);
}

int mr_checkpoint_reader_get_tensor_sized(const struct mr_checkpoint_reader *r, uint64_t i,
                                          struct mr_tensor_info *out, size_t size)
{
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(r->file);
    if (i >= t->n)
        return -ENOENT;
    const struct mr_tensor *x = &t->tensors[i];
    struct mr_tensor_info info = {
        .name = x->name, .dtype = x->dtype, .n_dims = x->n_dims, .bytes = x->bytes};
    memcpy(info.dims, x->dims, x->n_dims * sizeof *x->dims);
    mr_give_sized(out, size, &info, sizeof info);
    return 0;
}

int64_t mr_checkpoint_reader_find(const struct mr_checkpoint_reader *r, const char *name)
{
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(r->file);
    const struct mr_tensor *x = mr_tensor_table_find(t, name);
    return x ? x - t->tensors : -ENOENT;
}

/* Is there a tensor i, and room for `bytes` of it? */
static int check(const struct mr_checkpoint_reader *r, uint64_t i, uint64_t bytes, uint64_t room,
                 struct mr_error *err)
{
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(r->file);
    const char *path = mr_ckpt_file_prefix(r->file);
    if (i >= t->n)
        return mr_fail(err, -ENOENT, "%s: no tensor %llu: there are %zu", path,
                       (unsigned long long)i, t->n);
    if (bytes > room)
        return mr_fail(err, -EINVAL, "%s: '%.200s' needs %llu bytes, and there is room for %llu",
                       path, t->tensors[i].name, (unsigned long long)bytes,
                       (unsigned long long)room);
    return 0;
}

int mr_checkpoint_reader_read(struct mr_checkpoint_reader *r, uint64_t i, void *buf, uint64_t room,
                              struct mr_error *err)
{
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(r->file);
    int e = check(r, i, i < t->n ? t->tensors[i].bytes : 0, room, err);
    return e ? e : mr_ckpt_file_read(r->file, (size_t)i, buf, err);
}

int mr_checkpoint_reader_read_slice(struct mr_checkpoint_reader *r, uint64_t i,
                                    const uint64_t *start, const uint64_t *extent, void *buf,
                                    uint64_t room, struct mr_error *err)
{
    uint64_t bytes;
    int e = check(r, i, 0, room, err);
    if (!e)
        e = mr_ckpt_slice_bytes(r->file, (size_t)i, start, extent, &bytes, err);
    if (!e)
        e = check(r, i, bytes, room, err);
    return e ? e : mr_ckpt_read_slice(r->file, (size_t)i, start, extent, buf, err);
}

int mr_checkpoint_reader_verify_sized(struct mr_checkpoint_reader *r,
                                      const struct mr_checkpoint_watch *watch, size_t watch_size,
                                      struct mr_checkpoint_verdict *verdict, size_t verdict_size,
                                      struct mr_error *err)
{
    struct mr_checkpoint_watch w;
    struct mr_checkpoint_verdict v = {0};
    int code = mr_take_sized(&w, sizeof w, watch, watch_size, "mr_checkpoint_watch", err);
    if (!code)
        code = mr_ckpt_file_verify(r->file, &w, &v, err);
    mr_give_sized(verdict, verdict_size, &v, sizeof v);
    return code;
}
