/* test_checkpoint.c - checkpoints are saved in every mode and format, on one tier and two, and come
 * back; what is damaged, in the way or missing is handled and said. */
#include "unit.h"

#include "ckpt_kit.h"
#include "ckpt_name.h"
#include "device.h"
#include "engine.h"

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

#define LARGE ((uint64_t)9 << 20) /* three chunks and then some */

static char fast[512], slow[512];
static char why_text[4096];

static struct tempdir *begin_test(void **state)
{
    struct tempdir *t = *state;
    snprintf(fast, sizeof fast, "%s/fast", t->path);
    snprintf(slow, sizeof slow, "%s/deep/slow", t->path);
    return t;
}

static struct mr_checkpoint *open_with(struct ckpt_kit *k, struct mr_checkpoint_opts o,
                                       const struct mr_out_hook *hook)
{
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    o.dir = o.dir ? o.dir : fast;
    if (mr_checkpoint_open_hooked(k->arrays, KIT_N_ARRAYS, &o, hook, &c, &err))
        fail_msg("%s", err.text);
    return c;
}

/* Let the arrays be those of `step`, as training would. */
static void update(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        mr_checkpoint_before_write(c, i);
        ckpt_kit_fill_one(k, i, step, 0);
    }
}

static void save(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step)
{
    update(c, k, step);
    int r = mr_checkpoint_begin(c, step);
    if (r)
        fail_msg("step %llu: %d, %s", (unsigned long long)step, r, mr_checkpoint_error(c));
}

/* Nothing goes on in the background any more. */
static void idle(struct mr_checkpoint *c)
{
    struct mr_checkpoint_status s;
    do {
        sched_yield();
        mr_checkpoint_status(c, &s);
    } while (s.saving || s.drain_waiting);
}

static void close_well(struct mr_checkpoint *c)
{
    struct mr_error err = {0};
    if (mr_checkpoint_close(c, &err))
        fail_msg("%s", err.text);
}

static void note_why(void *ctx, const char *path, const char *why)
{
    size_t n = strlen(why_text);
    snprintf(why_text + n, sizeof why_text - n, "%s: %s\n", strrchr(path, '/') + 1, why);
}

/* The restored step, or -errno; its bytes are right. */
static int64_t restored(struct ckpt_kit *k, const char *dir, const char *drain_dir)
{
    struct mr_restore_opts o = {.dir = dir, .drain_dir = drain_dir, .passed_over = note_why};
    struct mr_restored found;
    struct mr_error err = {0};
    why_text[0] = 0;
    ckpt_kit_scramble(k);
    int r = mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS, &o, &found, &err);
    if (r) {
        assert_true(err.code == r && err.text[0]);
        return r;
    }
    assert_true(ckpt_kit_is(k, found.step, 0));
    assert_true(found.bytes > k->bytes);
    return (int64_t)found.step;
}

/* Names in a folder that end in `ending`. */
static unsigned count(const char *dir, const char *ending)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    unsigned n = 0;
    assert_non_null(d);
    while ((e = readdir(d))) {
        size_t a = strlen(e->d_name), b = strlen(ending);
        n += a >= b && !strcmp(e->d_name + a - b, ending);
    }
    closedir(d);
    return n;
}

