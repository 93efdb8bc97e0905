/* generated_set.c - see generated_set.h.
 *
 * A folder may be used when it is empty or when everything in it is ours.  Ours is what the mark
 * names: regular files with the names of the set in real folders of the classes, and a list.csv
 * with just the lines that were written.  Anything else, a link included, is somebody's, and the
 * set around it stays as well.  A new file system's lost+found does not count.
 *
 *     millrace generated set
 *     count 300
 *     classes 5
 *
 * All is looked at before the first file is removed.  The mark goes last: a removal that was cut
 * off can be done again. */
#include "generated_set.h"

#include "errtext.h"
#include "new_file.h"
#include "open_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK "/.millrace-generated"
#define LIST "/list.csv"

/* A folder's entries, without . and .. */
struct entries {
    DIR *dir;
    const char *name; /* of this one */
    struct stat st;   /* its own, when it is a link */
};

static int open_entries(int at, const char *path, struct entries *e)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    e->dir = fdopendir(fd);
    int r = e->dir ? 0 : -errno;
    if (r)
        close(fd);
    return r;
}

/* 1, 0 at the end, or -errno. */
static int next_entry(struct entries *e)
{
    struct dirent *d;
    do {
        errno = 0;
        d = readdir(e->dir);
        if (!d)
            return -errno;
    } while (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."));
    e->name = d->d_name;
    return fstatat(dirfd(e->dir), d->d_name, &e->st, AT_SYMLINK_NOFOLLOW) ? -errno : 1;
}

static void path_of(const char *dir, const char *name, char path[PATH_MAX])
{
    if (snprintf(path, PATH_MAX, "%s%s", dir, name) >= PATH_MAX)
        path[0] = 0; /* mr_generate has refused such a folder */
}

void mr_generated_name(const struct mr_generated_set *s, uint64_t index, char *buf, size_t cap)
{
    snprintf(buf, cap, "class_%04u/%08llu.jpg", (unsigned)mr_generated_class(s, index),
             (unsigned long long)index);
}

static void mark_text(const struct mr_generated_set *s, char text[96])
{
    snprintf(text, 96, "millrace generated set\ncount %" PRIu64 "\nclasses %" PRIu32 "\n", s->count,
             s->classes);
}

/* 1: the mark of a set is there. */
static int read_mark(const char *dir, struct mr_generated_set *s)
{
    char path[PATH_MAX], text[96] = "", same[96];
    struct stat st;
    path_of(dir, MARK, path);
    int fd = mr_open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    ssize_t n = !fstat(fd, &st) && S_ISREG(st.st_mode) ? read(fd, text, sizeof text - 1) : -1;
    close(fd);
    if (n < 0 || sscanf(text, "millrace generated set count %" SCNu64 " classes %" SCNu32,
                        &s->count, &s->classes) != 2)
        return 0;
    mark_text(s, same);
    return !strcmp(text, same) && s->classes && s->classes <= s->count;
}

/* Is it a file of class k? */
static int is_image(const struct mr_generated_set *s, uint32_t k, const struct entries *e)
{
    char name[64];
    char *end;
    uint64_t index = strtoull(e->name, &end, 10);
    mr_generated_name(s, index, name, sizeof name);
    return S_ISREG(e->st.st_mode) && index < s->count && mr_generated_class(s, index) == k &&
           !strcmp(strchr(name, '/') + 1, e->name);
}

/* 1, or 0 with the name of what is not ours in `foreign`, or -errno. */
static int is_class(const struct mr_generated_set *s, const struct entries *above, char *foreign)
{
    struct entries e;
    char name[32], *end;
    unsigned long k =
        strncmp(above->name, "class_", 6) ? ULONG_MAX : strtoul(above->name + 6, &end, 10);
    snprintf(foreign, PATH_MAX, "%s", above->name);
    snprintf(name, sizeof name, "class_%04lu", k);
    if (k >= s->classes || strcmp(name, above->name) || !S_ISDIR(above->st.st_mode))
        return 0;
    int r = open_entries(dirfd(above->dir), above->name, &e);
    if (r)
        return r;
    int ours = 1;
    while (ours && (r = next_entry(&e)) > 0) {
        ours = is_image(s, (uint32_t)k, &e);
        if (!ours)
            snprintf(foreign, PATH_MAX, "%s/%s", above->name, e.name);
    }
    closedir(e.dir);
    return r < 0 ? r : ours;
}

/* Does the list have the lines that were written, and nothing else? */
static int is_list(const char *dir, const struct mr_generated_set *s)
{
    char path[PATH_MAX], line[96], want[96] = "path,label\n", name[64];
    uint64_t n = 0;
    path_of(dir, LIST, path);
    FILE *f = fopen(path, "re");
    int same = f != NULL;
    for (; same && fgets(line, sizeof line, f); n++) {
        if (n) {
            mr_generated_name(s, n - 1, name, sizeof name);
            snprintf(want, sizeof want, "%s,%u\n", name, (unsigned)mr_generated_class(s, n - 1));
        }
        same = n <= s->count && !strcmp(line, want);
    }
    if (f)
        fclose(f);
    return same && n;
}

static int is_ours(const char *dir, const struct mr_generated_set *s, const struct entries *e,
                   char *foreign)
{
    snprintf(foreign, PATH_MAX, "%s", e->name);
    if (!strcmp(e->name, &MARK[1]))
        return 1; /* read_mark has seen it */
    if (!strcmp(e->name, &LIST[1]))
        return S_ISREG(e->st.st_mode) && is_list(dir, s);
    return is_class(s, e, foreign);
}

/* What is in the folder?  0: nothing, 1: a set of ours and nothing else, or -errno with words. */
static int look(const char *dir, struct mr_generated_set *earlier, struct mr_error *err)
{
    char foreign[PATH_MAX], path[PATH_MAX];
    struct entries e;
    int marked = read_mark(dir, earlier), empty = 1, ours = 1;
    path_of(dir, "/", path); /* a link to a folder is one */
    int r = open_entries(AT_FDCWD, path, &e);
    if (r)
        return mr_fail(err, r, "%s: %s", dir, mr_errno_text(r));
    while (ours > 0 && (r = next_entry(&e)) > 0) {
        if (!strcmp(e.name, "lost+found") && S_ISDIR(e.st.st_mode))
            continue;
        empty = 0;
        snprintf(foreign, sizeof foreign, "%s", e.name);
        ours = marked ? is_ours(dir, earlier, &e, foreign) : 0;
    }
    closedir(e.dir);
    if (r < 0 || ours < 0)
        return mr_fail(err, r < 0 ? r : ours, "%s: %s", dir, mr_errno_text(r < 0 ? r : ours));
    if (!ours && marked)
        return mr_fail(err, -ENOTEMPTY,
                       "%s has a generated set and something else, %s: move that away, or name "
                       "another folder",
                       dir, foreign);
    if (!ours)
        return mr_fail(err, -ENOTEMPTY,
                       "%s is not empty (it has %s) and has no generated set: name a new or an "
                       "empty folder",
                       dir, foreign);
    return !empty;
}

static int remove_one(const char *path, int is_folder, struct mr_error *err)
{
    int r = (is_folder ? rmdir(path) : unlink(path)) && errno != ENOENT ? -errno : 0;
    return r ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

/* The list first: it must not name what is gone. */
static int clear(const char *dir, const struct mr_generated_set *s, struct mr_error *err)
{
    char path[PATH_MAX], name[64] = "/";
    path_of(dir, LIST, path);
    int r = remove_one(path, 0, err);
    for (uint64_t i = 0; !r && i < s->count; i++) {
        mr_generated_name(s, i, name + 1, sizeof name - 1);
        path_of(dir, name, path);
        r = remove_one(path, 0, err);
    }
    for (uint32_t k = 0; !r && k < s->classes; k++) {
        snprintf(name, sizeof name, "/class_%04u", (unsigned)k);
        path_of(dir, name, path);
        r = remove_one(path, 1, err);
    }
    return r;
}

static int make_folders(const char *dir, const struct mr_generated_set *s, struct mr_error *err)
{
    char path[PATH_MAX], name[32];
    int r = 0;
    for (uint32_t k = 0; !r && k < s->classes; k++) {
        snprintf(name, sizeof name, "/class_%04u", (unsigned)k);
        path_of(dir, name, path);
        if (mkdir(path, 0777))
            r = mr_fail(err, -errno, "%s: %s", path, mr_errno_text(errno));
    }
    return r;
}

static int write_mark(const char *dir, const struct mr_generated_set *s, struct mr_error *err)
{
    char path[PATH_MAX], text[96];
    path_of(dir, MARK, path);
    mark_text(s, text);
    int r = mr_new_file_put(path, text, strlen(text));
    return r ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

int mr_generated_claim(const char *dir, const struct mr_generated_set *s, int again,
                       struct mr_error *err)
{
    struct mr_generated_set earlier;
    int r = mkdir(dir, 0777) ? -errno : 0;
    if (r && r != -EEXIST)
        return mr_fail(err, r, "%s: %s", dir, mr_errno_text(r));
    int there = r ? look(dir, &earlier, err) : 0;
    if (there < 0)
        return there;
    if (there && !again)
        return mr_fail(err, -EEXIST, "%s has a generated set of %" PRIu64 " image%s already", dir,
                       earlier.count, earlier.count == 1 ? "" : "s");
    r = there ? clear(dir, &earlier, err) : 0;
    if (!r)
        r = write_mark(dir, s, err);
    return r ? r : make_folders(dir, s, err);
}
