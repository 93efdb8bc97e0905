/* train_state.h - everything that training changes, as one list of named tensors. */
#ifndef MR_TRAIN_STATE_H
#define MR_TRAIN_STATE_H

#include "accelerator.h"
#include "params.h"

#define MR_STATE_PER_PARAM 3 /* weights, NAME/Adam, NAME/Adam_1, in a row */

/* Lists what `p` (borrowed) holds.  0 or -ENOMEM. */
int mr_train_state_new(const struct mr_params *p, struct mr_state_tensor **out, unsigned *n);
void mr_train_state_free(struct mr_state_tensor *state, unsigned n);

#endif
