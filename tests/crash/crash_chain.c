/* crash_chain.c - runs one after another, each from what a power cut left of the one before it.
 *
 *     crash_chain [--seconds N | --chains N] [--seed S]
 *
 * crash_replay tries every state of short runs that are written down; here runs are drawn.  A chain
 * has up to five runs in the same two folders.  Each has both tiers, or the fast one alone, or the
 * slow one alone (the fast one is away and comes back later); saves one of three steps, so that
 * steps are saved again and again, on either tier; with a fast tier that refuses some files; with
 * other arrays than the run before; from a relative folder, with chdir after opening.  In some runs
 * a second owner takes the folders over while the first one still believes that it has them.
 *
 * Every save has its own version, larger than all before it.  In states drawn from each run
 *   - restore finds a version not older than the last one that was reported durable,
 *   - so it does on the slow tier alone, for what was reported there,
 *   - every checkpoint verifies, after the next start with its .meta,
 *   - the next start leaves no temporary, no data without an index, and the same versions.
 * The next run begins in one of these states.  A failure names the seed of its chain. */
#include "ckpt_file.h"
#include "ckpt_folder.h"
#include "ckpt_kit.h"
#include "ckpt_name.h"
#include "ckpt_scan.h"
#include "clock.h"
#include "draw.h"
#include "engine.h"
#include "lease.h"
#include "op_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE        9000
#define MAX_LOOSE    65536
#define MAX_RUNS     5
#define N_STATES     24 /* judged of each run */
#define N_STEPS      3
#define STEPS_APART  10
#define MAX_SAVES    4
#define MAX_ARRAYS   (KIT_N_ARRAYS + 1)
#define MAX_VERSIONS (MAX_RUNS * (MAX_SAVES + 2) + 1)

enum tiers { BOTH, FAST_ALONE, SLOW_ALONE, N_TIERS_KINDS };

/* What a run is like. */
struct setting {
    enum tiers tiers;
    struct mr_checkpoint_opts o;
    unsigned n_saves, n_arrays;
    uint64_t key;              /* for draws of other threads */
    _Atomic unsigned refusals; /* of 8 files, how many the fast tier refuses */
    int relative, stolen;
};

struct versions { /* 0: none */
    uint64_t any, slow;
};

struct chain {
    uint64_t seed, n_drawn;
    struct op_log *log;
    struct ckpt_kit *kit;
    struct mr_array arrays[MAX_ARRAYS];
    int64_t extra;
    char root[256], dirs[OP_LOG_TIERS][512];
    enum mr_checkpoint_format format;
    uint64_t version;
    struct setting now;
    struct mr_out_hook hook;
    _Atomic uint64_t n_ops;
    struct versions base; /* what the first state of this run held, */
    size_t n_base;        /* and how many records it takes */
    uint8_t keep[MAX_LOOSE];
    unsigned n_passed;
    char why[1024];
    char story[4096]; /* its runs, for who has to find out */
};

static uint64_t draw(struct chain *c, uint64_t below)
{
    return mr_draw(c->seed, MR_DRAW_SYNTHETIC, 1, c->n_drawn++, 0) % below;
}

static int complain(const struct chain *c, const char *what, uint64_t found, uint64_t wanted)
{
    fputs(c->story, stderr);
    fprintf(stderr, "seed %llu: %s (found version %llu, wanted %llu)\n  %s\n",
            (unsigned long long)c->seed, what, (unsigned long long)found,
            (unsigned long long)wanted, c->why);
    return 1;
}

/* ---- a run ---- */

/* The folder that an operation belongs to, whatever tier the run takes it for. */
static unsigned folder_of(const struct chain *c, const struct mr_out_op *op)
{
    return c->now.tiers == SLOW_ALONE ? MR_TIER_SLOW : op->tag;
}

static int before(void *ctx, const struct mr_out_op *op)
{
    struct chain *c = ctx;
    uint64_t n = c->n_ops++;
    if (folder_of(c, op) != MR_TIER_FAST || op->kind != MR_OUT_CREATE)
        return 0;
    uint64_t d = mr_draw(c->seed, MR_DRAW_SYNTHETIC, 2, c->now.key, n);
    return d % 8 >= c->now.refusals ? 0 : d & 64 ? -ENOSPC : -EIO;
}

