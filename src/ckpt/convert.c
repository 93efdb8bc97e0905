/* convert.c - write an open checkpoint in another format, or copy it.
 *
 * Tensors are streamed in the order in which they will lie, and their crcs are computed on the way,
 * so memory stays at one piece.  A head that needs those crcs and lies in front of the data has a
 * size that is known beforehand; it is written last.
 *
 * A side file is kept when the format stays the same, because it may be a whole graph of
 * somebody's; otherwise the format makes one from the tensors. */
#include "convert.h"

#include "bytes.h"
#include "ckpt_clean.h"
#include "ckpt_format.h"
#include "ckpt_folder.h"
#include "ckpt_open.h"
#include "ckpt_plan.h"
#include "crc32c.h"
#include "errtext.h"
#include "publish_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The folder and the file that are being written. */
struct target {
    struct mr_out_dir *dir;
    struct mr_publish_set set;
    const char *stem;     /* of its files; borrowed */
    struct mr_out_file f; /* that is being written */
    uint64_t at;          /* the next byte */
    const struct mr_checkpoint_watch *watch;
    uint64_t done, total;
    struct mr_error *err;
};

/* ---- the target ---- */

/* One that is too long is refused when it is published. */
static void name_file(const struct target *t, const char *end, char out[MR_CKPT_MAX_NAME])
{
    snprintf(out, MR_CKPT_MAX_NAME, "%s%s", t->stem, end);
}

static int open_target(struct target *t, const struct mr_ckpt_file *c, const char *dir,
                       const struct mr_convert_opts *opts, struct mr_error *err)
{
    struct mr_out_opts o = {.hook = opts->hook,
                            .lease = {.waiting = opts->waiting, .ctx = opts->waiting_ctx}};
    const char *slash = strrchr(c->view.path, '/');
    *t = (struct target){
        .stem = slash ? slash + 1 : c->view.path, .f.fd = -1, .watch = opts->watch, .err = err};
    int r = mr_out_dir_open(dir, &o, &t->dir, err);
    if (r)
        return r;
    mr_publish_begin(&t->set, t->dir, "free some, or choose another folder");
    r = mr_ckpt_clean(t->dir);
    return r ? mr_fail(err, r, "%s: %s", dir, mr_errno_text(r)) : 0;
}

/* No file of somebody is replaced. */
static int must_be_new(struct target *t, const char *end)
{
    char name[MR_CKPT_MAX_NAME];
    name_file(t, end, name);
    int there = mr_out_exists(t->dir, name);
    if (there > 0)
        return mr_fail(t->err, -EEXIST,
                       "%s/%s: is there already; remove it or choose another folder",
                       mr_out_dir_path(t->dir), name);
    return there ? mr_publish_fail(&t->set, there, name, t->err) : 0;
}

static int create(struct target *t, const char *end, uint64_t len)
{
    char name[MR_CKPT_MAX_NAME];
    name_file(t, end, name);
    t->at = 0;
    return mr_publish_create(&t->set, name, len, 0, &t->f, t->err);
}

static int write_small(struct target *t, const char *end, const struct mr_bytes *b)
{
    char name[MR_CKPT_MAX_NAME];
    name_file(t, end, name);
    return mr_publish_small(&t->set, name, b->data, b->len, t->err);
}

/* Append to the file that is being written, and say so. */
static int put_bytes(struct target *t, const void *bytes, size_t len)
{
    const struct mr_checkpoint_watch *w = t->watch;
    int r = mr_out_write(&t->f, bytes, len, t->at);
    if (r)
        return mr_publish_fail(&t->set, r, t->f.name, t->err);
    t->at += len;
    t->done += len;
    if (w && w->progress)
        w->progress(w->ctx, t->done, t->total);
    return w && w->should_stop && w->should_stop(w->ctx) ? mr_fail(t->err, -ECANCELED, "stopped")
                                                         : 0;
}

/* TensorFlow's list of the folder's checkpoints that can be read, oldest first. */
static int note_state(struct target *t)
{
    struct mr_ckpt_folder found = {0};
    size_t n = 0;
    int r = mr_ckpt_folder_scan(&found, mr_out_dir_fd(t->dir), ".", t->err);
    const char **names = r ? NULL : calloc(found.n + 1, sizeof *names);
    if (!r && !names)
        r = -ENOMEM;
    for (size_t i = 0; !r && i < found.n; i++)
        if (mr_ckpt_format_row(found.found[i].format)->in_state_file &&
            found.found[i].generation != UINT64_MAX)
            names[n++] = strrchr(found.found[i].path, '/') + 1;
    if (!r)
        r = mr_publish_state(t->dir, names, n);
    free(names);
    mr_ckpt_folder_fini(&found);
    return r ? mr_publish_fail(&t->set, r, "checkpoint", t->err) : 0;
}

