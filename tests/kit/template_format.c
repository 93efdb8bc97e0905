/* template_format.c - a format to begin with: labelled records in one blob.
 *
 *     "TPL1"
 *     record*      length of the payload (u32), label (u32), payload; little endian
 *
 * A sample is a whole record, so that reading it shows whether the index still fits the blob. */
#include "template_format.h"

#include "buffer.h"
#include "bytes.h"
#include "errtext.h"
#include "new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char magic[4] = "TPL1";

static int probe(struct mr_store *s, const char *name, const struct mr_blob_stat *st)
{
    size_t n = strlen(name);
    (void)s;
    return st->kind == MR_BLOB_FILE && n > 4 && !strcmp(name + n - 4, ".tpl");
}

/* One blob with all records that its bytes hold. */
static int add_records(const uint8_t *at, size_t len, const char *name, struct mr_entries *out,
                       struct mr_error *err)
{
    size_t pos = sizeof magic;
    if (len < pos || memcmp(at, magic, sizeof magic))
        return mr_fail(err, -EBADMSG, "%s: it does not begin with TPL1", name);
    while (pos < len) {
        uint64_t n = len - pos < TEMPLATE_HEAD ? UINT64_MAX : mr_get_u32(at + pos);
        if (!n || n > len - pos - TEMPLATE_HEAD)
            return mr_fail(err, -EBADMSG, "%s: offset %zu: a record without end", name, pos);
        struct mr_extent x = {.blob = 0, .offset = pos, .length = TEMPLATE_HEAD + n};
        if (mr_entries_add_record(out, &x, mr_get_u32(at + pos + 4)))
            return mr_fail(err, -ENOMEM, "%s: no memory", name);
        pos += x.length;
    }
    return out->n ? 0 : mr_fail(err, -ENODATA, "%s: no records", name);
}

static int build_index(struct mr_store *s, const char *name, struct mr_entries *out,
                       struct mr_error *err)
{
    struct mr_buffer all = {0};
    size_t len = 0;
    int64_t dir = mr_entries_dir(out, "", 0);
    int r = dir < 0 ? (int)dir : mr_entries_add_blob(out, (uint32_t)dir, name, strlen(name));
    if (!r)
        r = mr_store_load(s, name, SIZE_MAX / 4, &all, &len);
    r = r ? mr_fail(err, r, "%s: %s", name, mr_errno_text(r))
          : add_records(all.data, len, name, out, err);
    mr_buffer_fini(&all);
    return r;
}

static int payload(struct mr_payload *p)
{
    if (p->len < TEMPLATE_HEAD || mr_get_u32(p->bytes) != p->len - TEMPLATE_HEAD)
        return -EBADMSG;
    p->label = mr_get_u32(p->bytes + 4);
    p->bytes += TEMPLATE_HEAD;
    p->len -= TEMPLATE_HEAD;
    return 0;
}

/* The data set is put together in memory and published whole. */
struct writing {
    char *path;
    struct mr_bytes bytes;
};

static void abort_writing(void *w)
{
    struct writing *to = w;
    mr_bytes_fini(&to->bytes);
    free(to->path);
    free(to);
}

static int begin_writing(const char *path, void **w, struct mr_error *err)
{
    struct writing *to = calloc(1, sizeof *to);
    if (to)
        to->path = strdup(path);
    if (!to || !to->path) {
        free(to);
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    }
    mr_bytes_init(&to->bytes);
    mr_bytes_add(&to->bytes, magic, sizeof magic);
    *w = to;
    return 0;
}

static int add_sample(void *w, const struct mr_payload *sample, struct mr_error *err)
{
    struct mr_bytes *b = &((struct writing *)w)->bytes;
    mr_bytes_add_u32(b, (uint32_t)sample->len);
    mr_bytes_add_u32(b, sample->label);
    mr_bytes_add(b, sample->bytes, sample->len);
    return b->error ? mr_fail(err, b->error, "no memory for a record") : 0;
}

static int commit_writing(void *w, struct mr_error *err)
{
    struct writing *to = w;
    int r = mr_new_file_put(to->path, to->bytes.data, to->bytes.len);
    if (r)
        mr_fail(err, r, "%s: %s", to->path, mr_errno_text(r));
    abort_writing(w);
    return r;
}

static const struct mr_format_writer writer = {begin_writing, add_sample, commit_writing,
                                               abort_writing};

const struct mr_format template_format = {
    .name = "template",
    .what = "labelled records in one blob",
    .probe = probe,
    .index = build_index,
    .payload = payload,
    .writer = &writer,
};
