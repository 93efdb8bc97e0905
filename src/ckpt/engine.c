/* engine.c - checkpoints, as the thread that trains sees them.
 *
 * Opening takes all the memory and starts all the threads.  After that begin() only finds a free
 * buffer and points the copying threads at it (lazy), or does the work itself (burst, sync).
 * background.c has what follows.
 *
 * Records are a ring; checkpoint number i has slot i mod its length.
 *
 * Lock: c->mu, see engine.h; not held across I/O or copying. */
#include "engine.h"

#include "ckpt_format.h"
#include "clock.h"
#include "errtext.h"
#include "sized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define DEFAULT_KEEP  5
#define DEFAULT_DEPTH 4
#define MAX_DEPTH     64
#define MAX_COPIERS   16

/* Fill in defaults and refuse nonsense. */
static int set_options(struct mr_checkpoint *c, const struct mr_checkpoint_opts *opts,
                       struct mr_error *err)
{
    if (!opts || !opts->dir || !*opts->dir)
        return mr_fail(err, -EINVAL, "checkpoint: no folder was given");
    struct mr_checkpoint_opts *o = &c->o;
    *o = *opts;
    o->prefix = o->prefix ? o->prefix : "model.ckpt";
    o->keep = o->keep ? o->keep : DEFAULT_KEEP;
    o->buffers = o->buffers ? o->buffers : MR_MAX_SHOTS;
    o->copy_threads = o->copy_threads ? o->copy_threads : 1;
    o->io_depth = o->io_depth ? o->io_depth : DEFAULT_DEPTH;
    if (!mr_ckpt_prefix_is_valid(o->prefix))
        return mr_fail(err, -EINVAL, "checkpoint: \"%s\" is no prefix for files", o->prefix);
    if ((unsigned)o->mode > MR_CHECKPOINT_SYNC || !mr_ckpt_format_row(o->format) ||
        (unsigned)o->if_busy > MR_IF_BUSY_SKIP || o->buffers > MR_MAX_SHOTS ||
        o->copy_threads > MAX_COPIERS || o->io_depth > MAX_DEPTH)
        return mr_fail(err, -EINVAL, "checkpoint: an option is out of its range");
    c->dir = strdup(o->dir);
    c->drain_dir = o->drain_dir ? strdup(o->drain_dir) : NULL;
    c->prefix = strdup(o->prefix);
    if (!c->dir || !c->prefix || (o->drain_dir && !c->drain_dir))
        return mr_fail(err, -ENOMEM, "checkpoint: no memory");
    o->dir = c->dir;
    o->drain_dir = c->drain_dir;
    o->prefix = c->prefix;
    return 0;
}

/* Without a fast tier that is missing or broken, the slow tier does.  A fast tier that belongs to
 * another run, or that we may not write, is a mistake that the user has to hear of. */
static int can_do_without(int code)
{
    return code != -EBUSY && code != -ENOMEM && code != -EINTR && code != -EACCES &&
           code != -EPERM && code != -ELOOP;
}

static int open_tiers(struct mr_checkpoint *c, const struct mr_out_hook *hook, struct mr_error *err)
{
    struct mr_tier_opts t = {.path = c->dir,
                             .prefix = c->prefix,
                             .format = c->o.format,
                             .keep = c->drain_dir ? MR_NONE : c->o.keep,
                             .device = c->o.storage,
                             .hook = hook,
                             .which = MR_TIER_FAST,
                             .lease = {.silence_ms = c->o.lease_silence_ms,
                                       .waiting = c->o.waiting,
                                       .ctx = c->o.waiting_ctx}};
    struct mr_error fast_err = {0};
    int r = mr_tier_open(&t, &c->tiers[MR_TIER_FAST], &fast_err);
    c->has_fast = !r;
    if (!c->drain_dir || (r && !can_do_without(r))) {
        if (r)
            mr_fail(err, r, "%s", fast_err.text);
        return r;
    }
    if (r) /* the slow one does */
        snprintf(c->stats.notice, sizeof c->stats.notice, "no fast tier: %.200s", fast_err.text);
    t.path = c->drain_dir;
    t.keep = c->o.keep;
    t.device = c->o.drain_storage;
    t.which = MR_TIER_SLOW;
    r = mr_tier_open(&t, &c->tiers[MR_TIER_SLOW], err);
    c->has_slow = !r;
    return r;
}