static int is_there(const char *dir, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* Change one byte of a file. */
static void damage(const char *dir, const char *name, off_t at)
{
    char path[1024], byte;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

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
    struct tempdir *t = begin_test(state);
    static const uint64_t sizes[] = {4, 4096, 70004, LARGE};
    for (unsigned i = 0; i < 48; i++) {
        struct ckpt_kit *k = ckpt_kit_new(sizes[i / 12]);
        struct mr_checkpoint_opts o = {.mode = i % 3,
                                       .format = i / 3 % 2,
                                       .packed = i / 6 % 2,
                                       .copy_threads = 1 + i % 2,
                                       .buffers = 1 + i % 2};
        snprintf(fast, sizeof fast, "%s/set%u", t->path, i);
        struct mr_checkpoint *c = open_with(k, o, NULL);
        for (uint64_t step = 1; step <= 3; step++)
            save(c, k, step);
        update(c, k, 4); /* must not reach the checkpoint of step 3 */
        close_well(c);
        assert_int_equal(restored(k, fast, NULL), 3);
        assert_string_equal(why_text, "");
        assert_int_equal(count(fast, ".tmp"), 0);
        assert_int_equal(count(fast, o.format == MR_CHECKPOINT_TF ? ".index" : ".safetensors"), 3);
        ckpt_kit_free(k);
    }
    check_formats(t->path);
}

static void levels_are_reached_and_recorded(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    struct mr_checkpoint_opts o = {.drain_dir = slow};
    struct mr_checkpoint *c = open_with(k, o, NULL);
    struct mr_checkpoint_record r;
    struct mr_checkpoint_status s;
    assert_int_equal(mr_checkpoint_get(c, 0, &r), -ENOENT);
    save(c, k, 20);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_SNAPSHOTTED), 0);
    ckpt_kit_fill(k, 21, 0); /* no before_write: it may change now */
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW), 0);
    assert_int_equal(mr_checkpoint_get(c, 0, &r), 0);
    assert_true(r.step == 20 && r.code == 0 && r.bytes > k->bytes && !r.fell_back);
    assert_true(r.stall_s >= 0 && r.snapshot_s >= 0);
    assert_true(r.durable_fast_s >= r.snapshot_s && r.durable_slow_s >= r.durable_fast_s);
    mr_checkpoint_status(c, &s);
    assert_true(s.begun == 1 && s.durable_fast == 1 && s.durable_slow == 1 && !s.failed);
    assert_true(s.last_fast == 20 && s.last_slow == 20 && !s.error.code);
    o.dir = fast;
    assert_int_equal(s.memory_bytes, mr_checkpoint_memory(k->arrays, KIT_N_ARRAYS, &o));
    assert_true(s.memory_bytes > 2 * k->bytes);
    close_well(c);
    assert_int_equal(restored(k, fast, NULL), 20);
    assert_int_equal(restored(k, slow, NULL), 20);
    ckpt_kit_free(k);
}

static void the_newest_are_kept_and_the_last_is_read_back_first(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    for (unsigned format = 0; format < 2; format++) {
        struct mr_checkpoint_opts o = {.keep = 2, .format = format, .mode = MR_CHECKPOINT_BURST};
        struct mr_checkpoint_status s;
        struct mr_checkpoint *c = open_with(k, o, NULL);
        for (uint64_t step = 1; step <= 5; step++)
            save(c, k, step);
        mr_checkpoint_status(c, &s);
        assert_int_equal(s.last_verified, 5); /* 3 was, until it had to go */
        close_well(c);
        assert_int_equal(count(fast, format ? ".safetensors" : ".index"), 2);
        assert_true(is_there(fast, format ? "model.ckpt-4.safetensors" : "model.ckpt-4.meta"));
        assert_int_equal(count(fast, format ? ".safetensors" : "-of-00001"), 2);
    }
    ckpt_kit_free(k);
}

