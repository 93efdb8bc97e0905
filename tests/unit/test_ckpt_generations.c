/* test_ckpt_generations.c - which checkpoint is the newer one, and which files a run may touch:
 * steps that are saved twice, tiers that go and come back, other people's files, folders that
 * cannot be read, another working directory. */
#include "unit.h"

#include "ckpt_name.h"
#include "ckpt_session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- one step, two versions ---- */

/* The fast tier takes one checkpoint and then no more. */
static void a_fall_back_is_newer_than_what_the_fast_tier_has(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    for (unsigned format = 0; format < 2; format++) {
        struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_CREATE};
        struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
        struct mr_checkpoint_opts o = {
            .drain_dir = kit_slow, .mode = MR_CHECKPOINT_BURST, .format = format};
        struct mr_checkpoint *c = kit_open(k, o, &hook);
        assert_int_equal(kit_save_version(c, k, 100, 1 + 2 * format), 0);
        kit_idle(c);
        atomic_store(&b.code, -ENOSPC);
        assert_int_equal(kit_save_version(c, k, 100, 2 + 2 * format), 0);
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
        kit_assert_found(k, kit_fast, kit_slow, 100, 2 + 2 * format);
        atomic_store(&b.code, 0);
        kit_close(c);
        kit_assert_found(k, kit_fast, kit_slow, 100, 2 + 2 * format);
        kit_close(kit_open(k, o, NULL)); /* the next start drains nothing over it */
        kit_assert_found(k, kit_fast, kit_slow, 100, 2 + 2 * format);
        kit_assert_found(k, NULL, kit_slow, 100, 2 + 2 * format);
    }
    ckpt_kit_free(k);
}

/* The fast tier does not take step 100 a second time. */
static int not_twice(void *ctx, const struct mr_out_op *op)
{
    static const char again[] = "model.ckpt.resaved-100.data-00000-of-00001";
    if (op->tag == MR_TIER_FAST && op->kind == MR_OUT_CREATE &&
        !strncmp(op->name, again, sizeof again - 1))
        return -EIO;
    return kit_gate_wait(ctx, op);
}

/* The same while the older version waits for the drain, which stands at a gate with another step.
 */
static void a_drain_that_is_queued_does_not_undo_a_fall_back(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = not_twice, .ctx = &g};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c =
        kit_open(k, (struct mr_checkpoint_opts){.drain_dir = kit_slow}, &hook);
    kit_save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    assert_int_equal(kit_save_version(c, k, 100, 1), 0);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    assert_int_equal(kit_save_version(c, k, 100, 2), 0);
    do {
        sched_yield();
        mr_checkpoint_get_stats(c, &s);
    } while (!s.fell_back);
    kit_gate_open(&g);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
    kit_close(c);
    kit_assert_found(k, kit_fast, kit_slow, 100, 2);
    kit_assert_found(k, NULL, kit_slow, 100, 2);
    ckpt_kit_free(k);
}

/* Both versions wait for the drain: the first one is gone when its turn comes. */
static void a_step_that_is_saved_again_before_its_drain_is_no_failure(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = kit_gate_wait, .ctx = &g};
    struct mr_checkpoint_opts o = {.drain_dir = kit_slow, .mode = MR_CHECKPOINT_BURST};
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    kit_save(c, k, 99);
    for (uint64_t version = 1; version < 4; version++)
        assert_int_equal(kit_save_version(c, k, 100, version), 0);
    kit_gate_open(&g);
    kit_close(c);
    kit_assert_found(k, kit_fast, kit_slow, 100, 3);
    kit_assert_found(k, NULL, kit_slow, 100, 3);
    ckpt_kit_free(k);
}

/* Step 100 stays undrained; a run without the fast tier goes back to 80 and saves another 100. */
static void a_fast_tier_that_comes_back_is_not_newer(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    char away[600];
    snprintf(away, sizeof away, "%s-away", kit_fast);
    struct mr_checkpoint_opts two = {.drain_dir = kit_slow, .mode = MR_CHECKPOINT_BURST},
                              one = {.mode = MR_CHECKPOINT_BURST};
    struct mr_checkpoint *c = kit_open(k, two, NULL);
    assert_int_equal(kit_save_version(c, k, 80, 1), 0);
    kit_close(c);
    c = kit_open(k, one, NULL); /* 100 never gets below */
    assert_int_equal(kit_save_version(c, k, 100, 1), 0);
    kit_close(c);
    assert_int_equal(rename(kit_fast, away), 0);
    kit_assert_found(k, kit_fast, kit_slow, 80, 1);
    one.dir = kit_slow;
    c = kit_open(k, one, NULL);
    assert_int_equal(kit_save_version(c, k, 90, 2), 0);
    kit_assert_found(k, kit_slow, NULL, 90, 2);
    assert_int_equal(kit_save_version(c, k, 100, 2), 0);
    kit_close(c);
    assert_int_equal(rename(away, kit_fast), 0);
    kit_assert_found(k, kit_fast, kit_slow, 100, 2);
    kit_close(kit_open(k, two, NULL));
    kit_assert_found(k, kit_fast, kit_slow, 100, 2);
    kit_assert_found(k, NULL, kit_slow, 100, 2);
    ckpt_kit_free(k);
}