static void after(void *ctx, const struct mr_out_op *op)
{
    struct chain *c = ctx;
    struct mr_out_op copy = *op;
    const struct mr_out_hook *h = op_log_hook(c->log);
    copy.tag = folder_of(c, op);
    h->after(h->ctx, &copy);
}

static void draw_setting(struct chain *c)
{
    static const unsigned keeps[] = {1, 2, 3, MR_NONE};
    struct setting *s = &c->now;
    *s = (struct setting){.key = c->n_drawn,
                          .tiers = draw(c, N_TIERS_KINDS),
                          .n_saves = (unsigned)draw(c, MAX_SAVES + 1),
                          .n_arrays = KIT_N_ARRAYS + (unsigned)draw(c, 2),
                          .refusals = draw(c, 2) ? (unsigned)draw(c, 5) : 0,
                          .relative = (int)draw(c, 2),
                          .stolen = draw(c, 6) == 0};
    s->o = (struct mr_checkpoint_opts){.mode = draw(c, 3),
                                       .format = c->format,
                                       .keep = keeps[draw(c, 4)],
                                       .io_depth = 1,
                                       .buffers = 1 + (unsigned)draw(c, 2)};
    static const char *const names[] = {"both tiers", "fast tier", "slow tier"};
    size_t n = strlen(c->story);
    snprintf(c->story + n, sizeof c->story - n,
             "  %s, mode %d, format %d, keep %d, %u saves, %u arrays, %u of 8 refused%s%s; begins "
             "with versions %llu, %llu\n",
             names[s->tiers], (int)s->o.mode, (int)c->format, (int)s->o.keep, s->n_saves,
             s->n_arrays, s->refusals, s->relative ? ", relative" : "", s->stolen ? ", stolen" : "",
             (unsigned long long)c->base.any, (unsigned long long)c->base.slow);
}

static int open_run(struct chain *c, struct mr_checkpoint **out, struct mr_error *err)
{
    struct mr_checkpoint_opts o = c->now.o;
    const char *at[OP_LOG_TIERS];
    for (unsigned i = 0; i < OP_LOG_TIERS; i++)
        at[i] = c->now.relative ? strrchr(c->dirs[i], '/') + 1 : c->dirs[i];
    o.dir = at[c->now.tiers == SLOW_ALONE];
    o.drain_dir = c->now.tiers == BOTH ? at[1] : NULL;
    if (c->now.relative && chdir(c->root))
        return -errno;
    int r = mr_checkpoint_open_hooked(c->arrays, c->now.n_arrays, &o, &c->hook, out, err);
    return chdir("/") ? -errno : r;
}

/* 0 and the version is reported, or why not. */
static int save(struct chain *c, struct mr_checkpoint *ck)
{
    uint64_t step = STEPS_APART * (1 + draw(c, N_STEPS)), version = ++c->version;
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        mr_checkpoint_before_write(ck, i);
        ckpt_kit_fill_one(c->kit, i, step, version);
    }
    struct mr_error err = {0};
    int r = mr_checkpoint_begin(ck, step, &err);
    if (r == 0)
        r = mr_checkpoint_wait(ck, MR_CHECKPOINT_DURABLE_FAST, &err);
    snprintf(c->why, sizeof c->why, "%s", err.text);
    if (r)
        return r;
    op_log_durable(c->log, OP_LOG_ANY, version, 0);
    if (c->now.tiers == SLOW_ALONE)
        op_log_durable(c->log, MR_TIER_SLOW, version, 0);
    if (c->now.tiers == BOTH && draw(c, 2) &&
        !mr_checkpoint_wait(ck, MR_CHECKPOINT_DURABLE_SLOW, NULL))
        op_log_durable(c->log, MR_TIER_SLOW, version, 0);
    return 0;
}

static void wait_until_idle(struct mr_checkpoint *ck)
{
    struct mr_checkpoint_stats s;
    do {
        sched_yield();
        mr_checkpoint_get_stats(ck, &s);
    } while (s.saving || s.drain_waiting);
}

