/* save_arrays.c - train two arrays for a while, saving them as it goes; a second run goes on.
 *
 *     save_arrays DIR [STEPS] */
#include <millrace/checkpoint.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define N 1000

static float weights[N];
static int64_t step;
static const struct mr_array arrays[] = {
    {"weights", MR_DT_F32, 1, {N}, weights},
    {"step", MR_DT_I64, 0, {0}, &step},
};

static void tell(void *ctx, const char *path, const char *why)
{
    (void)ctx;
    printf("passed over %s: %s\n", path, why);
}

static int resume(const char *dir)
{
    struct mr_restore_opts opts = {.dir = dir, .passed_over = tell};
    struct mr_restored found;
    struct mr_error err = {0};
    int r = mr_checkpoint_restore(arrays, 2, &opts, &found, &err);
    if (!r)
        printf("resumed from %s, step %" PRId64 ", weights[1] %g\n", found.path, step, weights[1]);
    else if (!step)
        printf("from the beginning: %s\n", err.text);
    return 0;
}

/* One step: everything but the change of the arrays may overlap with their being saved. */
static void train(struct mr_checkpoint *c)
{
    mr_checkpoint_before_write(c, 0);
    for (int i = 0; i < N; i++)
        weights[i] += (float)i;
    mr_checkpoint_before_write(c, 1);
    step++;
}

int main(int argc, char **argv)
{
    struct mr_checkpoint *c = NULL;
    struct mr_checkpoint_stats stats;
    struct mr_error err = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: %s DIR [STEPS]\n", argv[0]);
        return 2;
    }
    int64_t steps = argc > 2 ? atoi(argv[2]) : 40;
    resume(argv[1]);
    struct mr_checkpoint_opts opts = {.dir = argv[1], .keep = 2};
    int r = mr_checkpoint_open(arrays, 2, &opts, &c, &err);
    for (int64_t end = step + steps; !r && step < end;) {
        train(c);
        if (step % 10 == 0)
            r = mr_checkpoint_begin(c, (uint64_t)step, &err);
    }
    if (!r && c)
        r = mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, &err);
    if (c) {
        mr_checkpoint_get_stats(c, &stats);
        printf("%" PRIu64 " checkpoints, newest step %" PRId64 "\n", stats.begun, stats.last_fast);
    }
    if (mr_checkpoint_close(c, &err) || err.code) {
        fprintf(stderr, "%s\n", err.text);
        r = -1;
    }
    return r != 0;
}
