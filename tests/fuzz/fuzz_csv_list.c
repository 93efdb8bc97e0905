/* fuzz_csv_list.c - whatever the bytes are, a list is refused with words or yields sound entries.
 *
 * The first byte chooses the folder of the list. */
#include "csv_list.h"

#include "fuzz_entry.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(what) ((what) ? (void)0 : broken(#what))

static void broken(const char *what)
{
    fprintf(stderr, "fuzz_csv_list: does not hold: %s\n", what);
    abort();
}

static void check_entries(const struct mr_entries *e, const char *base)
{
    static char path[PATH_MAX];
    uint32_t largest = 0;
    for (uint64_t i = 0; i < e->n; i++) {
        int len = mr_entries_path(e, i, path, sizeof path);
        REQUIRE(len > 0 && (size_t)len < PATH_MAX);
        REQUIRE(strlen(path) == (size_t)len);
        REQUIRE(path[len - 1] != '/');
        REQUIRE(path[0] == '/' || !strncmp(path, base, strlen(base)));
        uint32_t label = mr_entries_label(e, i);
        REQUIRE(label <= INT32_MAX);
        largest = label > largest ? label : largest;
    }
    REQUIRE(!e->n || e->n_classes == largest + 1);
    REQUIRE(!e->n || (e->blobs.names_len && !e->blobs.names[e->blobs.names_len - 1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const bases[] = {"", "/data/train/", "a/", "../"};
    const char *base = size ? bases[data[0] % 4] : "";
    size_t len = size ? size - 1 : 0;
    char *text = malloc(len ? len : 1);
    if (!text)
        return 0;
    if (len)
        memcpy(text, data + 1, len);
    struct mr_entries e;
    struct mr_error err = {0};
    mr_entries_init(&e);
    int r = mr_csv_list_parse(text, len, base, "fuzz", &e, &err);
    REQUIRE(r <= 0);
    REQUIRE(r == err.code);
    REQUIRE(!r == !err.text[0]);
    REQUIRE(r || e.n > 0);
    check_entries(&e, base);
    mr_entries_finish(&e);
    check_entries(&e, base);
    mr_entries_fini(&e);
    free(text);
    return 0;
}
