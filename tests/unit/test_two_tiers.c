/* test_two_tiers.c - a fast tier that drains to a slow one: what leaves which when, what an earlier
 * run left, and a fast tier that is damaged, failing, full, too small or gone. */
#include "unit.h"

#include "ckpt_name.h"
#include "ckpt_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_checkpoint_leaves_the_fast_tier_only_when_it_is_durable_below(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = kit_gate_wait, .ctx = &g};
    struct mr_checkpoint_opts o = {.drain_dir = kit_slow,
                                   .keep = 2,
                                   .mode = MR_CHECKPOINT_BURST,
                                   .drain_bytes_per_s = 1u << 30};
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    struct mr_checkpoint_stats s;
    for (uint64_t step = 1; step <= 4; step++)
        kit_save(c, k, step);
    assert_int_equal(kit_count(kit_fast, ".index"), 4);
    assert_int_equal(kit_count(kit_slow, ".index"), 0);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.drain_waiting == 4 && s.last_fast == 4 && s.last_slow == -1);
    kit_gate_open(&g);
    kit_close(c);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    assert_int_equal(kit_count(kit_slow, ".index"), 2);
    assert_int_equal(kit_restored(k, kit_fast, NULL), 4);
    assert_int_equal(kit_restored(k, kit_slow, NULL), 4);
    ckpt_kit_free(k);
}

static void what_an_earlier_run_left_undrained_is_drained(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(KIT_LARGE);
    for (unsigned format = 0; format < 2; format++) {
        struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .format = format};
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        kit_save(c, k, 1);
        kit_save(c, k, 2);
        kit_close(c);
        o.drain_dir = kit_slow;
        kit_close(kit_open(k, o, NULL));
        assert_int_equal(kit_count(kit_slow, format ? ".safetensors" : ".index"), 2);
        assert_int_equal(kit_restored(k, kit_slow, NULL), 2);
    }
    ckpt_kit_free(k);
}

/* The order in which checkpoints get their names on the slow tier. */
struct arrivals {
    uint64_t steps[64];
    unsigned n;
};

static int note_arrival(void *ctx, const struct mr_out_op *op)
{
    struct arrivals *a = ctx;
    unsigned long long step;
    char rest[16];
    if (op->tag == MR_TIER_SLOW && op->kind == MR_OUT_RENAME &&
        sscanf(op->to, "model.ckpt-%llu%15s", &step, rest) == 2 &&
        (!strcmp(rest, ".index") || !strcmp(rest, ".safetensors")) && a->n < ARRAY_LEN(a->steps))
        a->steps[a->n++] = step;
    return 0;
}

/* The step that TensorFlow's state file names as the one to take. */
static int64_t latest_named(const char *dir)
{
    char path[1024];
    long long step = -1;
    snprintf(path, sizeof path, "%s/checkpoint", dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "model_checkpoint_path: \"model.ckpt-%lld\"", &step), 1);
    fclose(f);
    return step;
}

static void however_much_was_left_undrained_is_drained_the_newest_first(void **state)
{
    struct tempdir *t = kit_begin(state);
    static const struct {
        unsigned n, keep, format;
    } cases[] = {{12, MR_NONE, 0}, {20, 5, 0}, {12, 1, 1}};
    struct ckpt_kit *k = ckpt_kit_new(5000);
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned n = cases[i].n, stay = cases[i].keep == MR_NONE ? n : cases[i].keep;
        const char *ending = cases[i].format ? ".safetensors" : ".index";
        struct arrivals a = {.n = 0};
        struct mr_out_hook hook = {.before = note_arrival, .ctx = &a};
        struct mr_checkpoint_opts o = {
            .mode = MR_CHECKPOINT_BURST, .format = cases[i].format, .keep = MR_NONE};
        struct mr_checkpoint_stats s;
        snprintf(kit_fast, sizeof kit_fast, "%s/fast%u", t->path, i);
        snprintf(kit_slow, sizeof kit_slow, "%s/slow%u", t->path, i);
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        for (uint64_t step = 1; step <= n; step++)
            kit_save(c, k, step);
        kit_close(c);
        o.drain_dir = kit_slow;
        o.keep = cases[i].keep;
        c = kit_open(k, o, &hook);
        kit_idle(c);
        mr_checkpoint_get_stats(c, &s);
        assert_int_equal(s.durable_slow, n);
        assert_true(s.last_slow == n && !s.failed && !s.error.code);
        kit_close(c);
        assert_int_equal(a.n, n);
        for (unsigned j = 0; j < n; j++)
            assert_int_equal(a.steps[j], j ? j : n);
        assert_int_equal(kit_count(kit_slow, ending), stay);
        assert_int_equal(kit_count(kit_fast, ending), 1);
        assert_int_equal(kit_restored(k, kit_slow, NULL), n);
        assert_int_equal(kit_restored(k, kit_fast, NULL), n);
        if (!cases[i].format)
            assert_int_equal(latest_named(kit_slow), n);
    }
    ckpt_kit_free(k);
}

