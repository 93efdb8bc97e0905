/* compare_fio.c - do millrace's raw figures agree with fio's?
 *
 *     compare_fio DIR [SIZE_MB [ROUNDS [PATTERN]]]
 *
 * Both work on the same file in DIR, written whole before, with the same block sizes and depth, by
 * io_uring and O_DIRECT, for a second each, in turns (alternate.h); ours by the engine of
 * `millrace baseline`.  fio is made to work the way ours does: buffers in huge pages (a tunable of
 * glibc's malloc, and aligned), and operations handed over and taken back several at a time.
 * Agreement is a ratio within 5% of 1 or, where fio differs more than that from itself, within the
 * quartiles of that.  Exit 0: all agree.
 *
 * Reads of more than a page are compared twice more: ours with buffers in huge pages against ours
 * in ordinary ones, and both in ordinary ones, fio's default.  How scattered those are is a matter
 * of what the system hands out to either, so nothing is demanded there (docs/baseline.md). */
#include "alternate.h"

#include "json.h"
#include "places.h"
#include "raw_io.h"
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEPTH 128
#define RUN_S     1u
#define BUFFERS   ((size_t)MAX_DEPTH * (256 << 10))

struct pattern {
    const char *name, *fio_mode, *split;
    unsigned depth;
    int write, random, count_ops; /* operations a second, not MB */
};

static const struct pattern patterns[] = {
    {"seq read, 1M", "read", "1M/100", 16, 0, 0, 0},
    {"seq write, 1M, fsync", "write", "1M/100", 16, 1, 0, 0},
    {"random-imagenet", "randread", MR_SPLIT_IMAGENET, 128, 0, 1, 0},
    {"random-16k", "randread", "16K/100", 128, 0, 1, 1},
    {"random-4k", "randread", "4K/100", 1, 0, 1, 1},
};
#define N_PATTERNS (sizeof patterns / sizeof *patterns)

struct contest {
    const struct pattern *p;
    char path[PATH_MAX];
    uint64_t file_bytes;
    unsigned run;
    struct mr_raw_io *io;
};

struct side {
    struct contest *c;
    int ordinary; /* pages */
};

/* In order, from the start again at the end. */
static void round_and_round(const void *places, uint64_t i, uint64_t *offset, uint32_t *len)
{
    const struct mr_places *p = places;
    mr_place_in_order(places, i % (p->file_bytes / p->split.bytes[0]), offset, len);
}

static double run_ours(void *ctx)
{
    const struct side *side = ctx;
    struct contest *c = side->c;
    const struct pattern *p = c->p;
    struct mr_places where = {.file_bytes = c->file_bytes, .align = 512, .run = ++c->run};
    struct mr_raw_result out;
    struct mr_error err = {0};
    int fd = open(c->path, O_RDWR | O_DIRECT | O_CLOEXEC);
    if (fd < 0 || mr_size_split_parse(p->split, &where.split, &err))
        return -1;
    struct mr_raw_job job = {
        .name = c->path,
        .fd = fd,
        .write = p->write,
        .sync = p->write,
        .ordinary = side->ordinary,
        .depth = p->depth,
        .max_len = (uint32_t)mr_direct_round(mr_size_split_max(&where.split)),
        .place = p->random ? mr_place_at_random : round_and_round,
        .place_ctx = &where,
        .n_ops = UINT64_MAX,
        .box_ns = RUN_S * 1000000000u,
    };
    int r = mr_raw_io_run(c->io, &job, &out, &err);
    close(fd);
    if (r)
        fprintf(stderr, "%s\n", err.text);
    return r ? -1 : (p->count_ops ? (double)out.n_ops : (double)out.bytes / 1e6) / out.seconds;
}

static double run_fio(void *ctx)
{
    const struct side *way = ctx;
    const struct contest *c = way->c;
    const struct pattern *p = c->p;
    char command[PATH_MAX + 512], key[64];
    static char text[1 << 17];
    snprintf(
        command, sizeof command,
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=%d fio --name=x --filename='%s' --size=%llu --rw=%s "
        "--bssplit=%s --iodepth=%u --direct=1 --ioengine=io_uring --norandommap --randrepeat=0 "
        "--overwrite=1 --thread --time_based --runtime=%u --iomem_align=%s "
        "--iodepth_batch_submit=%u --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=%u "
        "%s --output-format=json 2>/dev/null",
        !way->ordinary, c->path, (unsigned long long)c->file_bytes, p->fio_mode, p->split, p->depth,
        RUN_S, way->ordinary ? "4K" : "2M", p->depth < 16 ? p->depth : 16, p->depth,
        p->write ? "--end_fsync=1" : "");
    FILE *f = popen(command, "r");
    if (!f)
        return -1;
    size_t len = fread(text, 1, sizeof text, f);
    char *brace = pclose(f) ? NULL : memchr(text, '{', len);
    struct mr_json *j = brace ? mr_json_parse(brace, len - (size_t)(brace - text)) : NULL;
    if (!j)
        return -1;
    const char *side = p->write ? "write" : "read";
    snprintf(key, sizeof key, "jobs.0.%s.total_ios", side);
    double ops = mr_json_number(mr_json_at(j, key));
    snprintf(key, sizeof key, "jobs.0.%s.io_bytes", side);
    double bytes = mr_json_number(mr_json_at(j, key));
    /* Milliseconds; fio's own bw is no finer. */
    snprintf(key, sizeof key, "jobs.0.%s.runtime", side);
    double seconds = mr_json_number(mr_json_at(j, key)) / 1e3;
    mr_json_free(j);
    return (p->count_ops ? ops : bytes / 1e6) / seconds;
}

