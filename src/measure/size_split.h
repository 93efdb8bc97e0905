/* size_split.h - block sizes and how often each is used, in fio's notation: "4K/40:64K/60" is 40%
 * of the operations with 4 KiB and 60% with 64 KiB.  (Of the operations, not of the bytes.) */
#ifndef MR_SIZE_SPLIT_H
#define MR_SIZE_SPLIT_H

#include <millrace/api.h>

/* Files of ImageNet, as the studies of it read them with fio. */
#define MR_SPLIT_IMAGENET "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1"

#define MR_SPLIT_MAX 32

struct mr_size_split {
    unsigned n;
    uint32_t bytes[MR_SPLIT_MAX];
    uint32_t up_to[MR_SPLIT_MAX]; /* shares added up; the last is MR_SPLIT_WHOLE */
};
#define MR_SPLIT_WHOLE 10000u /* hundredths of a percent */

/* Sizes of up to 1 GiB with K or M; shares in whole percent that add up to 100; entries without a
 * share ("8K/" or "8K") divide what the others leave.  -EINVAL otherwise. */
int mr_size_split_parse(const char *text, struct mr_size_split *out, struct mr_error *err);
/* The size that 64 random bits fall on. */
uint32_t mr_size_split_draw(const struct mr_size_split *s, uint64_t bits);
uint32_t mr_size_split_min(const struct mr_size_split *s);
uint32_t mr_size_split_max(const struct mr_size_split *s);
double mr_size_split_mean(const struct mr_size_split *s);

#endif
