/* publish_set.c - the order of operations that makes a checkpoint exist or not.
 *
 *   publish   1  every file -> temporary, written, synced; folder synced
 *             2  all but the last renamed; folder synced
 *             3  the last renamed; folder synced               <- from here on it exists
 *   remove    4  the last -> temporary; folder synced
 *             5  the others removed; folder synced; that temporary removed
 *
 * Before 3 the head has no name, so no reader takes the checkpoint; after 3 it is whole.  The
 * folder is synced between 2 and 3, so that no head exists without its data, in whatever order a
 * file system writes its folder; 4 takes the head away first for the same reason.  Whenever other
 * files have their names and the head has not, its temporary exists, synced and whole.  It tells a
 * start after a crash that these files are ours (ckpt_clean.c).  A checkpoint of one file needs
 * neither the syncs before 3 nor 4.
 *
 * No lock: see publish_set.h. */
#include "publish_set.h"

#include "bytes.h"
#include "errtext.h"
#include "grow.h"
#include "tf_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void mr_publish_begin(struct mr_publish_set *s, struct mr_out_dir *dir, const char *way_out)
{
    *s = (struct mr_publish_set){.dir = dir, .way_out = way_out};
}

void mr_publish_end(struct mr_publish_set *s)
{
    free(s->files);
    s->files = NULL;
    s->n = s->cap = 0;
}

int mr_publish_fail(const struct mr_publish_set *s, int code, const char *name,
                    struct mr_error *err)
{
    const char *dir = mr_out_dir_path(s->dir);
    if (code == -ENOSPC)
        return mr_fail(err, code, "%s/%s: no space left, or a quota is used up: %s", dir, name,
                       s->way_out);
    if (code == -EBUSY)
        return mr_fail(err, code, "%s: another run has taken this folder over (%s)", dir,
                       MR_LEASE_NAME);
    return mr_fail(err, code, "%s/%s: %s", dir, name, mr_errno_text(code));
}

/* An earlier attempt that could not even remove its temporary may have left it. */
static int make_way(struct mr_out_dir *dir, const char *temp)
{
    int there = mr_out_exists(dir, temp);
    return there > 0 ? mr_out_unlink(dir, temp) : there;
}

int mr_publish_temp(struct mr_out_dir *dir, const char *name, const void *bytes, size_t len,
                    char temp[MR_CKPT_MAX_NAME])
{
    int r = mr_ckpt_temp_name(temp, name, mr_out_dir_token(dir));
    if (!r)
        r = make_way(dir, temp);
    return r ? r : mr_out_small_file(dir, temp, bytes, len);
}