static void nothing_is_removed_while_no_newer_one_reads_back(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_opts o = {.keep = MR_NONE, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = open_with(k, o, NULL);
    for (uint64_t step = 1; step <= 3; step++)
        save(c, k, step);
    close_well(c);
    assert_int_equal(count(fast, ".index"), 3);
    /* Step 4 exists and is newer, but its bytes are not what they should be. */
    o.keep = 1;
    c = open_with(k, o, NULL);
    save(c, k, 4); /* reads 4 back: 1 to 3 may go */
    assert_int_equal(count(fast, ".index"), 1);
    close_well(c);
    damage(fast, "model.ckpt-4.data-00000-of-00001", 4096 * 2 + 11);
    o.keep = 2;
    c = open_with(k, o, NULL);
    save(c, k, 5);
    assert_int_equal(count(fast, ".index"), 2);
    save(c, k, 6);
    assert_int_equal(count(fast, ".index"), 2);
    close_well(c);
    assert_int_equal(restored(k, fast, NULL), 6);
    ckpt_kit_free(k);
}

static void damaged_and_unfitting_ones_are_passed_over_with_the_reason(void **state)
{
    struct tempdir *t = begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_SYNC, .keep = MR_NONE};
    struct mr_checkpoint *c = open_with(k, o, NULL);
    for (uint64_t step = 1; step <= 6; step++)
        save(c, k, step);
    close_well(c);
    damage(fast, "model.ckpt-6.data-00000-of-00001", 4096 * 4 + 100);
    damage(fast, "model.ckpt-5.index", 30);
    snprintf(why_text, sizeof why_text, "%s/model.ckpt-4.data-00000-of-00001", fast);
    assert_int_equal(truncate(why_text, 1000), 0);
    snprintf(why_text, sizeof why_text, "%s/model.ckpt-3.data-00000-of-00001", fast);
    assert_int_equal(unlink(why_text), 0);
    tempdir_text(t, "fast/checkpoint", "model_checkpoint_path: \"model.ckpt-6\"\n");
    tempdir_text(t, "fast/other-9.index", "this is not an index at all, however long it may get");
    assert_int_equal(restored(k, fast, NULL), 2);
    assert_non_null(strstr(why_text, "other-9: "));
    assert_non_null(strstr(why_text, "model.ckpt-6: "));
    assert_non_null(strstr(why_text, "tensor net/fc/w: checksum"));
    assert_non_null(strstr(why_text, "model.ckpt-5: "));
    assert_non_null(strstr(why_text, "model.ckpt-4: "));
    assert_non_null(strstr(why_text, "model.ckpt-3: "));
    /* Another model does not fit. */
    struct ckpt_kit *other = ckpt_kit_new(800);
    assert_int_equal(restored(other, fast, NULL), -EBADMSG);
    assert_non_null(strstr(why_text, "another type or shape"));
    snprintf(slow, sizeof slow, "%s/nowhere", t->path);
    assert_int_equal(restored(k, slow, NULL), -ENOENT);
    ckpt_kit_free(other);
    ckpt_kit_free(k);
}

static void a_checkpoint_copied_by_hand_is_as_good(void **state)
{
    struct tempdir *t = begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    struct mr_checkpoint *c = open_with(k, (struct mr_checkpoint_opts){0}, NULL);
    save(c, k, 7);
    close_well(c);
    char command[4096];
    snprintf(command, sizeof command,
             "mkdir -p %s && cp %s/model.ckpt-7.index %s/model.ckpt-7.data* %s", slow, fast, fast,
             slow);
    assert_int_equal(system(command), 0);
    assert_int_equal(restored(k, t->path, slow), 7);
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
    assert_int_equal(mr_ckpt_temp_name(temp, name), 0);
    snprintf(path, sizeof path, "fast/%s", temp);
    tempdir_write(t, path, index.data, index.len);
    mr_bundle_fini(&b);
    mr_bytes_fini(&index);
}

static void only_our_temporaries_are_removed(void **state)
{
    struct tempdir *t = begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint *c = open_with(k, (struct mr_checkpoint_opts){0}, NULL);
    save(c, k, 1);
    close_well(c);
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
    close_well(open_with(k, (struct mr_checkpoint_opts){0}, NULL));
    assert_int_equal(count(fast, ".tmp"), 2);
    assert_true(is_there(fast, "notes.tmp"));
    assert_true(is_there(fast, "model.ckpt-8.data-00000-of-00001"));
    assert_false(is_there(fast, "model.ckpt-2.data-00000-of-00001"));
    assert_false(is_there(fast, "model.ckpt-2.meta"));
    assert_false(is_there(fast, "model.ckpt-1.data-00001-of-00002"));
    assert_int_equal(restored(k, fast, NULL), 1);
    ckpt_kit_free(k);
}

static void a_step_can_be_saved_again(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    for (unsigned format = 0; format < 2; format++) {
        struct mr_checkpoint_opts o = {.format = format, .mode = MR_CHECKPOINT_SYNC};
        struct mr_checkpoint *c = open_with(k, o, NULL);
        for (uint64_t version = 3; version > 0; version--) {
            ckpt_kit_fill(k, 5, version - 1);
            assert_int_equal(mr_checkpoint_begin(c, 5), 0);
        }
        close_well(c);
        assert_int_equal(restored(k, fast, NULL), 5);
        assert_int_equal(count(fast, format ? ".safetensors" : ".index"), 1);
        assert_int_equal(count(fast, "-of-00001") + count(fast, "-of-00002"), 1);
    }
    ckpt_kit_free(k);
}

