/* posix_store.c - the store of files: names are paths.
 *
 * A relative path begins at a descriptor: the store opens the folder that is the working one when
 * it is opened itself, so chdir() changes nothing later.  A spec that is absolute yields absolute
 * names and needs none. */
#include "posix_store.h"

#include "device.h"
#include "errtext.h"
#include "open_file.h"
#include "page_cache.h"
#include "source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct posix_store {
    struct mr_store base;
    int folder;
};

int mr_posix_store_folder(const struct mr_store *s)
{
    return ((const struct posix_store *)s)->folder;
}

static void close_store(struct mr_store *s)
{
    int folder = mr_posix_store_folder(s);
    if (folder >= 0)
        close(folder);
    free(s);
}

static int open_store(const char *path, struct mr_store **out, const char **name,
                      struct mr_error *err)
{
    struct posix_store *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    s->base.ops = &mr_posix_store;
    atomic_init(&s->base.refs, 1);
    s->folder = path[0] == '/' ? AT_FDCWD : mr_open_file(".", O_PATH | O_DIRECTORY, 0);
    if (s->folder < 0 && s->folder != AT_FDCWD) {
        int r = s->folder;
        free(s);
        return mr_fail(err, r, "%s: the working folder cannot be opened: %s", path,
                       mr_errno_text(r));
    }
    *out = &s->base;
    *name = path;
    return 0;
}

static enum mr_blob_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? MR_BLOB_FILE : S_ISDIR(mode) ? MR_BLOB_FOLDER : MR_BLOB_OTHER;
}

static int stat_blob(struct mr_store *s, const char *name, struct mr_blob_stat *out)
{
    struct stat st;
    if (fstatat(mr_posix_store_folder(s), name, &st, 0))
        return -errno;
    *out = (struct mr_blob_stat){
        .kind = kind_of(st.st_mode),
        .bytes = (uint64_t)st.st_size,
        .version = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec,
    };
    return 0;
}

/* Links count as what they point to, and one that points nowhere as a file. */
static enum mr_blob_kind kind_of_entry(DIR *dir, const struct dirent *d)
{
    struct stat st;
    switch (d->d_type) {
    case DT_REG:
        return MR_BLOB_FILE;
    case DT_DIR:
        return MR_BLOB_FOLDER;
    case DT_LNK:
    case DT_UNKNOWN:
        return fstatat(dirfd(dir), d->d_name, &st, 0) ? MR_BLOB_FILE : kind_of(st.st_mode);
    }
    return MR_BLOB_OTHER;
}

/* opendir() of a name that begins at the store's folder. */
static DIR *open_folder(struct mr_store *s, const char *folder)
{
    int fd = openat(mr_posix_store_folder(s), folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir)
        close(fd);
    return dir;
}

static int list(struct mr_store *s, const char *folder, mr_list_fn *each, void *ctx)
{
    DIR *dir = open_folder(s, folder);
    struct dirent *d;
    int r = 0;
    if (!dir)
        return -errno;
    while (!r && (errno = 0, d = readdir(dir))) {
        if (d->d_name[0] == '.' && (!d->d_name[1] || (d->d_name[1] == '.' && !d->d_name[2])))
            continue;
        r = each(ctx, d->d_name, kind_of_entry(dir, d));
        errno = 0;
    }
    if (!r && errno)
        r = -errno;
    closedir(dir);
    return r;
}

static int cache(struct mr_store *s, const char *name, const struct mr_extent *e, int evict,
                 struct mr_cache_state *before, struct mr_cache_state *after)
{
    return mr_cache_range(mr_posix_store_folder(s), name, e->offset, e->length, evict, before,
                          after);
}

static void place(struct mr_store *s, const char *name, int fd, const struct mr_device *d,
                  uint64_t inode, uint64_t offset, struct mr_device_place *out)
{
    if (fd >= 0)
        mr_device_place_fd(d, fd, offset, out);
    else
        mr_device_place_path(d, mr_posix_store_folder(s), name, inode, offset, out);
}

static int source(struct mr_store *s, const struct mr_source_opts *o, struct mr_source **out,
                  struct mr_error *err)
{
    return o->async ? mr_uring_source_open(s, o, out, err) : mr_posix_source_open(s, o, out, err);
}

const struct mr_store_ops mr_posix_store = {
    .scheme = "file",
    .what = "files by path",
    .open = open_store,
    .close = close_store,
    .stat = stat_blob,
    .list = list,
    .cache = cache,
    .place = place,
    .source = source,
};
