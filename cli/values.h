/* values.h - option arguments as people type them: 64K, 10%, 2/8, window:1024, 1,2,4,8. */
#ifndef MR_VALUES_H
#define MR_VALUES_H

struct option_row;

/* Each returns 0, or -1 when the text is not of that kind; *field is written only on success. */
typedef int value_parser(const struct option_row *row, const char *text, void *field);

value_parser value_flag;       /* int: 1 */
value_parser value_string;     /* const char *, not empty */
value_parser value_unsigned;   /* unsigned, 0 .. 2^32 - 2 */
value_parser value_positive;   /* unsigned, 1 .. 2^32 - 2 */
value_parser value_u64;        /* uint64_t */
value_parser value_count;      /* uint64_t, not 0 */
value_parser value_batch;      /* unsigned, from 1 to 2^24 */
value_parser value_io_depth;   /* unsigned, from 1 to 4096 */
value_parser value_prefetch;   /* unsigned, up to 65536 */
value_parser value_runs;       /* unsigned, from 1 to 1000 */
value_parser value_size;       /* uint64_t: bytes, or with K, M, G, T (powers of 1024) */
value_parser value_choice;     /* unsigned: the position in the row's choices */
value_parser value_threads;    /* struct unsigned_list */
value_parser value_shuffle;    /* struct shuffle_choice */
value_parser value_shard;      /* struct shard_choice */
value_parser value_budget;     /* struct error_budget */
value_parser value_duration;   /* uint64_t: ns, from 10us, 1.5ms, 2s, 3m, 1h; not 0 */
value_parser value_interval;   /* the same from 10 ms to 1 h: between two samples */
value_parser value_rate;       /* double, above 0 and finite */
value_parser value_colours;    /* struct colours: 0.5 or 0.48,0.45,0.4; within +-1e6 */
value_parser value_scales;     /* the same, above 0 */
value_parser value_image_size; /* struct image_size: 224 or 320x240 */

/* What a parser takes, in words that follow "is not"; NULL: the row's choices. */
const char *value_range(value_parser *parse);

#endif
