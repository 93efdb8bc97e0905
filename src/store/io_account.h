/* io_account.h - bytes that this process had the block layer fetch. */
#ifndef MR_IO_ACCOUNT_H
#define MR_IO_ACCOUNT_H

#include <stdint.h>

/* read_bytes of /proc/self/io: whole pages and read-ahead included, cache hits not.
 * 0 or -errno (a kernel without I/O accounting). */
int mr_io_read_bytes(uint64_t *out);

#endif