static uint64_t memory_of(const struct mr_checkpoint_opts *o, const struct mr_file_image *im)
{
    int lazy = o->mode == MR_CHECKPOINT_LAZY;
    uint64_t read_back = o->keep == MR_NONE ? 0 : MR_CHUNK_BYTES;
    return (lazy ? mr_snapshot_memory(im, o->buffers) : 0) +
           mr_saver_memory(im, lazy, o->io_depth) + read_back +
           (o->drain_dir ? MR_CHUNK_BYTES : 0) + sizeof(struct mr_checkpoint);
}

/* Does a folder hold checkpoints of an earlier run? */
static int must_be_fresh(const struct mr_checkpoint *c, struct mr_error *err)
{
    for (unsigned i = 0; i < MR_N_TIERS; i++)
        if ((i == MR_TIER_FAST ? c->has_fast : c->has_slow) && c->tiers[i].ours >= 0)
            return mr_fail(err, -EEXIST,
                           "%s: holds checkpoints of an earlier run, the last of step %lld; resume "
                           "that run or take another folder",
                           c->tiers[i].o.path, (long long)c->tiers[i].ours);
    return 0;
}

/* Take the largest generation and the last steps from the folders. */
static void look_back(struct mr_checkpoint *c)
{
    for (unsigned i = 0; i < MR_N_TIERS; i++) {
        int64_t *last = i == MR_TIER_FAST ? &c->stats.last_fast : &c->stats.last_slow;
        const struct mr_ckpt_item *newest = mr_tier_newest(&c->tiers[i]);
        *last = newest ? (int64_t)newest->step : -1;
        c->last_generation[i] = newest ? newest->mark.generation : 0;
        if (c->tiers[i].generation > c->generation)
            c->generation = c->tiers[i].generation;
    }
    c->stats.last_verified = c->latest_slow = -1;
    c->stats.memory_bytes = memory_of(&c->o, &c->im);
}

/* An earlier run may have kept more, or had no room to remove old ones.  What fails here is tried
 * again after the next save. */
static void prune_tiers(struct mr_checkpoint *c)
{
    for (unsigned i = 0; i < MR_N_TIERS; i++) {
        struct mr_error err = {0};
        if (c->tiers[i].dir && mr_tier_prune(&c->tiers[i], &err) < 0 && !c->stats.notice[0])
            snprintf(c->stats.notice, sizeof c->stats.notice, "%.250s", err.text);
    }
}

static int start_threads(struct mr_checkpoint *c)
{
    int r = 0;
    if (c->snap) {
        r = -pthread_create(&c->save_thread, NULL, mr_ckpt_save_main, c);
        c->has_save_thread = !r;
    }
    if (!r && c->has_fast && c->has_slow) {
        r = -pthread_create(&c->drain_thread, NULL, mr_ckpt_drain_main, c);
        c->has_drain_thread = !r;
    }
    return r;
}

/* Allocate the memory and start the threads; the tiers are open. */
static int build(struct mr_checkpoint *c)
{
    int lazy = c->o.mode == MR_CHECKPOINT_LAZY;
    int r = lazy ? mr_snapshot_open(&c->im, c->o.buffers, c->o.copy_threads, &c->snap) : 0;
    if (!r)
        r = mr_saver_open(&c->plan, &c->im, c->snap, c->o.io_depth, &c->saver);
    if (!r && c->has_slow)
        r = mr_drain_open(c->o.drain_bytes_per_s, &c->drain);
    if (!r && c->has_slow && c->has_fast)
        r = mr_ckpt_find_undrained(c);
    if (!r)
        r = start_threads(c);
    return r;
}

