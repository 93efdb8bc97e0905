/* tf_meta.h - PREFIX.meta: the graph with which TensorFlow 1 restores a checkpoint.
 *
 * What is written has all that import_meta_graph and restore look at.  That is verified by parsing;
 * TensorFlow itself is not run by this project. */
#ifndef MR_TF_META_H
#define MR_TF_META_H

#include "bytes.h"
#include "tensor_table.h"

#define MR_META_MAX_FILE ((size_t)1 << 30)

struct mr_tf_meta {
    size_t n_nodes, n_variables, n_restored; /* n_restored: tensors that the restore op names */
    size_t n_collections;
    unsigned producer; /* version of the graph's maker; 21 is TensorFlow 1.0 */
    int has_saver;     /* and its three names were found among the nodes */
    unsigned saver_version;
};

/* Append the MetaGraphDef of a program whose variables are the tensors of `t`, without those of
 * type string.  0 or -ENOMEM. */
int mr_tf_meta_write(const struct mr_tensor_table *t, struct mr_bytes *out);

/* Read one that is in memory and check what TensorFlow would trip over: that it parses, that every
 * input of a node is a node, that the saver's names are.  With `saved` also that every tensor that
 * the graph restores by name is there.  0, -EBADMSG, -ENOMEM. */
int mr_tf_meta_parse(const char *name, const uint8_t *bytes, size_t len,
                     const struct mr_tensor_table *saved, struct mr_tf_meta *out,
                     struct mr_error *err);

#endif