/* Writers of tier `tag` wait at a gate. */
struct gate {
    pthread_mutex_t mu;
    pthread_cond_t cond;
    int closed;
    unsigned tag;
    unsigned n_at;
};

static int wait_at_gate(void *ctx, const struct mr_out_op *op)
{
    struct gate *g = ctx;
    if (op->tag != g->tag || op->kind != MR_OUT_CREATE)
        return 0;
    pthread_mutex_lock(&g->mu);
    g->n_at++;
    pthread_cond_broadcast(&g->cond);
    while (g->closed)
        pthread_cond_wait(&g->cond, &g->mu);
    pthread_mutex_unlock(&g->mu);
    return 0;
}

static void open_gate(struct gate *g)
{
    pthread_mutex_lock(&g->mu);
    g->closed = 0;
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->mu);
}

static void one_too_many_is_skipped_and_counted(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_FAST, 0};
    struct mr_out_hook hook = {.before = wait_at_gate, .ctx = &g};
    struct mr_checkpoint *c =
        open_with(k, (struct mr_checkpoint_opts){.if_busy = MR_IF_BUSY_SKIP}, &hook);
    struct mr_checkpoint_status s;
    save(c, k, 1);
    save(c, k, 2); /* the second buffer */
    update(c, k, 3);
    assert_int_equal(mr_checkpoint_begin(c, 3), 1);
    open_gate(&g);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
    mr_checkpoint_status(c, &s);
    assert_true(s.skipped == 1 && s.begun == 2 && s.durable_fast == 2);
    close_well(c);
    assert_int_equal(restored(k, fast, NULL), 2);
    ckpt_kit_free(k);
}

/* Opens the gate when a begin waits. */
struct opener {
    struct mr_checkpoint *c;
    struct gate *g;
};

static void *open_when_it_waits(void *arg)
{
    struct opener *o = arg;
    struct mr_checkpoint_status s;
    do {
        sched_yield();
        mr_checkpoint_status(o->c, &s);
    } while (!s.waited);
    open_gate(o->g);
    return NULL;
}

static void one_too_many_waits_and_that_is_counted(void **state)
{
    struct tempdir *t = begin_test(state);
    /* Both reasons to wait: no free buffer, and the drain's queue of eight. */
    for (unsigned two = 0; two < 2; two++) {
        struct ckpt_kit *k = ckpt_kit_new(5000);
        struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, two, 0};
        struct mr_out_hook hook = {.before = wait_at_gate, .ctx = &g};
        struct mr_checkpoint_opts o = {.if_busy = MR_IF_BUSY_WAIT};
        struct mr_checkpoint_status s;
        struct mr_checkpoint_record r;
        pthread_t thread;
        uint64_t room = two ? MR_MAX_BACKLOG : MR_MAX_SHOTS;
        snprintf(fast, sizeof fast, "%s/fast%u", t->path, two);
        if (two) {
            o.drain_dir = slow;
            o.mode = MR_CHECKPOINT_BURST;
        }
        struct mr_checkpoint *c = open_with(k, o, &hook);
        for (uint64_t step = 1; step <= room; step++)
            save(c, k, step);
        mr_checkpoint_status(c, &s);
        assert_true(s.waited == 0 && s.waited_s == 0);
        assert_int_equal(pthread_create(&thread, NULL, open_when_it_waits, &(struct opener){c, &g}),
                         0);
        save(c, k, room + 1); /* returns only because the other thread has seen it waiting */
        assert_int_equal(pthread_join(thread, NULL), 0);
        mr_checkpoint_status(c, &s);
        assert_true(s.waited == 1 && s.waited_s > 0 && s.skipped == 0 && s.begun == room + 1);
        assert_int_equal(mr_checkpoint_get(c, room, &r), 0);
        assert_true(r.stall_s >= s.waited_s);
        close_well(c);
        assert_int_equal(restored(k, fast, NULL), room + 1);
        ckpt_kit_free(k);
    }
}

