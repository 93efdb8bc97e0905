/* crash_replay.c - every state that a power cut might leave of a recorded run, restored.
 *
 *     crash_replay [SCENARIO...]
 *
 * Each scenario is a short run with small tensors, or a few conversions, whose file operations are
 * recorded.  For every
 * prefix of the record, every subset of what was not yet synced is lost when that is up to 12 parts
 * (4 KiB of a write each); otherwise each single part, each pair, and 1,000 random subsets.  In
 * every state
 *   - restore finds a whole checkpoint, not older than the last one that was reported durable,
 *   - so it does on the slow tier alone, not older than the last one reported durable there,
 *   - every other one is whole too: a checkpoint exists or it does not,
 *   - opening the folders for the next run leaves no temporary of ours, no data without an index,
 *     and the same checkpoint.
 * That opening is recorded too: its own prefixes and subsets are states of the same kind, which a
 * second power cut might leave, and in which the same checkpoint has to be found.
 * States that look the same to a reader are tried once. */
#include "ckpt_kit.h"
#include "ckpt_name.h"
#include "ckpt_scan.h"
#include "convert.h"
#include "draw.h"
#include "engine.h"
#include "op_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE        9000
#define MAX_LOOSE    4096
#define N_SEEN       (1u << 20)
#define N_VERSIONS   4
#define MAX_CLEANING 12 /* loose parts of a clean-up */

enum made { SAVED, CONVERTED, COPIED, LEFT };

struct scenario {
    const char *name;
    struct mr_checkpoint_opts o; /* drain_dir: not NULL = two tiers */
    unsigned n_steps, n_again;   /* steps, then the last one again so often */
    enum made made;              /* CONVERTED, COPIED: each step's into the folder, from another;
                                    LEFT: saved without the slow tier, drained by the next run */
};

static const struct scenario scenarios[] = {
    {"tf", {.mode = MR_CHECKPOINT_LAZY, .keep = 2}, 4, 0},
    {"tf-packed", {.mode = MR_CHECKPOINT_SYNC, .packed = 1, .keep = 1}, 3, 0},
    {"tf-again", {.mode = MR_CHECKPOINT_BURST, .keep = 2}, 2, 3},
    {"safetensors",
     {.mode = MR_CHECKPOINT_LAZY, .keep = 2, .format = MR_CHECKPOINT_SAFETENSORS},
     4,
     1},
    {"convert-tf", {.keep = MR_NONE}, 2, 0, CONVERTED},
    {"convert-safetensors",
     {.keep = MR_NONE, .format = MR_CHECKPOINT_SAFETENSORS},
     2,
     0,
     CONVERTED},
    {"copy-tf", {.keep = MR_NONE}, 2, 0, COPIED},
    {"two-tiers", {.mode = MR_CHECKPOINT_BURST, .keep = 1, .drain_dir = ""}, 3, 0},
    {"two-tiers-lazy", {.mode = MR_CHECKPOINT_LAZY, .keep = 2, .drain_dir = ""}, 4, 1},
    {"two-tiers-left", {.mode = MR_CHECKPOINT_BURST, .keep = 2, .drain_dir = ""}, 4, 0, LEFT},
};

struct replay {
    const struct scenario *sc;
    struct op_log *log;
    struct ckpt_kit *kit;
    struct mr_loader *loader;
    char dirs[OP_LOG_TIERS][512];
    uint64_t *seen;                      /* [N_SEEN]: a hash table of fingerprints */
    uint64_t n_states, n_tried, n_again; /* n_again: of n_tried, after a second cut */
    size_t prefix, n_loose;
    uint8_t keep[MAX_LOOSE];
    unsigned n_passed;
    char why[1024];
};

/* ---- the run ---- */

static int save(struct replay *p, struct mr_checkpoint *c, uint64_t step, uint64_t version)
{
    for (unsigned i = 0; i < KIT_N_ARRAYS; i++) {
        mr_checkpoint_before_write(c, i);
        ckpt_kit_fill_one(p->kit, i, step, version);
    }
    int r = mr_checkpoint_begin(c, step, NULL);
    if (!r)
        r = mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_FAST, NULL);
    if (!r)
        op_log_durable(p->log, OP_LOG_ANY, step, version);
    /* Not each time: the drain is to run beside the next one as well. */
    if (!r && p->sc->o.drain_dir && p->sc->made == SAVED && step % 2 == 0) {
        r = mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, NULL);
        if (!r)
            op_log_durable(p->log, MR_TIER_SLOW, step, version);
    }
    return r;
}

