/* ckpt_session.h - a small model's checkpoints on a fast tier and a slow one: saved, restored,
 * counted, damaged, held up.  Every step fails the test when it goes wrong. */
#ifndef MR_TEST_CKPT_SESSION_H
#define MR_TEST_CKPT_SESSION_H

#include "ckpt_kit.h"
#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define KIT_LARGE ((uint64_t)9 << 20) /* three chunks and then some */

extern char kit_fast[512], kit_slow[512]; /* the folders of this test */
extern char kit_why[4096];                /* what kit_restored passed over, a line each */
extern struct mr_error kit_err;           /* of the last kit_save_version */

struct tempdir *kit_begin(void **state);
/* `o.dir` is the fast folder unless it says otherwise. */
struct mr_checkpoint *kit_open(struct ckpt_kit *k, struct mr_checkpoint_opts o,
                               const struct mr_out_hook *hook);
/* Let the arrays be those of `step`, as training would; kit_save then begins a checkpoint. */
void kit_update(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step);
void kit_save(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step);
/* Begin a checkpoint of that version of a step: what begin says. */
int kit_save_version(struct mr_checkpoint *c, struct ckpt_kit *k, uint64_t step, uint64_t version);
/* Restore finds that version of that step. */
void kit_assert_found(struct ckpt_kit *k, const char *dir, const char *drain_dir, uint64_t step,
                      uint64_t version);
/* Nothing goes on in the background any more. */
void kit_idle(struct mr_checkpoint *c);
void kit_close(struct mr_checkpoint *c);
/* The restored step, or -errno; its bytes are right. */
int64_t kit_restored(struct ckpt_kit *k, const char *dir, const char *drain_dir);
/* Names in a folder that end in `ending`. */
unsigned kit_count(const char *dir, const char *ending);
int kit_is_there(const char *dir, const char *name);
/* Change one byte of a file. */
void kit_damage(const char *dir, const char *name, off_t at);

/* A file system of that size at `path`, which goes when this program does.  0: not possible
 * here.
 */
int kit_mount_small(const char *path, unsigned bytes);

/* Writers of tier `tag` wait at a gate. */
struct kit_gate {
    pthread_mutex_t mu;
    pthread_cond_t cond;
    int closed;
    unsigned tag;
    unsigned n_at;
};

/* A hook's `before`, with the gate as its context. */
int kit_gate_wait(void *ctx, const struct mr_out_op *op);
void kit_gate_open(struct kit_gate *g);

/* Operations of kind `kind` on tier `tag` fail with `code` while it is set. */
struct kit_breaker {
    atomic_int code;
    unsigned tag;
    enum mr_out_kind kind;
    atomic_int n_times; /* so often at the most; 0: always */
};

int kit_break(void *ctx, const struct mr_out_op *op);

#endif
