/* test_ckpt_trouble.c - checkpoints when several things go wrong: what cannot be read for a moment,
 * removals that fail, clocks that go back, disks that are full before anything is written, pointers
 * and data that somebody has removed. */
#include "unit.h"

#include "ckpt_mark.h"
#include "ckpt_name.h"
#include "ckpt_session.h"
#include "lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void save_in(struct ckpt_kit *k, struct mr_checkpoint_opts o, uint64_t step,
                    uint64_t version)
{
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    assert_int_equal(kit_save_version(c, k, step, version), 0);
    kit_close(c);
}

static const char *in_folder(const char *dir, const char *name)
{
    static char path[2][700];
    static unsigned turn;
    char *out = path[turn++ % 2];
    snprintf(out, sizeof path[0], "%s/%s", dir, name);
    return out;
}

/* ---- what cannot be read for a moment ---- */

struct moment {
    const char *from, *to;
};

/* At the first change of a file on the slow tier the data are back. */
static int come_back(void *ctx, const struct mr_out_op *op)
{
    struct moment *m = ctx;
    if (op->tag == MR_TIER_SLOW && m->from && !rename(m->from, m->to))
        m->from = NULL;
    return 0;
}

static void a_newer_one_below_that_could_not_be_listed_is_not_drained_over(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts one = {.mode = MR_CHECKPOINT_SYNC},
                              two = {.mode = MR_CHECKPOINT_SYNC, .drain_dir = kit_slow};
    save_in(k, one, 100, 1);
    one.dir = kit_slow;
    save_in(k, one, 100, 2);
    /* While the next run opens its folders, the data below are not there. */
    static char data[700], aside[720];
    snprintf(data, sizeof data, "%s/model.ckpt-100.data-00000-of-00001", kit_slow);
    snprintf(aside, sizeof aside, "%s-aside", data);
    assert_int_equal(rename(data, aside), 0);
    struct moment m = {aside, data};
    struct mr_out_hook hook = {.before = come_back, .ctx = &m};
    struct mr_checkpoint *c = kit_open(k, two, &hook);
    if (m.from)
        assert_int_equal(rename(aside, data), 0);
    struct mr_error err = {0};
    mr_checkpoint_close(c, &err); /* what it says depends on the moment */
    kit_assert_found(k, NULL, kit_slow, 100, 2);
    kit_assert_found(k, kit_fast, kit_slow, 100, 2);
    ckpt_kit_free(k);
}

/* ---- generations ---- */

/* Rewrite a checkpoint's generation, as a run on a host whose clock is far ahead would have saved
 * it: by saving it there. */
static void a_run_is_newer_than_everything_in_its_folder(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    c->generation = UINT64_MAX / 2; /* its clock is ahead */
    assert_int_equal(kit_save_version(c, k, 100, 1), 0);
    kit_close(c);
    o.format = MR_CHECKPOINT_SAFETENSORS;
    save_in(k, o, 120, 2);
    kit_assert_found(k, kit_fast, NULL, 120, 2);
    o.prefix = "other";
    save_in(k, o, 60, 3);
    kit_assert_found(k, kit_fast, NULL, 60, 3);
    ckpt_kit_free(k);
}

/* ---- removals that fail ---- */

/* Refuses to remove files whose name holds this. */
static int no_removal(void *ctx, const struct mr_out_op *op)
{
    const char *const *what = ctx;
    return *what && op->kind == MR_OUT_UNLINK && strstr(op->name, *what) ? -EIO : 0;
}

static void a_failed_removal_never_takes_a_file_of_somebody(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    static const char theirs[] = "model.ckpt-7.data-00000-of-00001";
    const char *refused = NULL;
    struct mr_out_hook hook = {.before = no_removal, .ctx = &refused};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = 1};
    tempdir_text(t, in_folder("fast", theirs), "not ours");
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    kit_save(c, k, 7); /* takes the other name */
    refused = "-7.data";
    for (uint64_t step = 8; step < 12; step++)
        kit_save(c, k, step); /* 7 is to go, again and again */
    refused = NULL;
    kit_save(c, k, 12);
    kit_close(c);
    kit_close(kit_open(k, o, NULL));
    assert_true(kit_is_there(kit_fast, theirs));
    assert_false(kit_is_there(kit_fast, "model.ckpt.resaved-7.data-00000-of-00001"));
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    ckpt_kit_free(k);
}

/* Older data that could not be removed are marked, and their name can be used again; whatever
 * fails, a step never becomes one that nobody can save. */
static void replaced_data_that_stay_do_not_block_their_step(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    const char *refused = NULL;
    struct mr_out_hook hook = {.before = no_removal, .ctx = &refused};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = 2};
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    assert_int_equal(kit_save_version(c, k, 5, 1), 0);
    refused = "-5.data";
    assert_int_equal(kit_save_version(c, k, 5, 2), 0);
    assert_int_equal(kit_save_version(c, k, 5, 3), 0);
    refused = NULL;
    assert_int_equal(kit_save_version(c, k, 5, 4), 0);
    kit_close(c);
    save_in(k, o, 5, 5);
    kit_assert_found(k, kit_fast, NULL, 5, 5);
    kit_close(kit_open(k, o, NULL));
    assert_int_equal(kit_count(kit_fast, "-of-00001"), 1);
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    ckpt_kit_free(k);
}