static void destroy(struct mr_checkpoint *c)
{
    pthread_mutex_lock(&c->mu);
    c->stop = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
    if (c->has_save_thread)
        pthread_join(c->save_thread, NULL);
    if (c->has_drain_thread)
        pthread_join(c->drain_thread, NULL);
    mr_saver_close(c->saver);
    mr_drain_close(c->drain);
    mr_snapshot_close(c->snap);
    for (unsigned i = 0; i < MR_N_TIERS; i++)
        mr_tier_close(&c->tiers[i]);
    mr_ckpt_list_fini(&c->drained);
    mr_ckpt_list_fini(&c->leftover);
    mr_file_image_fini(&c->im);
    mr_ckpt_plan_fini(&c->plan);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->mu);
    free(c->dir);
    free(c->drain_dir);
    free(c->prefix);
    free(c);
}

static int set_run(struct mr_checkpoint *c, struct mr_error *err)
{
    c->run = c->o.run;
    while (!c->run)
        if (getrandom(&c->run, sizeof c->run, 0) != sizeof c->run && errno != EINTR)
            return mr_fail(err, -EIO, "checkpoint: no random numbers: %s", mr_errno_text(errno));
    return 0;
}

int mr_checkpoint_open_hooked(const struct mr_array *arrays, unsigned n_arrays,
                              const struct mr_checkpoint_opts *opts, const struct mr_out_hook *hook,
                              struct mr_checkpoint **out, struct mr_error *err)
{
    struct mr_checkpoint *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, -ENOMEM, "checkpoint: no memory");
    c->n_arrays = n_arrays;
    pthread_mutex_init(&c->mu, NULL);
    pthread_cond_init(&c->changed, NULL);
    int r = set_options(c, opts, err);
    if (!r)
        r = mr_ckpt_plan_init(&c->plan, arrays, n_arrays, c->o.format, c->o.packed, err);
    if (!r &&
        mr_file_image_init(&c->im, &c->plan.bundle.tensors, c->plan.data_bytes, c->plan.head_bytes))
        r = mr_fail(err, -ENOMEM, "checkpoint: no memory");
    if (!r)
        r = open_tiers(c, hook, err);
    if (!r && c->o.fresh)
        r = must_be_fresh(c, err);
    if (!r)
        r = set_run(c, err);
    if (!r) {
        look_back(c);
        prune_tiers(c);
        r = build(c);
        if (r)
            mr_fail(err, r, "checkpoint: cannot start: %s (%llu MB of buffers)", mr_errno_text(r),
                    (unsigned long long)(c->stats.memory_bytes / 1000000));
    }
    if (r) {
        destroy(c);
        return r;
    }
    *out = c;
    return 0;
}

int mr_checkpoint_open_sized(const struct mr_array *arrays, unsigned n_arrays,
                             const struct mr_checkpoint_opts *opts, size_t size,
                             struct mr_checkpoint **out, struct mr_error *err)
{
    struct mr_checkpoint_opts o;
    int r = mr_take_sized(&o, sizeof o, opts, size, "mr_checkpoint_opts", err);
    return r ? r : mr_checkpoint_open_hooked(arrays, n_arrays, &o, NULL, out, err);
}

int mr_checkpoint_memory_sized(const struct mr_array *arrays, unsigned n_arrays,
                               const struct mr_checkpoint_opts *opts, size_t size, uint64_t *bytes,
                               struct mr_error *err)
{
    struct mr_checkpoint_opts o;
    int r = mr_take_sized(&o, sizeof o, opts, size, "mr_checkpoint_opts", err);
    if (r)
        return r;
    struct mr_checkpoint *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, -ENOMEM, "checkpoint: no memory");
    r = set_options(c, &o, err);
    if (!r)
        r = mr_ckpt_plan_init(&c->plan, arrays, n_arrays, c->o.format, c->o.packed, err);
    if (!r) {
        r = mr_file_image_init(&c->im, &c->plan.bundle.tensors, c->plan.data_bytes,
                               c->plan.head_bytes);
        if (r)
            mr_fail(err, r, "checkpoint: no memory");
        else
            *bytes = memory_of(&c->o, &c->im);
        mr_file_image_fini(&c->im);
        mr_ckpt_plan_fini(&c->plan);
    }
    free(c->dir);
    free(c->drain_dir);
    free(c->prefix);
    free(c);
    return r;
}

