/* ckpt_samples.h - small checkpoints for tests. */
#ifndef MR_TEST_CKPT_SAMPLES_H
#define MR_TEST_CKPT_SAMPLES_H

#include "bytes.h"
#include "ckpt_file.h"
#include "tempdir.h"
#include "tensor_table.h"

/* A few tensors of several types, shapes and sizes, one of them empty, one a scalar, one of
 * strings; their data live as long as the program. */
void sample_table(struct mr_tensor_table *t);

/* Three strings, the way TensorFlow lays them out; the entry's crc. */
uint32_t sample_strings(struct mr_bytes *out);

/* Write the sample as tempdir/NAME.* without any help of the code that converts; align 1: packed.
 * With a graph and the note about it. */
void sample_write_tf(struct tempdir *dir, const char *name, unsigned align);
void sample_write_safetensors(struct tempdir *dir, const char *name);

/* tempdir/NAME.* as TensorFlow 2's tf.train.Checkpoint writes it: names with .ATTRIBUTES, the
 * object graph as a string, no .meta; and its `checkpoint`, with times.  A variable's 2 x 3 floats
 * are those of "conv1/weights" above. */
void sample_write_tf2(struct tempdir *dir, const char *name);
#define SAMPLE_TF2_GRAPH  "_CHECKPOINTABLE_OBJECT_GRAPH"
#define SAMPLE_TF2_KERNEL "model/conv1/kernel/.ATTRIBUTES/VARIABLE_VALUE"
#define SAMPLE_TF2_COUNT  "save_counter/.ATTRIBUTES/VARIABLE_VALUE"

/* tempdir/NAME.* with one tensor "p", uint16, stored in four parts over three data files.  Element
 * number i, row by row, is 7 i + 1. */
void sample_write_parts(struct tempdir *dir, const char *name);
#define SAMPLE_PARTS_DIMS                                                                          \
    {                                                                                              \
        12, 10, 9                                                                                  \
    }

/* Does the file hold what sample_table says?  Fails the test if not. */
void sample_check(struct mr_ckpt_file *c);

/* A file's bytes; free them. */
uint8_t *sample_load(const char *path, size_t *len);

#endif
