/* test_checkpoint.c - checkpoints are saved in every mode and format, and come back; what is
 * damaged, in the way or missing is handled and said. */
#include "unit.h"

#include "ckpt_name.h"
#include "ckpt_session.h"
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where $MILLRACE_VERIFY_FORMATS names an independent checker (a Python program that takes a
 * folder), all below this one has to pass it. */
static void check_formats(const char *dir)
{
    const char *tool = getenv("MILLRACE_VERIFY_FORMATS");
    char command[2048];
    if (!tool || !*tool)
        return;
    snprintf(command, sizeof command,
             "python3 '%s' '%s' >'%s/said' 2>&1 || { cat '%s/said'; exit 1; }", tool, dir, dir,
             dir);
    assert_int_equal(system(command), 0);
}

static void every_mode_and_format_comes_back_bit_for_bit(void **state)
{
    struct tempdir *t = kit_begin(state);
    static const uint64_t sizes[] = {4, 4096, 70004, KIT_LARGE};
    for (unsigned i = 0; i < 48; i++) {
        struct ckpt_kit *k = ckpt_kit_new(sizes[i / 12]);
        struct mr_checkpoint_opts o = {.mode = i % 3,
                                       .format = i / 3 % 2,
                                       .packed = i / 6 % 2,
                                       .copy_threads = 1 + i % 2,
                                       .buffers = 1 + i % 2};
        snprintf(kit_fast, sizeof kit_fast, "%s/set%u", t->path, i);
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        for (uint64_t step = 1; step <= 3; step++)
            kit_save(c, k, step);
        kit_update(c, k, 4); /* must not reach the checkpoint of step 3 */
        kit_close(c);
        assert_int_equal(kit_restored(k, kit_fast, NULL), 3);
        assert_string_equal(kit_why, "");
        assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
        assert_int_equal(
            kit_count(kit_fast, o.format == MR_CHECKPOINT_TF ? ".index" : ".safetensors"), 3);
        ckpt_kit_free(k);
    }
    check_formats(t->path);
}

static void levels_are_reached_and_recorded(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(KIT_LARGE);
    struct mr_checkpoint_opts o = {.drain_dir = kit_slow};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    struct mr_checkpoint_record r;
    struct mr_checkpoint_stats s;
    assert_int_equal(mr_checkpoint_get(c, 0, &r), -ENOENT);
    kit_save(c, k, 20);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_SNAPSHOTTED, NULL), 0);
    ckpt_kit_fill(k, 21, 0); /* no before_write: it may change now */
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
    assert_int_equal(mr_checkpoint_get(c, 0, &r), 0);
    assert_true(r.step == 20 && r.code == 0 && r.bytes > k->bytes && !r.fell_back);
    assert_true(r.stall_s >= 0 && r.snapshot_s >= 0);
    assert_true(r.durable_fast_s >= r.snapshot_s && r.durable_slow_s >= r.durable_fast_s);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.begun == 1 && s.durable_fast == 1 && s.durable_slow == 1 && !s.failed);
    assert_true(s.last_fast == 20 && s.last_slow == 20 && !s.error.code);
    o.dir = kit_fast;
    uint64_t said = 0;
    assert_int_equal(mr_checkpoint_memory(k->arrays, KIT_N_ARRAYS, &o, &said, NULL), 0);
    assert_int_equal(s.memory_bytes, said);
    assert_true(s.memory_bytes > 2 * k->bytes);
    kit_close(c);
    assert_int_equal(kit_restored(k, kit_fast, NULL), 20);
    assert_int_equal(kit_restored(k, kit_slow, NULL), 20);
    ckpt_kit_free(k);
}

static void the_newest_are_kept_and_the_last_is_read_back_first(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    for (unsigned format = 0; format < 2; format++) {
        struct mr_checkpoint_opts o = {.keep = 2, .format = format, .mode = MR_CHECKPOINT_BURST};
        struct mr_checkpoint_stats s;
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        for (uint64_t step = 1; step <= 5; step++)
            kit_save(c, k, step);
        mr_checkpoint_get_stats(c, &s);
        assert_int_equal(s.last_verified, 5); /* 3 was, until it had to go */
        kit_close(c);
        assert_int_equal(kit_count(kit_fast, format ? ".safetensors" : ".index"), 2);
        assert_true(
            kit_is_there(kit_fast, format ? "model.ckpt-4.safetensors" : "model.ckpt-4.meta"));
        assert_int_equal(kit_count(kit_fast, format ? ".safetensors" : "-of-00001"), 2);
    }
    ckpt_kit_free(k);
}

