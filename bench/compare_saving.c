/* compare_saving.c - what checkpoints cost a training run, through the training loop itself.
 *
 *     compare_saving overhead DIR [STEPS [ROUNDS]]     lazy, every 20 steps of 0.5 s, real storage
 *     compare_saving fig9 DATA DIR [STEPS [EVERY]]     the study's Figure 9, emulated storage
 *
 * Both save AlexNet's whole state, 704 MB; the accelerator is emulated, so a step without
 * checkpoints takes what it is told to.  Checkpoints go to DIR/compare-saving, which is made and
 * removed.
 *
 * overhead: a round is a run with checkpoints, of which the newest is kept after it was read back,
 * and a run without, in an order that alternates.  From the first checkpoint on, the steps are cut
 * into blocks of 20: one checkpoint each.  A block's excess is its time less that of the same steps
 * without checkpoints.  Overhead is the sum of excess over the sum of step time; its upper bound is
 * the 95th percentile of 10,000 bootstrap resamples of blocks, always with the same seed.  A/A is
 * the same arithmetic on the runs without checkpoints alone, each against that of the next round.
 *
 * fig9: one run for each way to save, from the first step (its first fill left out) to the return
 * of the last checkpoint call, which ends the last step.  Nothing is removed.  Draining that goes
 * on then is shown apart.  The runs that others are compared with are repeated at the end: that is
 * the A/A. */
#include "draw.h"
#include "lab.h"
#include "trainer.h"

#include <millrace/store.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH        64
#define BLOCK        20 /* steps from one checkpoint to the next */
#define MIN_BLOCKS   8  /* for a verdict */
#define MAX_BLOCKS   1024
#define N_RESAMPLES  10000
#define MAX_OVERHEAD 0.01

struct way {
    const char *name;
    enum mr_checkpoint_mode mode;
    const char *storage, *drain; /* profiles; NULL: the real storage, no second tier */
    int saves;
};

struct setting {
    const char *device, *images; /* of training; a profile or NULL */
    struct mr_dataset *data;     /* NULL: synthetic */
    uint64_t steps;
    unsigned every, keep;
    char dir[512];
};

static int open_device(const char *profile, struct mr_device **out, struct mr_error *err)
{
    return profile ? mr_device_open(profile, out, err) : 0;
}

/* One training run in an empty folder.  *out is to be finished in any case. */
static int train(const struct setting *s, const struct way *w, struct mr_train_result *out)
{
    char fast[600], slow[600];
    struct mr_checkpoint_opts how = {.dir = fast, .mode = w->mode, .keep = s->keep};
    struct mr_train_opts o = {.data = s->data,
                              .pipe = {.batch = BATCH, .prefetch = 1, .seed = 1},
                              .decode = {.width = 224, .height = 224},
                              .n_classes = 102, /* the study's */
                              .steps = s->steps,
                              .learning_rate = 1e-4,
                              .checkpoint = w->saves ? &how : NULL,
                              .checkpoint_every = s->every};
    struct mr_error err = {0};
    memset(out, 0, sizeof *out);
    mr_lab_remove_dir(s->dir);
    snprintf(fast, sizeof fast, "%s/fast", s->dir);
    snprintf(slow, sizeof slow, "%s/slow", s->dir);
    how.drain_dir = w->drain ? slow : NULL;
    int r = mr_accelerator_spec_parse(s->device, &o.device, &err);
    if (!r)
        r = open_device(s->images, &o.pipe.storage, &err);
    if (!r)
        r = open_device(w->storage, &how.storage, &err);
    if (!r)
        r = open_device(w->drain, &how.drain_storage, &err);
    if (!r)
        r = mr_train_run(&o, out, &err);
    if (!r && out->checkpoint.failed + out->checkpoint.skipped + out->checkpoint.fell_back) {
        snprintf(err.text, sizeof err.text, "%s: a checkpoint failed or was skipped: %.300s%.100s",
                 w->name, out->checkpoint.error.text, out->checkpoint.notice);
        r = -EIO;
    }
    if (r)
        fprintf(stderr, "%s: %s\n", w->name, err.text);
    mr_device_close(o.pipe.storage);
    mr_device_close(how.storage);
    mr_device_close(how.drain_storage);
    mr_lab_remove_dir(s->dir);
    return r;
}

/* ---- overhead ---- */

/* Twenty steps and the same twenty without checkpoints, in seconds. */
struct block {
    double with, without;
};

struct blocks {
    struct block *b;
    unsigned n;
};