static void a_checkpoint_leaves_the_fast_tier_only_when_it_is_durable_below(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = wait_at_gate, .ctx = &g};
    struct mr_checkpoint_opts o = {
        .drain_dir = slow, .keep = 2, .mode = MR_CHECKPOINT_BURST, .drain_bytes_per_s = 1u << 30};
    struct mr_checkpoint *c = open_with(k, o, &hook);
    struct mr_checkpoint_status s;
    for (uint64_t step = 1; step <= 4; step++)
        save(c, k, step);
    assert_int_equal(count(fast, ".index"), 4);
    assert_int_equal(count(slow, ".index"), 0);
    mr_checkpoint_status(c, &s);
    assert_true(s.drain_waiting == 4 && s.last_fast == 4 && s.last_slow == -1);
    open_gate(&g);
    close_well(c);
    assert_int_equal(count(fast, ".index"), 1);
    assert_int_equal(count(slow, ".index"), 2);
    assert_int_equal(restored(k, fast, NULL), 4);
    assert_int_equal(restored(k, slow, NULL), 4);
    ckpt_kit_free(k);
}

static void what_an_earlier_run_left_undrained_is_drained(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    for (unsigned format = 0; format < 2; format++) {
        struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .format = format};
        struct mr_checkpoint *c = open_with(k, o, NULL);
        save(c, k, 1);
        save(c, k, 2);
        close_well(c);
        o.drain_dir = slow;
        close_well(open_with(k, o, NULL));
        assert_int_equal(count(slow, format ? ".safetensors" : ".index"), 2);
        assert_int_equal(restored(k, slow, NULL), 2);
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
    struct tempdir *t = begin_test(state);
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
        struct mr_checkpoint_status s;
        snprintf(fast, sizeof fast, "%s/fast%u", t->path, i);
        snprintf(slow, sizeof slow, "%s/slow%u", t->path, i);
        struct mr_checkpoint *c = open_with(k, o, NULL);
        for (uint64_t step = 1; step <= n; step++)
            save(c, k, step);
        close_well(c);
        o.drain_dir = slow;
        o.keep = cases[i].keep;
        c = open_with(k, o, &hook);
        idle(c);
        mr_checkpoint_status(c, &s);
        assert_int_equal(s.durable_slow, n);
        assert_true(s.last_slow == n && !s.failed && !s.error.code);
        close_well(c);
        assert_int_equal(a.n, n);
        for (unsigned j = 0; j < n; j++)
            assert_int_equal(a.steps[j], j ? j : n);
        assert_int_equal(count(slow, ending), stay);
        assert_int_equal(count(fast, ending), 1);
        assert_int_equal(restored(k, slow, NULL), n);
        assert_int_equal(restored(k, fast, NULL), n);
        if (!cases[i].format)
            assert_int_equal(latest_named(slow), n);
    }
    ckpt_kit_free(k);
}

/* What this run saves goes before what earlier ones left, and is what a reader takes. */
static void leftovers_do_not_hold_up_a_run(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = wait_at_gate, .ctx = &g};
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .keep = MR_NONE};
    struct mr_checkpoint_status s;
    struct mr_checkpoint *c = open_with(k, o, NULL);
    for (uint64_t step = 1; step <= 12; step++)
        save(c, k, step);
    close_well(c);
    o.drain_dir = slow;
    o.keep = 3;
    o.if_busy = MR_IF_BUSY_SKIP;
    c = open_with(k, o, &hook);
    for (uint64_t step = 13; step <= 20; step++)
        save(c, k, step); /* the queue is theirs alone */
    mr_checkpoint_status(c, &s);
    assert_true(s.drain_waiting == 20 && s.last_slow == -1);
    open_gate(&g);
    close_well(c);
    assert_int_equal(count(slow, ".index"), 3);
    assert_true(is_there(slow, "model.ckpt-18.index") && is_there(slow, "model.ckpt-19.index"));
    assert_int_equal(latest_named(slow), 20);
    assert_int_equal(restored(k, slow, NULL), 20);
    assert_int_equal(count(fast, ".index"), 1);
    ckpt_kit_free(k);
}

