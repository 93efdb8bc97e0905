/* durable.h - a file that appears whole and on stable storage, or not at all.
 *
 *   open -> write* -> sync -> publish        the name exists after publish and a sync of the folder
 *   abort at any point removes what was written under the temporary name; after publish it is a
 *   no-op */
#ifndef MR_DURABLE_H
#define MR_DURABLE_H

#include <millrace/api.h>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct mr_durable {
    int fd; /* -1: not open */
    int has_temp;
    uint64_t len; /* written so far, by mr_durable_write */
    char path[PATH_MAX], temp[PATH_MAX];
};

#define MR_DURABLE_NONE ((struct mr_durable){.fd = -1})

int mr_durable_open(struct mr_durable *f, const char *path, struct mr_error *err);
/* Append. */
int mr_durable_write(struct mr_durable *f, const void *bytes, size_t len, struct mr_error *err);
/* Somewhere; does not move the end. */
int mr_durable_write_at(struct mr_durable *f, const void *bytes, size_t len, uint64_t offset,
                        struct mr_error *err);
/* To stable storage.  A failure is final: nothing of it may be trusted. */
int mr_durable_sync(struct mr_durable *f, struct mr_error *err);
int mr_durable_publish(struct mr_durable *f, struct mr_error *err);
void mr_durable_abort(struct mr_durable *f);
/* Names of files that were published or removed in `dir`. */
int mr_durable_sync_dir(const char *dir, struct mr_error *err);

#endif
