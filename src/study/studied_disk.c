/* studied_disk.c - see studied_disk.h. */
#include "studied_disk.h"

#include "sample_set.h"
#include "environment.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void mr_studied_disk_find(struct mr_studied_disk *d, const char *path)
{
    struct mr_json *env = mr_environment(path);
    const char *name = mr_json_text(mr_json_at(env, "storage.device"));
    snprintf(d->name, sizeof d->name, "%s", name ? name : "");
    mr_json_free(env);
}

/* Made of other devices, which have rows of their own, or of memory. */
static int is_made_of_others(const struct mr_disk *row)
{
    static const char *const kinds[] = {"loop", "dm-", "md", "zram", "ram", "drbd", "bcache"};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(row->name, kinds[i], strlen(kinds[i])))
            return 1;
    return row->partition;
}

int mr_studied_disk_has(const struct mr_studied_disk *d, const struct mr_disk *row)
{
    return d->name[0] ? !strcmp(d->name, row->name) : !is_made_of_others(row);
}

/* Folders are compared: files of an overlay have the numbers of what lies below. */
int mr_is_on_storage(const struct mr_dataset *data, const char *folder)
{
    struct stat with, of;
    char path[PATH_MAX];
    if (mr_dataset_blob_name(data, 0, path, sizeof path) < 0)
        return 0;
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    return !stat(slash ? path : ".", &with) && !stat(folder, &of) && with.st_dev == of.st_dev;
}
