/* run_saver.c - see run_saver.h.
 *
 * A checkpoint holds the accelerator's state (weights and Adam's moments, by TensorFlow's names)
 * and the small numbers that make a resumed run the same run: Adam's powers, the number of updates,
 * the position in the data set, the seed.  These are registered behind the state and change only
 * right before begin, after before_write has said that the last snapshot has them. */
#include "run_saver.h"

#include "errtext.h"
#include "train_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum small { BETA1, BETA2, STEP, POSITION, SEED, N_SMALL };

struct mr_run_saver {
    struct mr_accelerator *a;
    struct mr_checkpoint *c;
    struct mr_array *array; /* [n_state + N_SMALL] */
    unsigned n_state, every, n_begun;
    float beta1, beta2;
    int64_t step, position[2];
    uint64_t seed;
};

static void list_arrays(struct mr_run_saver *s, const struct mr_state_tensor *state)
{
    const struct mr_array small[N_SMALL] = {
        [BETA1] = {MR_STATE_BETA1_POWER, MR_DT_F32, 0, {0}, &s->beta1},
        [BETA2] = {MR_STATE_BETA2_POWER, MR_DT_F32, 0, {0}, &s->beta2},
        [STEP] = {MR_STATE_GLOBAL_STEP, MR_DT_I64, 0, {0}, &s->step},
        [POSITION] = {MR_STATE_POSITION, MR_DT_I64, 1, {2}, s->position},
        [SEED] = {MR_STATE_SEED, MR_DT_U64, 0, {0}, &s->seed},
    };
    for (unsigned i = 0; i < s->n_state; i++) {
        struct mr_array *to = &s->array[i];
        *to = (struct mr_array){state[i].name, MR_DT_F32, state[i].n_dims, {0}, state[i].data};
        for (unsigned d = 0; d < state[i].n_dims; d++)
            to->dims[d] = state[i].dims[d];
    }
    memcpy(s->array + s->n_state, small, sizeof small);
}

/* The newest checkpoint into the arrays, and from there to the accelerator. */
static int resume(struct mr_run_saver *s, const struct mr_run_saver_opts *o,
                  struct mr_resume_point *from, struct mr_error *err)
{
    struct mr_restored got;
    struct mr_restore_opts r = {.dir = o->how->dir,
                                .drain_dir = o->how->drain_dir,
                                .prefix = o->how->prefix,
                                .storage = o->how->storage,
                                .drain_storage = o->how->drain_storage,
                                .passed_over = o->passed_over,
                                .passed_over_ctx = o->ctx};
    int code = mr_checkpoint_restore(s->array, s->n_state + N_SMALL, &r, &got, err);
    if (code == -ENOENT) { /* nothing there yet: a fresh start */
        if (err)
            *err = (struct mr_error){0};
        return 0;
    }
    if (code)
        return code;
    if (s->seed != o->seed)
        return mr_fail(err, -EINVAL,
                       "%s was trained with --seed %llu: resume with the same, or start afresh in "
                       "another folder",
                       got.path, (unsigned long long)s->seed);
    if (s->step < 0 || s->position[0] < 0 || s->position[1] < 0)
        return mr_fail(err, -EBADMSG, "%s: a negative step or position", got.path);
    mr_accelerator_set_progress(s->a, (uint64_t)s->step, s->beta1, s->beta2);
    from->resumed = 1;
    from->step = (uint64_t)s->step;
    from->position.epoch = (uint64_t)s->position[0];
    from->position.batch = (uint64_t)s->position[1];
    memcpy(from->path, got.path, sizeof from->path);
    return 0;
}

int mr_run_saver_open(struct mr_accelerator *a, const struct mr_run_saver_opts *o,
                      struct mr_run_saver **out, struct mr_resume_point *from, struct mr_error *err)
{
    struct mr_run_saver *s = calloc(1, sizeof *s);
    const struct mr_state_tensor *state;
    *from = (struct mr_resume_point){0};
    if (!s)
        return mr_fail(err, -ENOMEM, "no memory");
    s->a = a;
    s->every = o->every ? o->every : 1;
    state = mr_accelerator_state(a, &s->n_state);
    s->array = calloc(s->n_state + N_SMALL, sizeof *s->array);
    int code = s->array ? 0 : mr_fail(err, -ENOMEM, "no memory");
    if (!code) {
        list_arrays(s, state);
        if (o->resume)
            code = resume(s, o, from, err);
    }
    s->seed = o->seed;
    if (!code)
        code = mr_checkpoint_open(s->array, s->n_state + N_SMALL, o->how, &s->c, err);
    if (code) {
        mr_run_saver_close(s);
        return code;
    }
    *out = s;
    return 0;
}

void mr_run_saver_before_write(struct mr_run_saver *s, unsigned tensor)
{
    mr_checkpoint_before_write(s->c, tensor);
}

int mr_run_saver_after_step(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                            struct mr_error *err)
{
    if (step % s->every)
        return 0;
    for (unsigned i = 0; i < N_SMALL; i++) /* of the one before, if it is still being copied */
        mr_checkpoint_before_write(s->c, s->n_state + i);
    mr_accelerator_powers(s->a, &s->beta1, &s->beta2);
    s->step = (int64_t)step;
    s->position[0] = (int64_t)next->epoch;
    s->position[1] = (int64_t)next->batch;
    int r = mr_checkpoint_begin(s->c, step);
    if (r < 0)
        return mr_fail(err, r, "checkpoint at step %llu: %s", (unsigned long long)step,
                       mr_checkpoint_error(s->c));
    s->n_begun += r == 0;
    return r == 0;
}

int64_t mr_run_saver_last_good(struct mr_run_saver *s)
{
    struct mr_checkpoint_status st;
    mr_checkpoint_status(s->c, &st);
    return st.last_slow > st.last_fast ? st.last_slow : st.last_fast;
}

int mr_run_saver_finish(struct mr_run_saver *s, struct mr_error *err)
{
    int r = s->n_begun ? mr_checkpoint_wait(s->c, MR_CHECKPOINT_DURABLE_SLOW) : 0;
    return r < 0 ? mr_fail(err, r, "checkpoint: %s", mr_checkpoint_error(s->c)) : 0;
}

unsigned mr_run_saver_n(const struct mr_run_saver *s)
{
    return s->n_begun;
}

int mr_run_saver_record(struct mr_run_saver *s, unsigned i, struct mr_checkpoint_record *out)
{
    return mr_checkpoint_get(s->c, i, out);
}

void mr_run_saver_status(struct mr_run_saver *s, struct mr_checkpoint_status *out)
{
    mr_checkpoint_status(s->c, out);
}

void mr_run_saver_close(struct mr_run_saver *s)
{
    if (!s)
        return;
    mr_checkpoint_close(s->c, NULL);
    free(s->array);
    free(s);
}