/* The next run, which finds what the last one left above. */
static int run_next(struct replay *p, struct mr_checkpoint_opts *o, struct mr_error *err)
{
    struct mr_checkpoint *c;
    o->drain_dir = p->dirs[1];
    o->keep = p->sc->o.keep;
    int r =
        mr_checkpoint_open_hooked(p->kit->arrays, KIT_N_ARRAYS, o, op_log_hook(p->log), &c, err);
    return r ? r : mr_checkpoint_close(c, err);
}

static int run(struct replay *p)
{
    uint64_t last = p->sc->n_again;
    struct mr_checkpoint_opts o = p->sc->o;
    struct mr_checkpoint *c;
    struct mr_error err = {0};
    o.dir = p->dirs[0];
    o.drain_dir = o.drain_dir && p->sc->made != LEFT ? p->dirs[1] : NULL;
    o.keep = p->sc->made == LEFT ? MR_NONE : o.keep;
    o.io_depth = 2;
    int r =
        mr_checkpoint_open_hooked(p->kit->arrays, KIT_N_ARRAYS, &o, op_log_hook(p->log), &c, &err);
    for (unsigned step = 1; !r && step <= p->sc->n_steps; step++)
        r = save(p, c, step, 0);
    for (unsigned version = 1; !r && version <= p->sc->n_again; version++)
        r = save(p, c, p->sc->n_steps, version);
    if (r || mr_checkpoint_close(c, &err) || (p->sc->made == LEFT && run_next(p, &o, &err))) {
        fprintf(stderr, "%s: the run itself failed: %s\n", p->sc->name, err.text);
        return -1;
    }
    if (p->sc->o.drain_dir) /* that is what close promises */
        op_log_durable(p->log, MR_TIER_SLOW, p->sc->n_steps, last);
    return 0;
}

/* Save one step, unrecorded, in the other folder and the other format (copies: the same); then
 * recorded what makes it appear in the folder. */
static int make_one(struct replay *p, uint64_t step, struct mr_error *err)
{
    struct mr_checkpoint_opts o = {.dir = p->dirs[1], .mode = MR_CHECKPOINT_SYNC, .io_depth = 1};
    struct mr_convert_opts to = {.format = p->sc->o.format, .hook = op_log_hook(p->log)};
    char from[600], path[MR_CKPT_MAX_PATH];
    struct mr_checkpoint *c;
    struct mr_ckpt_file *f = NULL;
    int other = p->sc->made == CONVERTED;
    o.format =
        other == (to.format == MR_CHECKPOINT_TF) ? MR_CHECKPOINT_SAFETENSORS : MR_CHECKPOINT_TF;
    ckpt_kit_fill(p->kit, step, 0);
    int r = mr_checkpoint_open(p->kit->arrays, KIT_N_ARRAYS, &o, &c, err);
    if (!r) {
        r = mr_checkpoint_begin(c, step, NULL);
        int closed = mr_checkpoint_close(c, err);
        r = r ? r : closed;
    }
    snprintf(from, sizeof from, "%s/model.ckpt-%llu%s", p->dirs[1], (unsigned long long)step,
             o.format == MR_CHECKPOINT_TF ? "" : ".safetensors");
    if (!r)
        r = mr_ckpt_file_open(from, &f, err);
    if (!r)
        r = other ? mr_ckpt_convert(f, p->dirs[0], &to, path, err)
                  : mr_ckpt_copy(f, p->dirs[0], &to, path, err);
    mr_ckpt_file_close(f);
    if (!r)
        op_log_durable(p->log, OP_LOG_ANY, step, 0);
    return r;
}

static int make(struct replay *p)
{
    struct mr_error err = {0};
    int r = 0;
    for (unsigned step = 1; !r && step <= p->sc->n_steps; step++)
        r = make_one(p, step, &err);
    if (r)
        fprintf(stderr, "%s: the run itself failed: %s\n", p->sc->name, err.text);
    return r;
}

/* ---- one state ---- */

static void passed(void *ctx, const char *path, const char *why)
{
    struct replay *p = ctx;
    p->n_passed++;
    snprintf(p->why, sizeof p->why, "%.400s: %.400s", path, why);
}

/* What restore finds, on all tiers or the slow one alone, as step * N_VERSIONS + version; -1:
 * nothing; -2: something wrong. */
