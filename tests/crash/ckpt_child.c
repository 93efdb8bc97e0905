/* ckpt_child.c - a training run that is there to be killed, and the judge of what it leaves.
 *
 *     ckpt_child run FAST SLOW|- lazy|burst|sync tf|safetensors    goes on from what it finds, for
 *                                                                  ever; prints "durable STEP", and
 *                                                                  "below STEP" when it is so on
 *                                                                  the slow tier
 *     ckpt_child check FAST SLOW|-                                 prints "restored STEP"
 *     ckpt_child cut DIR                                           shuts DIR's file system down as
 * a power cut would
 *
 * A line is printed when wait() has returned, so each is a promise. */
#include "ckpt_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LARGE         ((uint64_t)5 << 20)
#define SHUTDOWN      _IOR('X', 125, uint32_t) /* EXT4_IOC_SHUTDOWN, FS_IOC_SHUTDOWN */
#define WITHOUT_FLUSH 2                        /* EXT4_GOING_FLAGS_NOLOGFLUSH */

static void tell(void *ctx, const char *path, const char *why)
{
    (void)ctx;
    fprintf(stderr, "passed over %s: %s\n", path, why);
}

/* The step found, 0: none, -1: wrong. */
static int64_t restore(struct ckpt_kit *k, const char *fast, const char *slow)
{
    struct mr_restore_opts o = {.dir = fast, .drain_dir = slow, .io_depth = 2, .passed_over = tell};
    struct mr_restored found;
    struct mr_error err = {0};
    ckpt_kit_scramble(k);
    int r = mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS, &o, &found, &err);
    if (r == -ENOENT)
        return 0;
    if (r || !ckpt_kit_is(k, found.step, 0)) {
        fprintf(stderr, "%s\n", r ? err.text : "wrong bytes");
        return -1;
    }
    return (int64_t)found.step;
}

static int complain(const struct mr_error *err)
{
    fprintf(stderr, "%s\n", err->text);
    return 1;
}

static int run(const char *fast, const char *slow, const char *mode, const char *format)
{
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    struct mr_checkpoint_opts o = {.dir = fast,
                                   .drain_dir = slow,
                                   .keep = 2,
                                   .mode = !strcmp(mode, "lazy")    ? MR_CHECKPOINT_LAZY
                                           : !strcmp(mode, "burst") ? MR_CHECKPOINT_BURST
                                                                    : MR_CHECKPOINT_SYNC,
                                   .format = !strcmp(format, "safetensors")};
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    int64_t step = restore(k, fast, slow);
    if (step < 0)
        return 1;
    if (mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err))
        return complain(&err);
    dprintf(1, "opened\n");
    for (;;) {
        step++;
        for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
            mr_checkpoint_before_write(c, i);
            ckpt_kit_fill_one(k, i, (uint64_t)step, 0);
        }
        if (mr_checkpoint_begin(c, (uint64_t)step, &err))
            return complain(&err);
        if (step % 3 && mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, &err))
            return complain(&err);
        if (step % 3)
            dprintf(1, "durable %lld\n", (long long)step);
        if (slow && step % 2 == 0) { /* the drain runs beside the others */
            if (mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, &err))
                return complain(&err);
            dprintf(1, "below %lld\n", (long long)step);
        }
    }
}

static int check(const char *fast, const char *slow)
{
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    int64_t step = restore(k, fast, slow);
    ckpt_kit_free(k);
    if (step >= 0)
        printf("restored %lld\n", (long long)step);
    return step < 0;
}

static int cut(const char *dir)
{
    uint32_t how = WITHOUT_FLUSH;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || ioctl(fd, SHUTDOWN, &how)) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        return 1;
    }
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    const char *slow = argc > 3 && strcmp(argv[3], "-") ? argv[3] : NULL;
    if (argc == 6 && !strcmp(argv[1], "run"))
        return run(argv[2], slow, argv[4], argv[5]);
    if (argc == 4 && !strcmp(argv[1], "check"))
        return check(argv[2], slow);
    if (argc == 3 && !strcmp(argv[1], "cut"))
        return cut(argv[2]);
    fprintf(stderr, "usage: ckpt_child run FAST SLOW MODE FORMAT | check FAST SLOW | cut DIR\n");
    return 2;
}
