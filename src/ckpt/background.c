/* background.c - what happens to a checkpoint after begin: saving, falling back, draining.
 *
 *   save thread (lazy), or the caller (burst, sync)
 *       fast tier's turn:  publish -> settle
 *          full:           remove what is durable on the slow tier, try once more
 *          still fails:    slow tier's turn: publish -> settle
 *                          fast tier's turn: remove an older version of that step; note it
 *   drain thread
 *       slow tier's turn:  copy and publish -> settle, unless the slow tier has one as new
 *       fast tier's turn:  remove what is durable on the slow tier, all but the newest
 *       order:             this run's first; then the newest of earlier runs, then the others,
 *                          oldest first
 *
 * Of two versions of one step the one with the larger generation is newer, on whichever tier it is
 * (ckpt_mark.h).  An older version never replaces a newer one.  If a checkpoint is replaced or
 * removed before its drain, the drain has nothing to do; that is no failure.
 *
 * A checkpoint is reported durable on the slow tier only when its room on the fast tier can be used
 * for the next one.
 *
 * What earlier runs left is copied even if `keep` removes it from the slow tier soon after: a
 * checkpoint leaves the fast tier only when it is durable on the slow one.
 *
 * A tier's turn is a flag.  The thread that sets it owns the tier until its I/O is done.  Turns are
 * never nested, so threads cannot wait for each other in a circle.
 *
 * Lock: c->mu guards flags, queues, records and statistics; never held across I/O. */
#include "engine.h"

#include "clock.h"
#include "errtext.h"

#include <millrace/trace.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct mr_tier *take_turn(struct mr_checkpoint *c, enum mr_checkpoint_tier which)
{
    pthread_mutex_lock(&c->mu);
    while (c->busy[which])
        pthread_cond_wait(&c->changed, &c->mu);
    c->busy[which] = 1;
    pthread_mutex_unlock(&c->mu);
    return &c->tiers[which];
}

static void end_turn(struct mr_checkpoint *c, enum mr_checkpoint_tier which)
{
    pthread_mutex_lock(&c->mu);
    c->busy[which] = 0;
    if (c->tiers[which].verified > c->stats.last_verified)
        c->stats.last_verified = c->tiers[which].verified;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
}

/* The record of checkpoint i, NULL when it has none, or no longer.  c->mu is held. */
static struct mr_checkpoint_record *record_of(struct mr_checkpoint *c, uint64_t i)
{
    if (i == MR_NO_RECORD || i + MR_CHECKPOINT_N_RECORDS < c->stats.begun)
        return NULL;
    return &c->records[MR_RECORD_SLOT(i)];
}

static double since_begin(struct mr_checkpoint *c, uint64_t i, uint64_t now)
{
    return (double)(now - c->begun_ns[MR_RECORD_SLOT(i)]) / 1e9;
}

static void note_error(struct mr_checkpoint *c, const struct mr_error *err)
{
    c->stats.error = *err;
    if (!c->pending.code)
        c->pending = *err;
}

static void note_failed(struct mr_checkpoint *c, const struct mr_ckpt_work *w,
                        const struct mr_error *err)
{
    pthread_mutex_lock(&c->mu);
    struct mr_checkpoint_record *r = record_of(c, w->record);
    if (r)
        r->code = err->code;
    c->stats.failed++;
    note_error(c, err);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
}

static void note_durable(struct mr_checkpoint *c, const struct mr_ckpt_work *w,
                         enum mr_checkpoint_tier which, uint64_t bytes)
{
    uint64_t now = mr_clock_ns();
    pthread_mutex_lock(&c->mu);
    struct mr_checkpoint_record *r = record_of(c, w->record);
    if (r) {
        double s = since_begin(c, w->record, now);
        r->bytes = bytes;
        *(which == MR_TIER_FAST ? &r->durable_fast_s : &r->durable_slow_s) = s;
    }
    if (w->mark.generation >= c->last_generation[which]) {
        c->last_generation[which] = w->mark.generation;
        *(which == MR_TIER_FAST ? &c->stats.last_fast : &c->stats.last_slow) = (int64_t)w->step;
    }
    ++*(which == MR_TIER_FAST ? &c->stats.durable_fast : &c->stats.durable_slow);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
}

/* ---- saving ---- */

