/* compare_overlap.c - does input cost training time?
 *
 *     compare_overlap DIR prefetch [ROUNDS]    hdd, ssd, optane, lustre; accelerator of 1.5 s a
 * step compare_overlap DIR cpu [ROUNDS]         the network on the cores, storage as ssd
 *     compare_overlap DIR none                 no prefetch: the excess over 1, 2, 4, 8 threads
 *
 * A fed run against a synthetic one, which uses one batch again and again: (run - first fill) /
 * (synthetic run - its first fill), by paired alternation (alternate.h) with the fed run against
 * itself as A/A.  A run is the first few steps of a long one: it is stopped then, so the pipeline
 * works ahead during the last step as during any other.
 *
 * The four storages are measured side by side, each with a training loop of its own: an emulated
 * accelerator uses no core, and decoding a batch takes a small part of a step. */
#include "alternate.h"
#include "device.h"
#include "trainer.h"
#include "wait_policy.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH      64
#define STORAGES   4
#define ON_DEVICE  "emulated:1.5"
#define LONG_RUN   1000000
#define N_THREADS  4
#define NONE_STEPS 4

static const char *const storages[STORAGES] = {"hdd", "ssd", "optane", "lustre"};

struct run {
    struct mr_dataset *data;
    const char *storage, *device;
    unsigned threads, prefetch; /* 0 = default */
    unsigned steps;             /* until it is stopped */
    int synthetic;
    uint64_t done;
};

static void on_progress(void *ctx, const struct mr_train_progress *now)
{
    ((struct run *)ctx)->done = now->step;
}

static int is_enough(void *ctx)
{
    const struct run *r = ctx;
    return r->done >= r->steps;
}

/* Seconds of its steps without the first fill; not above 0 is a failure. */
static double seconds(struct run *r)
{
    struct mr_train_opts o = {
        .data = r->data,
        .pipe = {.threads = r->threads, .batch = BATCH, .prefetch = r->prefetch, .seed = 1},
        .decode = {.width = 224, .height = 224},
        .steps = LONG_RUN,
        .synthetic = r->synthetic,
        .learning_rate = 1e-4,
        .progress = on_progress,
        .progress_ctx = r,
    };
    struct mr_train_result out;
    struct mr_error err = {0};
    double s = -1;
    r->done = 0;
    o.pipe.should_stop = is_enough;
    o.pipe.should_stop_ctx = r;
    if (mr_device_open(r->storage, &o.pipe.storage, &err) ||
        mr_accelerator_spec_parse(r->device, &o.device, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    int code = mr_train_run(&o, &out, &err);
    if (code == -ECANCELED && out.steps == r->steps)
        s = out.seconds;
    else
        fprintf(stderr, "%s: %s\n", r->storage, err.text);
    mr_train_result_fini(&out);
    mr_device_close(o.pipe.storage);
    return s;
}

static double rate(void *ctx)
{
    return 1 / seconds(ctx);
}

struct pair {
    struct run fed, synthetic;
    unsigned rounds;
    struct comparison result;
    int failed;
};

/* The fed run stands where the peer does: what is compared with itself is the noisier of the two,
 * and the ratio of rates is the ratio of times that is wanted. */
static void *measure(void *ctx)
{
    struct pair *p = ctx;
    struct contender synthetic = {"synthetic", rate, &p->synthetic}, fed = {"fed", rate, &p->fed};
    p->failed = alternate(&synthetic, &fed, p->rounds, &p->result);
    return NULL;
}

static void print_pair(const struct pair *p, double target)
{
    const struct comparison *c = &p->result;
    double noise = fmax(fabs(c->control.q1 - 1), fabs(c->control.q3 - 1));
    printf("| %s, %s | **%.4f** (%.4f .. %.4f) | %.4f (%.4f .. %.4f) | %.2f: %s |\n", p->fed.device,
           p->fed.storage, c->ratio.median, c->ratio.q1, c->ratio.q3, c->control.median,
           c->control.q1, c->control.q3, target,
           c->ratio.median <= target - noise   ? "met"
           : c->ratio.median <= target + noise ? "not distinguishable from met"
                                               : "missed");
}

static struct pair new_pair(struct mr_dataset *data, const char *storage, const char *device,
                            unsigned steps, unsigned rounds)
{
    struct run fed = {.data = data, .storage = storage, .device = device, .steps = steps};
    struct pair p = {.fed = fed, .synthetic = fed, .rounds = rounds};
    p.synthetic.synthetic = 1;
    return p;
}

static int with_prefetch(struct mr_dataset *data, unsigned rounds)
{
    struct pair p[STORAGES];
    pthread_t thread[STORAGES];
    int failed = 0;
    for (unsigned i = 0; i < STORAGES; i++) {
        p[i] = new_pair(data, storages[i], ON_DEVICE, 3, rounds);
        if (pthread_create(&thread[i], NULL, measure, &p[i]))
            return 1;
    }
    for (unsigned i = 0; i < STORAGES; i++) {
        pthread_join(thread[i], NULL);
        failed |= p[i].failed;
        if (!p[i].failed)
            print_pair(&p[i], 1.02);
    }
    return failed;
}

static int on_cpu(struct mr_dataset *data, unsigned rounds)
{
    struct pair p = new_pair(data, "ssd", "cpu", 2, rounds);
    measure(&p);
    if (!p.failed)
        print_pair(&p, 1.06);
    return p.failed;
}

static int without_prefetch(struct mr_dataset *data)
{
    printf("| storage | 1 thread | 2 threads | 4 threads | 8 threads |\n|--|--|--|--|--|\n");
    for (unsigned i = 0; i < STORAGES; i++) {
        printf("| %s |", storages[i]);
        for (unsigned t = 0; t < N_THREADS; t++) {
            struct pair p = new_pair(data, storages[i], ON_DEVICE, NONE_STEPS, 0);
            p.fed.threads = 1u << t;
            p.fed.prefetch = MR_NONE;
            double fed = seconds(&p.fed);
            /* the first step's wait is the first fill */
            double excess = (fed - NONE_STEPS * 1.5) / (NONE_STEPS - 1);
            if (!(fed > 0))
                return 1;
            printf(" %.3f (%.0f ms) |", 1 + excess / 1.5, 1e3 * excess);
            fflush(stdout);
        }
        printf("\n");
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_dataset *data;
    struct mr_error err = {0};
    mr_wait_policy_restart(argv);
    if (argc < 3) {
        fprintf(stderr, "usage: compare_overlap DIR prefetch|cpu|none [ROUNDS]\n");
        return 2;
    }
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 9;
    if (mr_dataset_open(argv[1], &data, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int failed = !strcmp(argv[2], "prefetch") ? with_prefetch(data, rounds)
                 : !strcmp(argv[2], "cpu")    ? on_cpu(data, rounds)
                                              : without_prefetch(data);
    mr_dataset_unref(data);
    return failed ? 1 : 0;
}
