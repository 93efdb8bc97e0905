/* sample_set.c - struct mr_dataset: a shared table of entries, and which of them belong to it.
 *
 *     dataset -> entries (shared by reference count)
 *             -> pick[]  (after a split: the entries' numbers; NULL = all of them)
 *
 *             sizes[]    (what readers found out about the files; shared with the entries)
 *             folder     (an open descriptor: where relative paths begin; shared as well)
 *
 * Nothing else changes after opening, so reading needs no lock; the two reference counts and each
 * size are atomic. */
#include "sample_set.h"

#include "csv_list.h"
#include "draw.h"
#include "entries.h"
#include "errtext.h"
#include "folder_tree.h"
#include "open_file.h"
#include "permutation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct shared_entries {
    atomic_uint refs;
    struct mr_entries e;
    int folder;         /* where relative paths begin, or AT_FDCWD: there are none */
    atomic_uint *sizes; /* [e.n] bytes of each file; 0: not known */
};

struct mr_dataset {
    atomic_uint refs;
    struct shared_entries *entries; /* NULL for a range */
    uint64_t n;
    uint32_t *pick32; /* one of these after a split: 32 bits as long as they are enough */
    uint64_t *pick64;
};

static void entries_unref(struct shared_entries *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    mr_entries_fini(&s->e);
    if (s->folder >= 0)
        close(s->folder);
    free(s->sizes);
    free(s);
}

static struct mr_dataset *dataset_new(struct shared_entries *s, uint64_t n)
{
    struct mr_dataset *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    atomic_init(&d->refs, 1);
    d->entries = s;
    d->n = n;
    if (s)
        atomic_fetch_add(&s->refs, 1);
    return d;
}