/* Every file is written, or `r` says why not: publish and close. */
static int close_target(struct target *t, int r, enum mr_checkpoint_format format,
                        char path[MR_CKPT_MAX_PATH])
{
    const struct mr_ckpt_format *row = mr_ckpt_format_row(format);
    if (!t->dir)
        return r;
    if (!r)
        r = mr_publish_commit(&t->set, t->err);
    if (r)
        mr_publish_undo(&t->set);
    if (!r && row->in_state_file)
        r = note_state(t);
    if (!r)
        snprintf(path, MR_CKPT_MAX_PATH, "%.*s/%s%s", PATH_MAX - MR_CKPT_MAX_NAME,
                 mr_out_dir_path(t->dir), t->stem, row->shown_with_ending ? row->ending : "");
    mr_publish_end(&t->set);
    mr_out_dir_close(t->dir);
    return r;
}

/* ---- convert ---- */

struct job {
    struct mr_ckpt_file *from;
    const struct mr_convert_opts *opts;
    struct target to;
    struct mr_ckpt_plan plan;
    uint32_t crc; /* of the tensor that is being written */
    struct mr_error *err;
};

/* The side file as it is, when the format stays the same. */
static int source_side(struct job *j, struct mr_bytes *out)
{
    const struct mr_ckpt_view *v = &j->from->view;
    char path[MR_CKPT_MAX_PATH];
    uint8_t *bytes;
    size_t len;
    if (!v->row->side_ending || v->format != j->opts->format)
        return 0;
    mr_ckpt_view_side(v, path);
    int r = mr_in_small_file(AT_FDCWD, path, MR_CKPT_MAX_SIDE, NULL, &bytes, &len);
    if (r)
        return r == -ENOENT ? 0 : mr_fail(j->err, r, "%s: %s", path, mr_errno_text(r));
    mr_bytes_add(out, bytes, len);
    free(bytes);
    return out->error ? mr_fail(j->err, out->error, "%s: no memory", path) : 0;
}

static int make_plan(struct job *j)
{
    struct mr_bytes side;
    mr_bytes_init(&side);
    int r = source_side(j, &side);
    if (!r)
        r = mr_ckpt_plan_copy(&j->plan, mr_ckpt_file_tensors(j->from), &side, j->opts->format,
                              j->opts->packed, j->err);
    mr_bytes_fini(&side);
    return r;
}

static int put(void *ctx, const void *bytes, size_t len)
{
    struct job *j = ctx;
    j->crc = mr_crc32c(j->crc, bytes, len);
    return put_bytes(&j->to, bytes, len);
}

/* One tensor to its place, which is not before the end of what is written. */
static int put_tensor(struct job *j, struct mr_tensor *t)
{
    const struct mr_tensor_table *from = mr_ckpt_file_tensors(j->from);
    j->to.at = t->offset; /* a gap reads as zeros */
    j->crc = 0;
    int r = t->data
                ? put(j, t->data, t->bytes)
                : mr_ckpt_file_stream(j->from,
                                      (size_t)(mr_tensor_table_find(from, t->name) - from->tensors),
                                      put, j, j->err);
    /* Strings have a crc by a rule of their own, which does not change. */
    if (!r && t->dtype != MR_DT_STRING)
        t->crc = j->crc;
    if (!r && t->dtype == MR_DT_STRING && !t->has_crc)
        r = mr_fail(j->err, -EBADMSG, "'%s': strings without a checksum", t->name);
    t->has_crc = 1;
    return r;
}

static int put_all(struct job *j)
{
    struct mr_tensor_table *t = &j->plan.bundle.tensors;
    int r = 0;
    for (size_t i = 0; i < t->n; i++)
        j->to.total += t->tensors[i].bytes;
    for (size_t i = 0; !r && i < t->n; i++)
        r = put_tensor(j, &t->tensors[i]);
    return r;
}

/* All tensors to the file `end`, and the head in front of them if it belongs there; room for it is
 * reserved. */
