/* entries.c - ten million samples in little memory.
 *
 *     whole blobs   blob_table.c's 13 bytes and the name; label[i]       17 + name
 *     records       record[i] { offset, length, blob }; label[i]         20
 */
#include "entries.h"

#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mr_record {
    uint32_t offset[2]; /* low and high half: 16 bytes, where a uint64_t would make it 24 */
    uint32_t length, blob;
};

void mr_entries_init(struct mr_entries *e)
{
    *e = (struct mr_entries){0};
}

void mr_entries_fini(struct mr_entries *e)
{
    for (uint32_t i = 0; i < e->n_class_names; i++)
        free(e->class_names[i]);
    free(e->class_names);
    free(e->label);
    free(e->record);
    mr_blob_table_fini(&e->blobs);
    mr_entries_init(e);
}

int64_t mr_entries_dir(struct mr_entries *e, const char *dir, size_t len)
{
    return mr_blob_table_dir(&e->blobs, dir, len);
}

static int add_label(struct mr_entries *e, uint32_t label)
{
    if (mr_grow_to((void **)&e->label, &e->cap, e->n + 1, sizeof *e->label))
        return -ENOMEM;
    e->label[e->n++] = label;
    if (label >= e->n_classes)
        e->n_classes = label + 1;
    return 0;
}

int mr_entries_add(struct mr_entries *e, uint32_t dir, const char *name, size_t len, uint32_t label)
{
    return mr_blob_table_add(&e->blobs, dir, name, len) ? -ENOMEM : add_label(e, label);
}

int mr_entries_add_blob(struct mr_entries *e, uint32_t dir, const char *name, size_t len)
{
    return mr_blob_table_add(&e->blobs, dir, name, len);
}

int mr_entries_add_record(struct mr_entries *e, const struct mr_extent *x, uint32_t label)
{
    if (!x->length || x->length > UINT32_MAX || x->blob > UINT32_MAX)
        return -EOVERFLOW;
    if (mr_grow_to((void **)&e->record, &e->cap_records, e->n + 1, sizeof *e->record))
        return -ENOMEM;
    e->record[e->n] = (struct mr_record){
        {(uint32_t)x->offset, (uint32_t)(x->offset >> 32)}, (uint32_t)x->length, (uint32_t)x->blob};
    return add_label(e, label);
}

int mr_entries_add_class(struct mr_entries *e, const char *name)
{
    char **names = realloc(e->class_names, (e->n_class_names + 1) * sizeof *names);
    if (!names)
        return -ENOMEM;
    e->class_names = names;
    names[e->n_class_names] = strdup(name);
    if (!names[e->n_class_names])
        return -ENOMEM;
    if (++e->n_class_names > e->n_classes)
        e->n_classes = e->n_class_names;
    return 0;
}

void mr_entries_relabel(struct mr_entries *e, const uint32_t *new_label)
{
    for (uint64_t i = 0; i < e->n; i++)
        e->label[i] = new_label[e->label[i]];
}

void mr_entries_sort_from(struct mr_entries *e, uint64_t first)
{
    mr_blob_table_sort_from(&e->blobs, first);
}

/* Shrinking cannot fail in a way that matters: the larger block stays valid. */
static void shrink(void **array, uint64_t *cap, uint64_t n, size_t item)
{
    void *p = *array ? realloc(*array, (n + 1) * item) : NULL;
    if (p) {
        *array = p;
        *cap = n + 1;
    }
}

int mr_entries_finish(struct mr_entries *e)
{
    shrink((void **)&e->label, &e->cap, e->n, sizeof *e->label);
    shrink((void **)&e->record, &e->cap_records, e->n, sizeof *e->record);
    return mr_blob_table_finish(&e->blobs);
}

uint32_t mr_entries_label(const struct mr_entries *e, uint64_t i)
{
    return e->label[i];
}

struct mr_extent mr_entries_extent(const struct mr_entries *e, uint64_t i)
{
    if (!e->record)
        return (struct mr_extent){.blob = i};
    const struct mr_record *r = &e->record[i];
    return (struct mr_extent){r->blob, (uint64_t)r->offset[1] << 32 | r->offset[0], r->length};
}

int mr_entries_path(const struct mr_entries *e, uint64_t i, char *buf, size_t cap)
{
    return mr_blob_table_name(&e->blobs, mr_entries_extent(e, i).blob, buf, cap);
}

void mr_entries_prefetch(const struct mr_entries *e, uint64_t next, uint64_t later)
{
    __builtin_prefetch(&e->label[later]);
    if (e->record)
        __builtin_prefetch(&e->record[later]);
    else
        mr_blob_table_prefetch(&e->blobs, next, later);
}

size_t mr_entries_memory(const struct mr_entries *e)
{
    size_t bytes = e->cap * sizeof *e->label + e->cap_records * sizeof *e->record +
                   mr_blob_table_memory(&e->blobs);
    for (uint32_t i = 0; i < e->n_class_names; i++)
        bytes += strlen(e->class_names[i]) + 1 + sizeof *e->class_names;
    return bytes;
}
