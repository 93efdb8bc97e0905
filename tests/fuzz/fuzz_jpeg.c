/* fuzz_jpeg.c - any bytes through the JPEG path: planes, scaled transforms, crops, exact, tolerant.
 *
 * libFuzzer's entry; run_corpus.c calls it for the files of tests/fuzz/corpus/jpeg as a plain test.
 * The first byte selects the options, the rest is the file. */
#include "fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct fuzz_decoders decoders;
    static const uint8_t magic[] = {0xff, 0xd8, 0xff};
    return fuzz_image(&decoders, magic, sizeof magic, data, len);
}