static void nothing_is_removed_while_no_newer_one_reads_back(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.keep = MR_NONE, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    for (uint64_t step = 1; step <= 3; step++)
        kit_save(c, k, step);
    kit_close(c);
    assert_int_equal(kit_count(kit_fast, ".index"), 3);
    /* Step 4 exists and is newer, but its bytes are not what they should be. */
    o.keep = 1;
    c = kit_open(k, o, NULL);
    kit_save(c, k, 4); /* reads 4 back: 1 to 3 may go */
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    kit_close(c);
    kit_damage(kit_fast, "model.ckpt-4.data-00000-of-00001", 4096 * 2 + 11);
    o.keep = 2;
    c = kit_open(k, o, NULL);
    kit_save(c, k, 5);
    assert_int_equal(kit_count(kit_fast, ".index"), 2);
    kit_save(c, k, 6);
    assert_int_equal(kit_count(kit_fast, ".index"), 2);
    kit_close(c);
    assert_int_equal(kit_restored(k, kit_fast, NULL), 6);
    ckpt_kit_free(k);
}

static void damaged_and_unfitting_ones_are_passed_over_with_the_reason(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = MR_NONE};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    for (uint64_t step = 1; step <= 6; step++)
        kit_save(c, k, step);
    kit_close(c);
    kit_damage(kit_fast, "model.ckpt-6.data-00000-of-00001", 4096 * 5 + 100);
    kit_damage(kit_fast, "model.ckpt-5.index", 30);
    snprintf(kit_why, sizeof kit_why, "%s/model.ckpt-4.data-00000-of-00001", kit_fast);
    assert_int_equal(truncate(kit_why, 1000), 0);
    snprintf(kit_why, sizeof kit_why, "%s/model.ckpt-3.data-00000-of-00001", kit_fast);
    assert_int_equal(unlink(kit_why), 0);
    tempdir_text(t, "fast/checkpoint", "model_checkpoint_path: \"model.ckpt-6\"\n");
    tempdir_text(t, "fast/other-9.index", "this is not an index at all, however long it may get");
    assert_int_equal(kit_restored(k, kit_fast, NULL), 2);
    assert_non_null(strstr(kit_why, "other-9: "));
    assert_non_null(strstr(kit_why, "model.ckpt-6: "));
    assert_non_null(strstr(kit_why, "tensor net/fc/w: checksum"));
    assert_non_null(strstr(kit_why, "model.ckpt-5: "));
    assert_non_null(strstr(kit_why, "model.ckpt-4: "));
    assert_non_null(strstr(kit_why, "model.ckpt-3: "));
    /* Another model does not fit. */
    struct ckpt_kit *other = ckpt_kit_new(800);
    assert_int_equal(kit_restored(other, kit_fast, NULL), -EBADMSG);
    assert_non_null(strstr(kit_why, "another type or shape"));
    snprintf(kit_slow, sizeof kit_slow, "%s/nowhere", t->path);
    assert_int_equal(kit_restored(k, kit_slow, NULL), -ENOENT);
    ckpt_kit_free(other);
    ckpt_kit_free(k);
}

static void a_checkpoint_copied_by_hand_is_as_good(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    struct mr_checkpoint *c = kit_open(k, (struct mr_checkpoint_opts){0}, NULL);
    kit_save(c, k, 7);
    kit_close(c);
    char command[4096];
    snprintf(command, sizeof command,
             "mkdir -p %s && cp %s/model.ckpt-7.index %s/model.ckpt-7.data* %s", kit_slow, kit_fast,
             kit_fast, kit_slow);
    assert_int_equal(system(command), 0);
    assert_int_equal(kit_restored(k, t->path, kit_slow), 7);
    ckpt_kit_free(k);
}

