/* sample_set.h - what the pipeline asks of a data set beyond <millrace/dataset.h>. */
#ifndef MR_SAMPLE_SET_H
#define MR_SAMPLE_SET_H

#include <millrace/dataset.h>

/* Samples `next` and, some time after it, `later` will be asked for: in a shuffled order their
 * entries are in no cache, and fetching them takes as long as a system call. */
void mr_dataset_prefetch(const struct mr_dataset *d, uint64_t next, uint64_t later);

/* How long the samples' files were when they were last read: a hint that saves asking, never a
 * promise.  Kept by all who share the data set's files.  Any thread. */
size_t mr_dataset_known_bytes(const struct mr_dataset *d, uint64_t index); /* 0: not known */
void mr_dataset_know_bytes(struct mr_dataset *d, uint64_t index, size_t bytes);

/* From where the samples' paths are looked up, for openat: the folder that was the working one when
 * the data set was opened, whatever it is now.  AT_FDCWD when all paths are absolute.  It stays
 * open as long as the data set is there. */
int mr_dataset_folder(const struct mr_dataset *d);

/* Is it a list without a single label?  Then all samples are of class 0. */
int mr_dataset_is_unlabelled(const struct mr_dataset *d);

/* How many of the first bytes of its paths all samples have in common: a folder and the '/' after
 * it.  0: none. */
size_t mr_dataset_common(const struct mr_dataset *d);

#endif