/* A run that went back is newer than the steps that it has yet to reach, and keeps its own. */
static void what_was_saved_last_is_restored_and_kept(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = 2};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 90);
    kit_save(c, k, 100);
    kit_close(c);
    c = kit_open(k, o, NULL);
    assert_int_equal(kit_save_version(c, k, 70, 1), 0);
    kit_assert_found(k, kit_fast, NULL, 70, 1);
    assert_int_equal(kit_save_version(c, k, 80, 1), 0);
    mr_checkpoint_get_stats(c, &s);
    assert_int_equal(s.last_fast, 80);
    kit_close(c);
    kit_assert_found(k, kit_fast, NULL, 80, 1);
    assert_true(kit_is_there(kit_fast, "model.ckpt-70.index"));
    assert_false(kit_is_there(kit_fast, "model.ckpt-100.index"));
    ckpt_kit_free(k);
}

/* ---- whose files ---- */

static void copy_files(const char *pattern, const char *dir, const char *from, const char *to)
{
    char command[4096];
    snprintf(command, sizeof command, "cd %s && for f in %s; do cp \"$f\" \"%s${f#%s}\"; done", dir,
             pattern, to, from);
    assert_int_equal(system(command), 0);
}

static void other_peoples_checkpoints_are_neither_removed_nor_replaced(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = 1};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 50);
    kit_close(c);
    /* Somebody's copy under a number of his own; and files of another program. */
    copy_files("model.ckpt-50.*", kit_fast, "model.ckpt-50", "model.ckpt-3");
    tempdir_text(t, "fast/model.ckpt-7.index", "no index of ours");
    tempdir_text(t, "fast/model.ckpt-7.data-00000-of-00004", "1");
    tempdir_text(t, "fast/model.ckpt-7.data-00000-of-00001", "1");
    tempdir_text(t, "fast/model.ckpt-7.meta", "1");
    tempdir_text(t, "fast/model.ckpt-8.data-00000-of-00001", "still being copied here");
    tempdir_text(t, "fast/model.ckpt.resaved-8.data-00000-of-00001", "still being copied here");
    c = kit_open(k, o, NULL);
    for (uint64_t step = 51; step < 54; step++)
        kit_save(c, k, step);
    assert_int_equal(kit_count(kit_fast, ".index"), 3);
    assert_int_equal(kit_save_version(c, k, 3, 1), -EEXIST);
    assert_non_null(strstr(kit_err.text, "was not written by a run of millrace"));
    assert_true(kit_save_version(c, k, 7, 1) < 0);
    assert_int_equal(kit_save_version(c, k, 8, 1), -EEXIST);
    assert_non_null(strstr(kit_err.text, ".resaved-8.data"));
    kit_save(c, k, 54);
    kit_close(c);
    assert_true(kit_is_there(kit_fast, "model.ckpt-3.data-00000-of-00001"));
    assert_true(kit_is_there(kit_fast, "model.ckpt-7.data-00000-of-00001"));
    assert_true(kit_is_there(kit_fast, "model.ckpt-7.data-00000-of-00004"));
    assert_true(kit_is_there(kit_fast, "model.ckpt-7.meta"));
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    ckpt_kit_free(k);
}

static void an_older_one_that_cannot_be_read_stops_the_save(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    char index[600], aside[600];
    assert_int_equal(kit_save_version(c, k, 5, 1), 0);
    snprintf(index, sizeof index, "%s/model.ckpt-5.index", kit_fast);
    snprintf(aside, sizeof aside, "%s/aside", kit_fast);
    /* A loop of links: the name is there, and opening it fails. */
    assert_true(!rename(index, aside) && !symlink("model.ckpt-5.index", index));
    assert_int_equal(kit_save_version(c, k, 5, 2), -ELOOP);
    assert_true(!unlink(index) && !rename(aside, index));
    kit_assert_found(k, kit_fast, NULL, 5, 1);
    assert_int_equal(kit_save_version(c, k, 5, 3), 0);
    kit_close(c);
    kit_assert_found(k, kit_fast, NULL, 5, 3);
    ckpt_kit_free(k);
}