/* Hand a failure to the caller.  c->mu is held. */
static int return_pending(struct mr_checkpoint *c, struct mr_error *err)
{
    int r = mr_fail(err, c->pending.code, "%s", c->pending.text);
    c->pending = (struct mr_error){0};
    return r;
}

/* Find a free buffer, and room in the drain's queue; wait for them unless the options say skip.
 * c->mu is held.  The buffer's number, or -1: busy. */
static int find_shot(struct mr_checkpoint *c)
{
    unsigned n = c->snap ? c->o.buffers : 1;
    for (uint64_t since = 0;;) {
        int room = !c->has_drain_thread || c->n_drains + c->n_saves < MR_MAX_BACKLOG;
        for (unsigned i = 0; room && i < n; i++)
            if (!c->shot_used[i]) {
                c->stats.waited_s += since ? (double)(mr_clock_ns() - since) / 1e9 : 0;
                return (int)i;
            }
        if (c->o.if_busy == MR_IF_BUSY_SKIP)
            return -1;
        if (!since) {
            since = mr_clock_ns();
            c->stats.waited++; /* now, so that others can see it waiting */
        }
        pthread_cond_wait(&c->changed, &c->mu);
    }
}

/* Set the mark of the next checkpoint.  If one is still being copied, its mark is copied first. */
static void set_mark(struct mr_checkpoint *c, struct mr_ckpt_work *w)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    c->generation = us > c->generation ? us : c->generation + 1;
    w->mark = (struct mr_ckpt_mark){.generation = c->generation, .run = c->run};
    if (c->snap)
        mr_snapshot_before_write(c->snap, c->plan.mark_tensor);
    const uint64_t mark[MR_MARK_WORDS] = {MR_MARK_MAGIC, w->step, c->generation, c->run};
    memcpy(c->plan.mark, mark, sizeof mark);
}

static uint64_t new_record(struct mr_checkpoint *c, uint64_t step, uint64_t now)
{
    uint64_t i = c->stats.begun++;
    c->records[MR_RECORD_SLOT(i)] = (struct mr_checkpoint_record){
        .step = step, .snapshot_s = -1, .durable_fast_s = -1, .durable_slow_s = -1};
    c->begun_ns[MR_RECORD_SLOT(i)] = now;
    return i;
}

/* To the record of the last checkpoint begun. */
static void add_stall(struct mr_checkpoint *c, uint64_t ns)
{
    pthread_mutex_lock(&c->mu);
    c->records[MR_RECORD_SLOT(c->stats.begun - 1)].stall_s += (double)ns / 1e9;
    pthread_mutex_unlock(&c->mu);
}

/* Burst and sync: the caller saves it. */
static int save_now(struct mr_checkpoint *c, const struct mr_ckpt_work *w, struct mr_error *err)
{
    int r = mr_ckpt_save(c, w);
    if (!r && c->o.mode == MR_CHECKPOINT_SYNC)
        r = mr_checkpoint_wait(c, MR_CHECKPOINT_DURABLE_SLOW, err);
    uint64_t now = mr_clock_ns();
    pthread_mutex_lock(&c->mu);
    struct mr_checkpoint_record *rec = &c->records[MR_RECORD_SLOT(w->record)];
    rec->snapshot_s = (double)(now - c->begun_ns[MR_RECORD_SLOT(w->record)]) / 1e9;
    if (r && c->pending.code)
        return_pending(c, err);
    pthread_mutex_unlock(&c->mu);
    return r;
}

