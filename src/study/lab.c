/* lab.c - see lab.h. */
#include "lab.h"

#include "sample_set.h"
#include "cache_sweep.h"
#include "clock.h"
#include "errtext.h"
#include "io_account.h"
#include "read_ahead.h"

#include <millrace/trace.h>

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define AHEAD       3   /* batches fetched and not drawn: prefetch, being filled, its reads */
#define LATE        1.1 /* times the time that was foreseen */
#define STATE_BYTES ((uint64_t)704 << 20)

double mr_lab_now(void)
{
    return (double)mr_clock_ns() / 1e9;
}

int mr_lab_stopped(struct mr_lab *lab)
{
    return lab->o->should_stop && lab->o->should_stop(lab->o->ctx);
}

int mr_lab_should_stop(void *lab)
{
    return mr_lab_stopped(lab);
}

/* A mark in a trace of the study: which experiment begins, on which storage.  Progress reports
 * repeat themselves; a mark does not. */
static void mark(struct mr_lab *lab, const char *what)
{
    char text[sizeof lab->marked];
    snprintf(text, sizeof text, "%.15s: %.46s", lab->experiment, what);
    if (!strcmp(text, lab->marked))
        return;
    memcpy(lab->marked, text, sizeof text);
    mr_trace_mark(text);
}

void mr_lab_say(struct mr_lab *lab, const char *fmt, ...)
{
    char what[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    double spent = mr_lab_now() - lab->started_s;
    if (spent > lab->budget_s)
        spent = lab->budget_s;
    struct mr_study_progress now = {lab->experiment, what, lab->before_s + spent, lab->foreseen_s};
    if (lab->o->progress)
        lab->o->progress(lab->o->ctx, &now);
    mark(lab, what);
}

void mr_lab_point(struct mr_lab *lab, struct mr_json *point)
{
    mr_json_append(lab->points, point);
}

/* Append formatted text to one of the result's lists, unless it is there. */
static void note(struct mr_json *list, const char *fmt, va_list args)
{
    char text[3 * PATH_MAX];
    vsnprintf(text, sizeof text, fmt, args);
    for (size_t i = 0; list && i < mr_json_len(list); i++) {
        const char *have = mr_json_text(mr_json_item(list, i));
        if (have && !strcmp(have, text))
            return;
    }
    if (list)
        mr_json_append(list, mr_json_string(text));
}

void mr_lab_warn(struct mr_lab *lab, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    note(lab->warnings, fmt, args);
    va_end(args);
}

void mr_lab_command(struct mr_lab *lab, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    note(lab->commands, fmt, args);
    va_end(args);
}

const char *mr_lab_sample(const struct mr_lab *lab, char *buf, size_t cap)
{
    return mr_dataset_blob_name(lab->o->data, 0, buf, cap) > 0 ? buf : lab->o->data_path;
}

const char *mr_lab_quote(const char *path, char *buf, size_t cap)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    size_t n = 0;
    if (path[0] && strspn(path, plain) == strlen(path)) {
        snprintf(buf, cap, "%s", path);
        return buf;
    }
    buf[n++] = '\'';
    for (; *path && n + 6 < cap; path++)
        if (*path == '\'') {
            memcpy(buf + n, "'\\''", 4);
            n += 4;
        } else {
            buf[n++] = *path;
        }
    memcpy(buf + n, "'", 2);
    return buf;
}

const char *mr_lab_name_input(struct mr_lab *lab)
{
    const char *path = lab->o->data_path ? lab->o->data_path : "";
    int n = snprintf(lab->input, sizeof lab->input, "--data ");
    mr_lab_quote(path, lab->input + n, sizeof lab->input - (size_t)n);
    return lab->input;
}

void mr_lab_note_rate(struct mr_lab *lab, int decoded, int emulated, double per_s)
{
    if (decoded)
        lab->known.decoded_per_s = fmax(lab->known.decoded_per_s, per_s);
    if (!emulated) /* what was decoded was read, too */
        lab->known.read_per_s = fmax(lab->known.read_per_s, per_s);
}

unsigned mr_lab_threads(const struct mr_lab *lab, const struct mr_lab_storage *s, unsigned out[4])
{
    static const unsigned grid[] = {1, 2, 4, 8}, ends[] = {1, 8};
    int whole = lab->o->full || s->whole_grid;
    memcpy(out, whole ? grid : ends, whole ? sizeof grid : sizeof ends);
    return whole ? 4 : 2;
}

void mr_lab_training(struct mr_lab *lab, double step_s, const struct mr_lab_storage *s,
                     struct mr_train_opts *out)
{
    *out = (struct mr_train_opts){
        .data = lab->o->data,
        .pipe = {.batch = 64,
                 .prefetch = 1,
                 .io_depth = 32,
                 .seed = lab->o->seed,
                 .storage = s ? s->device : NULL,
                 .should_stop = lab->o->should_stop,
                 .should_stop_ctx = lab->o->ctx},
        .decode = {.width = 224, .height = 224},
        .device = {.kind = MR_EMULATED, .step_s = step_s, .n = 1},
        .epochs = 1,
    };
    snprintf(out->device.name, sizeof out->device.name, "emulated:%g", step_s);
    uint64_t n = mr_dataset_size(lab->o->data);
    if (n < out->pipe.batch)
        out->pipe.batch = (unsigned)n;
}