/* ---- what somebody did to the folder ---- */

static void trouble_with_old_ones_costs_no_new_one(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = 2};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 1);
    kit_save(c, k, 2);
    assert_int_equal(unlink(in_folder(kit_fast, "model.ckpt-1.data-00000-of-00001")), 0);
    for (uint64_t step = 3; step < 8; step++)
        kit_save(c, k, step);
    assert_int_equal(kit_count(kit_fast, ".index"), 3); /* the damaged one is not proven ours */
    /* A folder where TensorFlow's pointer should be. */
    assert_int_equal(unlink(in_folder(kit_fast, "checkpoint")), 0);
    assert_int_equal(mkdir(in_folder(kit_fast, "checkpoint"), 0755), 0);
    for (uint64_t step = 8; step < 12; step++)
        kit_save(c, k, step);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.failed == 0 && s.error.code && strstr(s.notice, "checkpoint"));
    kit_close(c);
    assert_int_equal(kit_count(kit_fast, ".index"), 3);
    kit_assert_found(k, kit_fast, NULL, 11, 0);
    ckpt_kit_free(k);
}

/* ---- full disks ---- */

/* Take all the room that there is. */
static void fill(const char *dir)
{
    static const char zeros[4096];
    int fd = open(in_folder(dir, "filler"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0)
        ;
    close(fd);
}

static void a_full_disk_keeps_nobody_from_opening(void **state)
{
    kit_begin(state);
    if (geteuid() || !kit_mount_small(kit_fast, 500 << 10))
        skip(); /* needs root and mounts of our own */
    struct ckpt_kit *k = ckpt_kit_new(100000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = MR_NONE};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 1);
    kit_save(c, k, 2);
    kit_close(c);
    fill(kit_fast);
    o.keep = 1;
    c = kit_open(k, o, NULL);
    assert_int_equal(kit_count(kit_fast, ".index"), 1); /* 1 has made room */
    assert_int_equal(unlink(in_folder(kit_fast, "filler")), 0);
    kit_save(c, k, 3);
    kit_close(c);
    kit_assert_found(k, kit_fast, NULL, 3, 0);
    assert_false(kit_is_there(kit_fast, MR_LEASE_NAME));
    ckpt_kit_free(k);
    assert_int_equal(umount(kit_fast), 0);
}

/* The same step again: its old copy above is below, too, and makes room. */
static void a_step_saved_again_takes_the_room_of_what_is_below(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_ALLOCATE, .n_times = 1};
    struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .drain_dir = kit_slow};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    assert_int_equal(kit_save_version(c, k, 5, 1), 0);
    atomic_store(&b.code, -ENOSPC);
    assert_int_equal(kit_save_version(c, k, 5, 2), 0);
    mr_checkpoint_get_stats(c, &s);
    assert_int_equal(s.fell_back, 0);
    kit_close(c);
    kit_assert_found(k, kit_fast, NULL, 5, 2);
    kit_assert_found(k, NULL, kit_slow, 5, 2);
    ckpt_kit_free(k);
}

/* ---- somebody else's fast tier ---- */

static int open_as_stranger(void *arg)
{
    struct mr_checkpoint *c;
    struct mr_checkpoint_opts o = {.dir = kit_fast, .drain_dir = kit_slow};
    struct ckpt_kit *k = arg;
    return mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, NULL) == -EACCES ? 0 : 1;
}

static void a_fast_tier_that_we_may_not_write_is_an_error(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    save_in(k, (struct mr_checkpoint_opts){.drain_dir = kit_slow}, 1, 1);
    assert_true(!chmod(t->path, 0755) && !chmod(kit_fast, 0555) && !chmod(kit_slow, 0777));
    assert_int_equal(as_stranger(open_as_stranger, k), 0);
    assert_int_equal(chmod(kit_fast, 0755), 0);
    ckpt_kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_newer_one_below_that_could_not_be_listed_is_not_drained_over),
        WITH_TEMPDIR(a_run_is_newer_than_everything_in_its_folder),
        WITH_TEMPDIR(a_failed_removal_never_takes_a_file_of_somebody),
        WITH_TEMPDIR(replaced_data_that_stay_do_not_block_their_step),
        WITH_TEMPDIR(trouble_with_old_ones_costs_no_new_one),
        WITH_TEMPDIR(a_full_disk_keeps_nobody_from_opening),
        WITH_TEMPDIR(a_step_saved_again_takes_the_room_of_what_is_below),
        WITH_TEMPDIR(a_fast_tier_that_we_may_not_write_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
