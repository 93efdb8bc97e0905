/* ledger.c - see ledger.h.
 *
 * Workers note failures in the batch; the consumer settles a batch when it is delivered, in the
 * order of slots and attempts.  So the ledger, the counts and the moment at which the budget is
 * spent are the same for any number of threads.
 *
 * The budget is a share of the samples that were tried: those delivered and those that were bad.
 * With all of them allowed, only a slot for which nothing at all can be read ends a run. */
#include "ledger.h"

#include "errtext.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum reason {
    R_MISSING,
    R_PERMISSION,
    R_DIRECTORY,
    R_NOT_A_FILE,
    R_EMPTY,
    R_TOO_LARGE,
    R_TRUNCATED,
    R_IO_ERROR,
    R_CORRUPT,
    R_UNSUPPORTED,
    R_OTHER,
    N_REASONS
};
_Static_assert(N_REASONS < MR_N_REASONS, "room for the closing NULL");

static const char *const reason_name[N_REASONS] = {
    [R_MISSING] = "missing",         [R_PERMISSION] = "permission", [R_DIRECTORY] = "directory",
    [R_NOT_A_FILE] = "not a file",   [R_EMPTY] = "empty",           [R_TOO_LARGE] = "too large",
    [R_TRUNCATED] = "truncated",     [R_IO_ERROR] = "I/O error",    [R_CORRUPT] = "corrupt",
    [R_UNSUPPORTED] = "unsupported", [R_OTHER] = "other",
};

static enum reason reason_of(enum mr_stage stage, int code)
{
    int opening = stage == MR_STAGE_OPEN;
    switch (-code) {
    case ENOENT:
    case ENOTDIR:
        return R_MISSING;
    case EACCES:
    case EPERM:
        return R_PERMISSION;
    case EISDIR:
        return R_DIRECTORY;
    case EINVAL:
    case ENXIO:
        return opening ? R_NOT_A_FILE : R_OTHER;
    case ENODATA:
        return opening ? R_EMPTY : R_TRUNCATED;
    case EFBIG:
        return R_TOO_LARGE;
    case EIO:
        return R_IO_ERROR;
    case EBADMSG:
        return R_CORRUPT;
    case ENOTSUP:
        return R_UNSUPPORTED;
    }
    return R_OTHER;
}

int mr_ledger_is_ours(enum mr_stage stage, int code)
{
    if (stage != MR_STAGE_OPEN && stage != MR_STAGE_READ)
        return 0;
    return code == -EMFILE || code == -ENFILE || code == -ENOMEM || code == -EAGAIN;
}

static int append(struct mr_work_batch *b, struct mr_bad_note note)
{
    if (b->n_bad == b->cap_bad) {
        unsigned cap = b->cap_bad ? 2 * b->cap_bad : 16;
        struct mr_bad_note *p = realloc(b->bad, cap * sizeof *p);
        if (!p)
            return -ENOMEM;
        b->bad = p;
        b->cap_bad = cap;
    }
    b->bad[b->n_bad++] = note;
    return 0;
}

static int is_unlimited(const struct mr_pipeline *p)
{
    return !p->o.max_error_count && p->o.max_error_share >= 1;
}

/* With the lock held: no further attempt at the slot.  Where bad samples are unlimited, the search
 * goes on for long, but for one slot at a time: the batch fails with the first. */
static int is_last(const struct mr_pipeline *p, const struct mr_task *t)
{
    if (p->o.on_error_policy == MR_ON_ERROR_FAIL || atomic_load(&p->stopping))
        return 1;
    if (t->attempt + 1 < MR_MAX_ATTEMPTS)
        return 0;
    return !is_unlimited(p) || t->batch->failed || t->attempt + 1 >= MR_MOST_ATTEMPTS;
}

int mr_ledger_note(struct mr_pipeline *p, struct mr_task *t, enum mr_stage stage, int code,
                   const char *detail)
{
    struct mr_work_batch *b = t->batch;
    struct mr_bad_note note = {t->index, t->slot, t->attempt, code, stage, ""};
    snprintf(note.detail, sizeof note.detail, "%s", detail);
    pthread_mutex_lock(&p->pool->mu);
    int dead = is_last(p, t), r = append(b, note);
    if (r || dead)
        b->failed = r ? r : code;
    pthread_mutex_unlock(&p->pool->mu);
    if (r || dead)
        return r ? r : code;
    t->attempt++;
    t->index = mr_order_substitute(&p->order, b->pub.epoch, b->pub.number, t->slot, t->attempt);
    return 0;
}

void mr_ledger_give_up(struct mr_pipeline *p, struct mr_task *t, enum mr_stage stage, int code)
{
    pthread_mutex_lock(&p->pool->mu);
    append(t->batch, (struct mr_bad_note){t->index, t->slot, t->attempt, code, stage, ""});
    t->batch->failed = code;
    pthread_mutex_unlock(&p->pool->mu);
}