/* Another owner, as if the first had stood still for more than a minute. */
static int steal(struct chain *c, struct mr_checkpoint *first)
{
    struct mr_checkpoint *second;
    struct mr_error err = {0};
    char lease[600];
    wait_until_idle(first);
    if (open_run(c, &second, &err) != -EBUSY)
        return complain(c, "a second owner beside the first", 0, 0);
    for (unsigned i = 0; i < OP_LOG_TIERS; i++) {
        snprintf(lease, sizeof lease, "%s/%s", c->dirs[i], MR_LEASE_NAME);
        unlink(lease);
    }
    err = (struct mr_error){0};
    if (open_run(c, &second, &err)) {
        snprintf(c->why, sizeof c->why, "%s", err.text);
        return complain(c, "the second owner cannot open", 0, 0);
    }
    save(c, second);
    unsigned refusals = c->now.refusals;
    c->now.refusals = 0; /* whatever fails now fails for the lease */
    int lost = save(c, first);
    if (!lost)
        lost = mr_checkpoint_wait(first, MR_CHECKPOINT_DURABLE_SLOW, NULL);
    c->now.refusals = refusals;
    save(c, second);
    mr_checkpoint_close(first, NULL);
    save(c, second);
    mr_checkpoint_close(second, NULL);
    return lost ? 0 : complain(c, "an owner that was replaced still saves", 0, 0);
}

static int run(struct chain *c)
{
    struct mr_checkpoint *ck;
    struct mr_error err = {0};
    int r = open_run(c, &ck, &err);
    if (r) {
        snprintf(c->why, sizeof c->why, "%s", err.text);
        return c->now.refusals ? 0 : complain(c, "a run cannot open", 0, 0);
    }
    for (unsigned i = 0; i < c->now.n_saves; i++) {
        r = save(c, ck);
        if (r < 0 && !c->now.refusals)
            return complain(c, "a save fails", 0, 0);
    }
    if (c->now.stolen)
        return steal(c, ck);
    uint64_t last = c->version;
    r = mr_checkpoint_close(ck, &err);
    snprintf(c->why, sizeof c->why, "%s", err.text);
    if (r && !c->now.refusals)
        return complain(c, "closing fails", 0, 0);
    if (!r && !c->now.refusals && c->now.n_saves && c->now.tiers == BOTH)
        op_log_durable(c->log, MR_TIER_SLOW, last, 0);
    return 0;
}

/* ---- a state ---- */

static void passed(void *ctx, const char *path, const char *why)
{
    struct chain *c = ctx;
    c->n_passed++;
    snprintf(c->why, sizeof c->why, "%.400s: %.400s", path, why);
}

/* The version that restore finds; 0: none; UINT64_MAX: something wrong. */
static uint64_t find(struct chain *c, int slow_alone)
{
    struct mr_restore_opts o = {.dir = slow_alone ? NULL : c->dirs[0],
                                .drain_dir = c->dirs[1],
                                .io_depth = 1,
                                .passed_over = passed,
                                .passed_over_ctx = c};
    struct mr_restored found;
    struct mr_error err = {0};
    ckpt_kit_scramble(c->kit);
    int r = mr_checkpoint_restore(c->kit->arrays, KIT_N_ARRAYS, &o, &found, &err);
    if (r == -ENOENT)
        return 0;
    if (err.text[0])
        snprintf(c->why, sizeof c->why, "%s", err.text);
    for (uint64_t v = c->version; !r && v > 0; v--)
        if (ckpt_kit_is(c->kit, found.step, v))
            return v;
    return UINT64_MAX;
}

/* Every checkpoint verifies.  A .meta may be that of the version that was about to replace it,
 * until the next start has put it right. */
