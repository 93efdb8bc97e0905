/* test_checkpoint_faults.c - every fallible call of a run with checkpoints fails once: the error is
 * said, the checkpoint before is there, nothing leaks, and the next start leaves no temporary. */
#include "unit.h"

#include "ckpt_kit.h"
#include "ckpt_name.h"
#include "ckpt_scan.h"
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LARGE 9000

static char fast[512], slow[512];

struct setting {
    struct mr_checkpoint_opts o;
    uint64_t first;    /* the steps first + 1, first + 2 and, again, first + 1 are saved */
    uint64_t version;  /* of the last save; every one has another */
    uint64_t reported; /* newest version that was said to be durable */
    struct ckpt_kit *kit;
};

/* Save three times; what wait says durable is remembered.  0, or the first error. */
static int run(struct setting *s)
{
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    int r = mr_checkpoint_open(s->kit->arrays, KIT_N_ARRAYS, &s->o, &c, &err);
    if (r) {
        assert_null(c);
        assert_true(err.code == r && err.text[0]);
        return r;
    }
    int first = 0;
    for (unsigned k = 0; k < 3; k++) {
        uint64_t step = s->first + 1 + k % 2, version = ++s->version;
        for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
            mr_checkpoint_before_write(c, i);
            ckpt_kit_fill_one(s->kit, i, step, version);
        }
        struct mr_error why = {0};
        r = mr_checkpoint_begin(c, step, &why);
        int begun = !r;
        if (!r)
            r = mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, &why);
        if (begun && !r)
            s->reported = version;
        assert_true(why.code == r && !r == !why.text[0]);
        first = first ? first : r;
    }
    r = mr_checkpoint_close(c, &err);
    assert_true(!r || (err.code == r && err.text[0]));
    return first ? first : r;
}

static int count_temporary(void *ctx, const char *name)
{
    *(unsigned *)ctx += (unsigned)mr_ckpt_temp_parse(name, NULL, NULL);
    return 0;
}

/* Which version the arrays hold, 0: none. */
static uint64_t version_of(const struct setting *s, uint64_t step)
{
    uint64_t v = s->version;
    while (v && !ckpt_kit_is(s->kit, step, v))
        v--;
    return v;
}

/* Nothing fails any more: is all as it should be? */
static void judge(struct setting *s, uint64_t at)
{
    struct mr_restore_opts o = {.dir = fast, .drain_dir = s->o.drain_dir, .io_depth = 1};
    struct mr_checkpoint *c = NULL;
    struct mr_restored found;
    struct mr_error err = {0};
    unsigned n = 0;
    ckpt_kit_scramble(s->kit);
    if (mr_checkpoint_restore(s->kit->arrays, KIT_N_ARRAYS, &o, &found, &err))
        fail_msg("call %llu: %s", (unsigned long long)at, err.text);
    uint64_t version = version_of(s, found.step);
    if (version < s->reported)
        fail_msg("call %llu: version %llu, but %llu was reported durable", (unsigned long long)at,
                 (unsigned long long)version, (unsigned long long)s->reported);
    if (mr_checkpoint_open(s->kit->arrays, KIT_N_ARRAYS, &s->o, &c, &err) ||
        mr_checkpoint_close(c, &err))
        fail_msg("call %llu: the next start: %s", (unsigned long long)at, err.text);
    mr_ckpt_each_name(AT_FDCWD, fast, count_temporary, &n);
    if (s->o.drain_dir)
        mr_ckpt_each_name(AT_FDCWD, slow, count_temporary, &n);
    if (n)
        fail_msg("call %llu: %u temporaries after the next start", (unsigned long long)at, n);
    s->reported = version;
    s->first = s->first + at % 2; /* at times over what the last run left */
}

static void loop(struct tempdir *t, struct mr_checkpoint_opts o, enum fault_kind kind, int may_fail)
{
    static unsigned n_loops;
    struct setting s = {.o = o, .kit = ckpt_kit_new(LARGE)};
    snprintf(fast, sizeof fast, "%s/%u-fast", t->path, n_loops);
    snprintf(slow, sizeof slow, "%s/%u-slow", t->path, n_loops++);
    s.o.dir = fast;
    s.o.drain_dir = o.drain_dir ? slow : NULL;
    s.o.keep = 2;
    s.o.io_depth = 1;
    s.o.buffers = 1;
    assert_int_equal(run(&s), 0);
    s.first = 3;
    for (uint64_t at = 1;; at++) {
        int64_t before = faults_live();
        faults_begin(kind, at);
        int r = run(&s);
        int hit = faults_end();
        if (r && (!hit || !may_fail))
            fail_msg("call %llu: %d", (unsigned long long)at, r);
        if (faults_live() != before)
            fail_msg("call %llu leaves %lld things behind", (unsigned long long)at,
                     (long long)(faults_live() - before));
        judge(&s, at);
        if (!hit)
            break;
        assert_in_range(at, 1, 20000);
    }
    ckpt_kit_free(s.kit);
}