/* Remove from the fast tier what is durable on the slow one, all but the newest `stay`. */
static int drop_drained(struct mr_checkpoint *c, size_t stay, struct mr_error *err)
{
    struct mr_tier *fast = &c->tiers[MR_TIER_FAST];
    int r = 0, any = 0;
    while (!r && c->drained.n > stay) {
        uint64_t step = c->drained.items[0].step;
        r = mr_tier_remove(fast, step, err);
        if (!r)
            mr_ckpt_list_remove(&c->drained, 0);
        any |= !r;
    }
    const struct mr_ckpt_item *newest = mr_tier_newest(fast);
    if (!r && any && newest)
        r = mr_tier_settle(fast, newest->step, newest->step, err);
    return r;
}

/* The fast tier has another version of the step now, which the slow tier does not have. */
static void forget_drained(struct mr_checkpoint *c, uint64_t step)
{
    ptrdiff_t at = mr_ckpt_list_find(&c->drained, c->prefix, step, c->o.format);
    if (at >= 0)
        mr_ckpt_list_remove(&c->drained, (size_t)at);
}

/* A failure after a checkpoint is durable loses no checkpoint.  It is noted in the statistics, and
 * no call returns it. */
static void note_settled(struct mr_checkpoint *c, const struct mr_error *err)
{
    if (!err->code)
        return;
    pthread_mutex_lock(&c->mu);
    c->stats.error = *err;
    snprintf(c->stats.notice, sizeof c->stats.notice, "%.250s", err->text);
    pthread_mutex_unlock(&c->mu);
}

/* Publish and settle on one tier.  On the slow tier the caller reports it durable. */
static int save_on(struct mr_checkpoint *c, const struct mr_ckpt_work *w,
                   enum mr_checkpoint_tier which, uint64_t *bytes, struct mr_error *err)
{
    struct mr_tier_source src;
    struct mr_error settle_err = {0};
    struct mr_tier *t = take_turn(c, which);
    mr_saver_source(c->saver, w->shot, &src);
    uint64_t traced = mr_trace_now();
    int r = mr_tier_publish(t, w->step, &w->mark, &src, bytes, err);
    if (r == -ENOSPC && which == MR_TIER_FAST && c->drained.n) {
        struct mr_error again = {0};
        r = drop_drained(c, 0, &again);
        if (!r)
            r = mr_tier_publish(t, w->step, &w->mark, &src, bytes, &again);
        *err = again;
    }
    if (!r) {
        mr_trace_span(MR_PHASE_WRITE, traced, mr_trace_now(), *bytes, MR_NONE);
        if (which == MR_TIER_FAST) {
            forget_drained(c, w->step);
            note_durable(c, w, which, *bytes);
        }
        mr_tier_settle(t, w->step, w->step, &settle_err);
        if (which == MR_TIER_SLOW)
            c->latest_slow = (int64_t)w->step;
    }
    end_turn(c, which);
    note_settled(c, &settle_err);
    return r;
}

/* A checkpoint went straight to the slow tier.  An older version of its step on the fast tier is
 * removed, so that a reader of the fast tier alone does not take it for the newest.  If it cannot
 * be removed, its generation still says that it is older. */
static void drop_older_above(struct mr_checkpoint *c, const struct mr_ckpt_work *w)
{
    if (!c->has_fast)
        return;
    struct mr_tier *fast = take_turn(c, MR_TIER_FAST);
    const struct mr_ckpt_item *above = mr_tier_find(fast, w->step);
    struct mr_error err = {0};
    if (above && above->mark.generation < w->mark.generation) {
        forget_drained(c, w->step);
        mr_tier_remove(fast, w->step, &err);
    }
    end_turn(c, MR_TIER_FAST);
}

static void note_fall_back(struct mr_checkpoint *c, const struct mr_ckpt_work *w, const char *why)
{
    pthread_mutex_lock(&c->mu);
    struct mr_checkpoint_record *r = record_of(c, w->record);
    if (r)
        r->fell_back = 1;
    c->stats.fell_back++;
    snprintf(c->stats.notice, sizeof c->stats.notice,
             "step %llu goes straight to the slow tier: %.190s", (unsigned long long)w->step, why);
    pthread_mutex_unlock(&c->mu);
}

