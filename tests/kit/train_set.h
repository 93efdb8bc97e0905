/* train_set.h - a few generated photos, and a training run over them. */
#ifndef MR_TEST_TRAIN_SET_H
#define MR_TEST_TRAIN_SET_H

#include "tempdir.h"
#include "trainer.h"

/* Make photos in folder `name` of t; returns a reference. */
struct mr_dataset *train_set_new(struct tempdir *t, const char *name, unsigned n, unsigned classes);

/* Two workers, no error budget to speak of, images of 16 x 16, one epoch, batches of 4. */
struct mr_train_opts train_set_opts(struct mr_dataset *data, const char *device);

/* Run to its end or fail the test; the result is the caller's. */
struct mr_train_result train_set_run(const struct mr_train_opts *o);
/* It must fail with this code and these words, after `steps` steps. */
void train_set_fails(const struct mr_train_opts *o, int code, const char *words, uint64_t steps);

#endif
