/* cold_read.c - take a file out of the page cache, prove it, and read it.
 *
 *     cold_read FILE */
#include <millrace/store.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct mr_cache_state before, after;
    struct mr_error err = {0};
    size_t len;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    int r = mr_cache_evict(argv[1], &before, &after, &err);
    if (r < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%llu bytes, cached before %lld, after %lld: %s\n",
           (unsigned long long)before.size_bytes, (long long)before.cached_bytes,
           (long long)after.cached_bytes, r == MR_COLD_DATA ? "cold" : "unproven");

    char *buf = malloc(before.size_bytes ? before.size_bytes : 1);
    if (!buf)
        return 1;
    r = mr_file_read(argv[1], buf, before.size_bytes, &len, &err);
    if (r)
        fprintf(stderr, "%s\n", err.text);
    else
        printf("read %zu bytes\n", len);
    free(buf);
    return r != 0;
}
