/* sstable.h - LevelDB's sorted table of keys and values, as TensorFlow's .index files use it. */
#ifndef MR_SSTABLE_H
#define MR_SSTABLE_H

#include <millrace/api.h>

#include "bytes.h"

#define MR_SSTABLE_MAX_KEY ((size_t)64 << 10)

/* Called for each entry, in order; a result other than 0 ends the reading with it.  Key and value
 * are valid during the call. */
typedef int mr_sstable_entry(void *ctx, const uint8_t *key, size_t key_len, const uint8_t *value,
                             size_t value_len, struct mr_error *err);

/* Read a whole table that is in memory.  `name` is for error texts.  0, what `entry` returned,
 * -EBADMSG, -ENOTSUP (a kind of compression that is not known), -ENOMEM. */
int mr_sstable_read(const char *name, const uint8_t *file, size_t len, mr_sstable_entry *entry,
                    void *ctx, struct mr_error *err);

/* Append a table to `out`: init -> add* -> finish -> fini.  Keys must come in increasing order.
 * What is written is byte for byte what TensorFlow writes without compression. */
struct mr_sstable_block {
    struct mr_bytes bytes;
    struct mr_bytes restarts; /* fixed32 each */
    struct mr_bytes last_key;
    unsigned interval, since_restart;
};

struct mr_sstable_writer {
    struct mr_bytes *out; /* borrowed */
    size_t base;          /* where the table begins in it */
    struct mr_sstable_block data, index;
    struct mr_bytes pending; /* the finished block's last key, whose index entry is still to come */
    uint64_t pending_offset, pending_size;
    int has_pending, n_entries;
};

void mr_sstable_init(struct mr_sstable_writer *w, struct mr_bytes *out);
/* 0, or -EINVAL when the key is not larger than the one before. */
int mr_sstable_add(struct mr_sstable_writer *w, const void *key, size_t key_len, const void *value,
                   size_t value_len);
/* 0 or -ENOMEM. */
int mr_sstable_finish(struct mr_sstable_writer *w);
void mr_sstable_fini(struct mr_sstable_writer *w);

#endif