static void chdir_changes_nothing_for_an_open_run(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {
        .dir = "fast", .drain_dir = "deep/slow", .mode = MR_CHECKPOINT_SYNC, .keep = 1};
    int back = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(t->path), 0);
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    assert_int_equal(kit_save_version(c, k, 5, 1), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(kit_save_version(c, k, 5, 2), 0); /* reads the old one, writes, drains */
    assert_int_equal(kit_save_version(c, k, 6, 2), 0); /* reads one back, removes the other */
    assert_int_equal(kit_save_version(c, k, 6, 3), 0);
    kit_close(c);
    kit_assert_found(k, kit_fast, kit_slow, 6, 3);
    kit_assert_found(k, NULL, kit_slow, 6, 3);
    assert_int_equal(kit_count(kit_slow, ".index"), 1);
    assert_int_equal(kit_count(kit_slow, "-of-00001") + kit_count(kit_slow, "-of-00002"), 1);
    assert_true(!fchdir(back) && !close(back));
    ckpt_kit_free(k);
}

/* ---- .meta ---- */

static void read_file(const char *dir, const char *name, char *buf, size_t room, size_t *len)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, buf, room);
    assert_true(n >= 0);
    *len = (size_t)n;
    close(fd);
}

/* Fails the rename of .index, as often as it is told. */
static int no_new_index(void *ctx, const struct mr_out_op *op)
{
    size_t n = op->to ? strlen(op->to) : 0;
    return *(int *)ctx && op->kind == MR_OUT_RENAME && n > 6 && !strcmp(op->to + n - 6, ".index")
               ? -EIO
               : 0;
}

static void a_failed_save_with_other_arrays_leaves_the_old_graph(void **state)
{
    kit_begin(state);
    static char was[1 << 20], is[1 << 20];
    size_t n_was, n_is;
    struct ckpt_kit *k = ckpt_kit_new(5000), *other = ckpt_kit_new(8000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC};
    int broken = 0;
    struct mr_out_hook hook = {.before = no_new_index, .ctx = &broken};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 5);
    kit_close(c);
    read_file(kit_fast, "model.ckpt-5.meta", was, sizeof was, &n_was);
    c = kit_open(other, o, &hook);
    broken = 1;
    ckpt_kit_fill(other, 5, 1);
    assert_int_equal(mr_checkpoint_begin(c, 5, NULL), -EIO);
    read_file(kit_fast, "model.ckpt-5.meta", is, sizeof is, &n_is);
    assert_true(n_was == n_is && !memcmp(was, is, n_is));
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    broken = 0;
    assert_int_equal(mr_checkpoint_begin(c, 5, NULL), 0);
    kit_close(c);
    read_file(kit_fast, "model.ckpt.resaved-5.meta", is, sizeof is, &n_is);
    assert_false(n_was == n_is && !memcmp(was, is, n_is));
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    kit_assert_found(other, kit_fast, NULL, 5, 1);
    ckpt_kit_free(other);
    ckpt_kit_free(k);
}

/* ---- a step that is saved again ---- */

/* Make model.ckpt-STEP what earlier versions wrote for a step saved again: data as shard 1 of 2. */
static void use_shard_1_of_2(unsigned step)
{
    static char bytes[1 << 20];
    char name[64], from[600], to[600];
    size_t len;
    struct mr_bundle b;
    struct mr_bytes index;
    mr_bytes_init(&index);
    snprintf(name, sizeof name, "model.ckpt-%u.index", step);
    read_file(kit_fast, name, bytes, sizeof bytes, &len);
    assert_int_equal(mr_bundle_parse(name, (uint8_t *)bytes, len, &b, NULL), 0);
    b.n_shards = 2;
    for (size_t i = 0; i < b.tensors.n; i++)
        b.tensors.tensors[i].shard = 1;
    assert_int_equal(mr_bundle_write_index(&b, &index, NULL), 0);
    snprintf(to, sizeof to, "%s/%s", kit_fast, name);
    FILE *f = fopen(to, "w");
    assert_true(f && fwrite(index.data, 1, index.len, f) == index.len && !fclose(f));
    snprintf(from, sizeof from, "%s/model.ckpt-%u.data-00000-of-00001", kit_fast, step);
    snprintf(to, sizeof to, "%s/model.ckpt-%u.data-00001-of-00002", kit_fast, step);
    assert_int_equal(rename(from, to), 0);
    mr_bundle_fini(&b);
    mr_bytes_fini(&index);
}

