/* state_list.h - everything that training changes, as one list of named tensors. */
#ifndef MR_STATE_LIST_H
#define MR_STATE_LIST_H

#include "accelerator.h"
#include "params.h"

#define MR_STATE_PER_PARAM 3 /* weights, NAME/Adam, NAME/Adam_1, in a row */

/* Lists what `p` (borrowed) holds.  0 or -ENOMEM. */
int mr_state_list_new(const struct mr_params *p, struct mr_state_tensor **out, unsigned *n);
void mr_state_list_free(struct mr_state_tensor *state, unsigned n);

#endif
