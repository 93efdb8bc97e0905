/* dataset.h - which samples there are: where they lie, their labels and classes.
 *
 * A sample is a file, or part of one.  A data set is a folder with one sub-folder per class, or a
 * CSV list of `path,label` lines.  It is read-only after opening and may be shared by threads and
 * pipelines.
 *
 * A relative path is relative to the working folder at the time of opening.  The data set keeps
 * that folder open, so that chdir() changes nothing for pipelines. */
/* Example:
 *
 *     struct mr_dataset *data;
 *
 *     if (mr_dataset_open("photos", &data, NULL))
 *         return 1;
 *     for (uint64_t i = 0; i < mr_dataset_size(data); i++) {
 *         const char *name = mr_dataset_class_name(data, mr_dataset_label(data, i));
 *         printf("%s\n", name ? name : "a class without a name");
 *     }
 *     mr_dataset_unref(data);
 */
#ifndef MILLRACE_DATASET_H
#define MILLRACE_DATASET_H

#include <millrace/api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mr_dataset;

enum mr_shuffle {
    MR_SHUFFLE_GLOBAL, /* a keyed permutation of the whole data set, new in every epoch */
    MR_SHUFFLE_WINDOW, /* a buffer of `window` samples from which one is drawn at random */
    MR_SHUFFLE_NONE,   /* the data set's own order */
};

/* Open what `spec` names, a path or file://path, as the format that it has; returns a reference.
 * -ENOTSUP: an unknown scheme; the text says which there are.
 *
 * Folder: the sorted names of its sub-folders are the classes 0, 1, 2, ...; every regular file
 * below one whose name does not begin with a dot is a sample, in sorted order.  A folder without
 * sub-folders is one class without a name.
 * List: one `path,label` a line; a path is relative to the list's folder or absolute; fields may be
 * quoted; blank lines are skipped; a missing label is 0; a first line `path,label` is a heading.
 * Labels may be names of classes instead of numbers: sorted, these are the classes 0, 1, 2, ...
 * ';' separates when the first line has one and no comma. */
MR_API int mr_dataset_open(const char *spec, struct mr_dataset **out, struct mr_error *err);

/* `n` samples without files, for maps that make their own data.  Returns a reference. */
MR_API int mr_dataset_range(uint64_t n, struct mr_dataset **out, struct mr_error *err);

/* Divide by seed: about `part` (0..1) of the samples go to *held, the others to *rest, each in the
 * order they had.  The same seed gives the same division.  Both returned are references. */
MR_API int mr_dataset_split(struct mr_dataset *d, double part, uint64_t seed,
                            struct mr_dataset **rest, struct mr_dataset **held,
                            struct mr_error *err);

MR_API struct mr_dataset *mr_dataset_ref(struct mr_dataset *d);
MR_API void mr_dataset_unref(struct mr_dataset *d);

MR_API uint64_t mr_dataset_size(const struct mr_dataset *d);
MR_API uint32_t mr_dataset_n_classes(const struct mr_dataset *d); /* largest label + 1 */
/* NULL when classes have no names. */
MR_API const char *mr_dataset_class_name(const struct mr_dataset *d, uint32_t label);
MR_API uint32_t mr_dataset_label(const struct mr_dataset *d, uint64_t index);
/* Write what to call sample `index` when it is shown, with its closing NUL: its file's path as it
 * was at opening, and "@offset" behind it where the sample is part of a file.  Returns the length,
 * -ENAMETOOLONG when it does not fit, or -ENOENT for a data set without files. */
MR_API int mr_dataset_name(const struct mr_dataset *d, uint64_t index, char *buf, size_t cap);
/* Bytes of memory that the table of samples takes. */
MR_API size_t mr_dataset_memory(const struct mr_dataset *d);

#ifdef __cplusplus
}
#endif
#endif
