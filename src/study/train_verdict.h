/* train_verdict.h - what limited a training run: its account, given to the judge. */
#ifndef MR_TRAIN_VERDICT_H
#define MR_TRAIN_VERDICT_H

#include "trainer.h"
#include "verdict.h"

/* Of a run with these options; the emulated storage, if there was one, is in them. */
void mr_train_judge(const struct mr_train_opts *o, const struct mr_train_result *r,
                    struct mr_verdict *out);

#endif