static int64_t find(struct replay *p, int slow_alone)
{
    struct mr_restore_opts o = {.dir = slow_alone ? NULL : p->dirs[0],
                                .drain_dir = p->sc->o.drain_dir ? p->dirs[1] : NULL,
                                .io_depth = 1,
                                .passed_over = passed,
                                .passed_over_ctx = p};
    struct mr_restored found;
    struct mr_error err = {0};
    ckpt_kit_scramble(p->kit);
    int r = mr_checkpoint_restore(p->kit->arrays, KIT_N_ARRAYS, &o, &found, &err);
    if (r == -ENOENT)
        return -1;
    snprintf(p->why, sizeof p->why, "%s", err.text);
    for (unsigned v = 0; !r && v < N_VERSIONS; v++)
        if (ckpt_kit_is(p->kit, found.step, v))
            return (int64_t)found.step * N_VERSIONS + v;
    return -2;
}

/* Every checkpoint that is listed verifies. */
static int all_whole(struct replay *p)
{
    int r = 0;
    for (unsigned t = 0; !r && t < OP_LOG_TIERS; t++) {
        struct mr_ckpt_list list = {0};
        struct mr_ckpt_dir dir = {open(p->dirs[t], O_RDONLY | O_DIRECTORY), p->dirs[t]};
        r = mr_ckpt_scan(dir.fd, ".", NULL, &list);
        for (size_t i = 0; !r && i < list.n; i++) {
            struct mr_ckpt_view v;
            struct mr_error err = {0};
            uint64_t bytes;
            r = mr_ckpt_view_open_flat(&dir, &list.items[i], NULL, &v, &err);
            if (!r) {
                r = mr_loader_run(p->loader, &v, NULL, &bytes, &err);
                mr_ckpt_view_fini(&v);
            }
            if (r)
                snprintf(p->why, sizeof p->why, "%s", err.text);
        }
        mr_ckpt_list_fini(&list);
        close(dir.fd);
    }
    return !r;
}

struct leftovers {
    unsigned n_temporary, n_index, n_data;
};

static int count(void *ctx, const char *name)
{
    struct leftovers *n = ctx;
    const char *dot = strrchr(name, '.');
    n->n_temporary += (unsigned)mr_ckpt_temp_parse(name, NULL, NULL);
    n->n_index += dot && !strcmp(dot, ".index");
    n->n_data += dot && !strncmp(dot, ".data-", 6);
    return 0;
}

/* Open for the next run and close: how much is left that should not be, or -errno.  `log`: if not
 * NULL, records it. */
static int clean(struct replay *p, struct op_log *log)
{
    struct leftovers n = {0};
    for (unsigned i = 0; i < (p->sc->o.drain_dir ? 2 : 1); i++) {
        struct mr_tier_opts o = {.path = p->dirs[i],
                                 .prefix = "model.ckpt",
                                 .format = p->sc->o.format,
                                 .keep = MR_NONE,
                                 .which = i,
                                 .hook = log ? op_log_hook(log) : NULL};
        struct mr_tier t;
        int r = mr_tier_open(&o, &t, NULL);
        if (r)
            return r;
        mr_tier_close(&t);
        mr_ckpt_each_name(AT_FDCWD, p->dirs[i], count, &n);
    }
    return (int)n.n_temporary + abs((int)n.n_data - (int)n.n_index);
}

static int complain(const struct replay *p, const char *what, int64_t found, int64_t wanted)
{
    fprintf(stderr, "%s: after %zu records, of %zu loose parts lost:", p->sc->name, p->prefix,
            p->n_loose);
    for (size_t i = 0; i < p->n_loose; i++)
        if (!p->keep[i])
            fprintf(stderr, " %zu", i);
    fprintf(stderr, "\n  %s (found %lld, reported %lld; step * %d + version)\n  %s\n", what,
            (long long)found, (long long)wanted, N_VERSIONS, p->why);
    return 1;
}

/* What has to be found, as find() says it. */
struct wanted {
    int64_t any, slow;
};

/* Write the state that was built of `log`, and judge it before and after the next start's clean-up,
 * which goes to `cleaning`.  *found: what it has. */
