/* fuzz_csv_list.c - whatever the bytes are, a list is refused with words or yields sound entries.
 *
 * The first byte chooses the folder of the list.  The same bytes are then a list in a store in
 * memory, opened as a data set whose first samples are read: the answer is the same, and a sample
 * is the one blob that there is or is missing. */
#include "csv_list.h"

#include "buffer.h"
#include "fuzz_entry.h"
#include "memory_store.h"
#include "sample_set.h"

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

static void read_first(const struct mr_dataset *d)
{
    struct mr_buffer b = {0};
    for (uint64_t i = 0; i < 4 && i < mr_dataset_size(d); i++) {
        size_t n;
        enum mr_stage stage;
        int r = mr_dataset_load(d, i, 1 << 20, &b, &n, &stage);
        REQUIRE(r < 0 ? stage < MR_N_STAGES : n == 3 && !memcmp(b.data, "abc", 3));
    }
    mr_buffer_fini(&b);
}

/* `parsed` is what the parser said of these bytes, `n` how many samples it found. */
static void check_data_set(const char *text, size_t len, int parsed, uint64_t n)
{
    struct mr_store *store;
    struct mr_dataset *d;
    struct mr_error err = {0};
    if (mr_memory_store_new(&store))
        return;
    if (!mr_memory_store_add(store, "a/list.csv", text, len) &&
        !mr_memory_store_add(store, "a/x.jpg", "abc", 3)) {
        int r = mr_dataset_open_in(store, "a/list.csv", NULL, &d, &err);
        REQUIRE(!r == !parsed);
        REQUIRE(!r == !err.text[0]);
        if (!r) {
            REQUIRE(mr_dataset_size(d) == n);
            read_first(d);
            mr_dataset_unref(d);
        }
    }
    mr_store_unref(store);
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
    if (!strcmp(base, "a/"))
        check_data_set(text, len, r, e.n);
    mr_entries_fini(&e);
    free(text);
    return 0;
}