static void a_damaged_checkpoint_is_not_drained(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    static const char *const victims[] = {"model.ckpt-2.data-00000-of-00001", "model.ckpt-2.meta",
                                          "model.ckpt-2.safetensors"};
    for (unsigned i = 0; i < ARRAY_LEN(victims); i++) {
        struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .format = i == 2};
        struct mr_checkpoint *c = open_with(k, o, NULL);
        struct mr_error err = {0};
        save(c, k, 1);
        save(c, k, 2);
        close_well(c);
        damage(fast, victims[i], i == 1 ? 7 : 4096 * 5);
        o.drain_dir = slow;
        c = open_with(k, o, NULL);
        assert_int_equal(mr_checkpoint_close(c, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "damaged on the fast tier"));
        assert_int_equal(restored(k, slow, NULL), 1);
        assert_int_equal(count(slow, ".tmp"), 0);
        assert_int_equal(count(slow, "-2.index") + count(slow, "-2.safetensors"), 0);
    }
    ckpt_kit_free(k);
}

/* Operations of kind `kind` on tier `tag` fail with `code` while it is set. */
struct breaker {
    atomic_int code;
    unsigned tag;
    enum mr_out_kind kind;
    atomic_int n_times; /* so often at the most; 0: always */
};

static int break_it(void *ctx, const struct mr_out_op *op)
{
    struct breaker *b = ctx;
    if (op->tag != b->tag || op->kind != b->kind || !b->code)
        return 0;
    int code = b->code;
    if (b->n_times && atomic_fetch_sub(&b->n_times, 1) == 1)
        b->code = 0;
    return code;
}

static void a_failing_fast_tier_falls_back_to_the_slow_one(void **state)
{
    begin_test(state);
    static const enum mr_out_kind kinds[] = {MR_OUT_CREATE, MR_OUT_WRITE,    MR_OUT_SYNC,
                                             MR_OUT_RENAME, MR_OUT_SYNC_DIR, MR_OUT_ALLOCATE};
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    uint64_t step = 1;
    for (unsigned i = 0; i < 3 * ARRAY_LEN(kinds); i++) {
        struct breaker b = {.tag = MR_TIER_FAST, .kind = kinds[i / 3]};
        struct mr_out_hook hook = {.before = break_it, .ctx = &b};
        struct mr_checkpoint_opts o = {
            .drain_dir = slow, .mode = i % 3, .keep = MR_NONE, .format = i / 3 % 2};
        struct mr_checkpoint *c = open_with(k, o, &hook);
        struct mr_checkpoint_status s;
        struct mr_checkpoint_record r;
        save(c, k, step);
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW), 0);
        idle(c);
        atomic_store(&b.code, i % 2 ? -EIO : -ENOSPC);
        save(c, k, step + 1);
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
        mr_checkpoint_status(c, &s);
        assert_true(s.fell_back == 1 && s.failed == 0 && s.last_slow == (int64_t)step + 1);
        assert_non_null(strstr(s.notice, "goes straight to the slow tier"));
        assert_int_equal(mr_checkpoint_get(c, 1, &r), 0);
        assert_true(r.fell_back && r.durable_fast_s < 0 && r.durable_slow_s >= 0);
        idle(c);
        atomic_store(&b.code, 0);
        save(c, k, step + 2); /* it is well again */
        assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
        mr_checkpoint_status(c, &s);
        assert_int_equal(s.last_fast, step + 2);
        close_well(c);
        assert_int_equal(restored(k, fast, slow), step + 2);
        step += 3;
    }
    ckpt_kit_free(k);
}

static void a_full_fast_tier_gives_up_what_is_durable_below(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_ALLOCATE};
    struct mr_out_hook hook = {.before = break_it, .ctx = &b};
    struct mr_checkpoint_opts o = {.drain_dir = slow, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = open_with(k, o, &hook);
    struct mr_checkpoint_status s;
    save(c, k, 1);
    assert_int_equal(count(fast, ".index"), 1);
    idle(c);
    /* No room for two: the first try fails, the second one has the room of step 1. */
    atomic_store(&b.n_times, 1);
    atomic_store(&b.code, -ENOSPC);
    save(c, k, 2);
    mr_checkpoint_status(c, &s);
    assert_true(s.fell_back == 0 && s.last_fast == 2);
    assert_false(is_there(fast, "model.ckpt-1.index"));
    /* No room even then. */
    idle(c);
    atomic_store(&b.code, -ENOSPC);
    save(c, k, 3);
    mr_checkpoint_status(c, &s);
    assert_true(s.fell_back == 1 && s.last_fast == 2 && s.last_slow == 3);
    assert_int_equal(count(fast, ".index"), 0);
    atomic_store(&b.code, 0);
    save(c, k, 4);
    close_well(c);
    assert_int_equal(restored(k, fast, NULL), 4);
    assert_int_equal(count(slow, ".index"), 4);
    ckpt_kit_free(k);
}