static double overhead_of(const struct blocks *l, uint64_t resample)
{
    double excess = 0, total = 0;
    for (unsigned i = 0; i < l->n; i++) {
        unsigned at =
            resample ? (unsigned)mr_below(mr_draw(1, MR_DRAW_SYNTHETIC, resample, i, 0), l->n) : i;
        excess += l->b[at].with - l->b[at].without;
        total += l->b[at].with;
    }
    return excess / total;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that 95 of 100 resamples do not exceed. */
static double upper_bound(const struct blocks *l)
{
    static double drawn[N_RESAMPLES];
    for (unsigned i = 0; i < N_RESAMPLES; i++)
        drawn[i] = overhead_of(l, i + 1);
    qsort(drawn, N_RESAMPLES, sizeof *drawn, by_value);
    return drawn[N_RESAMPLES * 95 / 100 - 1];
}

static double block_s(const struct mr_train_result *r, unsigned k)
{
    double s = 0;
    for (unsigned i = 0; i < BLOCK; i++)
        s += r->step[(k + 1) * BLOCK - 1 + i].step_s; /* a checkpoint ends step 20, 40, ... */
    return s;
}

static void print_overhead(const char *what, const struct blocks *l)
{
    double bound = upper_bound(l), overhead = overhead_of(l, 0);
    printf("%s: %.3f%% of step time, upper bound (95%%, %d resamples of %u blocks) %.3f%%", what,
           1e2 * overhead, N_RESAMPLES, l->n, 1e2 * bound);
    if (!strcmp(what, "overhead"))
        printf(", target %.0f%%: %s", 1e2 * MAX_OVERHEAD,
               l->n < MIN_BLOCKS          ? "too few blocks to say"
               : bound <= MAX_OVERHEAD    ? "met"
               : overhead <= MAX_OVERHEAD ? "not distinguishable from met"
                                          : "missed");
    printf("\n");
}

/* All rounds' blocks: `with` of round r against `without` of round r + shift. */
static void gather(const struct mr_train_result *with, const struct mr_train_result *without,
                   unsigned rounds, unsigned shift, unsigned per_run, struct blocks *out)
{
    out->n = 0;
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned k = 0; k < per_run; k++)
            out->b[out->n++] =
                (struct block){block_s(&with[r], k), block_s(&without[(r + shift) % rounds], k)};
}

static void report_overhead(const struct mr_train_result *with,
                            const struct mr_train_result *without, unsigned rounds,
                            unsigned per_run)
{
    static struct block memory[MAX_BLOCKS];
    struct blocks l = {.b = memory};
    double stall = 0, longest = 0;
    unsigned n = 0;
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned i = 0; i < with[r].n_records; i++, n++) {
            double s = with[r].record[i].stall_s;
            stall += s;
            longest = s > longest ? s : longest;
        }
    printf("%u checkpoints of %.0f MB: stall %.2f ms on average, %.2f ms at most\n", n,
           n ? (double)with[0].record[0].bytes / 1e6 : 0, n ? 1e3 * stall / n : 0, 1e3 * longest);
    gather(with, without, rounds, 0, per_run, &l);
    print_overhead("overhead", &l);
    if (rounds > 1) {
        gather(without, without, rounds, 1, per_run, &l);
        print_overhead("A/A", &l);
    }
}

static int measure_overhead(const char *dir, uint64_t steps, unsigned rounds)
{
    static const struct way none = {.name = "none"},
                            lazy = {.name = "lazy", .mode = MR_CHECKPOINT_LAZY, .saves = 1};
    struct setting s = {.device = "emulated:0.5", .steps = steps, .every = BLOCK, .keep = 1};
    uint64_t per_run = (steps + 1) / BLOCK ? (steps + 1) / BLOCK - 1 : 0;
    if (!per_run || !rounds || per_run * rounds > MAX_BLOCKS) {
        fprintf(stderr, "overhead: %u .. steps, and blocks of them up to %d in all, please\n",
                2 * BLOCK - 1, MAX_BLOCKS);
        return 2;
    }
    snprintf(s.dir, sizeof s.dir, "%s/compare-saving", dir);
    struct mr_train_result *with = calloc(rounds, sizeof *with),
                           *without = calloc(rounds, sizeof *without);
    int r = with && without ? 0 : -ENOMEM;
    printf("%llu steps of 0.5 s, a checkpoint every %d, %u rounds\n", (unsigned long long)steps,
           BLOCK, rounds);
    fflush(stdout);
    for (unsigned i = 0; !r && i < 2 * rounds; i++) {
        int saves = (i + i / 2) % 2; /* none lazy, lazy none, ... */
        r = saves ? train(&s, &lazy, &with[i / 2]) : train(&s, &none, &without[i / 2]);
    }
    if (!r)
        report_overhead(with, without, rounds, (unsigned)per_run);
    for (unsigned i = 0; with && without && i < rounds; i++) {
        mr_train_result_fini(&with[i]);
        mr_train_result_fini(&without[i]);
    }
    free(with);
    free(without);
    return r != 0;
}

