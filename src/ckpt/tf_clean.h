/* tf_clean.h - what a crash left of a bundle's step that was being replaced in place.
 *
 * Earlier versions saved a bundle's step again under the same stem, its data as shard 1 of 2 (or 0
 * of 1, in turn).  Two temporaries told what to do after a crash:
 *
 *   STEM.data-*-old   the mark of a data file that is being replaced
 *   STEM.meta-old     the older graph, if the new one differs */
#ifndef MR_TF_CLEAN_H
#define MR_TF_CLEAN_H

#include "out_dir.h"

/* Behind the name of the file. */
#define MR_OLD "-old"

/* Remove marked data that .index does not use; give an older graph its name back when .index is the
 * older one too.  As `clean` in ckpt_format.h. */
int mr_tf_clean(struct mr_out_dir *dir, const char *name, const char *temp);

#endif