static int by_slot(const void *a, const void *b)
{
    const struct mr_bad_note *x = a, *y = b;
    return x->slot != y->slot ? (x->slot < y->slot ? -1 : 1)
                              : (x->attempt > y->attempt) - (x->attempt < y->attempt);
}

static void name_sample(struct mr_pipeline *p, uint64_t index, char *buf, size_t cap)
{
    if (mr_dataset_name(p->data, index, buf, cap) < 0)
        snprintf(buf, cap, "sample %llu", (unsigned long long)index);
}

static const char *words(const struct mr_bad_note *note)
{
    return note->detail[0] ? note->detail : mr_errno_text(note->code);
}

static void report(struct mr_pipeline *p, struct mr_work_batch *b, const struct mr_bad_note *note,
                   enum reason reason, int filled)
{
    char path[PATH_MAX], substitute[PATH_MAX];
    if (!p->o.on_error)
        return;
    name_sample(p, note->index, path, sizeof path);
    name_sample(p, b->pub.samples[note->slot].index, substitute, sizeof substitute);
    struct mr_bad_sample bad = {
        .epoch = b->pub.epoch,
        .batch = b->pub.number,
        .index = note->index,
        .slot = note->slot,
        .attempt = note->attempt,
        .path = path,
        .stage = mr_stage_name(note->stage),
        .reason = reason_name[reason],
        .code = note->code,
        .detail = words(note),
        .substitute = filled ? substitute : NULL,
    };
    p->o.on_error(p->o.on_error_ctx, &bad);
}

static void count(struct mr_pipeline_stats *s, enum reason reason)
{
    unsigned i = 0;
    while (s->errors[i].reason && s->errors[i].reason != reason_name[reason])
        i++;
    s->errors[i].reason = reason_name[reason];
    s->errors[i].n++;
}

/* Bad samples that may have been seen when `n` samples have been tried. */
static double allowance(const struct mr_pipeline *p, uint64_t n)
{
    if (p->o.max_error_count)
        return (double)p->o.max_error_count;
    if (is_unlimited(p))
        return INFINITY;
    uint64_t shard = p->order.cut.n_shard, floor = shard < 1000 ? shard : 1000;
    return p->o.max_error_share < 0 ? 0 : p->o.max_error_share * (double)(n > floor ? n : floor);
}

static int fail_with(struct mr_pipeline *p, const struct mr_work_batch *b, int code,
                     const struct mr_bad_note *last, const char *why)
{
    char path[PATH_MAX];
    name_sample(p, last->index, path, sizeof path);
    return mr_fail(&p->error, code, "%s%s (%s: %s); epoch %llu, batch %llu", why, path,
                   mr_stage_name(last->stage), words(last), (unsigned long long)b->pub.epoch,
                   (unsigned long long)b->pub.number);
}

int mr_ledger_settle(struct mr_pipeline *p, struct mr_work_batch *b)
{
    /* The batch is finished, so its workers are through with it and no lock is needed. */
    if (!b->n_bad && !b->failed)
        return 0;
    if (b->n_bad)
        qsort(b->bad, b->n_bad, sizeof *b->bad, by_slot);
    const struct mr_bad_note *culprit = NULL;
    for (unsigned i = 0; i < b->n_bad; i++) {
        const struct mr_bad_note *note = &b->bad[i];
        enum reason reason = reason_of(note->stage, note->code);
        int last = i + 1 == b->n_bad || b->bad[i + 1].slot != note->slot;
        int filled = b->pub.samples[note->slot].data != NULL;
        report(p, b, note, reason, filled);
        count(&p->stats, reason);
        p->stats.replaced += last && filled;
        p->n_bad++;
        if (last && !filled && !culprit)
            culprit = note;
    }
    if (b->failed && !culprit) /* the slot's own note is what could not be kept */
        return mr_fail(&p->error, b->failed, "no memory to note a bad sample");
    if (b->failed && mr_ledger_is_ours(culprit->stage, culprit->code))
        return fail_with(p, b, culprit->code, culprit, "cannot go on at ");
    if (b->failed)
        return fail_with(p, b, culprit->code, culprit,
                         p->o.on_error_policy == MR_ON_ERROR_FAIL
                             ? "bad sample "
                             : "no readable substitute found; the last tried was ");
    uint64_t tried = p->stats.samples + b->pub.n + p->n_bad;
    if ((double)p->n_bad <= allowance(p, tried))
        return 0;
    char why[160];
    snprintf(why, sizeof why, "too many bad samples: %llu of the first %llu; the last was ",
             (unsigned long long)p->n_bad, (unsigned long long)tried);
    return fail_with(p, b, -EBADMSG, &b->bad[b->n_bad - 1], why);
}