/* A data set that is named by a relative path has relative paths, and possibly absolute ones. */
static int open_folder(const char *path, int *out, struct mr_error *err)
{
    *out = AT_FDCWD;
    if (path[0] == '/')
        return 0;
    int fd = mr_open_file(".", O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
        return mr_fail(err, fd, "%s: the working folder cannot be opened: %s", path,
                       mr_errno_text(fd));
    *out = fd;
    return 0;
}

int mr_dataset_open(const char *path, struct mr_dataset **out, struct mr_error *err)
{
    struct stat st;
    if (stat(path, &st))
        return mr_fail(err, -errno, "%s: %s", path, mr_errno_text(errno));
    struct shared_entries *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    atomic_init(&s->refs, 1);
    mr_entries_init(&s->e);
    struct mr_dataset *d = NULL;
    int r = open_folder(path, &s->folder, err);
    if (!r)
        r = S_ISDIR(st.st_mode) ? mr_folder_tree_load(path, &s->e, err)
                                : mr_csv_list_load(path, &s->e, err);
    if (!r) {
        mr_entries_finish(&s->e);
        s->sizes = calloc(s->e.n + 1, sizeof *s->sizes);
        d = s->sizes ? dataset_new(s, s->e.n) : NULL;
        if (!d)
            r = mr_fail(err, -ENOMEM, "%s: no memory", path);
    }
    entries_unref(s);
    if (!r)
        *out = d;
    return r;
}

int mr_dataset_range(uint64_t n, struct mr_dataset **out, struct mr_error *err)
{
    if (!n || n > (uint64_t)1 << 62)
        return mr_fail(err, -EINVAL, "a range of %llu samples: not from 1 to 2^62",
                       (unsigned long long)n);
    struct mr_dataset *d = dataset_new(NULL, n);
    if (!d)
        return mr_fail(err, -ENOMEM, "no memory");
    *out = d;
    return 0;
}

static uint64_t entry_of(const struct mr_dataset *d, uint64_t i)
{
    return d->pick32 ? d->pick32[i] : d->pick64 ? d->pick64[i] : i;
}

static struct mr_dataset *pick_new(struct mr_dataset *d, uint64_t n)
{
    struct mr_dataset *part = dataset_new(d->entries, n);
    uint64_t last = d->entries ? d->entries->e.n : d->n;
    if (!part)
        return NULL;
    size_t bytes;
    if (!__builtin_mul_overflow(n + 1, last > UINT32_MAX ? 8 : 4, &bytes)) {
        void *p = malloc(bytes);
        if (p && last > UINT32_MAX)
            part->pick64 = p;
        else
            part->pick32 = p;
        if (p)
            return part;
    }
    mr_dataset_unref(part);
    return NULL;
}

static void pick_set(struct mr_dataset *d, uint64_t at, uint64_t entry)
{
    if (d->pick32)
        d->pick32[at] = (uint32_t)entry;
    else
        d->pick64[at] = entry;
}

int mr_dataset_split(struct mr_dataset *d, double part, uint64_t seed, struct mr_dataset **rest,
                     struct mr_dataset **held, struct mr_error *err)
{
    if (!(part >= 0 && part <= 1))
        return mr_fail(err, -EINVAL, "a split by %g: not from 0 to 1", part);
    /* A keyed permutation sends exactly n_held samples below n_held. */
    uint64_t n_held = (uint64_t)llround(part * (double)d->n);
    struct mr_permutation perm;
    if (d->n)
        mr_permutation_init(&perm, d->n, mr_draw(seed, MR_DRAW_SPLIT, 0, 0, 0));
    struct mr_dataset *a = pick_new(d, d->n - n_held), *b = pick_new(d, n_held);
    if (!a || !b) {
        mr_dataset_unref(a);
        mr_dataset_unref(b);
        return mr_fail(err, -ENOMEM, "no memory");
    }
    uint64_t at_rest = 0, at_held = 0;
    for (uint64_t i = 0; i < d->n; i++)
        if (mr_permutation_at(&perm, i) < n_held)
            pick_set(b, at_held++, entry_of(d, i));
        else
            pick_set(a, at_rest++, entry_of(d, i));
    *rest = a;
    *held = b;
    return 0;
}

struct mr_dataset *mr_dataset_ref(struct mr_dataset *d)
{
    atomic_fetch_add(&d->refs, 1);
    return d;
}

void mr_dataset_unref(struct mr_dataset *d)
{
    if (!d || atomic_fetch_sub(&d->refs, 1) != 1)
        return;
    entries_unref(d->entries);
    free(d->pick32);
    free(d->pick64);
    free(d);
}

uint64_t mr_dataset_size(const struct mr_dataset *d)
{
    return d->n;
}

int mr_dataset_is_unlabelled(const struct mr_dataset *d)
{
    return d->entries && d->entries->e.unlabelled;
}

uint32_t mr_dataset_n_classes(const struct mr_dataset *d)
{
    return d->entries ? d->entries->e.n_classes : 1;
}

const char *mr_dataset_class_name(const struct mr_dataset *d, uint32_t label)
{
    return d->entries && label < d->entries->e.n_class_names ? d->entries->e.class_names[label]
                                                             : NULL;
}

uint32_t mr_dataset_label(const struct mr_dataset *d, uint64_t index)
{
    return d->entries ? mr_entries_label(&d->entries->e, entry_of(d, index)) : 0;
}

int mr_dataset_path(const struct mr_dataset *d, uint64_t index, char *buf, size_t cap)
{
    return d->entries ? mr_entries_path(&d->entries->e, entry_of(d, index), buf, cap) : -ENOENT;
}

int mr_dataset_folder(const struct mr_dataset *d)
{
    return d->entries ? d->entries->folder : AT_FDCWD;
}

size_t mr_dataset_common(const struct mr_dataset *d)
{
    return d->entries ? mr_entries_common(&d->entries->e) : 0;
}

void mr_dataset_prefetch(const struct mr_dataset *d, uint64_t next, uint64_t later)
{
    if (!d->entries)
        return;
    uint64_t far = entry_of(d, later);
    mr_entries_prefetch(&d->entries->e, entry_of(d, next), far);
    __builtin_prefetch((const void *)&d->entries->sizes[far]);
}

size_t mr_dataset_known_bytes(const struct mr_dataset *d, uint64_t index)
{
    if (!d->entries)
        return 0;
    return atomic_load_explicit(&d->entries->sizes[entry_of(d, index)], memory_order_relaxed);
}

void mr_dataset_know_bytes(struct mr_dataset *d, uint64_t index, size_t bytes)
{
    if (d->entries && bytes <= UINT_MAX)
        atomic_store_explicit(&d->entries->sizes[entry_of(d, index)], (unsigned)bytes,
                              memory_order_relaxed);
}

size_t mr_dataset_memory(const struct mr_dataset *d)
{
    size_t pick = d->pick32 ? 4 : d->pick64 ? 8 : 0;
    size_t shared = 0;
    if (d->entries)
        shared = mr_entries_memory(&d->entries->e) + d->entries->e.n * sizeof *d->entries->sizes;
    return sizeof *d + d->n * pick + shared;
}