static void steps_that_earlier_versions_saved_again_are_ours(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    assert_int_equal(kit_save_version(c, k, 5, 1), 0);
    assert_int_equal(kit_save_version(c, k, 6, 1), 0);
    kit_close(c);
    use_shard_1_of_2(5);
    use_shard_1_of_2(6);
    kit_assert_found(k, kit_fast, NULL, 6, 1);
    o.drain_dir = kit_slow; /* both are drained, 5 leaves the fast tier */
    kit_close(kit_open(k, o, NULL));
    kit_assert_found(k, NULL, kit_slow, 6, 1);
    assert_int_equal(kit_count(kit_slow, "-of-00002"), 2);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    c = kit_open(k, o, NULL);
    assert_int_equal(kit_save_version(c, k, 6, 2), 0);
    kit_close(c);
    kit_assert_found(k, kit_fast, kit_slow, 6, 2);
    kit_assert_found(k, NULL, kit_slow, 6, 2);
    assert_int_equal(kit_count(kit_slow, "-of-00002"), 1); /* of step 5 */
    assert_int_equal(kit_count(kit_fast, "-of-00002"), 0);
    assert_true(kit_is_there(kit_slow, "model.ckpt.resaved-6.meta"));
    assert_false(kit_is_there(kit_slow, "model.ckpt-6.meta"));
    ckpt_kit_free(k);
}

/* Fails the removal of superseded data, as a crash before it would. */
static int no_unlink(void *ctx, const struct mr_out_op *op)
{
    return *(int *)ctx && op->kind == MR_OUT_RENAME && strstr(op->name, ".index") &&
                   strstr(op->to, ".tmp")
               ? -EIO
               : 0;
}

static void both_versions_of_a_step_are_whole_until_the_older_is_removed(void **state)
{
    kit_begin(state);
    static char text[1 << 16];
    size_t len;
    struct ckpt_kit *k = ckpt_kit_new(5000);
    int broken = 1;
    struct mr_out_hook hook = {.before = no_unlink, .ctx = &broken};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    assert_int_equal(kit_save_version(c, k, 5, 1), 0);
    assert_int_equal(kit_save_version(c, k, 5, 2), 0);
    assert_int_equal(kit_count(kit_fast, ".index"), 2);
    kit_assert_found(k, kit_fast, NULL, 5, 2);
    read_file(kit_fast, "checkpoint", text, sizeof text - 1, &len);
    text[len] = 0;
    assert_non_null(strstr(text, "model_checkpoint_path: \"model.ckpt.resaved-5\""));
    assert_null(strstr(text, "\"model.ckpt-5\""));
    kit_close(c);
    kit_close(kit_open(k, o, NULL)); /* the next start removes the older one */
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    assert_int_equal(kit_count(kit_fast, "-of-00001"), 1);
    assert_int_equal(kit_count(kit_fast, ".meta"), 1);
    kit_assert_found(k, kit_fast, NULL, 5, 2);
    /* A third version goes where the first was; with two that stay, the older makes way. */
    broken = 1;
    c = kit_open(k, o, &hook);
    assert_int_equal(kit_save_version(c, k, 5, 3), 0);
    assert_int_equal(kit_count(kit_fast, ".index"), 2);
    broken = 0;
    assert_int_equal(kit_save_version(c, k, 5, 4), 0);
    kit_close(c);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    kit_assert_found(k, kit_fast, NULL, 5, 4);
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    ckpt_kit_free(k);
}

static void a_prefix_cannot_end_as_if_it_were_saved_again(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.dir = kit_fast, .prefix = "m" MR_RESAVED};
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err), -EINVAL);
    assert_non_null(strstr(err.text, "m.resaved"));
    ckpt_kit_free(k);
}

/* ---- space ---- */

static void what_an_earlier_run_kept_too_many_goes_at_opening(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = MR_NONE};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 1);
    kit_save(c, k, 2);
    kit_close(c);
    o.keep = 1;
    kit_close(kit_open(k, o, NULL));
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    kit_assert_found(k, kit_fast, NULL, 2, 0);
    ckpt_kit_free(k);
}

