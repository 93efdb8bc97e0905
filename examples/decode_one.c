/* decode_one.c - decode an image to 64 x 64 pixels and print its size and mean colour.
 *
 *     decode_one [FILE]
 *
 * Without a file it decodes a small image of its own: a red PNG of 2 x 2 pixels. */
#include <millrace/image.h>
#include <millrace/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE ((size_t)64 << 20)

static const uint8_t red_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
    0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x02, 0x00, 0x00, 0x00, 0xfd,
    0xd4, 0x9a, 0x73, 0x00, 0x00, 0x00, 0x10, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8,
    0xcf, 0xc0, 0x00, 0x44, 0x0c, 0x10, 0x0a, 0x00, 0x1f, 0xee, 0x03, 0xfd, 0x63, 0x5e, 0xbb,
    0x5b, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};

static int decode(struct mr_decoder *dec, const void *bytes, size_t len, const uint8_t *slot)
{
    struct mr_image_info info;
    int r = mr_decoder_probe(dec, bytes, len, &info);
    if (!r)
        r = mr_decoder_run(dec, bytes, len, 0, (void *)slot);
    if (r) {
        fprintf(stderr, "%s: %s\n", strerror(-r), mr_decoder_error(dec));
        return r;
    }
    unsigned long sum[3] = {0};
    for (size_t i = 0; i < 64 * 64; i++)
        for (int c = 0; c < 3; c++)
            sum[c] += slot[3 * i + (size_t)c];
    printf("%s, %u x %u, mean red %lu green %lu blue %lu\n",
           info.format == MR_IMAGE_JPEG ? "JPEG" : "PNG", info.width, info.height,
           sum[0] / (64 * 64), sum[1] / (64 * 64), sum[2] / (64 * 64));
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_decoder_opts opts = {.width = 64, .height = 64, .dtype = MR_DT_U8};
    struct mr_decoder *dec = NULL;
    uint8_t *slot = malloc(mr_decoder_bytes(&opts)), *file = malloc(MAX_FILE);
    const void *bytes = red_png;
    size_t len = sizeof red_png;
    struct mr_error err = {0};
    int r = slot && file ? mr_decoder_new(&opts, &dec, &err) : -1;
    if (!r && argc > 1) {
        r = mr_file_read(argv[1], file, MAX_FILE, &len, &err);
        bytes = file;
    }
    if (r)
        fprintf(stderr, "%s\n", err.code ? err.text : "no memory");
    else
        r = decode(dec, bytes, len, slot);
    mr_decoder_free(dec);
    free(file);
    free(slot);
    return r != 0;
}