static int all_whole(struct chain *c, int cleaned)
{
    struct mr_ckpt_folder f = {0};
    struct mr_error err = {0};
    int r = 0;
    for (unsigned t = 0; !r && t < OP_LOG_TIERS; t++)
        r = mr_ckpt_folder_scan(&f, AT_FDCWD, c->dirs[t], &err);
    for (size_t i = 0; !r && i < f.n; i++) {
        struct mr_ckpt_file *file = NULL;
        struct mr_checkpoint_verdict v;
        r = mr_ckpt_file_open(f.found[i].path, &file, &err);
        if (!r)
            r = mr_ckpt_file_verify(file, NULL, &v, &err);
        if (r && !cleaned && file && mr_ends_in(v.where, ".meta")) {
            r = 0;
            err = (struct mr_error){0};
        }
        mr_ckpt_file_close(file);
    }
    mr_ckpt_folder_fini(&f);
    if (r)
        snprintf(c->why, sizeof c->why, "%s", err.text);
    return !r;
}

struct leftovers {
    int n_temporary, n_index, n_data;
};

static int count(void *ctx, const char *name)
{
    struct leftovers *n = ctx;
    const char *dot = strrchr(name, '.');
    n->n_temporary += mr_ckpt_temp_parse(name, NULL, NULL);
    n->n_index += dot && !strcmp(dot, ".index");
    n->n_data += dot && !strncmp(dot, ".data-", 6);
    return 0;
}

/* Open both folders for the next run and close them: what is left that should not be. */
static int clean(struct chain *c)
{
    struct leftovers n = {0};
    for (unsigned i = 0; i < OP_LOG_TIERS; i++) {
        struct mr_tier_opts o = {.path = c->dirs[i],
                                 .prefix = "model.ckpt",
                                 .format = c->format,
                                 .keep = MR_NONE,
                                 .which = i};
        struct mr_tier t;
        if (mr_tier_open(&o, &t, NULL))
            return 1;
        mr_tier_close(&t);
        mr_ckpt_each_name(AT_FDCWD, c->dirs[i], count, &n);
    }
    snprintf(c->why, sizeof c->why, "%d temporaries, %d indexes, %d data", n.n_temporary, n.n_index,
             n.n_data);
    return n.n_temporary || n.n_data != n.n_index;
}

/* What was reported in the first n records. */
static struct versions reported(const struct chain *c, size_t n)
{
    struct versions v = c->base;
    uint64_t version, none;
    if (op_log_durable_at(c->log, n, OP_LOG_ANY, &version, &none))
        v.any = version > v.any ? version : v.any;
    if (op_log_durable_at(c->log, n, MR_TIER_SLOW, &version, &none))
        v.slow = version > v.slow ? version : v.slow;
    return v;
}

/* Judge the state that was built; *found: what it holds. */
static int judge(struct chain *c, const struct versions *wanted, struct versions *found)
{
    const char *dirs[OP_LOG_TIERS] = {c->dirs[0], c->dirs[1]};
    c->why[0] = 0;
    c->n_passed = 0;
    if (op_log_write(c->log, dirs))
        return complain(c, "cannot write the state", 0, 0);
    *found = (struct versions){find(c, 0), find(c, 1)};
    if (found->any == UINT64_MAX || found->slow == UINT64_MAX)
        return complain(c, "restore failed or gave wrong bytes", 0, wanted->any);
    if (found->any < wanted->any)
        return complain(c, "restore found nothing, or something older", found->any, wanted->any);
    if (found->slow < wanted->slow)
        return complain(c, "nothing on the slow tier, or something older", found->slow,
                        wanted->slow);
    if (c->n_passed || !all_whole(c, 0))
        return complain(c, "a checkpoint exists but is not whole", found->any, wanted->any);
    if (clean(c))
        return complain(c, "the next start leaves something behind, or fails", 0, 0);
    if (!all_whole(c, 1) || find(c, 0) != found->any || find(c, 1) != found->slow)
        return complain(c, "the next start changes what is restored", found->any, wanted->any);
    return 0;
}

/* A prefix of the run, and which of its loose parts are lost: mostly some, at times all or none. */
static size_t draw_state(struct chain *c, int whole)
{
    size_t n_own = op_log_n(c->log) - c->n_base;
    size_t n = c->n_base + (whole ? n_own : draw(c, n_own + 1));
    size_t n_loose = op_log_n_loose(c->log, n);
    if (n_loose > MAX_LOOSE)
        abort();
    uint64_t kept = whole ? 8 : draw(c, 9); /* of 8 */
    for (size_t i = 0; i < n_loose; i++)
        c->keep[i] = draw(c, 8) < kept;
    op_log_build(c->log, n, c->keep);
    return n;
}