/* Fails what is written for TensorFlow's pointer. */
static int no_room_for_pointer(void *ctx, const struct mr_out_op *op)
{
    return *(int *)ctx && op->kind == MR_OUT_WRITE && !strncmp(op->name, "checkpoint.", 11)
               ? -ENOSPC
               : 0;
}

static void no_room_for_the_pointer_does_not_keep_old_ones(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = 1};
    int full = 0;
    struct mr_out_hook hook = {.before = no_room_for_pointer, .ctx = &full};
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    kit_save(c, k, 1);
    full = 1;
    kit_update(c, k, 2);
    mr_checkpoint_begin(c, 2, NULL); /* durable, and the old one gives its room */
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    full = 0;
    mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL); /* says that the pointer is old */
    kit_save(c, k, 3);
    kit_close(c);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    kit_assert_found(k, kit_fast, NULL, 3, 0);
    ckpt_kit_free(k);
}

/* A file of that size. */
static void fill_up(const char *dir, unsigned bytes)
{
    char path[600];
    snprintf(path, sizeof path, "%s/filler", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(posix_fallocate(fd, 0, bytes), 0);
    close(fd);
}

/* Keep 1 and room for two: the third finds none, the oldest goes, and it fits. */
static void a_full_disk_is_tidied_up_and_tried_again(void **state)
{
    kit_begin(state);
    if (geteuid() || !kit_mount_small(kit_fast, 400 << 10))
        skip(); /* needs root and mounts of our own */
    struct ckpt_kit *k = ckpt_kit_new(100000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = MR_NONE};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 1);
    kit_save(c, k, 2);
    fill_up(kit_fast, 90 << 10); /* room for two and no more */
    kit_update(c, k, 3);
    assert_int_equal(mr_checkpoint_begin(c, 3, NULL), -ENOSPC);
    kit_close(c);
    o.keep = 1;
    c = kit_open(k, o, NULL);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    for (uint64_t step = 3; step < 8; step++)
        kit_save(c, k, step);
    kit_close(c);
    kit_assert_found(k, kit_fast, NULL, 7, 0);
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    ckpt_kit_free(k);
    assert_int_equal(umount(kit_fast), 0);
}

static void a_used_up_quota_is_a_full_disk(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_ALLOCATE, .n_times = 1};
    struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .drain_dir = kit_slow};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    kit_save(c, k, 1);
    atomic_store(&b.code, -EDQUOT); /* once: what is below makes room */
    kit_save(c, k, 2);
    mr_checkpoint_get_stats(c, &s);
    assert_true(!s.fell_back && s.last_fast == 2);
    kit_close(c);
    ckpt_kit_free(k);
}

/* Sync: the one before is durable below when begin returns, so its room can be had, always. */
static void what_was_reported_below_makes_room_at_once(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_ALLOCATE, .n_times = 1};
    struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .drain_dir = kit_slow};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    for (uint64_t step = 1; step <= 60; step++) {
        kit_save(c, k, step);
        atomic_store(&b.n_times, 1);
        atomic_store(&b.code, -ENOSPC);
    }
    mr_checkpoint_get_stats(c, &s);
    assert_int_equal(s.fell_back, 0);
    kit_close(c);
    ckpt_kit_free(k);
}

/* ---- answers ---- */

static int64_t restored_by_stranger;

static int restore_unlisted(void *arg)
{
    restored_by_stranger = kit_restored(arg, kit_fast, NULL);
    return restored_by_stranger == -EACCES ? 0 : 1;
}

static void a_folder_that_cannot_be_listed_is_not_empty(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint *c = kit_open(k, (struct mr_checkpoint_opts){0}, NULL);
    kit_save(c, k, 1);
    kit_close(c);
    assert_true(!chmod(t->path, 0755) && !chmod(kit_fast, 0000));
    assert_int_equal(as_stranger(restore_unlisted, k), 0);
    assert_int_equal(chmod(kit_fast, 0755), 0);
    tempdir_text(t, "file", "no folder");
    snprintf(kit_fast, sizeof kit_fast, "%s/file", t->path);
    assert_int_equal(kit_restored(k, kit_fast, NULL), -ENOTDIR);
    snprintf(kit_fast, sizeof kit_fast, "%s/nowhere", t->path);
    assert_int_equal(kit_restored(k, kit_fast, NULL), -ENOENT);
    ckpt_kit_free(k);
}

