/* compare_step.c - how fast is a training step of AlexNet, batch 64, on two cores?
 *
 *     compare_step WHAT [ROUNDS]
 *
 * torch, torch-channels-last, torch-no-lrn, torch-channels-last-no-lrn
 *           against PyTorch on the same network (bench/peers/torch_alexnet.py, in turns, one step a
 *           run; its process stays alive between the rounds and sleeps while ours runs)
 * chain     against the sum of its operations, each timed alone
 * adam      Adam's memory traffic against that of a copy with as many threads
 * ops       no comparison: time, rate and code of every operation, for each way to compute the
 *           convolutions
 *
 * Ratios by paired alternation with an A/A control (alternate.h). */
#include "alexnet.h"
#include "alternate.h"
#include "big_memory.h"
#include "clock.h"
#include "draw.h"
#include "net.h"
#include "wait_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH      64
#define N_CLASSES  102
#define THREADS    2
#define COPY_BYTES ((size_t)512 << 20)

struct bench {
    struct mr_alexnet alexnet;
    struct mr_net *net;
    struct mr_net_input in;
    float *images;
    uint32_t labels[BATCH];
};

static double seconds_since(uint64_t start)
{
    return (double)(mr_clock_ns() - start) / 1e9;
}

static int open_bench(struct bench *b, int without_lrn, enum mr_conv_plan plan)
{
    struct mr_alexnet_opts shape = {.without_lrn = without_lrn, .plan = plan};
    struct mr_net_opts opts = {.batch = BATCH, .threads = THREADS, .seed = 1};
    struct mr_error err = {0};
    size_t n = (size_t)BATCH * 224 * 224 * 3;
    mr_alexnet_init(&b->alexnet, &shape);
    if (mr_net_open(&b->alexnet.spec, &opts, &b->net, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    b->images = malloc(n * sizeof *b->images);
    if (!b->images)
        return -1;
    for (size_t i = 0; i < n; i++)
        b->images[i] = (float)(mr_mix(i) >> 40) / 16777216;
    for (unsigned i = 0; i < BATCH; i++)
        b->labels[i] = (uint32_t)mr_below(mr_mix(i), N_CLASSES);
    b->in = (struct mr_net_input){.n = BATCH, .images = b->images, .labels = b->labels};
    return 0;
}

static void close_bench(struct bench *b)
{
    mr_net_close(b->net);
    free(b->images);
    *b = (struct bench){0};
}

/* Steps a second, of one. */
static double our_step(void *arg)
{
    struct bench *b = arg;
    struct mr_net_result result;
    struct mr_error err = {0};
    struct mr_adam_opts adam = {.lr = 1e-4f};
    uint64_t start = mr_clock_ns();
    if (mr_net_forward(b->net, &b->in, &result, &err) || mr_net_backward(b->net) ||
        mr_net_update(b->net, &adam)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    b->in.step++;
    return 1 / seconds_since(start);
}

/* ---- PyTorch ---- */

struct torch {
    FILE *to, *from;
    pid_t pid;
};

static double torch_step(void *arg)
{
    struct torch *t = arg;
    char line[128];
    double seconds;
    if (fputs("step\n", t->to) < 0 || fflush(t->to) || !fgets(line, sizeof line, t->from) ||
        sscanf(line, "%lf", &seconds) != 1)
        return -1;
    return 1 / seconds;
}

static int start_torch(struct torch *t, int channels_last, int without_lrn)
{
    int to[2], from[2];
    char line[128];
    if (pipe(to) || pipe(from))
        return -1;
    t->pid = fork();
    if (t->pid == 0) {
        char *argv[] = {"torch_alexnet.py", NULL, NULL, NULL};
        int n = 1;
        if (channels_last)
            argv[n++] = "--channels-last";
        if (without_lrn)
            argv[n++] = "--no-lrn";
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[0]), close(to[1]), close(from[0]), close(from[1]);
        unsetenv("OMP_WAIT_POLICY"); /* ours; the peer runs as it comes */
        execv(PEERS_DIR "/torch_alexnet.py", argv);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    t->to = fdopen(to[1], "w");
    t->from = fdopen(from[0], "r");
    if (t->pid < 0 || !t->to || !t->from || !fgets(line, sizeof line, t->from) ||
        strncmp(line, "ready", 5)) {
        fprintf(stderr, "%s does not start; is python3-torch there?\n",
                PEERS_DIR "/torch_alexnet.py");
        return -1;
    }
    printf("PyTorch: %s", line);
    return 0;
}

static void stop_torch(struct torch *t)
{
    if (t->to)
        fclose(t->to);
    if (t->from)
        fclose(t->from);
    if (t->pid > 0)
        waitpid(t->pid, NULL, 0);
}

static int compare(const char *what, const struct contender *ours, const struct contender *peer,
                   unsigned rounds, double target)
{
    struct comparison c;
    if (alternate(ours, peer, rounds, &c))
        return 1;
    alternate_print(what, ours, peer, &c, target);
    return 0;
}

static int against_torch(const char *what, int channels_last, int without_lrn, double target,
                         unsigned rounds)
{
    struct bench b = {0};
    struct torch t = {0};
    struct contender ours = {"millrace", our_step, &b}, peer = {"PyTorch", torch_step, &t};
    int r = open_bench(&b, without_lrn, MR_PLAN_BEST) ||
            start_torch(&t, channels_last, without_lrn) ||
            compare(what, &ours, &peer, rounds, target);
    stop_torch(&t);
    close_bench(&b);
    return r;
}

/* ---- the sum of the operations ---- */

static double one_op(struct bench *b, unsigned i)
{
    mr_net_run_op(b->net, i); /* warms caches, as alone as it can be */
    uint64_t start = mr_clock_ns();
    mr_net_run_op(b->net, i);
    return seconds_since(start);
}

static double ops_alone(void *arg)
{
    struct bench *b = arg;
    struct mr_adam_opts adam = {.lr = 1e-4f};
    double sum = 0;
    for (unsigned i = 0; i < mr_net_n_ops(b->net); i++)
        sum += one_op(b, i);
    mr_net_update(b->net, &adam);
    uint64_t start = mr_clock_ns();
    mr_net_update(b->net, &adam);
    return 1 / (sum + seconds_since(start));
}

static int against_its_parts(unsigned rounds)
{
    struct bench b = {0};
    struct contender ours = {"chained step", our_step, &b}, peer = {"sum of parts", ops_alone, &b};
    int r = open_bench(&b, 0, MR_PLAN_BEST) || compare("chain", &ours, &peer, rounds, 0.9);
    close_bench(&b);
    return r;
}

/* ---- Adam and a copy ---- */

/* Bytes a second, in gigabytes: four streams are read, three written. */
static double adam_traffic(void *arg)
{
    struct bench *b = arg;
    uint64_t start = mr_clock_ns();
    mr_net_update(b->net, NULL);
    return 7 * (double)mr_net_params(b->net)->bytes / seconds_since(start) / 1e9;
}

struct copy {
    struct mr_team *team;
    char *from, *to;
};

static void copy_part(void *arg, unsigned rank, unsigned n)
{
    struct copy *c = arg;
    uint64_t at = mr_team_share(COPY_BYTES, 4096, rank, n);
    memcpy(c->to + at, c->from + at, mr_team_share(COPY_BYTES, 4096, rank + 1, n) - at);
}

static double copy_traffic(void *arg)
{
    struct copy *c = arg;
    uint64_t start = mr_clock_ns();
    mr_team_run(c->team, copy_part, c);
    return 2 * (double)COPY_BYTES / seconds_since(start) / 1e9;
}

static int adam_against_copy(unsigned rounds)
{
    struct bench b = {0};
    struct copy c = {0};
    struct contender ours = {"Adam GB", adam_traffic, &b}, peer = {"copy GB", copy_traffic, &c};
    int r = open_bench(&b, 0, MR_PLAN_BEST);
    if (!r) {
        c = (struct copy){mr_net_team(b.net), mr_big_alloc(COPY_BYTES), mr_big_alloc(COPY_BYTES)};
        r = !c.from || !c.to;
    }
    if (!r) {
        mr_big_touch(c.from, COPY_BYTES, c.team);
        mr_big_touch(c.to, COPY_BYTES, c.team);
        our_step(&b); /* gradients */
        r = compare("Adam", &ours, &peer, rounds, 0.9);
    }
    mr_big_free(c.from);
    mr_big_free(c.to);
    close_bench(&b);
    return r;
}

/* ---- every operation ---- */

static int list_ops(const char *name, enum mr_conv_plan plan)
{
    struct bench b = {0};
    double sum = 0;
    if (open_bench(&b, 0, plan)) {
        printf("%s: not possible for all layers\n", name);
        return 0;
    }
    our_step(&b);
    printf("%s\n", name);
    for (unsigned i = 0; i < mr_net_n_ops(b.net); i++) {
        struct mr_net_op op;
        double best = one_op(&b, i);
        for (unsigned k = 0; k < 2; k++) {
            double again = one_op(&b, i);
            best = again < best ? again : best;
        }
        mr_net_op(b.net, i, &op);
        sum += best;
        if (best > 0.5e-3)
            printf("  %-26s %8.2f ms %7.0f GFLOP/s  %s\n", op.name, best * 1e3,
                   op.flop / best / 1e9, op.code);
    }
    printf("  %-26s %8.2f ms, best of 3 each\n", "sum, all operations", sum * 1e3);
    close_bench(&b);
    return 0;
}

static void print_memory(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("peak memory of this process: %.0f MB\n", (double)u.ru_maxrss * 1024 / 1e6);
}

int main(int argc, char **argv)
{
    mr_wait_policy_restart(argv);
    const char *what = argc > 1 ? argv[1] : "";
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
    int r;
    if (!strcmp(what, "torch"))
        r = against_torch("step", 0, 0, 2.5, rounds);
    else if (!strcmp(what, "torch-channels-last"))
        r = against_torch("step, channels_last", 1, 0, 2.2, rounds);
    else if (!strcmp(what, "torch-no-lrn"))
        r = against_torch("step without LRN", 0, 1, 1.7, rounds);
    else if (!strcmp(what, "torch-channels-last-no-lrn"))
        r = against_torch("step without LRN, channels_last", 1, 1, 1.3, rounds);
    else if (!strcmp(what, "chain"))
        r = against_its_parts(rounds);
    else if (!strcmp(what, "adam"))
        r = adam_against_copy(rounds);
    else if (!strcmp(what, "ops"))
        r = list_ops("chosen by measurement", MR_PLAN_BEST) |
            list_ops("NHWC everywhere", MR_PLAN_CHANNELS_LAST) |
            list_ops("oneDNN's proposals", MR_PLAN_LIBRARY);
    else {
        fprintf(stderr, "usage: compare_step torch|torch-channels-last|torch-no-lrn|"
                        "torch-channels-last-no-lrn|chain|adam|ops [ROUNDS]\n");
        return 2;
    }
    print_memory();
    return r;
}
