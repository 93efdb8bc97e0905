/* fit_profile.h - an emulated device that behaves like the storage that was measured. */
#ifndef MR_FIT_PROFILE_H
#define MR_FIT_PROFILE_H

#include "baseline.h"
#include "device_profile.h"

/* The profile whose device would give the sequential rates, the 16 KiB operations a second, the
 * 4 KiB latency, the rate of small files and the latency of a sync of a whole baseline.  `name` is
 * made fit for a profile, `measured` says on what.  -ENODATA: the baseline is not whole. */
int mr_fit_profile(const struct mr_baseline *b, const char *name, const char *measured,
                   struct mr_device_profile *out, struct mr_error *err);

#endif
