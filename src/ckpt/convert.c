/* convert.c - write an open checkpoint in either format.
 *
 * Tensors are streamed in the order in which they will lie, their crcs taken on the way, so memory
 * stays at one piece.  The header of a safetensors file needs those crcs and comes before the data:
 * its size is known beforehand, and it is written last.
 *
 * The .meta file of a bundle is kept when there is one, because it may be a whole graph of
 * somebody's; otherwise one is made from the tensors.  A tensor of ours has its size and crc, and
 * is made anew. */
#include "convert.h"

#include "bytes.h"
#include "ckpt_clean.h"
#include "ckpt_folder.h"
#include "ckpt_open.h"
#include "crc32c.h"
#include "errtext.h"
#include "publish_set.h"
#include "safetensors.h"
#include "tf_meta.h"
#include "train_state.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where it goes. */
struct target {
    struct mr_out_dir *dir;
    struct mr_publish_set set;
    const char *stem;     /* of its files; borrowed */
    struct mr_out_file f; /* that is being written */
    uint64_t at;          /* the next byte */
    const struct mr_ckpt_watch *watch;
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
    const struct mr_ckpt_watch *w = t->watch;
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

/* The folder's bundles that can be read, oldest first. */
static int note_state(struct target *t)
{
    struct mr_ckpt_folder found = {0};
    size_t n = 0;
    int r = mr_ckpt_folder_scan(&found, mr_out_dir_fd(t->dir), ".", t->err);
    const char **names = r ? NULL : calloc(found.n + 1, sizeof *names);
    if (!r && !names)
        r = -ENOMEM;
    for (size_t i = 0; !r && i < found.n; i++)
        if (found.found[i].format == MR_CHECKPOINT_TF && found.found[i].generation != UINT64_MAX)
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
    int tf = format == MR_CHECKPOINT_TF;
    if (!t->dir)
        return r;
    if (!r)
        r = mr_publish_commit(&t->set, t->err);
    if (r)
        mr_publish_undo(&t->set);
    if (!r && tf)
        r = note_state(t);
    if (!r)
        snprintf(path, MR_CKPT_MAX_PATH, "%.*s/%s%s", PATH_MAX - MR_CKPT_MAX_NAME,
                 mr_out_dir_path(t->dir), t->stem, tf ? "" : ".safetensors");
    mr_publish_end(&t->set);
    mr_out_dir_close(t->dir);
    return r;
}

/* ---- convert ---- */

struct job {
    struct mr_ckpt_file *from;
    const struct mr_convert_opts *opts;
    struct target to;
    struct mr_tensor_table table; /* as it will be */
    struct mr_bytes meta;
    uint8_t meta_note[16];
    uint32_t crc; /* of the tensor being written */
    struct mr_error *err;
};

/* All tensors but the note about .meta, and the mark of a run: what is converted is the user's. */
static int copy_table(struct job *j)
{
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(j->from);
    int r = 0;
    for (size_t i = 0; !r && i < t->n; i++)
        if (strcmp(t->tensors[i].name, MR_STATE_META) && strcmp(t->tensors[i].name, MR_STATE_MARK))
            r = mr_tensor_table_add(&j->table, &t->tensors[i]);
    return r ? mr_fail(j->err, r, "no memory") : 0;
}

static int source_meta(struct job *j)
{
    char path[MR_CKPT_MAX_PATH];
    uint8_t *bytes;
    size_t len;
    snprintf(path, sizeof path, "%s.meta", mr_ckpt_file_prefix(j->from));
    int r = mr_ckpt_file_format(j->from) == MR_CHECKPOINT_TF
                ? mr_in_small_file(AT_FDCWD, path, MR_META_MAX_FILE, NULL, &bytes, &len)
                : -ENOENT;
    if (r == -ENOENT)
        r = mr_tf_meta_write(&j->table, &j->meta);
    else if (!r) {
        mr_bytes_add(&j->meta, bytes, len);
        free(bytes);
        r = j->meta.error;
    }
    return r ? mr_fail(j->err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

static int add_meta_note(struct job *j)
{
    uint64_t note[2] = {htole64(j->meta.len), htole64(mr_crc32c(0, j->meta.data, j->meta.len))};
    memcpy(j->meta_note, note, sizeof note);
    struct mr_tensor t = {.name = MR_STATE_META,
                          .dtype = MR_DT_I64,
                          .n_dims = 1,
                          .dims = {2},
                          .data = j->meta_note,
                          .bytes = sizeof j->meta_note};
    int r = mr_tensor_table_add(&j->table, &t);
    return r ? mr_fail(j->err, r, "no memory") : 0;
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
    int r = 0;
    for (size_t i = 0; i < j->table.n; i++)
        j->to.total += j->table.tensors[i].bytes;
    for (size_t i = 0; !r && i < j->table.n; i++)
        r = put_tensor(j, &j->table.tensors[i]);
    return r;
}

/* The only data file, with all tensors; room for it is reserved. */
static int write_data(struct job *j, const char *end, uint64_t bytes)
{
    struct mr_bytes header;
    int r = create(&j->to, end, bytes);
    if (r)
        return r;
    mr_bytes_init(&header);
    r = put_all(j);
    if (!r && j->opts->format == MR_CHECKPOINT_SAFETENSORS) {
        r = mr_safetensors_write_header(&j->table, &header, j->err);
        if (!r)
            r = mr_out_write(&j->to.f, header.data, header.len, 0);
    }
    mr_bytes_fini(&header);
    return mr_publish_finish(&j->to.set, &j->to.f, r, j->err);
}

static int write_bundle(struct job *j)
{
    static const char *const ends[] = {".data-00000-of-00001", ".meta", ".index"};
    struct mr_bundle b;
    struct mr_bytes index;
    uint64_t bytes;
    int r = 0;
    mr_bytes_init(&index);
    for (unsigned i = 0; !r && i < 3; i++)
        r = must_be_new(&j->to, ends[i]);
    if (!r)
        r = source_meta(j);
    if (!r)
        r = add_meta_note(j);
    if (!r && mr_bundle_layout(&j->table, j->opts->packed ? 1 : MR_BUNDLE_ALIGN, &bytes))
        r = mr_fail(j->err, -EOVERFLOW, "too large");
    if (!r)
        r = write_data(j, ends[0], bytes);
    mr_bundle_init(&b);
    b.tensors = j->table; /* borrowed */
    if (!r)
        r = mr_bundle_write_index(&b, &index, j->err);
    if (!r)
        r = write_small(&j->to, ends[1], &j->meta);
    if (!r)
        r = write_small(&j->to, ends[2], &index);
    mr_bytes_fini(&index);
    return r;
}

static int write_safetensors(struct job *j)
{
    static const char end[] = ".safetensors";
    uint64_t header_bytes, file_bytes;
    int r = must_be_new(&j->to, end);
    if (!r)
        r = mr_safetensors_layout(&j->table, &header_bytes, &file_bytes, j->err);
    return r ? r : write_data(j, end, file_bytes);
}

int mr_ckpt_convert(struct mr_ckpt_file *c, const char *dir, const struct mr_convert_opts *opts,
                    char path[MR_CKPT_MAX_PATH], struct mr_error *err)
{
    struct job j = {.from = c, .opts = opts, .err = err};
    int r = open_target(&j.to, c, dir, opts, err);
    if (!r)
        r = copy_table(&j);
    if (!r)
        r = opts->format == MR_CHECKPOINT_TF ? write_bundle(&j) : write_safetensors(&j);
    r = close_target(&j.to, r, opts->format, path);
    mr_tensor_table_fini(&j.table);
    mr_bytes_fini(&j.meta);
    return r;
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

/* The temporary again, from the device. */
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