static void queue_drain(struct mr_checkpoint *c, const struct mr_ckpt_work *w)
{
    pthread_mutex_lock(&c->mu);
    while (c->n_drains == MR_MAX_BACKLOG)
        pthread_cond_wait(&c->changed, &c->mu);
    c->drains[c->n_drains++] = *w;
    c->stats.drain_waiting++;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
}

/* Checkpoint w is written: note when its snapshot was complete. */
static void note_snapshot(struct mr_checkpoint *c, const struct mr_ckpt_work *w)
{
    mr_snapshot_finish(c->snap);
    uint64_t ns = mr_snapshot_copied_ns(c->snap, w->shot);
    uint64_t begun = 0;
    pthread_mutex_lock(&c->mu);
    struct mr_checkpoint_record *r = record_of(c, w->record);
    if (r) {
        r->snapshot_s = since_begin(c, w->record, ns);
        begun = c->begun_ns[MR_RECORD_SLOT(w->record)];
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mu);
    mr_trace_lane(1); /* it ran beside the writing, so not on the same line */
    mr_trace_span(MR_PHASE_SNAPSHOT, begun, ns, 0, MR_NONE);
    mr_trace_lane(0);
}

int mr_ckpt_save(struct mr_checkpoint *c, const struct mr_ckpt_work *w)
{
    struct mr_error err = {0}, slow_err = {0};
    uint64_t bytes = 0;
    int r = -ENODEV;
    if (c->has_fast)
        r = save_on(c, w, MR_TIER_FAST, &bytes, &err);
    else
        mr_fail(&err, r, "%s cannot be used", c->dir);
    if (!r && c->has_slow) {
        queue_drain(c, w);
    } else if (r && c->has_slow) {
        note_fall_back(c, w, err.text);
        r = save_on(c, w, MR_TIER_SLOW, &bytes, &slow_err);
        err = slow_err;
        if (!r) {
            drop_older_above(c, w);
            note_durable(c, w, MR_TIER_SLOW, bytes);
        }
    }
    if (r)
        note_failed(c, w, &err);
    return r;
}