/* The temporary of model.ckpt-STEP.index, which names one data file. */
static void put_temp_index(struct tempdir *t, unsigned step, uint32_t shard, uint32_t n_shards)
{
    char name[64], temp[MR_CKPT_MAX_NAME], path[512];
    struct mr_tensor tensor = {.name = "w", .dtype = MR_DT_U8, .shard = shard, .bytes = 1};
    struct mr_bundle b;
    struct mr_bytes index;
    mr_bundle_init(&b);
    mr_bytes_init(&index);
    b.n_shards = n_shards;
    assert_int_equal(mr_tensor_table_add(&b.tensors, &tensor), 0);
    assert_int_equal(mr_bundle_write_index(&b, &index, NULL), 0);
    snprintf(name, sizeof name, "model.ckpt-%u.index", step);
    assert_int_equal(mr_ckpt_temp_name(temp, name, 1), 0);
    snprintf(path, sizeof path, "fast/%s", temp);
    tempdir_write(t, path, index.data, index.len);
    mr_bundle_fini(&b);
    mr_bytes_fini(&index);
}

static void only_our_temporaries_are_removed(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint *c = kit_open(k, (struct mr_checkpoint_opts){0}, NULL);
    kit_save(c, k, 1);
    kit_close(c);
    tempdir_text(t, "fast/model.ckpt-2.index.millrace-00000000.tmp", "a stranger's");
    tempdir_text(t, "fast/notes.tmp", "a stranger's");
    tempdir_text(t, "fast/model.ckpt-8.data-00000-of-00001", "somebody is copying this here");
    /* A crash between the renames: data and .meta are in place, .index is not. */
    tempdir_text(t, "fast/model.ckpt-2.data-00000-of-00001", "data");
    tempdir_text(t, "fast/model.ckpt-2.meta", "meta");
    put_temp_index(t, 2, 0, 1);
    /* And one while step 1 was being saved again. */
    tempdir_text(t, "fast/model.ckpt-1.data-00001-of-00002", "data");
    put_temp_index(t, 1, 1, 2);
    kit_close(kit_open(k, (struct mr_checkpoint_opts){0}, NULL));
    assert_int_equal(kit_count(kit_fast, ".tmp"), 2);
    assert_true(kit_is_there(kit_fast, "notes.tmp"));
    assert_true(kit_is_there(kit_fast, "model.ckpt-8.data-00000-of-00001"));
    assert_false(kit_is_there(kit_fast, "model.ckpt-2.data-00000-of-00001"));
    assert_false(kit_is_there(kit_fast, "model.ckpt-2.meta"));
    assert_false(kit_is_there(kit_fast, "model.ckpt-1.data-00001-of-00002"));
    assert_int_equal(kit_restored(k, kit_fast, NULL), 1);
    ckpt_kit_free(k);
}

static void a_step_can_be_saved_again(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    for (unsigned format = 0; format < 2; format++) {
        struct mr_checkpoint_opts o = {.format = format, .mode = MR_CHECKPOINT_SYNC};
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        for (uint64_t version = 4; version > 0; version--) {
            ckpt_kit_fill(k, 5, version - 1);
            assert_int_equal(mr_checkpoint_begin(c, 5, NULL), 0);
        }
        kit_close(c);
        assert_int_equal(kit_restored(k, kit_fast, NULL), 5);
        assert_int_equal(kit_count(kit_fast, format ? ".safetensors" : ".index"), 1);
        assert_int_equal(kit_count(kit_fast, "-of-00001"), 1);
        assert_true(kit_is_there(kit_fast, "model.ckpt.resaved-5.index"));
    }
    check_formats(kit_fast);
    ckpt_kit_free(k);
}

static void one_too_many_is_skipped_and_counted(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_FAST, 0};
    struct mr_out_hook hook = {.before = kit_gate_wait, .ctx = &g};
    struct mr_checkpoint *c =
        kit_open(k, (struct mr_checkpoint_opts){.if_busy = MR_IF_BUSY_SKIP}, &hook);
    struct mr_checkpoint_stats s;
    kit_save(c, k, 1);
    kit_save(c, k, 2); /* the second buffer */
    kit_update(c, k, 3);
    assert_int_equal(mr_checkpoint_begin(c, 3, NULL), 1);
    kit_gate_open(&g);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.skipped == 1 && s.begun == 2 && s.durable_fast == 2);
    kit_close(c);
    assert_int_equal(kit_restored(k, kit_fast, NULL), 2);
    ckpt_kit_free(k);
}