/* A file system of so many bytes at `path`, which goes when this program does.  0: cannot be had.
 */
static int mount_small(const char *path, unsigned bytes)
{
    char size[32];
    snprintf(size, sizeof size, "size=%u", bytes);
    return !mkdir(path, 0755) && !unshare(CLONE_NEWNS) &&
           !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
           !mount("tmpfs", path, "tmpfs", 0, size);
}

/* Not by a hook: a file system that has room for one checkpoint and not for two. */
static void a_fast_tier_that_is_too_small_for_two_loses_none(void **state)
{
    begin_test(state);
    if (geteuid() || !mount_small(fast, 200 << 10))
        skip(); /* needs root and mounts of our own */
    struct ckpt_kit *k = ckpt_kit_new(70000);
    struct gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 1, MR_TIER_SLOW, 0};
    struct mr_out_hook hook = {.before = wait_at_gate, .ctx = &g};
    struct mr_checkpoint *c = open_with(k, (struct mr_checkpoint_opts){.drain_dir = slow}, &hook);
    struct mr_checkpoint_status s;
    save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
    save(c, k, 2); /* no room, and the drain is not through with step 1 */
    do {
        sched_yield();
        mr_checkpoint_status(c, &s);
    } while (!s.fell_back);
    assert_non_null(strstr(s.notice, "step 2 goes straight to the slow tier"));
    assert_non_null(strstr(s.notice, "keep fewer, or drain elsewhere"));
    assert_int_equal(restored(k, fast, NULL), 1);
    ckpt_kit_fill(k, 2, 0); /* restored() has changed it; it was copied long ago */
    open_gate(&g);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW), 0);
    idle(c);
    assert_int_equal(restored(k, slow, NULL), 2);
    assert_true(is_there(slow, "model.ckpt-1.index"));
    save(c, k, 3); /* step 1 makes room, for it is below */
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
    mr_checkpoint_status(c, &s);
    assert_true(s.fell_back == 1 && s.last_fast == 3 && !s.failed);
    close_well(c);
    assert_int_equal(count(fast, ".tmp") + count(slow, ".tmp"), 0);
    assert_int_equal(restored(k, fast, NULL), 3);
    assert_int_equal(restored(k, slow, NULL), 3);
    assert_int_equal(count(slow, ".index"), 3);
    ckpt_kit_free(k);
    assert_int_equal(umount(fast), 0);
}

static void a_missing_fast_tier_is_no_obstacle(void **state)
{
    struct tempdir *t = begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint_status s;
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    tempdir_text(t, "fast", "a file where the folder should be");
    struct mr_checkpoint_opts o = {.dir = fast, .drain_dir = slow};
    c = open_with(k, o, NULL);
    mr_checkpoint_status(c, &s);
    assert_non_null(strstr(s.notice, "no fast tier"));
    save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW), 0);
    close_well(c);
    assert_int_equal(restored(k, fast, slow), 1);
    o.drain_dir = NULL; /* the only one */
    c = NULL;
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &c, &err), -ENOTDIR);
    assert_null(c);
    assert_non_null(strstr(err.text, fast));
    ckpt_kit_free(k);
}