static int try_state(struct replay *p, struct op_log *log, const struct wanted *wanted,
                     struct op_log *cleaning, struct wanted *found)
{
    const char *dirs[OP_LOG_TIERS] = {p->dirs[0], p->dirs[1]};
    p->why[0] = 0;
    p->n_passed = 0;
    if (op_log_write(log, dirs))
        return complain(p, "cannot write the state", 0, 0);
    *found = (struct wanted){find(p, 0), p->sc->o.drain_dir ? find(p, 1) : -1};
    if (found->any == -2 || found->slow == -2)
        return complain(p, "restore failed or gave wrong bytes", found->any, wanted->any);
    if (found->any < wanted->any)
        return complain(p, "restore found nothing, or something older", found->any, wanted->any);
    if (found->slow < wanted->slow)
        return complain(p, "nothing on the slow tier, or something older", found->slow,
                        wanted->slow);
    if (p->n_passed || !all_whole(p))
        return complain(p, "a checkpoint exists but is not whole", found->any, wanted->any);
    if (clean(p, cleaning))
        return complain(p, "the next start leaves temporaries or data of nobody, or fails",
                        found->any, wanted->any);
    if (find(p, 0) != found->any || (p->sc->o.drain_dir && find(p, 1) != found->slow))
        return complain(p, "the next start changes what is restored", found->any, wanted->any);
    return 0;
}

/* 1 when (fingerprint, wanted) has been tried. */
static int seen_before(struct replay *p, uint64_t fingerprint, const struct wanted *wanted)
{
    uint64_t key = mr_mix(fingerprint ^ mr_mix((uint64_t)wanted->any + 77) ^
                          mr_mix((uint64_t)wanted->slow + 7777)) |
                   1;
    for (uint64_t at = key % N_SEEN;; at = (at + 1) % N_SEEN) {
        if (p->seen[at] == key)
            return 1;
        if (!p->seen[at]) {
            p->seen[at] = key;
            return 0;
        }
    }
}

/* A second power cut, in the clean-up that `cleaning` has behind the first n_before records.  What
 * was found before it has to be found again. */
static int cut_again(struct replay *p, struct op_log *cleaning, size_t n_before,
                     const struct wanted *found)
{
    uint8_t keep[MAX_CLEANING];
    struct wanted again = {-1, -1};
    for (size_t n = n_before + 1; n <= op_log_n(cleaning); n++) {
        size_t n_loose = op_log_n_loose(cleaning, n);
        if (n_loose > MAX_CLEANING)
            return complain(p, "a clean-up with more loose parts than expected", 0, 0);
        for (uint64_t set = 0; set < (uint64_t)1 << n_loose; set++) {
            for (size_t i = 0; i < n_loose; i++)
                keep[i] = set >> i & 1;
            uint64_t fingerprint = op_log_build(cleaning, n, keep);
            p->n_states++;
            if (seen_before(p, fingerprint, found))
                continue;
            p->n_tried++;
            p->n_again++;
            if (try_state(p, cleaning, found, NULL, &again))
                return complain(p, "and that after a second cut, in the clean-up", again.any,
                                found->any);
        }
    }
    return 0;
}

static int visit(struct replay *p, const struct wanted *wanted)
{
    uint64_t fingerprint = op_log_build(p->log, p->prefix, p->keep);
    p->n_states++;
    if (seen_before(p, fingerprint, wanted))
        return 0;
    if (++p->n_tried > N_SEEN / 2) {
        fprintf(stderr, "%s: more states than expected\n", p->sc->name);
        return 1;
    }
    struct op_log *cleaning = op_log_new();
    struct wanted found;
    op_log_seed(cleaning, p->log);
    size_t n_before = op_log_n(cleaning);
    int bad = try_state(p, p->log, wanted, cleaning, &found);
    bad = bad || cut_again(p, cleaning, n_before, &found);
    op_log_free(cleaning);
    return bad;
}

/* ---- all states ---- */

static int all_subsets(struct replay *p, const struct wanted *wanted)
{
    int bad = 0;
    for (uint64_t set = 0; !bad && set < (uint64_t)1 << p->n_loose; set++) {
        for (size_t i = 0; i < p->n_loose; i++)
            p->keep[i] = set >> i & 1;
        bad = visit(p, wanted);
    }
    return bad;
}

static int some_subsets(struct replay *p, const struct wanted *wanted)
{
    size_t n = p->n_loose;
    memset(p->keep, 0, n);
    int bad = visit(p, wanted);
    memset(p->keep, 1, n);
    bad = bad || visit(p, wanted);
    for (size_t i = 0; !bad && i < n; i++) {
        p->keep[i] = 0;
        bad = visit(p, wanted);
        for (size_t k = i + 1; !bad && k < n; k++) {
            p->keep[k] = 0;
            bad = visit(p, wanted);
            p->keep[k] = 1;
        }
        p->keep[i] = 1;
    }
    for (uint64_t round = 0; !bad && round < 1000; round++) {
        for (size_t i = 0; i < n; i++)
            p->keep[i] = mr_draw(1, MR_DRAW_SYNTHETIC, p->prefix, round, i) & 1;
        bad = visit(p, wanted);
    }
    return bad;
}

