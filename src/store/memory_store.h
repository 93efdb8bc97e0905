/* memory_store.h - blobs in memory, with delays, failures and short reads where they are told: the
 * store of tests.
 *
 *     struct mr_store *m;
 *     mr_memory_store_new(&m);
 *     mr_memory_store_add(m, "cat/1.jpg", bytes, len);
 *     mr_memory_store_script(m, "cat/1.jpg", &(struct mr_memory_script){.code = -EIO, .times = 2});
 *
 * Blobs are added before the first source is opened; scripts may change at any time. */
#ifndef MR_MEMORY_STORE_H
#define MR_MEMORY_STORE_H

#include "blob_store.h"

/* What reads of a blob meet with. */
struct mr_memory_script {
    uint64_t delay_ns;   /* a read takes that long */
    int code;            /* -errno of a failure, */
    enum mr_stage stage; /* at this stage: open or read */
    size_t missing;      /* bytes at the end of the blob that cannot be read: -ENODATA */
    unsigned times;      /* reads that fail; 0: all */
};

int mr_memory_store_new(struct mr_store **out);
/* A copy of the bytes; a '/' in the name makes folders.  0 or -ENOMEM. */
int mr_memory_store_add(struct mr_store *s, const char *name, const void *bytes, size_t len);
/* -ENOENT: there is no such blob. */
int mr_memory_store_script(struct mr_store *s, const char *name,
                           const struct mr_memory_script *script);
/* Reads of a blob that were started so far. */
unsigned mr_memory_store_reads(struct mr_store *s, const char *name);

#endif
