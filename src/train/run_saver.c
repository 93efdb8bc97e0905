/* run_saver.c - see run_saver.h.
 *
 * A checkpoint holds the accelerator's state (weights and Adam's moments, by TensorFlow's names)
 * and the small numbers that make a resumed run the same run: Adam's powers, the number of updates,
 * the position in the data set, the seed and what else decides the order.  These are registered
 * behind the state and change only right before begin, after before_write has said that the last
 * snapshot has them. */
#include "run_saver.h"

#include "errtext.h"
#include "train_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum small { BETA1, BETA2, STEP, POSITION, ORDER, SEED, N_SMALL };
enum of_order { SHUFFLE, WINDOW, BATCH, WORLD, SAMPLES, N_ORDER };

struct mr_run_saver {
    struct mr_accelerator *a;
    struct mr_checkpoint *c;
    struct mr_array *array; /* [n_state + N_SMALL] */
    unsigned n_state, every;
    int skips;          /* when the buffers are busy */
    int64_t last_begun; /* step, -1: none since open */
    float beta1, beta2;
    int64_t step, position[2], order[N_ORDER];
    uint64_t seed;
};

static void list_arrays(struct mr_run_saver *s, const struct mr_state_tensor *state)
{
    const struct mr_array small[N_SMALL] = {
        [BETA1] = {MR_STATE_BETA1_POWER, MR_DT_F32, 0, {0}, &s->beta1},
        [BETA2] = {MR_STATE_BETA2_POWER, MR_DT_F32, 0, {0}, &s->beta2},
        [STEP] = {MR_STATE_GLOBAL_STEP, MR_DT_I64, 0, {0}, &s->step},
        [POSITION] = {MR_STATE_POSITION, MR_DT_I64, 1, {2}, s->position},
        [ORDER] = {MR_STATE_ORDER, MR_DT_I64, 1, {N_ORDER}, s->order},
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

static void set_order(struct mr_run_saver *s, const struct mr_run_order *o)
{
    s->seed = o->seed;
    s->order[SHUFFLE] = o->shuffle;
    s->order[WINDOW] = o->window;
    s->order[BATCH] = o->batch;
    s->order[WORLD] = o->world;
    s->order[SAMPLES] = (int64_t)o->n_samples;
}

static const char *shuffle_name(int64_t shuffle)
{
    return shuffle == MR_SHUFFLE_GLOBAL   ? "global"
           : shuffle == MR_SHUFFLE_WINDOW ? "window"
           : shuffle == MR_SHUFFLE_NONE   ? "none"
                                          : "of an unknown kind";
}

/* Whether samples go on in the order in which the checkpoint's run had them. */
static int check_order(const struct mr_run_saver *s, const struct mr_run_order *o, const char *path,
                       struct mr_error *err)
{
    static const char way_out[] = "resume with the same, or start afresh in another folder";
    const int64_t *had = s->order;
    if (s->seed != o->seed)
        return mr_fail(err, -EINVAL, "%s was trained with --seed %llu: %s", path,
                       (unsigned long long)s->seed, way_out);
    if (had[SAMPLES] != (int64_t)o->n_samples)
        return mr_fail(err, -EINVAL,
                       "%s was trained on %lld images, and here are %llu to train on: resume with "
                       "the same data set and --eval, or start afresh in another folder",
                       path, (long long)had[SAMPLES], (unsigned long long)o->n_samples);
    if (had[SHUFFLE] != (int64_t)o->shuffle)
        return mr_fail(err, -EINVAL, "%s was trained with --shuffle %s: %s", path,
                       shuffle_name(had[SHUFFLE]), way_out);
    if (o->shuffle == MR_SHUFFLE_WINDOW &&
        (had[WINDOW] != o->window || had[BATCH] != o->batch || had[WORLD] != o->world))
        return mr_fail(err, -EINVAL,
                       "%s was trained with --shuffle window:%lld, --batch %lld and %lld shards, "
                       "and a window's order depends on all three: %s",
                       path, (long long)had[WINDOW], (long long)had[BATCH], (long long)had[WORLD],
                       way_out);
    return 0;
}

/* Whether what could not be restored is there, with a position that counts batches. */
static int counts_batches(const struct mr_restore_opts *how, struct mr_restored *got)
{
    struct mr_restore_opts quiet = *how;
    int64_t batches[2];
    const struct mr_array a = {MR_STATE_BATCH_POSITION, MR_DT_I64, 1, {2}, batches};
    quiet.passed_over = NULL;
    return !mr_checkpoint_restore(&a, 1, &quiet, got, NULL);
}

static int refuse_batch_position(const char *path, struct mr_error *err)
{
    if (err)
        *err = (struct mr_error){0}; /* these words say more */
    return mr_fail(err, -ENOTSUP,
                   "%s is of an earlier millrace, which counted batches and did not save how large "
                   "they were: resume with that version, or start afresh in another folder",
                   path);
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
        return counts_batches(&r, &got) ? refuse_batch_position(got.path, err) : code;
    code = check_order(s, &o->order, got.path, err);
    if (code)
        return code;
    if (s->step < 0 || s->position[0] < 0 || s->position[1] < 0)
        return mr_fail(err, -EBADMSG, "%s: a negative step or position", got.path);
    mr_accelerator_set_progress(s->a, (uint64_t)s->step, s->beta1, s->beta2);
    from->resumed = 1;
    from->step = (uint64_t)s->step;
    from->run = got.run;
    from->position.epoch = (uint64_t)s->position[0];
    from->position.samples = (uint64_t)s->position[1];
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
    s->skips = o->how->if_busy == MR_IF_BUSY_SKIP;
    s->last_begun = -1;
    state = mr_accelerator_state(a, &s->n_state);
    s->array = calloc(s->n_state + N_SMALL, sizeof *s->array);
    int code = s->array ? 0 : mr_fail(err, -ENOMEM, "no memory");
    if (!code) {
        list_arrays(s, state);
        if (o->resume)
            code = resume(s, o, from, err);
    }
    set_order(s, &o->order);
    struct mr_checkpoint_opts how = *o->how;
    how.run = from->run;
    how.fresh &= !o->resume;
    if (!code)
        code = mr_checkpoint_open(s->array, s->n_state + N_SMALL, &how, &s->c, err);
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

/* 0 = begun, 1 = skipped, -errno with words. */
static int begin(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                 struct mr_error *err)
{
    for (unsigned i = 0; i < N_SMALL; i++) /* of the one before, if it is still being copied */
        mr_checkpoint_before_write(s->c, s->n_state + i);
    mr_accelerator_powers(s->a, &s->beta1, &s->beta2);
    s->step = (int64_t)step;
    s->position[0] = (int64_t)next->epoch;
    s->position[1] = (int64_t)next->samples;
    struct mr_error why = {0};
    int r = mr_checkpoint_begin(s->c, step, &why);
    if (r < 0)
        return mr_fail(err, r, "checkpoint at step %llu: %.400s", (unsigned long long)step,
                       why.text);
    if (!r)
        s->last_begun = (int64_t)step;
    return r;
}

int mr_run_saver_after_step(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                            struct mr_error *err)
{
    if (step % s->every)
        return 0;
    int r = begin(s, step, next, err);
    return r < 0 ? r : !r;
}

int mr_run_saver_last_step(struct mr_run_saver *s, uint64_t step, const struct mr_position *next,
                           struct mr_error *err)
{
    if (s->last_begun == (int64_t)step)
        return 0;
    int earlier = s->skips ? mr_run_saver_finish(s, err) : 0;
    unsigned n = mr_run_saver_n(s);
    int r = begin(s, step, next, err);
    if (r < 0 && mr_run_saver_n(s) == n) { /* that was an earlier one's failure */
        earlier = earlier ? earlier : r;
        r = begin(s, step, next, err);
    }
    if (r == 1)
        r = mr_fail(err, -EBUSY, "checkpoint at step %llu: no buffer is free",
                    (unsigned long long)step);
    return r ? r : earlier ? earlier : 1;
}

int mr_run_saver_is_due(const struct mr_run_saver *s, uint64_t first, uint64_t steps)
{
    return steps / s->every > first / s->every;
}

int64_t mr_run_saver_last_good(struct mr_run_saver *s)
{
    struct mr_checkpoint_stats st;
    mr_checkpoint_get_stats(s->c, &st);
    return st.last_slow > st.last_fast ? st.last_slow : st.last_fast;
}

int mr_run_saver_finish(struct mr_run_saver *s, struct mr_error *err)
{
    struct mr_error why = {0};
    int r = mr_run_saver_n(s) ? mr_checkpoint_wait(s->c, MR_CHECKPOINT_DURABLE_SLOW, &why) : 0;
    return r < 0 ? mr_fail(err, r, "checkpoint: %.400s", why.text) : 0;
}

unsigned mr_run_saver_n(struct mr_run_saver *s)
{
    struct mr_checkpoint_stats st;
    mr_checkpoint_get_stats(s->c, &st);
    return (unsigned)st.begun;
}

int mr_run_saver_record(struct mr_run_saver *s, unsigned i, struct mr_checkpoint_record *out)
{
    return mr_checkpoint_get(s->c, i, out);
}

void mr_run_saver_status(struct mr_run_saver *s, struct mr_checkpoint_stats *out)
{
    mr_checkpoint_get_stats(s->c, out);
}

void mr_run_saver_close(struct mr_run_saver *s)
{
    if (!s)
        return;
    mr_checkpoint_close(s->c, NULL);
    free(s->array);
    free(s);
}