/* What this run saves goes before what earlier ones left, and is what a reader takes. */
static void leftovers_do_not_hold_up_a_run(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = kit_gate_wait, .ctx = &g};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .keep = MR_NONE};
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = kit_open(k, o, NULL);
    for (uint64_t step = 1; step <= 12; step++)
        kit_save(c, k, step);
    kit_close(c);
    o.drain_dir = kit_slow;
    o.keep = 3;
    o.if_busy = MR_IF_BUSY_SKIP;
    c = kit_open(k, o, &hook);
    for (uint64_t step = 13; step <= 20; step++)
        kit_save(c, k, step); /* the queue is theirs alone */
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.drain_waiting == 20 && s.last_slow == -1);
    kit_gate_open(&g);
    kit_close(c);
    assert_int_equal(kit_count(kit_slow, ".index"), 3);
    assert_true(kit_is_there(kit_slow, "model.ckpt-18.index") &&
                kit_is_there(kit_slow, "model.ckpt-19.index"));
    assert_int_equal(latest_named(kit_slow), 20);
    assert_int_equal(kit_restored(k, kit_slow, NULL), 20);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    ckpt_kit_free(k);
}

static void a_damaged_checkpoint_is_not_drained(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    static const char *const victims[] = {"model.ckpt-2.data-00000-of-00001",
                                          "model.ckpt.resaved-2.meta", "model.ckpt-2.safetensors"};
    for (unsigned i = 0; i < ARRAY_LEN(victims); i++) {
        struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .format = i == 2};
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        struct mr_error err = {0};
        kit_save(c, k, 1);
        kit_save(c, k, 2);
        kit_close(c);
        kit_damage(kit_fast, victims[i], i == 1 ? 7 : 4096 * 5);
        o.drain_dir = kit_slow;
        c = kit_open(k, o, NULL);
        assert_int_equal(mr_checkpoint_close(c, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "damaged on the fast tier"));
        assert_int_equal(kit_restored(k, kit_slow, NULL), 1);
        assert_int_equal(kit_count(kit_slow, ".tmp"), 0);
        assert_int_equal(kit_count(kit_slow, "-2.index") + kit_count(kit_slow, "-2.safetensors"),
                         0);
    }
    ckpt_kit_free(k);
}

static void a_failing_fast_tier_falls_back_to_the_slow_one(void **state)
{
    kit_begin(state);
    static const enum mr_out_kind kinds[] = {MR_OUT_CREATE, MR_OUT_WRITE,    MR_OUT_SYNC,
                                             MR_OUT_RENAME, MR_OUT_SYNC_DIR, MR_OUT_ALLOCATE};
    struct ckpt_kit *k = ckpt_kit_new(KIT_LARGE);
    uint64_t step = 1;
    for (unsigned i = 0; i < 3 * ARRAY_LEN(kinds); i++) {
        struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = kinds[i / 3]};
        struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
        struct mr_checkpoint_opts o = {
            .drain_dir = kit_slow, .mode = i % 3, .keep = MR_NONE, .format = i / 3 % 2};
        struct mr_checkpoint *c = kit_open(k, o, &hook);
        struct mr_checkpoint_stats s;
        struct mr_checkpoint_record r;
        kit_save(c, k, step);
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
        kit_idle(c);
        atomic_store(&b.code, i % 2 ? -EIO : -ENOSPC);
        kit_save(c, k, step + 1);
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
        mr_checkpoint_get_stats(c, &s);
        assert_true(s.fell_back == 1 && s.failed == 0 && s.last_slow == (int64_t)step + 1);
        assert_non_null(strstr(s.notice, "goes straight to the slow tier"));
        assert_int_equal(mr_checkpoint_get(c, 1, &r), 0);
        assert_true(r.fell_back && r.durable_fast_s < 0 && r.durable_slow_s >= 0);
        kit_idle(c);
        atomic_store(&b.code, 0);
        kit_save(c, k, step + 2); /* it is well again */
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
        mr_checkpoint_get_stats(c, &s);
        assert_int_equal(s.last_fast, step + 2);
        kit_close(c);
        assert_int_equal(kit_restored(k, kit_fast, kit_slow), step + 2);
        step += 3;
    }
    ckpt_kit_free(k);
}