int mr_checkpoint_begin(struct mr_checkpoint *c, uint64_t step, struct mr_error *err)
{
    uint64_t start = mr_clock_ns();
    struct mr_ckpt_work w = {.step = step};
    pthread_mutex_lock(&c->mu);
    if (step > INT64_MAX && !c->pending.code)
        mr_fail(&c->pending, -EINVAL, "step %llu: steps end at 2^63 - 1", (unsigned long long)step);
    int r = c->pending.code ? return_pending(c, err) : 0;
    int shot = r ? -1 : find_shot(c);
    if (shot < 0) {
        c->stats.skipped += !r;
        pthread_mutex_unlock(&c->mu);
        return r ? r : 1;
    }
    w.shot = (unsigned)shot;
    w.record = new_record(c, step, start);
    c->shot_used[shot] = c->snap != NULL;
    pthread_mutex_unlock(&c->mu);
    set_mark(c, &w);
    if (c->snap) {
        mr_snapshot_begin(c->snap, w.shot);
        pthread_mutex_lock(&c->mu);
        c->saves[c->n_saves++] = w;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->mu);
    } else {
        r = save_now(c, &w, err);
    }
    add_stall(c, mr_clock_ns() - start);
    return r;
}

void mr_checkpoint_before_write(struct mr_checkpoint *c, unsigned index)
{
    if (!c->snap || mr_snapshot_is_done(c->snap) || index >= c->n_arrays)
        return;
    uint64_t start = mr_clock_ns();
    mr_snapshot_before_write(c->snap, c->plan.of_array[index]);
    add_stall(c, mr_clock_ns() - start);
}

/* Has record r reached `level`? */
static int reached(const struct mr_checkpoint *c, const struct mr_checkpoint_record *r,
                   enum mr_checkpoint_level level)
{
    if (level == MR_CHECKPOINT_DURABLE_SLOW && c->has_slow)
        return r->durable_slow_s >= 0;
    return r->durable_fast_s >= 0 || r->durable_slow_s >= 0;
}

int mr_checkpoint_wait(struct mr_checkpoint *c, enum mr_checkpoint_level level,
                       struct mr_error *err)
{
    if (level == MR_CHECKPOINT_SNAPSHOTTED && c->snap)
        mr_snapshot_finish(c->snap);
    pthread_mutex_lock(&c->mu);
    int r = 0;
    if (c->stats.begun && level != MR_CHECKPOINT_SNAPSHOTTED) {
        struct mr_checkpoint_record *rec = &c->records[MR_RECORD_SLOT(c->stats.begun - 1)];
        while (!reached(c, rec, level) && !rec->code)
            pthread_cond_wait(&c->changed, &c->mu);
        r = reached(c, rec, level) ? 0 : rec->code;
    }
    if (c->pending.code) /* its own error, or that of one before it */
        r = return_pending(c, err);
    else if (r) /* begin has returned it */
        mr_fail(err, r, "the checkpoint was not saved: %s", mr_errno_text(r));
    pthread_mutex_unlock(&c->mu);
    return r;
}

void mr_checkpoint_get_stats_sized(struct mr_checkpoint *c, struct mr_checkpoint_stats *out,
                                   size_t size)
{
    pthread_mutex_lock(&c->mu);
    c->stats.saving = c->n_saves;
    mr_give_sized(out, size, &c->stats, sizeof c->stats);
    pthread_mutex_unlock(&c->mu);
}

int mr_checkpoint_get_sized(struct mr_checkpoint *c, uint64_t i, struct mr_checkpoint_record *out,
                            size_t size)
{
    pthread_mutex_lock(&c->mu);
    int there = i < c->stats.begun && i + MR_CHECKPOINT_N_RECORDS >= c->stats.begun;
    if (there)
        mr_give_sized(out, size, &c->records[MR_RECORD_SLOT(i)], sizeof *c->records);
    pthread_mutex_unlock(&c->mu);
    return there ? 0 : -ENOENT;
}

int mr_checkpoint_close(struct mr_checkpoint *c, struct mr_error *err)
{
    if (!c)
        return 0;
    pthread_mutex_lock(&c->mu);
    while (c->n_saves || c->stats.drain_waiting)
        pthread_cond_wait(&c->changed, &c->mu);
    int r = c->pending.code;
    if (r)
        mr_fail(err, r, "%s", c->pending.text);
    pthread_mutex_unlock(&c->mu);
    destroy(c);
    return r;
}
