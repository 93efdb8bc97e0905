/* saver.h - the registered arrays as a source for publishing (tier.h). */
#ifndef MR_SAVER_H
#define MR_SAVER_H

#include "ckpt_plan.h"
#include "file_image.h"
#include "snapshot.h"
#include "tier.h"

struct mr_saver;

/* `depth` writes under way at once.  With `snap` the bytes come from its shots; without, straight
 * from the arrays, through a buffer a write.  Borrows all three. */
int mr_saver_open(struct mr_ckpt_plan *plan, const struct mr_file_image *im,
                  struct mr_snapshot *snap, unsigned depth, struct mr_saver **out);
/* NULL is a no-op. */
void mr_saver_close(struct mr_saver *s);
/* Bytes that opening takes. */
uint64_t mr_saver_memory(const struct mr_file_image *im, int snapshots, unsigned depth);

/* The source for one publish: shot `i`, or with no snapshots the arrays, which stay unchanged. */
void mr_saver_source(struct mr_saver *s, unsigned i, struct mr_tier_source *out);

#endif
