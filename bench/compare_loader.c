/* compare_loader.c - the whole pipeline, warm files to batches of 224 x 224 x 3 floats, against
 * others.
 *
 *     compare_loader DIR SCRIPTS [ROUNDS [ONLY]]   ONLY: peers whose name contains this
 *
 * DIR is a data set of photos, SCRIPTS the folder bench/peers, or any other to leave the Python
 * loaders out.  Peers: libjpeg-turbo's bare decode of the same bytes held in memory, no resize,
 * with as many threads; our own pipeline with libjpeg-turbo as its decoder, which on photos
 * re-encoded to at most 512 pixels (make_variants small) is what FFCV's authors recommend as input;
 * and, where Debian's packages are installed, PyTorch's DataLoader and OpenCV with the settings
 * that are fastest in a first trial.
 *
 * The pipeline's own share (reading, hand-over, batching) is what it loses to its decoder alone,
 * the bytes in memory, in images a second of CPU time. */
#include "alternate.h"

#include "clock.h"
#include "json.h"

#include <millrace/pipeline.h>
#include <millrace/store.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#define LARGEST ((size_t)8 << 20)
#define N_SLOTS 128 /* two batches: as many images lie between two that share one */

struct setting {
    const char *dir, *scripts;
    struct mr_dataset *data;
    uint64_t n;
    uint8_t **bytes; /* [n] the files */
    size_t *len;
    uint8_t *slots; /* [N_SLOTS] images decoded without the pipeline */
    const char *only;
    unsigned threads;
    int crop_flip;
    char command[PATH_MAX * 2]; /* of the Python peer that is compared */
};