/* ---- Figure 9 ---- */

enum { NONE, HDD, SSD, OPTANE, BURST, LAZY, NONE_AGAIN, OPTANE_AGAIN, N_WAYS };

static const struct way ways[N_WAYS] = {
    [NONE] = {"no checkpoints", 0, NULL, NULL, 0},
    [HDD] = {"sync to hdd", MR_CHECKPOINT_SYNC, "hdd", NULL, 1},
    [SSD] = {"sync to ssd", MR_CHECKPOINT_SYNC, "ssd", NULL, 1},
    [OPTANE] = {"sync to optane", MR_CHECKPOINT_SYNC, "optane", NULL, 1},
    [BURST] = {"burst: optane, then hdd", MR_CHECKPOINT_BURST, "optane", "hdd", 1},
    [LAZY] = {"lazy: optane, then hdd", MR_CHECKPOINT_LAZY, "optane", "hdd", 1},
    [NONE_AGAIN] = {"no checkpoints again", 0, NULL, NULL, 0},
    [OPTANE_AGAIN] = {"sync to optane again", MR_CHECKPOINT_SYNC, "optane", NULL, 1},
};

/* A target that the control strays further from 1 than it is away cannot be told from noise. */
static void print_ratio(const char *what, double ratio, double control, double target)
{
    double spread = control > 1 ? control - 1 : 1 - control, away = target - ratio;
    printf("%s: %.4f, A/A %.4f, target %.2f: %s\n", what, ratio, control, target,
           (away < 0 ? -away : away) < spread
               ? away < 0 ? "not distinguishable from missed" : "not distinguishable from met"
           : away < 0 ? "missed"
                      : "met");
}

static int measure_fig9(const char *data, const char *dir, uint64_t steps, unsigned every)
{
    struct setting s = {
        .device = "emulated:1.5", .images = "ssd", .steps = steps, .every = every, .keep = MR_NONE};
    struct mr_error err = {0};
    double seconds[N_WAYS];
    if (!steps || !every || steps % every) {
        fprintf(stderr, "fig9: a checkpoint has to end the last step\n");
        return 2;
    }
    int r = mr_dataset_open(data, &s.data, &err);
    if (r) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    snprintf(s.dir, sizeof s.dir, "%s/compare-saving", dir);
    printf("%llu steps of 1.5 s, a checkpoint every %u; images from ssd\n",
           (unsigned long long)steps, every);
    for (unsigned i = 0; !r && i < N_WAYS; i++) {
        struct mr_train_result out;
        fflush(stdout);
        r = train(&s, &ways[i], &out);
        if (!r) {
            seconds[i] = out.seconds;
            printf("%-24s %7.2f s, of it stalled %6.2f s; drained %.2f s later\n", ways[i].name,
                   seconds[i], out.checkpoint_stall_s, out.drain_s);
        }
        mr_train_result_fini(&out);
    }
    mr_dataset_unref(s.data);
    if (r)
        return 1;
    print_ratio("burst / optane alone", seconds[BURST] / seconds[OPTANE],
                seconds[OPTANE_AGAIN] / seconds[OPTANE], 1.02);
    print_ratio("lazy / no checkpoints", seconds[LAZY] / seconds[NONE],
                seconds[NONE_AGAIN] / seconds[NONE], 1.01);
    return 0;
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise)
{
    return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "overhead"))
        return measure_overhead(argv[2], number(argc, argv, 3, 100),
                                (unsigned)number(argc, argv, 4, 3));
    if (argc > 3 && !strcmp(argv[1], "fig9"))
        return measure_fig9(argv[2], argv[3], number(argc, argv, 4, 20),
                            (unsigned)number(argc, argv, 5, 10));
    fprintf(stderr, "usage: compare_saving overhead DIR [STEPS [ROUNDS]]\n"
                    "       compare_saving fig9 DATA DIR [STEPS [EVERY]]\n");
    return 2;
}