static int judge_run(struct chain *c)
{
    struct versions found, wanted;
    for (unsigned i = 0; i < N_STATES; i++) {
        wanted = reported(c, draw_state(c, i == 0));
        if (judge(c, &wanted, &found))
            return 1;
    }
    /* The next run goes on from here: the last state as it is on the disk, not as cleaned up. */
    wanted = reported(c, draw_state(c, draw(c, 2) == 0));
    const char *dirs[OP_LOG_TIERS] = {c->dirs[0], c->dirs[1]};
    if (op_log_write(c->log, dirs))
        return complain(c, "cannot write the state", 0, 0);
    c->base = (struct versions){find(c, 0), find(c, 1)};
    struct op_log *next = op_log_new();
    op_log_seed(next, c->log);
    op_log_free(c->log);
    c->log = next;
    c->n_base = op_log_n(next);
    return 0;
}

/* ---- chains ---- */

static int empty_folders(struct chain *c)
{
    const char *dirs[OP_LOG_TIERS] = {c->dirs[0], c->dirs[1]};
    op_log_build(c->log, 0, c->keep);
    return op_log_write(c->log, dirs);
}

static int one_chain(struct chain *c, uint64_t seed)
{
    int bad = 0;
    c->seed = seed;
    c->n_drawn = c->version = c->n_base = 0;
    c->base = (struct versions){0};
    c->story[0] = 0;
    c->log = op_log_new();
    c->format = draw(c, 3) ? MR_CHECKPOINT_TF : MR_CHECKPOINT_SAFETENSORS;
    unsigned n = 1 + (unsigned)draw(c, MAX_RUNS);
    bad = empty_folders(c);
    for (unsigned i = 0; !bad && i < n; i++) {
        draw_setting(c);
        bad = run(c) || judge_run(c);
    }
    bad |= empty_folders(c) != 0;
    op_log_free(c->log);
    return bad;
}

static uint64_t number(const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    if (!*text || *end) {
        fprintf(stderr, "crash_chain [--seconds N | --chains N] [--seed S]\n");
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, seconds = 0, chains = 40;
    for (int i = 1; i < argc; i += 2) {
        uint64_t n = number(i + 1 < argc ? argv[i + 1] : "");
        if (!strcmp(argv[i], "--seed"))
            seed = n;
        else if (!strcmp(argv[i], "--chains"))
            chains = n;
        else if (!strcmp(argv[i], "--seconds"))
            seconds = n;
        else
            number("");
    }
    static struct chain c;
    snprintf(c.root, sizeof c.root, "/dev/shm/millrace-chain-XXXXXX");
    if (!mkdtemp(c.root)) {
        perror(c.root);
        return 1;
    }
    c.kit = ckpt_kit_new(LARGE);
    memcpy(c.arrays, c.kit->arrays, sizeof c.kit->arrays);
    c.arrays[KIT_N_ARRAYS] = (struct mr_array){"extra", MR_DT_I64, 0, {0}, &c.extra};
    c.hook = (struct mr_out_hook){.before = before, .after = after, .ctx = &c};
    for (unsigned i = 0; i < OP_LOG_TIERS; i++) {
        snprintf(c.dirs[i], sizeof c.dirs[i], "%s/%s", c.root, i ? "slow" : "fast");
        mkdir(c.dirs[i], 0755);
    }
    uint64_t begun = mr_clock_ns(), n = 0;
    int bad = 0;
    while (!bad && (seconds ? mr_clock_ns() - begun < seconds * 1000000000 : n < chains))
        bad = one_chain(&c, seed + n++);
    printf("%llu chains of runs from seed %llu: %s\n", (unsigned long long)n,
           (unsigned long long)seed, bad ? "FAILED" : "ok");
    if (!bad)
        for (unsigned i = 0; i < OP_LOG_TIERS; i++)
            rmdir(c.dirs[i]);
    rmdir(c.root);
    ckpt_kit_free(c.kit);
    return bad;
}