static int write_data(struct job *j, const char *end, struct mr_bytes *head)
{
    int r = create(&j->to, end, j->plan.data_bytes);
    if (r)
        return r;
    r = put_all(j);
    if (!r)
        r = j->plan.row->write_head(&j->plan, head, j->err);
    if (!r && !j->plan.row->data_name)
        r = mr_out_write(&j->to.f, head->data, head->len, 0);
    return mr_publish_finish(&j->to.set, &j->to.f, r, j->err);
}

static int write_all(struct job *j)
{
    const struct mr_ckpt_format *row = j->plan.row;
    char end[MR_CKPT_MAX_NAME];
    struct mr_bytes head;
    mr_bytes_init(&head);
    snprintf(end, sizeof end, "%s", row->ending);
    if (row->data_name)
        row->data_name("", 0, 1, end, sizeof end);
    int r = must_be_new(&j->to, end);
    if (!r)
        r = must_be_new(&j->to, row->ending);
    if (!r && row->side_ending)
        r = must_be_new(&j->to, row->side_ending);
    if (!r)
        r = write_data(j, end, &head);
    if (!r && row->side_ending)
        r = write_small(&j->to, row->side_ending, &j->plan.side);
    if (!r && row->data_name)
        r = write_small(&j->to, row->ending, &head);
    mr_bytes_fini(&head);
    return r;
}

int mr_ckpt_convert(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                    char path[MR_CKPT_MAX_PATH], struct mr_error *err)
{
    struct job j = {.from = c, .opts = opts, .err = err};
    int r = open_target(&j.to, c, dir, opts, err);
    if (!r)
        r = make_plan(&j);
    if (!r) {
        r = write_all(&j);
        mr_ckpt_plan_fini(&j.plan);
    }
    return close_target(&j.to, r, opts->format, path);
}

/* ---- copy ---- */

/* One pass over a file: its crc, and its bytes to `to` unless that is NULL. */
struct copy {
    struct target *to;
    uint32_t crc;
};

static int copy_piece(void *ctx, const uint8_t *bytes, size_t n)
{
    struct copy *k = ctx;
    k->crc = mr_crc32c(k->crc, bytes, n);
    return k->to ? put_bytes(k->to, bytes, n) : 0;
}

static int unreadable(struct target *t, const char *path, int r)
{
    return mr_fail(t->err, r, "%s: %s", path, mr_errno_text(r));
}

/* Read the temporary back from the device. */
static int read_back(struct mr_ckpt_file *c, struct target *t, uint32_t crc)
{
    struct copy k = {.to = NULL};
    struct mr_in_file in = {.fd = -1};
    char path[MR_CKPT_MAX_PATH + MR_CKPT_MAX_NAME];
    snprintf(path, sizeof path, "%s/%s", mr_out_dir_path(t->dir), t->f.name);
    int r = mr_in_open(mr_out_dir_fd(t->dir), t->f.name, NULL, &in);
    if (!r)
        r = mr_in_each(&in, &c->buf, 0, in.bytes, copy_piece, &k);
    mr_in_close(&in);
    if (!r && k.crc != crc)
        return mr_fail(t->err, -EIO, "%s: reads back other than it was written", path);
    return r ? unreadable(t, path, r) : 0;
}

static int copy_file(struct mr_ckpt_file *c, const char *path, struct target *t)
{
    struct copy k = {.to = t};
    struct mr_in_file in = {.fd = -1};
    int r = mr_in_open(AT_FDCWD, path, NULL, &in);
    if (r)
        return unreadable(t, path, r);
    r = create(t, path + strlen(c->view.path), in.bytes);
    if (!r) {
        r = mr_in_each(&in, &c->buf, 0, in.bytes, copy_piece, &k);
        if (r)
            unreadable(t, path, r);
        r = mr_publish_finish(&t->set, &t->f, r, t->err);
    }
    mr_in_close(&in);
    return r ? r : read_back(c, t, k.crc);
}

int mr_ckpt_copy(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                 char path[MR_CKPT_MAX_PATH], struct mr_error *err)
{
    struct target t;
    const char *file;
    int r = open_target(&t, c, dir, opts, err);
    t.total = mr_ckpt_file_bytes(c);
    for (unsigned i = 0; !r && (file = mr_ckpt_file_path(c, i)); i++)
        r = must_be_new(&t, file + strlen(c->view.path));
    for (unsigned i = 0; !r && (file = mr_ckpt_file_path(c, i)); i++)
        r = copy_file(c, file, &t);
    return close_target(&t, r, c->view.format, path);
}