/* Is it told to us what is cached?  The first file that can be looked at knows. */
static int may_see_the_cache(const struct mr_lab *lab)
{
    struct mr_cache_state st;
    for (uint64_t i = 0; i < mr_dataset_size(lab->o->data) && i < 64; i++)
        if (!mr_dataset_cache(lab->o->data, i, 0, &st, NULL))
            return st.cached_bytes >= 0;
    return 1;
}

void mr_lab_check_cold(struct mr_lab *lab, const char *cold)
{
    if (cold && !strcmp(cold, "unproven"))
        mr_lab_warn(
            lab,
            "That the files were not in a cache when they were read cold is unproven: %s. "
            "Such figures may be the cache's, not the storage's.",
            may_see_the_cache(lab)
                ? "what lies below their file system (a loop device, another file system, "
                  "a server) may have a cache of its own, a file could not be evicted, or others "
                  "than those evicted replaced broken ones"
                : "only the files' owner or root may see that");
}

uint64_t mr_lab_make_cold(struct mr_lab *lab, const struct mr_pipeline_opts *pipe,
                          uint64_t n_batches, double box_s, struct mr_lab_input *out)
{
    struct mr_cache_sweep sweep = {0};
    int64_t n = mr_cache_sweep_batches(&sweep, lab->o->data, pipe, n_batches, box_s, 1);
    *out = (struct mr_lab_input){.cold = n < 0 || sweep.n_unproven ? "unproven" : "data",
                                 .all_evicted =
                                     sweep.files + sweep.n_failed >= mr_dataset_size(lab->o->data),
                                 .late_share = NAN};
    mr_lab_check_cold(lab, out->cold);
    return n < 0 ? 0 : (uint64_t)n;
}

void mr_lab_note_replaced(struct mr_lab *lab, struct mr_lab_input *input, uint64_t n)
{
    if (!n || !input->cold || input->all_evicted)
        return;
    input->cold = "unproven";
    mr_lab_check_cold(lab, input->cold);
}

int mr_lab_make_ready(struct mr_lab *lab, const struct mr_train_opts *t, struct mr_lab_input *out)
{
    uint64_t n_batches = t->steps + AHEAD;
    struct mr_read_ahead_opts ahead = {.data = t->data, .pipe = &t->pipe, .n_batches = n_batches};
    struct mr_read_ahead got;
    *out = (struct mr_lab_input){.late_share = NAN};
    if (t->synthetic)
        return 0;
    if (t->pipe.storage)
        return mr_read_ahead(&ahead, &got, lab->err);
    mr_lab_make_cold(lab, &t->pipe, n_batches, 0, out);
    return 0;
}

int mr_lab_train(struct mr_lab *lab, const struct mr_lab_storage *s, const struct mr_train_opts *t,
                 struct mr_lab_input *input, struct mr_train_result *out)
{
    uint64_t before = 0, after = 0;
    int known = !mr_io_read_bytes(&before);
    int r = mr_train_run(t, out, lab->err);
    known = known && !mr_io_read_bytes(&after);
    mr_lab_note_replaced(lab, input, out->stats.replaced);
    if (!r && t->pipe.storage && out->stats.samples) {
        input->late_share = (double)out->stats.overdue / (double)out->stats.samples;
        mr_lab_check_late(lab, s->name,
                          mr_late_share(&out->stats, known ? (int64_t)(after - before) : -1));
    }
    return r;
}

void mr_lab_check_late(struct mr_lab *lab, const char *storage, double late_share)
{
    if (late_share > MR_LATE_SHARE)
        mr_lab_warn(lab,
                    "Emulated %s: files came from the real storage, as memory did not hold them, "
                    "and that is itself too slow for it. Its figures are too low where "
                    "`late_share` in the JSON is above %g.",
                    storage, MR_LATE_SHARE);
}

int mr_lab_skips(struct mr_lab *lab, unsigned k, unsigned n)
{
    int late = !lab->o->full && mr_lab_now() - lab->started_s > LATE * lab->budget_s;
    if (!late || !k || k + 1 >= n)
        return 0;
    lab->n_left_out++;
    return 1;
}

/* Two checkpoints at a time, on two tiers. */
int mr_lab_checkpoint_room(struct mr_lab *lab, struct mr_error *err)
{
    struct statvfs fs;
    uint64_t need = 4 * STATE_BYTES;
    if (statvfs(lab->o->scratch, &fs))
        return mr_fail(err, -errno, "%s: %s", lab->o->scratch, mr_errno_text(errno));
    uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (room < need)
        return mr_fail(
            err, -ENOSPC, "%s has %llu MB free, and checkpoints of this size need %llu MB",
            lab->o->scratch, (unsigned long long)(room >> 20), (unsigned long long)(need >> 20));
    return 0;
}

int mr_lab_make_dir(struct mr_lab *lab, const char *name, char *path, size_t cap)
{
    if (snprintf(path, cap, "%s/%s-XXXXXX", lab->o->scratch, name) >= (int)cap)
        return mr_fail(lab->err, -ENAMETOOLONG, "%s: the path is too long", lab->o->scratch);
    if (!mkdtemp(path))
        return mr_fail(lab->err, -errno, "%s: %s", path, mr_errno_text(errno));
    return 0;
}

void mr_lab_remove_dir(const char *path)
{
    char *const roots[] = {(char *)path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    FTSENT *e;
    while (walk && (e = fts_read(walk)))
        if (e->fts_info == FTS_DP)
            rmdir(e->fts_accpath);
        else if (e->fts_info != FTS_D)
            unlink(e->fts_accpath);
    if (walk)
        fts_close(walk);
}
