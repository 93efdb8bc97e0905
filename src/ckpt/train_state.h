/* train_state.h - the names of a training run's state in a checkpoint.
 *
 * A variable W has its moments beside it, as TensorFlow's AdamOptimizer names them.  The small
 * tensors are what a resumed run needs to continue bit for bit; docs/checkpoint-format.md tells
 * more. */
#ifndef MR_TRAIN_STATE_H
#define MR_TRAIN_STATE_H

#define MR_STATE_ADAM_M      "/Adam"             /* behind W: first moment, as W */
#define MR_STATE_ADAM_V      "/Adam_1"           /* behind W: second moment, as W */
#define MR_STATE_BETA1_POWER "beta1_power"       /* float32: beta1 to the power of updates + 1 */
#define MR_STATE_BETA2_POWER "beta2_power"       /* float32 */
#define MR_STATE_GLOBAL_STEP "global_step"       /* int64: updates done */
#define MR_STATE_POSITION    "millrace/consumed" /* int64[2]: epoch, samples of it all ranks had */
#define MR_STATE_ORDER       "millrace/order" /* int64[5]: shuffle, window, batch, world, samples */
#define MR_STATE_SEED        "millrace/seed"  /* uint64: of the order of samples */
#define MR_STATE_RNG         "millrace/rng"   /* uint64[n]: state of other random numbers */
#define MR_STATE_MARK        "millrace/mark"  /* uint64[4]: ckpt_mark.h */
#define MR_STATE_META        "millrace/meta_crc" /* int64[2]: bytes and crc32c of the .meta file */

/* Of checkpoints whose position counts batches, int64[2]: epoch, batch that comes next.  Only to
 * recognise them: without the size of a batch it says nothing. */
#define MR_STATE_BATCH_POSITION "millrace/position"

#endif
