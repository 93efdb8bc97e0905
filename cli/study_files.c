/* study_files.c - see study_files.h. */
#include "study_files.h"

#include "errtext.h"
#include "lab.h"
#include "new_file.h"
#include "report.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST ((off_t)256 << 20) /* of a results file */

/* The whole file, to be freed; NULL with errno set. */
static char *slurp(const char *path, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    char *text = NULL;
    if (fstat(fd, &st)) {
    } else if (!S_ISREG(st.st_mode) || st.st_size > LARGEST) {
        errno = EFBIG;
    } else if ((text = malloc((size_t)st.st_size + 1))) {
        size_t got = 0;
        ssize_t n = 0;
        while (got < (size_t)st.st_size && (n = read(fd, text + got, (size_t)st.st_size - got)) > 0)
            got += (size_t)n;
        if (n < 0) {
            free(text);
            text = NULL;
        }
        *len = got;
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return text;
}

struct mr_json *study_read(const char *dir, const char *name)
{
    char path[PATH_MAX];
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *text = slurp(path, &len);
    struct mr_json *root = text ? mr_json_parse(text, len) : NULL;
    free(text);
    return root;
}

void study_remove(const char *dir)
{
    mr_lab_remove_dir(dir);
}

struct mr_json *study_load(const char *dir)
{
    char path[PATH_MAX];
    size_t len = 0;
    snprintf(path, sizeof path, "%s/results.json", dir);
    char *text = slurp(path, &len);
    if (!text) {
        say_to(stderr, "millrace: %s: %s%s\n", path, mr_errno_text(errno),
               errno == ENOENT ? "; 'millrace study --out DIR' writes one" : "");
        return NULL;
    }
    struct mr_json *root = mr_json_parse(text, len);
    free(text);
    if (!root)
        say_to(stderr, "millrace: %s is not JSON\n", path);
    return root;
}

int study_write(const char *dir, const char *name, const char *text, size_t len)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return -ENAMETOOLONG;
    return mr_new_file_put(path, text, len);
}

int study_write_csv(void *dir, const char *id, const char *text, size_t len)
{
    char name[64];
    snprintf(name, sizeof name, "%s.csv", id);
    return study_write(dir, name, text, len);
}

int study_render(const char *dir, const struct mr_json *results)
{
    struct mr_markup page = {0};
    struct mr_error err = {0};
    struct mr_report_opts o = {.on_csv = study_write_csv, .ctx = (void *)dir};
    int r = mr_report_render(results, &o, &page, &err);
    if (!r) {
        r = study_write(dir, "report.html", page.data, page.len);
        if (r)
            mr_fail(&err, r, "report.html: %s", mr_errno_text(r));
    }
    if (r)
        say_to(stderr, "millrace: %s: %s\n", dir, err.text);
    mr_markup_fini(&page);
    return r ? 1 : 0;
}
