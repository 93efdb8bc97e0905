/* run_corpus.c - a fuzz target's corpus as a plain test: every file of the folders given, each also
 * cut short and with bytes changed.
 *
 *     run_corpus DIR... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MAX_BYTES 65536

static void run_variants(uint8_t *bytes, size_t len)
{
    uint64_t state = len;
    LLVMFuzzerTestOneInput(bytes, len);
    for (size_t part = 1; part < 16; part++)
        LLVMFuzzerTestOneInput(bytes, len * part / 16);
    for (int i = 0; i < 50; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(state >> 33) % len;
        uint8_t before = bytes[at];
        bytes[at] = (uint8_t)(state >> 20);
        LLVMFuzzerTestOneInput(bytes, len);
        bytes[at] = before;
    }
}

static unsigned run_folder(const char *folder)
{
    static uint8_t bytes[MAX_BYTES];
    char path[4096];
    unsigned n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        size_t len = f ? fread(bytes, 1, sizeof bytes, f) : 0;
        if (f)
            fclose(f);
        if (!len)
            continue;
        run_variants(bytes, len);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    unsigned n = 0;
    for (int i = 1; i < argc; i++)
        n += run_folder(argv[i]);
    printf("%u inputs\n", n);
    return n ? 0 : 1;
}