/* Room for the next file; add_file counts it once its temporary exists. */
static int next_file(struct mr_publish_set *s, const char *name, struct mr_publish_file **out)
{
    struct mr_publish_file *grown = mr_grown(s->files, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    s->files = grown;
    *out = &s->files[s->n];
    int r = mr_ckpt_temp_name((*out)->temp, name, mr_out_dir_token(s->dir));
    if (!r)
        strcpy((*out)->name, name);
    return r;
}

static void add_file(struct mr_publish_set *s)
{
    s->files[s->n++].exists = 1;
}

int mr_publish_create(struct mr_publish_set *s, const char *name, uint64_t len, int direct,
                      struct mr_out_file *f, struct mr_error *err)
{
    struct mr_publish_file *file;
    int r = next_file(s, name, &file);
    if (!r)
        r = make_way(s->dir, file->temp);
    if (!r)
        r = mr_out_create(s->dir, file->temp, len, direct, f);
    if (r)
        return mr_publish_fail(s, r, name, err);
    add_file(s);
    return 0;
}

int mr_publish_finish(struct mr_publish_set *s, struct mr_out_file *f, int r, struct mr_error *err)
{
    if (!r)
        r = mr_out_sync(f);
    mr_out_close(f);
    return r ? mr_publish_fail(s, r, f->name, err) : 0;
}

int mr_publish_small(struct mr_publish_set *s, const char *name, const void *bytes, size_t len,
                     struct mr_error *err)
{
    struct mr_publish_file *file;
    int r = next_file(s, name, &file);
    if (!r)
        r = mr_publish_temp(s->dir, name, bytes, len, file->temp);
    if (r)
        return mr_publish_fail(s, r, name, err);
    add_file(s);
    return 0;
}

int mr_publish_commit(struct mr_publish_set *s, struct mr_error *err)
{
    for (s->n_renamed = 0; s->n_renamed < s->n; s->n_renamed++) {
        struct mr_publish_file *f = &s->files[s->n_renamed];
        int first = !s->n_renamed, last = s->n_renamed == s->n - 1;
        int r = s->n > 1 && (first || last) ? mr_out_sync_dir(s->dir) : 0;
        if (!r)
            r = mr_out_rename(s->dir, f->temp, f->name);
        if (r)
            return mr_publish_fail(s, r, f->name, err);
        f->exists = 0;
    }
    int r = mr_out_sync_dir(s->dir);
    return r ? mr_publish_fail(s, r, "", err) : 0;
}

int mr_publish_is_named(const struct mr_publish_set *s)
{
    return s->n && s->n_renamed == s->n;
}

/* All files have their names, but the folder could not be synced: remove it like any checkpoint. */
static void take_back(struct mr_publish_set *s)
{
    char(*rest)[MR_CKPT_MAX_NAME] = calloc(s->n, sizeof *rest);
    if (!rest)
        return; /* it stays: whole, though reported as failed */
    for (size_t i = 0; i + 1 < s->n; i++)
        strcpy(rest[i], s->files[i].name);
    mr_publish_remove(s->dir, s->files[s->n - 1].name, rest, s->n - 1);
    free(rest);
}

/* Renamed files are removed before the temporary of the head, which proves to the next start that
 * they are ours.  When the rename has replaced an older checkpoint, the new one is the only one,
 * and stays.
 */
void mr_publish_undo(struct mr_publish_set *s)
{
    if (mr_publish_is_named(s)) {
        if (!s->replaces)
            take_back(s);
        return;
    }
    int r = 0;
    for (size_t i = 0; i < s->n_renamed; i++)
        r |= mr_out_unlink(s->dir, s->files[i].name);
    for (size_t i = 0; !r && i < s->n; i++)
        if (s->files[i].exists)
            r = mr_out_unlink(s->dir, s->files[i].temp);
}

int mr_publish_remove(struct mr_out_dir *dir, const char *head, char (*rest)[MR_CKPT_MAX_NAME],
                      size_t n_rest)
{
    char temp[MR_CKPT_MAX_NAME];
    if (!n_rest)
        return mr_out_unlink(dir, head);
    int r = mr_ckpt_temp_name(temp, head, mr_out_dir_token(dir));
    if (!r)
        r = mr_out_rename(dir, head, temp);
    if (r == -ENOENT) /* an earlier attempt has renamed it */
        r = 0;
    if (!r)
        r = mr_out_sync_dir(dir);
    for (size_t i = 0; !r && i < n_rest; i++)
        r = mr_out_unlink(dir, rest[i]);
    if (!r)
        r = mr_out_sync_dir(dir);
    return r ? r : mr_out_unlink(dir, temp);
}

int mr_publish_state(struct mr_out_dir *dir, const char *const *names, size_t n)
{
    static const char name[] = "checkpoint";
    char temp[MR_CKPT_MAX_NAME];
    struct mr_bytes text;
    mr_bytes_init(&text);
    mr_tf_state_write(names, n, &text);
    int r = text.error ? text.error : mr_publish_temp(dir, name, text.data, text.len, temp);
    if (!r) {
        r = mr_out_rename(dir, temp, name);
        if (r)
            mr_out_unlink(dir, temp);
        else
            r = mr_out_sync_dir(dir);
    }
    mr_bytes_fini(&text);
    return r;
}