/* Opens the gate when a begin waits. */
struct opener {
    struct mr_checkpoint *c;
    struct kit_gate *g;
};

static void *open_when_it_waits(void *arg)
{
    struct opener *o = arg;
    struct mr_checkpoint_stats s;
    do {
        sched_yield();
        mr_checkpoint_get_stats(o->c, &s);
    } while (!s.waited);
    kit_gate_open(o->g);
    return NULL;
}

static void one_too_many_waits_and_that_is_counted(void **state)
{
    struct tempdir *t = kit_begin(state);
    /* Both reasons to wait: no free buffer, and the drain's queue of eight. */
    for (unsigned two = 0; two < 2; two++) {
        struct ckpt_kit *k = ckpt_kit_new(5000);
        struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, two, 0};
        struct mr_out_hook hook = {.before = kit_gate_wait, .ctx = &g};
        struct mr_checkpoint_opts o = {.if_busy = MR_IF_BUSY_WAIT};
        struct mr_checkpoint_stats s;
        struct mr_checkpoint_record r;
        pthread_t thread;
        uint64_t room = two ? MR_MAX_BACKLOG : MR_MAX_SHOTS;
        snprintf(kit_fast, sizeof kit_fast, "%s/fast%u", t->path, two);
        if (two) {
            o.drain_dir = kit_slow;
            o.mode = MR_CHECKPOINT_BURST;
        }
        struct mr_checkpoint *c = kit_open(k, o, &hook);
        for (uint64_t step = 1; step <= room; step++)
            kit_save(c, k, step);
        mr_checkpoint_get_stats(c, &s);
        assert_true(s.waited == 0 && s.waited_s == 0);
        assert_int_equal(pthread_create(&thread, NULL, open_when_it_waits, &(struct opener){c, &g}),
                         0);
        kit_save(c, k, room + 1); /* returns only because the other thread has seen it waiting */
        assert_int_equal(pthread_join(thread, NULL), 0);
        mr_checkpoint_get_stats(c, &s);
        assert_true(s.waited == 1 && s.waited_s > 0 && s.skipped == 0 && s.begun == room + 1);
        assert_int_equal(mr_checkpoint_get(c, room, &r), 0);
        assert_true(r.stall_s >= s.waited_s);
        kit_close(c);
        assert_int_equal(kit_restored(k, kit_fast, NULL), room + 1);
        ckpt_kit_free(k);
    }
}

static void a_failure_in_the_background_comes_out_at_the_next_call_once(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(KIT_LARGE);
    struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_SYNC};
    struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
    struct mr_checkpoint *c = kit_open(k, (struct mr_checkpoint_opts){0}, &hook);
    struct mr_checkpoint_stats s;
    struct mr_error err = {0};
    kit_save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    kit_idle(c);
    atomic_store(&b.code, -EIO);
    kit_save(c, k, 2);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, &err), -EIO);
    assert_non_null(strstr(err.text, "model.ckpt-2.data"));
    err = (struct mr_error){0};
    kit_save(c, k, 3);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_SNAPSHOTTED, NULL), 0);
    /* Wait until it has failed without asking it. */
    do
        mr_checkpoint_get_stats(c, &s);
    while (s.failed < 2);
    assert_int_equal(mr_checkpoint_begin(c, 4, NULL), -EIO);
    atomic_store(&b.code, 0);
    assert_int_equal(mr_checkpoint_begin(c, 4, NULL), 0);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    kit_idle(c);
    atomic_store(&b.code, -EIO);
    kit_save(c, k, 5);
    assert_int_equal(mr_checkpoint_close(c, &err), -EIO);
    assert_int_equal(err.code, -EIO);
    assert_int_equal(kit_count(kit_fast, ".tmp"), 0);
    /* Step 4 was begun with the arrays of step 3. */
    struct mr_restored found;
    assert_int_equal(mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS,
                                           &(struct mr_restore_opts){.dir = kit_fast}, &found,
                                           NULL),
                     0);
    assert_true(found.step == 4 && ckpt_kit_is(k, 3, 0));
    ckpt_kit_free(k);
}