static int load(struct setting *s)
{
    struct mr_error err = {0};
    char path[PATH_MAX];
    if (mr_dataset_open(s->dir, &s->data, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    s->n = mr_dataset_size(s->data);
    s->bytes = calloc(s->n, sizeof *s->bytes);
    s->len = calloc(s->n, sizeof *s->len);
    uint8_t *buf = malloc(LARGEST);
    size_t slots = mr_decoder_bytes(NULL) * N_SLOTS;
    s->slots = aligned_alloc(64, slots);
    if (!s->bytes || !s->len || !buf || !s->slots)
        return -1;
    memset(s->slots, 1, slots);
    for (uint64_t i = 0; i < s->n; i++) {
        mr_dataset_name(s->data, i, path, sizeof path);
        if (mr_file_read(path, buf, LARGEST, &s->len[i], NULL))
            return -1;
        s->bytes[i] = malloc(s->len[i]);
        if (!s->bytes[i])
            return -1;
        memcpy(s->bytes[i], buf, s->len[i]);
    }
    free(buf);
    return 0;
}

struct timing {
    uint64_t wall, cpu;
};

static struct timing now(void)
{
    return (struct timing){mr_clock_ns(), mr_clock_process_cpu_ns()};
}

/* Images a second of the time from `start`, or of CPU time. */
static double rate(uint64_t images, struct timing start, int by_cpu)
{
    struct timing end = now();
    uint64_t ns = by_cpu ? end.cpu - start.cpu : end.wall - start.wall;
    return (double)images / ((double)ns / 1e9);
}

static double run_pipeline(struct setting *s, enum mr_image_decoder decoder, int by_cpu)
{
    struct mr_decoder_opts decode = {
        .augment = s->crop_flip ? MR_AUGMENT_CROP_FLIP : MR_AUGMENT_NONE, .decoder = decoder};
    struct mr_pipeline_opts o = {
        .threads = s->threads, .decode = &decode, .keep_last = 1, .start_on_next = 1};
    struct mr_pipeline_stats stats;
    struct mr_pipeline *p;
    struct mr_batch *b;
    if (mr_pipeline_open(s->data, &o, &p, NULL))
        return 0;
    struct timing start = now();
    while (mr_pipeline_next(p, &b) == 1)
        mr_batch_unref(b);
    mr_pipeline_get_stats(p, &stats);
    double per_s = rate(stats.samples, start, by_cpu);
    mr_pipeline_close(p);
    return stats.replaced ? 0 : per_s;
}

static double run_ours(void *ctx)
{
    return run_pipeline(ctx, MR_DECODER_AUTO, 0);
}

static double run_ours_by_cpu(void *ctx)
{
    return run_pipeline(ctx, MR_DECODER_AUTO, 1);
}

static double run_turbo(void *ctx)
{
    return run_pipeline(ctx, MR_DECODER_TURBO, 0);
}

struct crowd { /* threads that take files in turn */
    struct setting *s;
    atomic_uint_fast64_t next;
    atomic_int failed;
};

static void *decode_bare(void *arg)
{
    struct crowd *b = arg;
    tjhandle tj = tjInitDecompress();
    unsigned char *rgb = NULL;
    size_t cap = 0;
    uint64_t i;
    while ((i = atomic_fetch_add(&b->next, 1)) < b->s->n) {
        int w, h, sampling, space;
        if (tjDecompressHeader3(tj, b->s->bytes[i], b->s->len[i], &w, &h, &sampling, &space))
            atomic_store(&b->failed, 1);
        size_t need = (size_t)w * (size_t)h * 3;
        if (need > cap) {
            free(rgb);
            rgb = malloc(need);
            cap = need;
        }
        if (tjDecompress2(tj, b->s->bytes[i], b->s->len[i], rgb, w, 0, h, TJPF_RGB, 0))
            atomic_store(&b->failed, 1);
    }
    free(rgb);
    tjDestroy(tj);
    return NULL;
}

/* Ours, into the slots of one batch again and again. */
static void *decode_alone(void *arg)
{
    struct crowd *b = arg;
    struct mr_decoder *d = NULL;
    size_t slot = mr_decoder_bytes(NULL);
    uint64_t i;
    if (mr_decoder_new(NULL, &d, NULL))
        atomic_store(&b->failed, 1);
    while (!b->failed && (i = atomic_fetch_add(&b->next, 1)) < b->s->n)
        if (mr_decoder_run(d, b->s->bytes[i], b->s->len[i], 0, b->s->slots + i % N_SLOTS * slot))
            atomic_store(&b->failed, 1);
    mr_decoder_free(d);
    return NULL;
}

static double run_crowd(struct setting *s, void *(*work)(void *), int by_cpu)
{
    struct crowd b = {.s = s};
    pthread_t t[64];
    struct timing start = now();
    for (unsigned i = 0; i < s->threads; i++)
        if (pthread_create(&t[i], NULL, work, &b))
            return 0;
    for (unsigned i = 0; i < s->threads; i++)
        pthread_join(t[i], NULL);
    return b.failed ? 0 : rate(s->n, start, by_cpu);
}

static double run_bare(void *ctx)
{
    return run_crowd(ctx, decode_bare, 0);
}

static double run_alone(void *ctx)
{
    return run_crowd(ctx, decode_alone, 1);
}

/* The scripts print one line of JSON with "images_per_s". */
static double run_python(void *ctx)
{
    struct setting *s = ctx;
    char text[4096];
    FILE *f = popen(s->command, "r");
    if (!f)
        return 0;
    size_t len = fread(text, 1, sizeof text, f);
    if (pclose(f))
        return 0;
    struct mr_json *j = mr_json_parse(text, len);
    double rate = j ? mr_json_number(mr_json_at(j, "images_per_s")) : 0;
    mr_json_free(j);
    return rate;
}

static void set_command(struct setting *s, const char *way, const char *more)
{
    snprintf(s->command, sizeof s->command,
             "/usr/bin/python3 %s/%s '%s' --json --epochs 1%s%s 2>/dev/null", s->scripts, way,
             s->dir, s->crop_flip ? " --crop-flip" : "", more);
}

/* Try every way of calling the script on some of the files and keep the fastest for all of them; 0
 * when none works. */
static double choose(struct setting *s, const char *const *ways)
{
    const char *best = NULL;
    double best_rate = 0;
    for (; *ways; ways++) {
        set_command(s, *ways, " --files 1024");
        double rate = run_python(s);
        if (rate > best_rate) {
            best_rate = rate;
            best = *ways;
        }
    }
    if (best)
        set_command(s, best, "");
    return best_rate;
}

static int compare(struct setting *s, const struct contender *ours, const struct contender *peer,
                   unsigned rounds, double target)
{
    struct comparison c;
    char what[64];
    if (!strstr(peer->name, s->only))
        return 0;
    snprintf(what, sizeof what, "%u thread%s%s", s->threads, s->threads > 1 ? "s" : "",
             s->crop_flip ? ", crop-flip" : "");
    if (alternate(ours, peer, rounds, &c))
        return 1;
    alternate_print(what, ours, peer, &c, target);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const torch_ways[] = {"torch_loader.py --decoder pil --workers 0",
                                             "torch_loader.py --decoder pil --workers 1",
                                             "torch_loader.py --decoder pil --workers 2",
                                             "torch_loader.py --decoder pil --workers 4",
                                             "torch_loader.py --decoder torchvision --workers 0",
                                             "torch_loader.py --decoder torchvision --workers 1",
                                             "torch_loader.py --decoder torchvision --workers 2",
                                             "torch_loader.py --decoder torchvision --workers 4",
                                             NULL};
    static const char *const opencv_ways[] = {"opencv_loader.py --workers 2", NULL};
    if (argc < 3 || argc > 5) {
        fprintf(stderr, "usage: compare_loader DIR SCRIPTS [ROUNDS [ONLY]]\n");
        return 2;
    }
    struct setting s = {.dir = argv[1], .scripts = argv[2], .only = argc > 4 ? argv[4] : ""};
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 9;
    const struct contender ours = {"millrace", run_ours, &s}, bare = {"bare decode", run_bare, &s},
                           turbo = {"turbo pipeline", run_turbo, &s},
                           by_cpu = {"millrace, CPU time", run_ours_by_cpu, &s},
                           alone = {"its decoder alone", run_alone, &s},
                           torch = {"PyTorch", run_python, &s}, opencv = {"OpenCV", run_python, &s};
    if (load(&s)) {
        fprintf(stderr, "%s: cannot be loaded\n", s.dir);
        return 1;
    }
    int bad = 0, png = s.len[0] > 3 && !memcmp(s.bytes[0] + 1, "PNG", 3);
    for (s.threads = 1; !png && s.threads <= 2; s.threads++) {
        bad |= compare(&s, &ours, &bare, rounds, 1.7);
        bad |= compare(&s, &by_cpu, &alone, rounds, 0.97);
        bad |= compare(&s, &ours, &turbo, rounds, 1.3);
    }
    s.threads = 2;
    for (s.crop_flip = 0; s.crop_flip < (png ? 1 : 2); s.crop_flip++) {
        if (strstr(torch.name, s.only) && choose(&s, torch_ways) > 0) {
            printf("  %s\n", s.command);
            bad |= compare(&s, &ours, &torch, rounds, png ? 1.2 : s.crop_flip ? 2.2 : 4.2);
        }
        if (!s.crop_flip && !png && strstr(opencv.name, s.only) && choose(&s, opencv_ways) > 0)
            bad |= compare(&s, &ours, &opencv, rounds, 1.2);
    }
    for (uint64_t i = 0; i < s.n; i++)
        free(s.bytes[i]);
    free(s.bytes);
    free(s.len);
    free(s.slots);
    mr_dataset_unref(s.data);
    return bad;
}
