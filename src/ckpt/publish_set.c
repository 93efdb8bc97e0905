/* publish_set.c - see publish_set.h.
 *
 * Everything is synced under temporary names first.  Then: names for data and graph, a sync of the
 * folder, the name that makes it valid, a sync of the folder.  A crash in between leaves files that
 * nobody takes for a checkpoint. */
#include "publish_set.h"

#include "bytes.h"
#include "ckpt_folder.h"
#include "errtext.h"
#include "grow.h"
#include "tf_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `dir` and those above it. */
static int make_dirs(const char *dir, struct mr_error *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s", dir);
    if (n <= 0 || (size_t)n >= sizeof path)
        return mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", dir);
    for (char *p = path + 1;; p++) {
        char was = *p;
        if (was && was != '/')
            continue;
        *p = 0;
        if (mkdir(path, 0755) && errno != EEXIST)
            return mr_fail(err, -errno, "%s: %s", path, mr_errno_text(-errno));
        *p = was;
        if (!was)
            return 0;
    }
}

int mr_publish_set_begin(struct mr_publish_set *s, const char *dir, const char *like,
                         const char *head, struct mr_error *err)
{
    char path[PATH_MAX + 64];
    const char *slash = strrchr(like, '/');
    memset(s, 0, sizeof *s);
    int r = make_dirs(dir, err);
    if (r)
        return r;
    int n = snprintf(s->prefix, sizeof s->prefix, "%s/%s", dir, slash ? slash + 1 : like);
    if (n < 0 || (size_t)n + 64 >= sizeof s->prefix)
        return mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", dir);
    snprintf(s->dir, sizeof s->dir, "%s", dir);
    snprintf(path, sizeof path, "%s%s", s->prefix, head);
    s->is_bundle = !strcmp(head, ".index");
    if (!access(path, F_OK))
        return mr_fail(err, -EEXIST,
                       "%s: is there already; remove it or choose another folder with --to", path);
    return 0;
}

int mr_publish_set_open(struct mr_publish_set *s, const char *end, struct mr_durable **out,
                        struct mr_error *err)
{
    char path[PATH_MAX + 64];
    struct mr_durable *grown = mr_grown(s->files, s->n, &s->cap, sizeof *grown);
    if (!grown)
        return mr_fail(err, -ENOMEM, "no memory");
    s->files = grown;
    snprintf(path, sizeof path, "%s%s", s->prefix, end);
    int r = mr_durable_open(&s->files[s->n], path, err);
    if (!r)
        *out = &s->files[s->n++];
    return r;
}

int mr_publish_set_small(struct mr_publish_set *s, const char *end, const void *bytes, size_t len,
                         struct mr_error *err)
{
    struct mr_durable *f;
    int r = mr_publish_set_open(s, end, &f, err);
    if (!r)
        r = mr_durable_write(f, bytes, len, err);
    return r ? r : mr_durable_sync(f, err);
}

/* The folder's bundles, oldest first, by their names alone. */
static int write_state(const struct mr_publish_set *s, struct mr_error *err)
{
    struct mr_ckpt_folder found = {0};
    struct mr_durable f = MR_DURABLE_NONE;
    struct mr_bytes text;
    char path[PATH_MAX + 64];
    size_t n = 0;
    mr_bytes_init(&text);
    snprintf(path, sizeof path, "%s/checkpoint", s->dir);
    int r = mr_ckpt_folder_scan(&found, s->dir, err);
    const char **names = r ? NULL : calloc(found.n + 1, sizeof *names);
    if (!r && !names)
        r = mr_fail(err, -ENOMEM, "no memory");
    for (size_t i = 0; !r && i < found.n; i++)
        if (found.found[i].format == MR_CHECKPOINT_TF)
            names[n++] = strrchr(found.found[i].path, '/') + 1;
    if (!r) {
        mr_tf_state_write(names, n, &text);
        r = text.error ? mr_fail(err, text.error, "no memory") : mr_durable_open(&f, path, err);
    }
    if (!r)
        r = mr_durable_write(&f, text.data, text.len, err);
    if (!r)
        r = mr_durable_sync(&f, err);
    if (!r)
        r = mr_durable_publish(&f, err);
    mr_durable_abort(&f);
    free(names);
    mr_bytes_fini(&text);
    mr_ckpt_folder_fini(&found);
    return r ? r : mr_durable_sync_dir(s->dir, err);
}

int mr_publish_set_commit(struct mr_publish_set *s, struct mr_error *err)
{
    int r = 0;
    for (size_t i = 0; !r && i < s->n; i++) {
        if (i + 1 == s->n && s->n > 1)
            r = mr_durable_sync_dir(s->dir, err);
        if (!r)
            r = mr_durable_publish(&s->files[i], err);
    }
    if (!r)
        r = mr_durable_sync_dir(s->dir, err);
    return r || !s->is_bundle ? r : write_state(s, err);
}

void mr_publish_set_abort(struct mr_publish_set *s)
{
    for (size_t i = 0; i < s->n; i++)
        mr_durable_abort(&s->files[i]);
    free(s->files);
    s->files = NULL;
    s->n = s->cap = 0;
}
