/* engine.h - the parts of a struct mr_checkpoint, shared by engine.c (what the caller's thread
 * does) and background.c (what runs in the background).  Users see millrace/checkpoint.h. */
#ifndef MR_CKPT_ENGINE_H
#define MR_CKPT_ENGINE_H

#include "ckpt_plan.h"
#include "drain.h"
#include "file_image.h"
#include "saver.h"
#include "snapshot.h"
#include "tier.h"

#include <pthread.h>

#define MR_MAX_BACKLOG 8 /* checkpoints of this run that wait for the drain */

/* Slot of the ring of records that checkpoint number `i` has. */
#define MR_RECORD_SLOT(i) ((i) % MR_CHECKPOINT_N_RECORDS)

struct mr_ckpt_work {
    uint64_t record; /* number of the checkpoint; MR_NO_RECORD: of an earlier run */
    uint64_t step;
    struct mr_ckpt_mark mark;
    unsigned shot;
    int is_last_leftover;
};
#define MR_NO_RECORD UINT64_MAX

struct mr_checkpoint {
    /* Set at opening: */
    struct mr_checkpoint_opts o;
    char *dir, *drain_dir, *prefix;
    uint64_t run; /* its identity, in every mark */
    unsigned n_arrays;
    struct mr_ckpt_plan plan;
    struct mr_file_image im;
    struct mr_snapshot *snap; /* lazy only */
    struct mr_saver *saver;
    struct mr_drain *drain;
    int has_fast, has_slow; /* tiers that are open */
    pthread_t save_thread, drain_thread;
    int has_save_thread, has_drain_thread;

    /* A tier belongs to the thread that set its flag in `busy`, below. */
    struct mr_tier tiers[MR_N_TIERS];
    struct mr_ckpt_list drained; /* on the fast tier, and that version or a newer one on the slow
                                  * tier; fast tier's flag */
    int64_t latest_slow; /* last one of this run on the slow tier, -1: none; slow tier's flag */

    pthread_mutex_t mu;
    pthread_cond_t changed; /* anything below */
    int stop;
    int busy[MR_N_TIERS];
    int shot_used[MR_MAX_SHOTS];
    struct mr_ckpt_work saves[MR_MAX_SHOTS], drains[MR_MAX_BACKLOG];
    unsigned n_saves, n_drains;
    struct mr_ckpt_list leftover; /* undrained, of earlier runs; `drains` go before them */
    int newest_leftover_taken;
    struct mr_checkpoint_record records[MR_CHECKPOINT_N_RECORDS];
    uint64_t begun_ns[MR_CHECKPOINT_N_RECORDS];
    struct mr_checkpoint_stats stats;
    uint64_t last_generation[MR_N_TIERS]; /* of stats.last_fast and last_slow */
    struct mr_error pending;              /* a failure that no call has returned yet */

    /* The caller's thread: */
    uint64_t generation; /* the largest so far, of this run and in the folders */
};

/* As mr_checkpoint_open; tests see (and break) every change to files through `hook`. */
int mr_checkpoint_open_hooked(const struct mr_array *arrays, unsigned n_arrays,
                              const struct mr_checkpoint_opts *opts, const struct mr_out_hook *hook,
                              struct mr_checkpoint **out, struct mr_error *err);

/* background.c */
/* Save one: fast tier, or the slow one if that fails; then hand it to the drain.  The record gets
 * the result. */
int mr_ckpt_save(struct mr_checkpoint *c, const struct mr_ckpt_work *w);
/* List what the fast tier has and the slow one has not; the list has no limit. */
int mr_ckpt_find_undrained(struct mr_checkpoint *c);
void *mr_ckpt_save_main(void *arg);
void *mr_ckpt_drain_main(void *arg);

#endif