/* The last one reported on `tier` in the prefix, as find() says it; -1: none. */
static int64_t reported(const struct replay *p, unsigned tier)
{
    uint64_t step, version;
    return op_log_durable_at(p->log, p->prefix, tier, &step, &version)
               ? (int64_t)(step * N_VERSIONS + version)
               : -1;
}

static int replay_all(struct replay *p)
{
    int bad = 0;
    for (p->prefix = 0; !bad && p->prefix <= op_log_n(p->log); p->prefix++) {
        struct wanted wanted = {reported(p, OP_LOG_ANY), reported(p, MR_TIER_SLOW)};
        p->n_loose = op_log_n_loose(p->log, p->prefix);
        if (p->n_loose > MAX_LOOSE)
            return 1;
        bad = p->n_loose <= 12 ? all_subsets(p, &wanted) : some_subsets(p, &wanted);
    }
    return bad;
}

static int run_scenario(const struct scenario *sc, const char *root)
{
    struct replay *p = calloc(1, sizeof *p);
    int bad = 1;
    if (!p || !(p->seen = calloc(N_SEEN, sizeof *p->seen)))
        goto done;
    p->sc = sc;
    p->log = op_log_new();
    p->kit = ckpt_kit_new(LARGE);
    if (mr_loader_open(1, &p->loader))
        abort();
    snprintf(p->dirs[0], sizeof p->dirs[0], "%s/%s-fast", root, sc->name);
    snprintf(p->dirs[1], sizeof p->dirs[1], "%s/%s-slow", root, sc->name);
    if (mkdir(p->dirs[0], 0755) || mkdir(p->dirs[1], 0755))
        perror(root);
    else
        bad = (sc->made == SAVED || sc->made == LEFT ? run(p) : make(p)) || replay_all(p);
    const char *dirs[OP_LOG_TIERS] = {p->dirs[0], p->dirs[1]};
    memset(p->keep, 0, sizeof p->keep);
    op_log_build(p->log, 0, p->keep);
    op_log_write(p->log, dirs); /* nothing: empties them */
    rmdir(p->dirs[0]);
    rmdir(p->dirs[1]);
    printf("%s: %zu records, %llu states, %llu of them different, %llu of these by a second cut: "
           "%s\n",
           sc->name, op_log_n(p->log), (unsigned long long)p->n_states,
           (unsigned long long)p->n_tried, (unsigned long long)p->n_again, bad ? "FAILED" : "ok");
    fflush(stdout);
    op_log_free(p->log);
    ckpt_kit_free(p->kit);
    mr_loader_close(p->loader);
done:
    if (p)
        free(p->seen);
    free(p);
    return bad;
}

/* 1 when all of them are scenarios; else it is said which are. */
static int known(int n, char **names)
{
    size_t n_all = sizeof scenarios / sizeof *scenarios, k;
    for (int i = 0; i < n; i++) {
        for (k = 0; k < n_all && strcmp(names[i], scenarios[k].name); k++)
            ;
        if (k < n_all)
            continue;
        fprintf(stderr, "crash_replay: no scenario is called \"%s\"; there are", names[i]);
        for (k = 0; k < n_all; k++)
            fprintf(stderr, " %s", scenarios[k].name);
        fprintf(stderr, "\n");
        return 0;
    }
    return 1;
}

static int is_chosen(const char *name, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return 1;
    return !n;
}

int main(int argc, char **argv)
{
    int bad = 0;
    if (!known(argc - 1, argv + 1))
        return 2;
    /* In memory if possible: there are many states, and their files need no disk. */
    char shm[] = "/dev/shm/millrace-crash-XXXXXX", tmp[] = "/tmp/millrace-crash-XXXXXX";
    const char *root = mkdtemp(shm) ? shm : mkdtemp(tmp);
    if (!root) {
        perror("mkdtemp");
        return 1;
    }
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (is_chosen(scenarios[i].name, argc - 1, argv + 1))
            bad |= run_scenario(&scenarios[i], root);
    rmdir(root);
    return bad;
}
