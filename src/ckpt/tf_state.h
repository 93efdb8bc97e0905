/* tf_state.h - the text file `checkpoint`, in which TensorFlow lists a folder's checkpoints.  It is
 * written for TensorFlow; nothing here reads it. */
#ifndef MR_TF_STATE_H
#define MR_TF_STATE_H

#include "bytes.h"

/* Append the file's text for `n` names, oldest first, the last one being the latest. */
void mr_tf_state_write(const char *const *names, size_t n, struct mr_bytes *out);

#endif
