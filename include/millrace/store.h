/* store.h - whole files in, the truth about the page cache, and emulated devices.
 *
 * Reading a file that is already in memory says nothing about a device.  These calls tell how much
 * of a file is cached, take it out of the cache, and say how far that can be proven.
 *
 * An emulated device makes any directory behave like another storage: it delays reads (and writes)
 * so that bandwidth, latency, seeks and concurrency are those of a profile.
 *
 * Thread-safe: no call keeps state but a device's, and that has a lock. */
/* Example:
 *
 *     struct mr_cache_state before, after;
 *     int cold = mr_cache_evict("photo.jpg", &before, &after, NULL);
 *
 *     if (cold < 0)
 *         return 1;
 *     printf("%lld bytes cached, then %lld: %s\n", (long long)before.cached_bytes,
 *            (long long)after.cached_bytes, cold == MR_COLD_DATA ? "cold" : "unproven");
 */
#ifndef MILLRACE_STORE_H
#define MILLRACE_STORE_H

#include <millrace/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Read a whole regular file into `buf` (borrows).  *len is its size.
 * -EFBIG: larger than `cap`; -ENODATA: empty, or it changed size while it was read;
 * -EISDIR, -EINVAL or -ENXIO: not a regular file. */
MR_API int mr_file_read(const char *path, void *buf, size_t cap, size_t *len, struct mr_error *err);

/* Bytes of a file and how many of them are in the page cache.  The kernel answers honestly only to
 * the file's owner or someone who may write it; for everyone else cached_bytes is -1. */
struct mr_cache_state {
    uint64_t size_bytes;
    int64_t cached_bytes; /* -1: cannot be known */
};
MR_API int mr_cache_query(const char *path, struct mr_cache_state *out, struct mr_error *err);

/* What an eviction achieved. */
enum mr_cold {
    MR_COLD_UNPROVEN, /* asked for, but the kernel will not or cannot confirm it */
    MR_COLD_DATA,     /* no byte of the file is cached; inodes and directories may be */
};

/* Write back and drop one file's pages.  `before` and `after` may be NULL.
 * Returns an enum mr_cold, or -errno when the file cannot be opened. */
MR_API int mr_cache_evict(const char *path, struct mr_cache_state *before,
                          struct mr_cache_state *after, struct mr_error *err);

/* Drop every clean page, inode and directory entry of the whole system.  Root only. */
MR_API int mr_cache_drop_all(struct mr_error *err);

struct mr_device;

/* A device by profile: "hdd", "ssd", "optane", "lustre", or a profile's file (docs/devices.md; one
 * that is called like a built-in profile needs a slash: "./hdd").  Give it to pipelines as
 * `storage`; several may share it, and then share its bandwidth.  -EINVAL: the file is not a
 * profile; `err` names the line and the key. */
MR_API int mr_device_open(const char *profile, struct mr_device **out, struct mr_error *err);
/* Nobody may be using it.  NULL is a no-op. */
MR_API void mr_device_close(struct mr_device *d);
/* The profile's name, and what it was calibrated to ("" when it does not say).  Borrowed. */
MR_API const char *mr_device_name(const struct mr_device *d);
MR_API const char *mr_device_calibrated(const struct mr_device *d);

#ifdef __cplusplus
}
#endif
#endif