/* The file, every block of it written. */
static int make_file(struct contest *c)
{
    struct mr_places where = {.file_bytes = c->file_bytes, .align = 512};
    struct mr_raw_result out;
    struct mr_error err = {0};
    int fd = open(c->path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    struct mr_raw_job job = {.name = c->path,
                             .fd = fd,
                             .write = 1,
                             .sync = 1,
                             .depth = 16,
                             .max_len = 1 << 20,
                             .place = mr_place_in_order,
                             .place_ctx = &where,
                             .n_ops = c->file_bytes >> 20};
    if (fd < 0) {
        fprintf(stderr, "%s: %s\n", c->path, strerror(errno));
        return -1;
    }
    int r = mr_size_split_parse("1M/100", &where.split, &err);
    if (!r)
        r = mr_raw_io_run(c->io, &job, &out, &err);
    if (r)
        fprintf(stderr, "%s\n", err.text);
    close(fd);
    return r;
}

static const char *unit(const struct pattern *p)
{
    return p->count_ops ? "operations/s" : "MB/s";
}

/* 1: they agree. */
static int compare(struct contest *c, unsigned rounds)
{
    struct side huge = {c, 0};
    const struct contender ours = {"millrace", run_ours, &huge}, peer = {"fio", run_fio, &huge};
    struct comparison is;
    if (alternate(&ours, &peer, rounds, &is))
        return 0;
    double off = fabs(is.ratio.median - 1);
    double noise = fmax(fabs(is.control.q1 - 1), fabs(is.control.q3 - 1));
    alternate_print(c->p->name, &ours, &peer, &is, 0);
    printf("    %s: %s; %s\n", c->p->name, unit(c->p),
           off <= 0.05    ? "agrees within 5%"
           : off <= noise ? "agrees within the A/A spread, which is wider than 5%"
                          : "DISAGREES");
    fflush(stdout);
    return off <= 0.05 || off <= noise;
}

/* What ordinary pages cost, and fio with its default. */
static void compare_pages(struct contest *c, unsigned rounds)
{
    struct side huge = {c, 0}, ordinary = {c, 1};
    const struct contender ours = {"huge pages", run_ours, &huge},
                           plain = {"ordinary", run_ours, &ordinary},
                           peer = {"fio", run_fio, &ordinary};
    struct comparison is;
    if (c->p->write || !strcmp(c->p->split, "4K/100"))
        return;
    if (!alternate(&ours, &plain, rounds, &is))
        alternate_print(c->p->name, &ours, &plain, &is, 0);
    if (!alternate(&plain, &peer, rounds, &is))
        alternate_print(c->p->name, &plain, &peer, &is, 0);
    printf("    %s: %s; no target\n", c->p->name, unit(c->p));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct contest c = {.file_bytes = (uint64_t)(argc > 2 ? atoi(argv[2]) : 1024) << 20};
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 9;
    const char *only = argc > 4 ? argv[4] : "";
    struct mr_error err = {0};
    if (argc < 2 || argc > 5 || !c.file_bytes) {
        fputs("usage: compare_fio DIR [SIZE_MB [ROUNDS [PATTERN]]]\n", stderr);
        return 2;
    }
    if (system("command -v fio >/dev/null")) {
        puts("fio is not installed: not compared");
        return 1;
    }
    snprintf(c.path, sizeof c.path, "%s/.compare_fio.dat", argv[1]);
    if (mr_raw_io_open(MR_RAW_URING, MAX_DEPTH, BUFFERS, &c.io, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int agree = !make_file(&c);
    for (unsigned i = 0; i < N_PATTERNS; i++) {
        c.p = &patterns[i];
        if (!strstr(c.p->name, only))
            continue;
        agree &= compare(&c, rounds);
        compare_pages(&c, rounds);
    }
    unlink(c.path);
    mr_raw_io_close(c.io);
    return !agree;
}
