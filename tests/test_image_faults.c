/* test_image_faults.c - memory runs out at every place in turn: the decoder says -ENOMEM, leaks
 * nothing, and decodes the next image as if nothing had happened.
 *
 * malloc and mmap are replaced for the whole process, libjpeg and libspng included: call n fails,
 * for n = 1, 2, ... until a run needs fewer.  Sanitizers bring their own malloc, so there the test
 * is skipped. */
#include "image_samples.h"

#include <millrace/image.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SKIPPED 77

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define HAS_OWN_MALLOC 1
#endif
#endif

#ifdef HAS_OWN_MALLOC

int main(void)
{
    printf("SKIP: built with a sanitizer\n");
    return SKIPPED;
}

#else

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static int armed; /* faults are being injected */
static long calls, fail_at;
static long n_blocks; /* allocated while armed, and not freed */

static int fails(void)
{
    return armed && ++calls == fail_at;
}

void *malloc(size_t n)
{
    if (fails())
        return NULL;
    n_blocks += armed;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    if (fails())
        return NULL;
    n_blocks += armed;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    if (fails())
        return NULL;
    n_blocks += armed && !p;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    n_blocks -= armed && p;
    __libc_free(p);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
    if (fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mremap, old, old_len, new_len, flags);
}

#define SIDE    20
#define N_BYTES (SIDE * SIDE * 3 * 4)

static const struct mr_decoder_opts opts = {.width = SIDE, .height = SIDE};
static int n_failures;

static void expect(int ok, const char *what, const char *name)
{
    if (ok)
        return;
    printf("FAILED: %s: %s (call %ld)\n", name, what, fail_at);
    n_failures++;
}

/* A new decoder and two images of different sizes. */
static int whole_life(const struct sample s[2], uint8_t *slot, const char *name)
{
    struct mr_decoder *d = NULL;
    calls = 0;
    n_blocks = 0;
    armed = 1;
    int r = mr_decoder_new(&opts, &d);
    for (int i = 0; i < 2 && !r; i++)
        r = mr_decoder_run(d, s[i].bytes, s[i].len, 0, slot);
    if (r && d) { /* the fault is behind us: the same decoder must be able to go on */
        int again = mr_decoder_run(d, s[1].bytes, s[1].len, 0, slot);
        expect(again == 0, "the decoder does not recover", name);
    }
    mr_decoder_free(d);
    armed = 0;
    expect(n_blocks == 0, "memory is lost", name);
    return r;
}

static void fail_each_call(const struct sample s[2], const char *name)
{
    static uint8_t slot[N_BYTES], expected[N_BYTES];
    fail_at = 0;
    expect(whole_life(s, expected, name) == 0, "does not decode", name);
    for (fail_at = 1; fail_at < 1000; fail_at++) {
        int r = whole_life(s, slot, name);
        expect(r == 0 || r == -ENOMEM, "another error than -ENOMEM", name);
        expect(calls < fail_at || r == -ENOMEM || !memcmp(slot, expected, N_BYTES),
               "a fault changed the pixels", name);
        if (calls < fail_at)
            break;
    }
    expect(fail_at > 5 && fail_at < 1000, "the number of calls is odd", name);
}

int main(void)
{
    static const int jpeg_kinds[] = {0, 2, 8, 11, 14};
    struct photo small = sample_photo(30, 20, 1), large = sample_photo(600, 300, 2);
    for (size_t i = 0; i < sizeof jpeg_kinds / sizeof jpeg_kinds[0]; i++) {
        const struct jpeg_kind *k = &sample_jpeg_kinds[jpeg_kinds[i]];
        struct sample s[2] = {sample_jpeg(&small, k), sample_jpeg(&large, k)};
        fail_each_call(s, k->name);
        free(s[0].bytes);
        free(s[1].bytes);
    }
    for (int i = 5; i < 7; i++) {
        const struct png_kind *k = &sample_png_kinds[i];
        struct sample s[2] = {sample_png(&small, k, NULL), sample_png(&large, k, NULL)};
        fail_each_call(s, k->name);
        free(s[0].bytes);
        free(s[1].bytes);
    }
    free(small.rgb);
    free(large.rgb);
    return n_failures ? 1 : 0;
}
#endif