static void two_runs_do_not_write_to_one_folder(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint *c = kit_open(k, (struct mr_checkpoint_opts){0}, NULL), *second = NULL;
    struct mr_error err = {0};
    struct mr_checkpoint_opts o = {.dir = kit_fast};
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &second, &err), -EBUSY);
    assert_non_null(strstr(err.text, "another run"));
    kit_close(c);
    kit_close(kit_open(k, o, NULL));
    ckpt_kit_free(k);
}

static void nonsense_is_refused(void **state)
{
    kit_begin(state);
    float f[4];
    struct mr_checkpoint *c = NULL;
    struct mr_checkpoint_opts o = {.dir = kit_fast}, no_dir = {0},
                              prefix = {.dir = kit_fast, .prefix = "a/b"};
    const struct mr_array twice[] = {{"a", MR_DT_F32, 1, {4}, f}, {"a", MR_DT_F32, 1, {4}, f}},
                          text[] = {{"a", MR_DT_STRING, 1, {4}, f}},
                          nowhere[] = {{"a", MR_DT_F32, 1, {4}, NULL}},
                          huge[] = {{"a", MR_DT_F32, 2, {UINT64_MAX, 4}, f}},
                          taken[] = {{"millrace/meta_crc", MR_DT_F32, 1, {4}, f}};
    assert_int_equal(mr_checkpoint_open(twice, 2, &o, &c, NULL), -EINVAL);
    assert_int_equal(mr_checkpoint_open(text, 1, &o, &c, NULL), -EINVAL);
    assert_int_equal(mr_checkpoint_open(nowhere, 1, &o, &c, NULL), -EINVAL);
    assert_int_equal(mr_checkpoint_open(huge, 1, &o, &c, NULL), -EOVERFLOW);
    assert_int_equal(mr_checkpoint_open(taken, 1, &o, &c, NULL), -EINVAL);
    assert_int_equal(mr_checkpoint_open(nowhere, 0, &no_dir, &c, NULL), -EINVAL);
    assert_int_equal(mr_checkpoint_open(nowhere, 0, &prefix, &c, NULL), -EINVAL);
    uint64_t bytes = 0;
    assert_int_equal(mr_checkpoint_memory(twice, 2, &o, &bytes, NULL), -EINVAL);
    assert_int_equal(bytes, 0);
    assert_null(c);
    assert_int_equal(mr_checkpoint_close(NULL, NULL), 0);
}

static void an_emulated_device_is_charged_for_what_is_written_and_read(void **state)
{
    kit_begin(state);
    static const char profile[] = "name = slow\nread_mb_per_s = 90\nwrite_mb_per_s = 90\n";
    struct ckpt_kit *k = ckpt_kit_new(KIT_LARGE);
    struct mr_device_profile p;
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    struct mr_checkpoint_record r;
    if (mr_device_profile_parse(profile, strlen(profile), "p", &p, &err) ||
        mr_device_new(&p, &d, &err))
        fail_msg("%s", err.text);
    struct mr_checkpoint_opts o = {.storage = d, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    kit_save(c, k, 1);
    assert_int_equal(mr_checkpoint_get(c, 0, &r), 0);
    assert_true(r.durable_fast_s >= 0.1); /* 9.4 MB at 90 MB/s: a promise, not a measurement */
    kit_close(c);
    mr_device_close(d);
    ckpt_kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(every_mode_and_format_comes_back_bit_for_bit),
        WITH_TEMPDIR(levels_are_reached_and_recorded),
        WITH_TEMPDIR(the_newest_are_kept_and_the_last_is_read_back_first),
        WITH_TEMPDIR(nothing_is_removed_while_no_newer_one_reads_back),
        WITH_TEMPDIR(damaged_and_unfitting_ones_are_passed_over_with_the_reason),
        WITH_TEMPDIR(a_checkpoint_copied_by_hand_is_as_good),
        WITH_TEMPDIR(only_our_temporaries_are_removed),
        WITH_TEMPDIR(a_step_can_be_saved_again),
        WITH_TEMPDIR(one_too_many_is_skipped_and_counted),
        WITH_TEMPDIR(one_too_many_waits_and_that_is_counted),
        WITH_TEMPDIR(a_failure_in_the_background_comes_out_at_the_next_call_once),
        WITH_TEMPDIR(two_runs_do_not_write_to_one_folder),
        WITH_TEMPDIR(nonsense_is_refused),
        WITH_TEMPDIR(an_emulated_device_is_charged_for_what_is_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