static void nonsense_is_refused_with_words(void **state)
{
    kit_begin(state);
    float f[4] = {0};
    struct mr_array f4[] = {{"w", MR_DT_F4, 1, {8}, f}},
                    twice[] = {{"w", MR_DT_F32, 1, {4}, f}, {"w", MR_DT_F32, 1, {4}, f}};
    struct mr_checkpoint_opts o = {.dir = kit_fast};
    struct mr_restore_opts from = {.dir = kit_fast};
    struct mr_restored found;
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    assert_int_equal(mr_checkpoint_open(f4, 1, &o, &c, &err), -EINVAL);
    assert_non_null(strstr(err.text, "TensorFlow has no type"));
    o.format = MR_CHECKPOINT_SAFETENSORS;
    assert_int_equal(mr_checkpoint_open(f4, 1, &o, &c, NULL), 0);
    assert_int_equal(mr_checkpoint_close(c, NULL), 0);
    err = (struct mr_error){0};
    assert_int_equal(mr_checkpoint_restore(twice, 2, &from, &found, &err), -EINVAL);
    assert_non_null(strstr(err.text, "two arrays"));
    struct ckpt_kit *k = ckpt_kit_new(5000);
    c = kit_open(k, (struct mr_checkpoint_opts){0}, NULL);
    err = (struct mr_error){0};
    assert_int_equal(mr_checkpoint_begin(c, (uint64_t)INT64_MAX + 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "2^63"));
    kit_save(c, k, INT64_MAX);
    mr_checkpoint_before_write(c, KIT_N_ARRAYS);
    mr_checkpoint_before_write(c, UINT32_MAX);
    kit_close(c);
    assert_int_equal(kit_restored(k, kit_fast, NULL), INT64_MAX);
    ckpt_kit_free(k);
}

static void a_fresh_run_wants_fresh_folders(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .fresh = 1};
    struct mr_restore_opts from = {.dir = kit_fast};
    struct mr_restored found;
    struct mr_checkpoint *c;
    struct mr_error err = {0};
    tempdir_text(t, "fast/model.ckpt-7.index", "somebody else's");
    c = kit_open(k, o, NULL);
    kit_save(c, k, 6);
    kit_close(c);
    o.dir = kit_fast;
    o.keep = 1;
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err), -EEXIST);
    assert_non_null(strstr(err.text, "step 6"));
    o.format = MR_CHECKPOINT_SAFETENSORS; /* another format, the same prefix */
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, NULL), -EEXIST);
    assert_int_equal(mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS, &from, &found, NULL), 0);
    assert_int_equal(found.step, 6);
    uint64_t run = found.run;
    assert_true(run != 0);
    o.fresh = 0;
    o.run = run;
    c = kit_open(k, o, NULL);
    kit_save(c, k, 7);
    kit_close(c);
    assert_int_equal(mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS, &from, &found, NULL), 0);
    assert_true(found.step == 7 && found.run == run);
    ckpt_kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_fall_back_is_newer_than_what_the_fast_tier_has),
        WITH_TEMPDIR(a_drain_that_is_queued_does_not_undo_a_fall_back),
        WITH_TEMPDIR(a_step_that_is_saved_again_before_its_drain_is_no_failure),
        WITH_TEMPDIR(a_fast_tier_that_comes_back_is_not_newer),
        WITH_TEMPDIR(what_was_saved_last_is_restored_and_kept),
        WITH_TEMPDIR(other_peoples_checkpoints_are_neither_removed_nor_replaced),
        WITH_TEMPDIR(an_older_one_that_cannot_be_read_stops_the_save),
        WITH_TEMPDIR(chdir_changes_nothing_for_an_open_run),
        WITH_TEMPDIR(a_failed_save_with_other_arrays_leaves_the_old_graph),
        WITH_TEMPDIR(steps_that_earlier_versions_saved_again_are_ours),
        WITH_TEMPDIR(both_versions_of_a_step_are_whole_until_the_older_is_removed),
        WITH_TEMPDIR(a_prefix_cannot_end_as_if_it_were_saved_again),
        WITH_TEMPDIR(what_an_earlier_run_kept_too_many_goes_at_opening),
        WITH_TEMPDIR(no_room_for_the_pointer_does_not_keep_old_ones),
        WITH_TEMPDIR(a_full_disk_is_tidied_up_and_tried_again),
        WITH_TEMPDIR(a_used_up_quota_is_a_full_disk),
        WITH_TEMPDIR(what_was_reported_below_makes_room_at_once),
        WITH_TEMPDIR(a_folder_that_cannot_be_listed_is_not_empty),
        WITH_TEMPDIR(nonsense_is_refused_with_words),
        WITH_TEMPDIR(a_fresh_run_wants_fresh_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