static void every_call_may_fail_once_sync(void **state)
{
    loop(*state, (struct mr_checkpoint_opts){.mode = MR_CHECKPOINT_SYNC}, FAULT_FAIL, 1);
    loop(*state,
         (struct mr_checkpoint_opts){.mode = MR_CHECKPOINT_SYNC,
                                     .format = MR_CHECKPOINT_SAFETENSORS},
         FAULT_FAIL, 1);
}

static void every_call_may_fail_once_lazy(void **state)
{
    loop(*state, (struct mr_checkpoint_opts){.mode = MR_CHECKPOINT_LAZY}, FAULT_FAIL, 1);
}

static void every_call_may_fail_once_with_two_tiers(void **state)
{
    loop(*state, (struct mr_checkpoint_opts){.mode = MR_CHECKPOINT_BURST, .drain_dir = ""},
         FAULT_FAIL, 1);
}

static void a_full_disk_is_said_and_costs_nothing(void **state)
{
    loop(*state, (struct mr_checkpoint_opts){.mode = MR_CHECKPOINT_SYNC}, FAULT_FULL, 1);
    loop(*state, (struct mr_checkpoint_opts){.mode = MR_CHECKPOINT_LAZY, .drain_dir = ""},
         FAULT_FULL, 1);
}

static void interruptions_and_short_writes_are_continued(void **state)
{
    struct mr_checkpoint_opts o = {.mode = MR_CHECKPOINT_BURST, .drain_dir = ""};
    loop(*state, o, FAULT_EINTR, 0);
    loop(*state, o, FAULT_LATE, 0);
    loop(*state, o, FAULT_SHORT, 0);
}

/* Restoring from two tiers: an error with words, or the newest checkpoint that could be read.  One
 * that a failing call kept from being read is passed over and said. */
static void restoring_fails_with_words_or_finds_a_whole_one(void **state)
{
    struct tempdir *t = *state;
    static const enum fault_kind kinds[] = {FAULT_FAIL, FAULT_EINTR, FAULT_SHORT};
    snprintf(fast, sizeof fast, "%s/fast", t->path);
    snprintf(slow, sizeof slow, "%s/slow", t->path);
    struct setting s = {.o = {.mode = MR_CHECKPOINT_SYNC, .dir = fast, .drain_dir = slow},
                        .kit = ckpt_kit_new(LARGE)};
    assert_int_equal(run(&s), 0);
    struct mr_restore_opts o = {.dir = fast, .drain_dir = slow, .io_depth = 2};
    for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
        for (uint64_t at = 1, hit = 1; hit; at++) {
            struct mr_restored found;
            struct mr_error err = {0};
            ckpt_kit_scramble(s.kit);
            int64_t before = faults_live();
            faults_begin(kinds[i], at);
            int r = mr_checkpoint_restore(s.kit->arrays, KIT_N_ARRAYS, &o, &found, &err);
            hit = (uint64_t)faults_end();
            if (faults_live() != before)
                fail_msg("call %llu leaves something behind", (unsigned long long)at);
            if (r ? !hit || kinds[i] != FAULT_FAIL || err.code != r || !err.text[0]
                  : !version_of(&s, found.step) || (!hit && !ckpt_kit_is(s.kit, 1, 3)))
                fail_msg("kind %u, call %llu: %d %s", (unsigned)kinds[i], (unsigned long long)at, r,
                         err.text);
            if (!r && kinds[i] != FAULT_FAIL)
                assert_true(ckpt_kit_is(s.kit, 1, 3));
            assert_in_range(at, 1, 20000);
        }
    ckpt_kit_free(s.kit);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_setup_in_memory, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_call_may_fail_once_sync),
        TEST(every_call_may_fail_once_lazy),
        TEST(every_call_may_fail_once_with_two_tiers),
        TEST(a_full_disk_is_said_and_costs_nothing),
        TEST(interruptions_and_short_writes_are_continued),
        TEST(restoring_fails_with_words_or_finds_a_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