static void a_failure_in_the_background_comes_out_at_the_next_call_once(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    struct breaker b = {.tag = MR_TIER_FAST, .kind = MR_OUT_SYNC};
    struct mr_out_hook hook = {.before = break_it, .ctx = &b};
    struct mr_checkpoint *c = open_with(k, (struct mr_checkpoint_opts){0}, &hook);
    struct mr_checkpoint_status s;
    struct mr_error err = {0};
    save(c, k, 1);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
    idle(c);
    atomic_store(&b.code, -EIO);
    save(c, k, 2);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), -EIO);
    assert_non_null(strstr(mr_checkpoint_error(c), "model.ckpt-2.data"));
    save(c, k, 3);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_SNAPSHOTTED), 0);
    /* Wait until it has failed without asking it. */
    do
        mr_checkpoint_status(c, &s);
    while (s.failed < 2);
    assert_int_equal(mr_checkpoint_begin(c, 4), -EIO);
    atomic_store(&b.code, 0);
    assert_int_equal(mr_checkpoint_begin(c, 4), 0);
    assert_int_equal(mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST), 0);
    idle(c);
    atomic_store(&b.code, -EIO);
    save(c, k, 5);
    assert_int_equal(mr_checkpoint_close(c, &err), -EIO);
    assert_int_equal(err.code, -EIO);
    assert_int_equal(count(fast, ".tmp"), 0);
    /* Step 4 was begun with the arrays of step 3. */
    struct mr_restored found;
    assert_int_equal(mr_checkpoint_restore(k->arrays, KIT_N_ARRAYS,
                                           &(struct mr_restore_opts){.dir = fast}, &found, NULL),
                     0);
    assert_true(found.step == 4 && ckpt_kit_is(k, 3, 0));
    ckpt_kit_free(k);
}

static void two_runs_do_not_write_to_one_folder(void **state)
{
    begin_test(state);
    struct ckpt_kit *k = ckpt_kit_new(5000);
    struct mr_checkpoint *c = open_with(k, (struct mr_checkpoint_opts){0}, NULL), *second = NULL;
    struct mr_error err = {0};
    struct mr_checkpoint_opts o = {.dir = fast};
    assert_int_equal(mr_checkpoint_open(k->arrays, KIT_N_ARRAYS, &o, &second, &err), -EBUSY);
    assert_non_null(strstr(err.text, "another run"));
    close_well(c);
    close_well(open_with(k, o, NULL));
    ckpt_kit_free(k);
}

static void nonsense_is_refused(void **state)
{
    begin_test(state);
    float f[4];
    struct mr_checkpoint *c = NULL;
    struct mr_checkpoint_opts o = {.dir = fast}, no_dir = {0},
                              prefix = {.dir = fast, .prefix = "a/b"};
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
    assert_int_equal(mr_checkpoint_memory(twice, 2, &o), 0);
    assert_null(c);
    assert_int_equal(mr_checkpoint_close(NULL, NULL), 0);
}

static void an_emulated_device_is_charged_for_what_is_written_and_read(void **state)
{
    begin_test(state);
    static const char profile[] = "name = slow\nread_mb_per_s = 90\nwrite_mb_per_s = 90\n";
    struct ckpt_kit *k = ckpt_kit_new(LARGE);
    struct mr_device_profile p;
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    struct mr_checkpoint_record r;
    if (mr_device_profile_parse(profile, strlen(profile), "p", &p, &err) ||
        mr_device_new(&p, &d, &err))
        fail_msg("%s", err.text);
    struct mr_checkpoint_opts o = {.storage = d, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c = open_with(k, o, NULL);
    save(c, k, 1);
    assert_int_equal(mr_checkpoint_get(c, 0, &r), 0);
    assert_true(r.durable_fast_s >= 0.1); /* 9.4 MB at 90 MB/s: a promise, not a measurement */
    close_well(c);
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
        WITH_TEMPDIR(a_checkpoint_leaves_the_fast_tier_only_when_it_is_durable_below),
        WITH_TEMPDIR(what_an_earlier_run_left_undrained_is_drained),
        WITH_TEMPDIR(however_much_was_left_undrained_is_drained_the_newest_first),
        WITH_TEMPDIR(leftovers_do_not_hold_up_a_run),
        WITH_TEMPDIR(a_damaged_checkpoint_is_not_drained),
        WITH_TEMPDIR(a_failing_fast_tier_falls_back_to_the_slow_one),
        WITH_TEMPDIR(a_full_fast_tier_gives_up_what_is_durable_below),
        WITH_TEMPDIR(a_fast_tier_that_is_too_small_for_two_loses_none),
        WITH_TEMPDIR(a_missing_fast_tier_is_no_obstacle),
        WITH_TEMPDIR(a_failure_in_the_background_comes_out_at_the_next_call_once),
        WITH_TEMPDIR(two_runs_do_not_write_to_one_folder),
        WITH_TEMPDIR(nonsense_is_refused),
        WITH_TEMPDIR(an_emulated_device_is_charged_for_what_is_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
