/* photo_set.h - small data sets for the pipeline's tests: known contents, known bad files. */
#ifndef MR_TEST_PHOTO_SET_H
#define MR_TEST_PHOTO_SET_H

#include <millrace/pipeline.h>

#include "tempdir.h"

/* n files in 3 classes whose first eight bytes are their number and whose sizes vary: from a few
 * bytes to 70,000, and every 37th 600,000. */
void photo_set_write(struct tempdir *t, unsigned n);
/* Nonzero when the bytes are exactly those of some file of the set; its number in *which. */
int photo_set_is(const uint8_t *bytes, size_t len, uint64_t *which);

/* A list of those files with bad ones among them: every `every`-th line is missing, a folder,
 * empty, a pipe or too large, in turn.  The path of the list. */
const char *photo_set_list(struct tempdir *t, unsigned n, unsigned every);
#define PHOTO_TOO_LARGE (1u << 20) /* max_file_bytes that the large one exceeds */

/* Open the data set or fail the test. */
struct mr_dataset *photo_set_open(const char *path);
/* Hash of a batch: its place, and its samples' numbers, labels, lengths and bytes. */
uint64_t photo_set_batch_hash(const struct mr_batch *b);
/* Draw everything; hash of all batches in order.  *r is what the last call returned. */
uint64_t photo_set_hash(struct mr_dataset *d, const struct mr_pipeline_opts *o, int *r);

/* The engine that MILLRACE_ENGINE names, "threads" or "uring"; nonzero where it is unavailable.
 */
extern enum mr_engine photo_set_engine;
int photo_set_choose_engine(void);
/* For that engine: a few threads, small batches, PHOTO_TOO_LARGE. */
struct mr_pipeline_opts photo_set_opts(void);
/* Open a pipeline or fail the test. */
struct mr_pipeline *photo_set_pipeline(struct mr_dataset *d, const struct mr_pipeline_opts *o);
/* A map to 8 bytes: the number of the file. */
int photo_set_number(void *ctx, const struct mr_map_input *in, void *slot);

#endif