static void a_full_fast_tier_gives_up_what_is_durable_below(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct kit_breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_ALLOCATE};
    struct mr_out_hook hook = {.before = kit_break, .ctx = &b};
    struct mr_checkpoint_opts o = {.drain_dir = kit_slow, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = kit_open(k, o, &hook);
    struct mr_checkpoint_stats s;
    kit_save(c, k, 1);
    assert_int_equal(kit_count(kit_fast, ".index"), 1);
    kit_idle(c);
    /* No room for two: the first try fails, the second one has the room of step 1. */
    atomic_store(&b.n_times, 1);
    atomic_store(&b.code, -ENOSPC);
    kit_save(c, k, 2);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.fell_back == 0 && s.last_fast == 2);
    assert_false(kit_is_there(kit_fast, "model.ckpt-1.index"));
    /* No room even then. */
    kit_idle(c);
    atomic_store(&b.code, -ENOSPC);
    kit_save(c, k, 3);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.fell_back == 1 && s.last_fast == 2 && s.last_slow == 3);
    assert_int_equal(kit_count(kit_fast, ".index"), 0);
    atomic_store(&b.code, 0);
    kit_save(c, k, 4);
    kit_close(c);
    assert_int_equal(kit_restored(k, kit_fast, NULL), 4);
    assert_int_equal(kit_count(kit_slow, ".index"), 4);
    ckpt_kit_free(k);
}

/* Not by a hook: a file system that has room for one checkpoint and not for two. */
static void a_fast_tier_that_is_too_small_for_two_loses_none(void **state)
{
    kit_begin(state);
    if (geteuid() || !kit_mount_small(kit_fast, 200 << 10))
        skip(); /* needs root and mounts of our own */
    struct ckpt_kit *k = ckpt_kit_new(70000);
    struct kit_gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = kit_gate_wait, .ctx = &g};
    struct mr_checkpoint *c =
        kit_open(k, (struct mr_checkpoint_opts){.drain_dir = kit_slow}, &hook);
    struct mr_checkpoint_stats s;
    kit_save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    kit_save(c, k, 2); /* no room, and the drain is not through with step 1 */
    do {
        sched_yield();
        mr_checkpoint_get_stats(c, &s);
    } while (!s.fell_back);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_SNAPSHOTTED, NULL), 0);
    assert_non_null(strstr(s.notice, "step 2 goes straight to the slow tier"));
    assert_non_null(strstr(s.notice, "keep fewer, or drain elsewhere"));
    assert_int_equal(kit_restored(k, kit_fast, NULL), 1);
    ckpt_kit_fill(k, 2, 0); /* restored() has changed it; it was copied long ago */
    kit_gate_open(&g);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
    kit_idle(c);
    assert_int_equal(kit_restored(k, kit_slow, NULL), 2);
    assert_true(kit_is_there(kit_slow, "model.ckpt-1.index"));
    kit_save(c, k, 3); /* step 1 makes room, for it is below */
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL), 0);
    mr_checkpoint_get_stats(c, &s);
    assert_true(s.fell_back == 1 && s.last_fast == 3 && !s.failed);
    kit_close(c);
    assert_int_equal(kit_count(kit_fast, ".tmp") + kit_count(kit_slow, ".tmp"), 0);
    assert_int_equal(kit_restored(k, kit_fast, NULL), 3);
    assert_int_equal(kit_restored(k, kit_slow, NULL), 3);
    assert_int_equal(kit_count(kit_slow, ".index"), 3);
    ckpt_kit_free(k);
    assert_int_equal(umount(kit_fast), 0);
}

static void a_missing_fast_tier_is_no_obstacle(void **state)
{
    struct tempdir *t = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_stats s;
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    tempdir_text(t, "fast", "a file where the folder should be");
    struct mr_checkpoint_opts o = {.dir = kit_fast, .drain_dir = kit_slow};
    c = kit_open(k, o, NULL);
    mr_checkpoint_get_stats(c, &s);
    assert_non_null(strstr(s.notice, "no fast tier"));
    kit_save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL), 0);
    kit_close(c);
    assert_int_equal(kit_restored(k, kit_fast, kit_slow), 1);
    o.drain_dir = NULL; /* the only one */
    c = NULL;
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err), -ENOTDIR);
    assert_null(c);
    assert_non_null(strstr(err.text, kit_fast));
    ckpt_kit_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(a_checkpoint_leaves_the_fast_tier_only_when_it_is_durable_below),
        WITH_TEMPDIR(what_an_earlier_run_left_undrained_is_drained),
        WITH_TEMPDIR(however_much_was_left_undrained_is_drained_the_newest_first),
        WITH_TEMPDIR(leftovers_do_not_hold_up_a_run),
        WITH_TEMPDIR(a_damaged_checkpoint_is_not_drained),
        WITH_TEMPDIR(a_failing_fast_tier_falls_back_to_the_slow_one),
        WITH_TEMPDIR(a_full_fast_tier_gives_up_what_is_durable_below),
        WITH_TEMPDIR(a_fast_tier_that_is_too_small_for_two_loses_none),
        WITH_TEMPDIR(a_missing_fast_tier_is_no_obstacle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
