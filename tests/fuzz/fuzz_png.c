/* fuzz_png.c - any bytes through the PNG path.
 *
 * libFuzzer's entry; run_corpus.c calls it for the files of tests/fuzz/corpus/png as a plain test.
 * The first byte selects the options, the rest is the file.  A fuzzer does not guess checksums, so
 * those of the chunks are made right first. */
#include "fuzz_image.h"

#include <stdlib.h>
#include <string.h>

static uint32_t crc32_of(const uint8_t *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void mend_checksums(uint8_t *png, size_t len)
{
    for (size_t at = 8; at + 12 <= len;) {
        size_t n = read_be32(png + at);
        if (n > len - at - 12)
            return;
        uint32_t crc = crc32_of(png + at + 4, n + 4);
        for (int k = 0; k < 4; k++)
            png[at + 8 + n + (size_t)k] = (uint8_t)(crc >> (24 - 8 * k));
        at += n + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct fuzz_decoders decoders;
    static const uint8_t magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (len < 1)
        return 0;
    uint8_t *copy = malloc(len);
    if (!copy)
        return 0;
    memcpy(copy, data, len);
    if (!(copy[0] & 0x80)) /* one in two keeps what it has */
        mend_checksums(copy + 1, len - 1);
    int r = fuzz_image(&decoders, magic, sizeof magic, copy, len);
    free(copy);
    return r;
}
