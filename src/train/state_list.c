/* state_list.c - see state_list.h.  Names are TensorFlow's, so that its users find their way. */
#include "state_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mr_state_list_free(struct mr_state_tensor *state, unsigned n)
{
    for (unsigned i = 0; state && i < n; i++)
        free((char *)state[i].name);
    free(state);
}

int mr_state_list_new(const struct mr_params *p, struct mr_state_tensor **out, unsigned *n)
{
    static const char *const suffix[MR_STATE_PER_PARAM] = {"", "/Adam", "/Adam_1"};
    unsigned total = p->n_tensors * MR_STATE_PER_PARAM;
    struct mr_state_tensor *state = calloc(total, sizeof *state);
    if (!state)
        return -ENOMEM;
    for (unsigned i = 0; i < total; i++) {
        const struct mr_param *from = &p->tensors[i / MR_STATE_PER_PARAM];
        unsigned part = i % MR_STATE_PER_PARAM;
        struct mr_state_tensor *to = &state[i];
        char *name;
        if (asprintf(&name, "%s%s", from->name, suffix[part]) < 0) {
            mr_state_list_free(state, total);
            return -ENOMEM;
        }
        to->name = name;
        to->n_dims = from->n_dims;
        memcpy(to->dims, from->dims, sizeof to->dims);
        to->data = part == 0 ? from->weights : part == 1 ? from->moment1 : from->moment2;
        to->bytes = from->n * sizeof *to->data;
    }
    *out = state;
    *n = total;
    return 0;
}
