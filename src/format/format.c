/* format.c - the table of formats. */
#include "format.h"

#include "csv_list.h"
#include "errtext.h"
#include "folder_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int is_folder(struct mr_store *s, const char *name, const struct mr_blob_stat *st)
{
    (void)s;
    (void)name;
    return st->kind == MR_BLOB_FOLDER;
}

/* Anything else is taken for a list, which says itself what is wrong with it. */
static int is_no_folder(struct mr_store *s, const char *name, const struct mr_blob_stat *st)
{
    return !is_folder(s, name, st);
}

static const struct mr_format formats[] = {
    {
        .name = "folder",
        .what = "one sub-folder a class",
        .probe = is_folder,
        .index = mr_folder_tree_load,
    },
    {
        .name = "list",
        .what = "lines path,label",
        .probe = is_no_folder,
        .index = mr_csv_list_load,
    },
};

#define N_FORMATS (sizeof formats / sizeof *formats)

const struct mr_format *mr_format_at(unsigned i)
{
    return i < N_FORMATS ? &formats[i] : NULL;
}

static int none_fits(const char *name, struct mr_error *err)
{
    char known[256] = "";
    for (size_t i = 0; i < N_FORMATS; i++) {
        size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s (%s)", i ? ", " : "", formats[i].name,
                 formats[i].what);
    }
    return mr_fail(err, -ENOTSUP, "%s: no format fits; there are: %s", name, known);
}

int mr_format_find(struct mr_store *s, const char *name, const struct mr_format **out,
                   struct mr_error *err)
{
    struct mr_blob_stat st;
    int r = s->ops->stat(s, name, &st);
    for (size_t i = 0; !r && i < N_FORMATS; i++) {
        r = formats[i].probe(s, name, &st);
        if (r > 0) {
            *out = &formats[i];
            return 0;
        }
    }
    return r ? mr_fail(err, r, "%s: %s", name, mr_errno_text(r)) : none_fits(name, err);
}
