/* fuzz_device_profile.c - any bytes as a device profile: refused with words, or a profile that can
 * be written, read again to the same, and run. */
#include "device.h"

#include "fuzz_entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(what) ((what) ? (void)0 : broken(#what))

static void broken(const char *what)
{
    fprintf(stderr, "fuzz_device_profile: does not hold: %s\n", what);
    abort();
}

static void check_same(const struct mr_device_profile *a, const struct mr_device_profile *b)
{
    REQUIRE(!strcmp(a->name, b->name) && !strcmp(a->calibrated, b->calibrated));
    REQUIRE(!memcmp(&a->read_bytes_per_s, &b->read_bytes_per_s,
                    sizeof *a - offsetof(struct mr_device_profile, read_bytes_per_s)));
}

static void check_runs(const struct mr_device_profile *p)
{
    struct mr_device *d = NULL;
    struct mr_device_place place = {.file = 5, .offset = 12345};
    REQUIRE(mr_device_new(p, &d, NULL) == 0);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t now = 1000 * i;
        REQUIRE(mr_device_reserve_at(d, now, (enum mr_device_op)(i % 4), &place, 1 << 20) >= now);
    }
    mr_device_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_device_profile p, again;
    struct mr_error err = {0};
    char text[MR_PROFILE_MAX_BYTES];
    int r = mr_device_profile_parse((const char *)data, size, "fuzz", &p, &err);
    REQUIRE(r <= 0 && r == err.code && !r == !err.text[0]);
    for (const char *c = err.text; *c; c++)
        REQUIRE(*c >= ' ' && *c < 127);
    if (r)
        return 0;
    int len = mr_device_profile_format(&p, text, sizeof text, &err);
    REQUIRE(len > 0 && (size_t)len == strlen(text));
    REQUIRE(mr_device_profile_parse(text, (size_t)len, "again", &again, &err) == 0);
    check_same(&p, &again);
    check_runs(&p);
    return 0;
}
