/* studied_disk.h - which of the kernel's block devices is the storage that is studied.
 *
 * The one that holds a path; where that is not known (a network's file system, an overlay), every
 * disk that is not made of others, so that nothing is counted twice. */
#ifndef MR_STUDIED_DISK_H
#define MR_STUDIED_DISK_H

#include <millrace/dataset.h>

#include "diskstats.h"

struct mr_studied_disk {
    char name[MR_DISK_NAME]; /* "vda", "dm-0"; empty: not known */
};

void mr_studied_disk_find(struct mr_studied_disk *d, const char *path);
/* 1 when the row of a sample counts. */
int mr_studied_disk_has(const struct mr_studied_disk *d, const struct mr_disk *row);

/* 1 when a folder is on the storage that the samples of a data set are on. */
int mr_is_on_storage(const struct mr_dataset *data, const char *folder);

#endif