void *mr_ckpt_save_main(void *arg)
{
    struct mr_checkpoint *c = arg;
    mr_trace_thread_name("checkpoint");
    pthread_mutex_lock(&c->mu);
    for (;;) {
        while (!c->stop && !c->n_saves)
            pthread_cond_wait(&c->changed, &c->mu);
        if (!c->n_saves)
            break;
        struct mr_ckpt_work w = c->saves[0];
        pthread_mutex_unlock(&c->mu);
        mr_ckpt_save(c, &w);
        note_snapshot(c, &w);
        pthread_mutex_lock(&c->mu);
        memmove(c->saves, c->saves + 1, --c->n_saves * sizeof *c->saves);
        c->shot_used[w.shot] = 0;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

/* ---- draining ---- */

/* The checkpoint that a reader of the slow tier should take: this run's last one, even if one of an
 * earlier run has just arrived there.  The caller has the slow tier's turn. */
static uint64_t latest_below(const struct mr_checkpoint *c)
{
    const struct mr_ckpt_item *newest = mr_tier_newest(&c->tiers[MR_TIER_SLOW]);
    return c->latest_slow >= 0 ? (uint64_t)c->latest_slow : newest ? newest->step : 0;
}

/* `keep` does not count while checkpoints of earlier runs are being drained.  Now it does. */
static void settle_leftovers(struct mr_checkpoint *c, struct mr_error *err)
{
    struct mr_tier *slow = take_turn(c, MR_TIER_SLOW);
    uint64_t latest = latest_below(c);
    if (slow->list.n)
        mr_tier_settle(slow, latest, latest, err);
    end_turn(c, MR_TIER_SLOW);
}

/* Copy it, unless the slow tier has one as new.  0: the slow tier has this version or a newer one.
 */
static int copy_below(struct mr_checkpoint *c, const struct mr_ckpt_work *w, uint64_t *bytes,
                      struct mr_error *settle_err, struct mr_error *err)
{
    int r = 0;
    struct mr_tier *slow = take_turn(c, MR_TIER_SLOW);
    const struct mr_ckpt_item *below = mr_tier_find(slow, w->step);
    if (!below || below->mark.generation < w->mark.generation) {
        uint64_t traced = mr_trace_now();
        r = mr_drain_run(c->drain, &c->tiers[MR_TIER_FAST], slow, w->step, w->mark.generation,
                         bytes, err);
        if (!r) {
            mr_trace_span(MR_PHASE_DRAIN, traced, mr_trace_now(), *bytes, MR_NONE);
            if (w->record != MR_NO_RECORD)
                c->latest_slow = (int64_t)w->step;
            mr_tier_settle(slow, w->step, latest_below(c), settle_err);
        }
    }
    end_turn(c, MR_TIER_SLOW);
    return r;
}

/* 1 when the fast tier still has this very version. */
static int is_above(struct mr_checkpoint *c, const struct mr_ckpt_work *w)
{
    const struct mr_ckpt_item *above = mr_tier_find(&c->tiers[MR_TIER_FAST], w->step);
    return above && above->mark.generation == w->mark.generation;
}

static int drain_one(struct mr_checkpoint *c, const struct mr_ckpt_work *w, struct mr_error *err)
{
    struct mr_ckpt_item item = {.step = w->step, .format = c->o.format, .mark = w->mark};
    struct mr_error settle_err = {0};
    uint64_t bytes = 0;
    int r = copy_below(c, w, &bytes, &settle_err, err);
    if (r == -ESTALE) /* of that step the slow tier has one as new, or the fast tier another one */
        r = 0;
    take_turn(c, MR_TIER_FAST);
    int above = is_above(c, w);
    snprintf(item.prefix, sizeof item.prefix, "%s", c->prefix);
    if (!r && above && mr_ckpt_list_add(&c->drained, &item))
        mr_fail(&settle_err, -ENOMEM, "%s: no memory", c->dir);
    if (!r)
        drop_drained(c, 1, &settle_err);
    end_turn(c, MR_TIER_FAST);
    if (r && !above) /* replaced or dropped while it was being copied */
        r = 0;
    else if (!r && bytes)
        note_durable(c, w, MR_TIER_SLOW, bytes);
    if (w->is_last_leftover)
        settle_leftovers(c, &settle_err);
    note_settled(c, &settle_err);
    return r;
}

/* The next checkpoint to drain; one of this run stays in the queue until it is done.  c->mu is
 * held.
 */
static struct mr_ckpt_work next_drain(struct mr_checkpoint *c)
{
    if (c->n_drains)
        return c->drains[0];
    size_t at = c->newest_leftover_taken ? 0 : c->leftover.n - 1;
    struct mr_ckpt_work w = {.record = MR_NO_RECORD,
                             .step = c->leftover.items[at].step,
                             .mark = c->leftover.items[at].mark,
                             .is_last_leftover = c->leftover.n == 1};
    c->newest_leftover_taken = 1;
    mr_ckpt_list_remove(&c->leftover, at);
    return w;
}

void *mr_ckpt_drain_main(void *arg)
{
    struct mr_checkpoint *c = arg;
    mr_drain_be_modest();
    pthread_mutex_lock(&c->mu);
    for (;;) {
        while (!c->stop && !c->stats.drain_waiting)
            pthread_cond_wait(&c->changed, &c->mu);
        if (!c->stats.drain_waiting)
            break;
        struct mr_ckpt_work w = next_drain(c);
        struct mr_error err = {0};
        pthread_mutex_unlock(&c->mu);
        if (drain_one(c, &w, &err))
            note_failed(c, &w, &err);
        pthread_mutex_lock(&c->mu);
        if (w.record != MR_NO_RECORD)
            memmove(c->drains, c->drains + 1, --c->n_drains * sizeof *c->drains);
        c->stats.drain_waiting--;
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

int mr_ckpt_find_undrained(struct mr_checkpoint *c)
{
    struct mr_tier *fast = &c->tiers[MR_TIER_FAST], *slow = &c->tiers[MR_TIER_SLOW];
    for (size_t i = 0; i < fast->list.n; i++) {
        const struct mr_ckpt_item *item = &fast->list.items[i];
        const struct mr_ckpt_item *below = mr_tier_find(slow, item->step);
        int done = below && below->mark.generation >= item->mark.generation;
        if (mr_ckpt_list_add(done ? &c->drained : &c->leftover, item))
            return -ENOMEM;
        c->stats.drain_waiting += !done;
    }
    return 0;
}
