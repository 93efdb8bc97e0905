/* test_image_faults.c - memory runs out at every place in turn: the decoder says -ENOMEM, leaks
 * nothing, and decodes the next image as if nothing had happened.  And how much is asked for:
 * nothing for another image of the same kind, little for one that only claims to be large.
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
static long n_blocks;  /* allocated while armed, and not freed */
static size_t n_bytes; /* asked for while armed */

static int fails(size_t n)
{
    n_bytes += armed ? n : 0;
    return armed && ++calls == fail_at;
}

void *malloc(size_t n)
{
    if (fails(n))
        return NULL;
    n_blocks += armed;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    if (fails(n * size))
        return NULL;
    n_blocks += armed;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    if (fails(n))
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
    if (fails(len)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
    if (fails(new_len)) {
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
    int r = mr_decoder_new(&opts, &d, NULL);
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

/* What one image asks for, by a decoder that has seen `first`: calls in *n_calls, bytes returned.
 */
static size_t ask_for(const struct sample *first, const struct sample *s, int expected,
                      long *n_calls, const char *name)
{
    static uint8_t slot[N_BYTES];
    struct mr_decoder *d = NULL;
    expect(!mr_decoder_new(&opts, &d, NULL), "no decoder", name);
    expect(!mr_decoder_run(d, first->bytes, first->len, 0, slot), "does not decode", name);
    calls = 0;
    fail_at = 0;
    n_bytes = 0;
    armed = 1;
    int r = mr_decoder_run(d, s->bytes, s->len, 0, slot);
    armed = 0;
    expect(r == expected, "an unexpected answer", name);
    *n_calls = calls;
    mr_decoder_free(d);
    return n_bytes;
}

static void allocate_nothing_for_another_image(const struct photo *large, const struct photo *small)
{
    static const int jpegs[] = {0, 1, 2, 4, 8, 17}, pngs[] = {3, 5};
    for (size_t i = 0; i < sizeof jpegs / sizeof jpegs[0] + sizeof pngs / sizeof pngs[0]; i++) {
        size_t n_jpegs = sizeof jpegs / sizeof jpegs[0];
        const struct jpeg_kind *j = &sample_jpeg_kinds[i < n_jpegs ? jpegs[i] : 0];
        const struct png_kind *p = &sample_png_kinds[i < n_jpegs ? 0 : pngs[i - n_jpegs]];
        struct sample a = i < n_jpegs ? sample_jpeg(large, j) : sample_png(large, p, NULL);
        struct sample b = i < n_jpegs ? sample_jpeg(small, j) : sample_png(small, p, NULL);
        long n_calls;
        ask_for(&a, &b, 0, &n_calls, i < n_jpegs ? j->name : p->name);
        expect(n_calls == 0, "memory is allocated for every image",
               i < n_jpegs ? j->name : p->name);
        free(a.bytes);
        free(b.bytes);
    }
}

/* 65,500 x 65,500 pixels, says the header. */
static void allocate_little_for_a_bomb(const struct photo *small)
{
    for (int kind = 2; kind < 15; kind += 12) { /* baseline, progressive */
        struct sample s = sample_jpeg(small, &sample_jpeg_kinds[kind]);
        struct sample bomb = {malloc(s.len), s.len};
        size_t at = 2;
        memcpy(bomb.bytes, s.bytes, s.len);
        while (s.bytes[at + 1] != 0xc0 && s.bytes[at + 1] != 0xc2)
            at += 2 + ((size_t)s.bytes[at + 2] << 8 | s.bytes[at + 3]);
        for (int i = 0; i < 4; i++)
            bomb.bytes[at + 5 + (size_t)i] = (uint8_t)(i % 2 ? 65500 & 255 : 65500 >> 8);
        long n_calls;
        size_t bytes = ask_for(&s, &bomb, -EFBIG, &n_calls, "a bomb");
        printf("a bomb: %zu bytes in %ld calls\n", bytes, n_calls);
        expect(bytes < 100000, "much memory for an image that is refused", "a bomb");
        free(bomb.bytes);
        free(s.bytes);
    }
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
    allocate_nothing_for_another_image(&large, &small);
    allocate_little_for_a_bomb(&small);
    free(small.rgb);
    free(large.rgb);
    return n_failures ? 1 : 0;
}
#endif
