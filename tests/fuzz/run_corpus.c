/* run_corpus.c - give a fuzz target the files it is told, so that a corpus is a plain test too.
 *
 *     run_corpus FILE-or-DIR ...
 *
 * Each file is also given cut short at every length, up to a limit: a cheap source of bad input. */
#include "fuzz_entry.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define CUTS 4096

static unsigned n_files;

static int run_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    if (kind != FTW_F)
        return kind == FTW_DNR || kind == FTW_NS ? -1 : 0;
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc((size_t)st->st_size + 1);
    if (!f || !bytes)
        return -1;
    size_t len = fread(bytes, 1, (size_t)st->st_size, f);
    fclose(f);
    for (size_t cut = 0; cut < len && cut < CUTS; cut++)
        LLVMFuzzerTestOneInput(bytes, cut);
    LLVMFuzzerTestOneInput(bytes, len);
    free(bytes);
    n_files++;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (nftw(argv[i], run_file, 16, FTW_PHYS)) {
            perror(argv[i]);
            return 1;
        }
    printf("%u files\n", n_files);
    return n_files ? 0 : 1;
}
