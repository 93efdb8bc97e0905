/* folder_tree.c - find the samples of a folder.
 *
 *     data/cat/001.jpg        class 0 "cat"
 *     data/cat/more/002.jpg   class 0 too: everything below a class belongs to it
 *     data/dog/001.jpg        class 1 "dog"
 *     data/list.csv           ignored: not in a class
 *     data/.git/...           ignored: begins with a dot
 *
 * Names are sorted by bytes at each level (first a folder's own files, then its sub-folders), so
 * the result does not depend on the file system.  Links are followed; a depth limit ends loops of
 * them. A folder without sub-folders is a single class without a name. */
#include "folder_tree.h"

#include "blob_store.h"
#include "errtext.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 32

struct walk {
    struct mr_store *store;
    struct mr_entries *out;
    struct mr_error *err;
    char path[PATH_MAX]; /* ends in '/' */
    size_t len;
};

struct names {
    char **name;
    size_t n, cap;
};

static void names_fini(struct names *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->name[i]);
    free(s->name);
}

static int names_add(struct names *s, const char *name)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        char **p = realloc(s->name, cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        s->name = p;
        s->cap = cap;
    }
    s->name[s->n] = strdup(name);
    return s->name[s->n] ? (s->n++, 0) : -ENOMEM;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int push(struct walk *w, const char *name)
{
    size_t n = strlen(name);
    if (w->len + n + 2 > sizeof w->path)
        return mr_fail(w->err, -ENAMETOOLONG, "%s%s: the path is too long", w->path, name);
    memcpy(w->path + w->len, name, n);
    w->len += n;
    w->path[w->len++] = '/';
    w->path[w->len] = 0;
    return 0;
}

static void pop(struct walk *w, size_t len)
{
    w->len = len;
    w->path[len] = 0;
}

/* What one listing fills. */
struct listing {
    struct walk *w;
    struct names *folders;
    int64_t label; /* < 0: files are no samples */
    int64_t dir;   /* of the entries */
};

static int take_name(void *ctx, const char *name, enum mr_blob_kind kind)
{
    struct listing *l = ctx;
    if (name[0] == '.')
        return 0;
    if (kind == MR_BLOB_FOLDER)
        return names_add(l->folders, name);
    if (kind == MR_BLOB_FILE && l->label >= 0)
        return mr_entries_add(l->w->out, (uint32_t)l->dir, name, strlen(name), (uint32_t)l->label);
    return 0;
}

/* Sub-folders of w->path go to `folders`, sorted; files become samples unless label < 0. */
static int list_folder(struct walk *w, int64_t label, struct names *folders)
{
    struct listing l = {w, folders, label, 0};
    uint64_t first = w->out->n;
    if (label >= 0)
        l.dir = mr_entries_dir(w->out, w->path, w->len);
    int r = l.dir < 0 ? (int)l.dir : w->store->ops->list(w->store, w->path, take_name, &l);
    if (r)
        return mr_fail(w->err, r, "%s: cannot list: %s", w->path, mr_errno_text(r));
    mr_entries_sort_from(w->out, first);
    if (folders->n)
        qsort(folders->name, folders->n, sizeof *folders->name, by_bytes);
    return 0;
}

static int walk_class(struct walk *w, uint32_t label, unsigned depth)
{
    if (depth > MAX_DEPTH)
        return mr_fail(w->err, -ELOOP, "%s: more than %d folders deep (a link to its own parent?)",
                       w->path, MAX_DEPTH);
    struct names folders = {0};
    int r = list_folder(w, label, &folders);
    for (size_t i = 0; !r && i < folders.n; i++) {
        size_t len = w->len;
        r = push(w, folders.name[i]);
        if (!r)
            r = walk_class(w, label, depth + 1);
        pop(w, len);
    }
    names_fini(&folders);
    return r;
}

static int walk_classes(struct walk *w, const struct names *classes)
{
    int r = 0;
    for (size_t i = 0; !r && i < classes->n; i++) {
        size_t len = w->len;
        r = push(w, classes->name[i]);
        if (!r)
            r = walk_class(w, (uint32_t)i, 1);
        pop(w, len);
        if (!r && mr_entries_add_class(w->out, classes->name[i]))
            r = mr_fail(w->err, -ENOMEM, "%s: no memory", w->path);
    }
    return r;
}

int mr_folder_tree_load(struct mr_store *store, const char *path, struct mr_entries *out,
                        struct mr_error *err)
{
    struct walk *w = malloc(sizeof *w);
    if (!w)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    struct names classes = {0};
    w->store = store;
    w->out = out;
    w->err = err;
    w->len = 0;
    w->path[0] = 0;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *root = strndup(path, n);
    int r = root ? 0 : mr_fail(err, -ENOMEM, "%s: no memory", path);
    if (!r)
        r = strcmp(root, "/") ? push(w, root) : push(w, "");
    if (!r)
        r = list_folder(w, -1, &classes);
    if (!r)
        r = classes.n ? walk_classes(w, &classes) : walk_class(w, 0, 0);
    if (!r && !out->n)
        r = mr_fail(err, -ENODATA, "%s: no samples in this folder", path);
    names_fini(&classes);
    free(root);
    free(w);
    return r;
}
