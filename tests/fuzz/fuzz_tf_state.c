/* fuzz_tf_state.c - whatever the bytes are, no name leaves the folder, and what is understood can
 * be written and understood again. */
#include "tf_state.h"

#include "fuzz_check.h"
#include "fuzz_entry.h"

#include <string.h>

static void check_name(const char *name)
{
    REQUIRE(name[0] && name[0] != '/');
    REQUIRE(strcmp(name, "..") && strncmp(name, "../", 3) && !strstr(name, "/../"));
    size_t n = strlen(name);
    REQUIRE(name[n - 1] != '/' && (n < 3 || strcmp(name + n - 3, "/..")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_tf_state s, again;
    struct mr_bytes out;
    struct mr_error err = {0};
    int r = mr_tf_state_parse("fuzz", (const char *)data, size, &s, &err);
    REQUIRE(r <= 0 && r == err.code && !r == !err.text[0]);
    if (r)
        return 0;
    for (size_t i = 0; i < s.n; i++)
        check_name(s.all[i]);
    if (s.latest)
        check_name(s.latest);
    mr_bytes_init(&out);
    mr_tf_state_write((const char *const *)s.all, s.n, &out);
    REQUIRE(!mr_tf_state_parse("again", (const char *)out.data, out.len, &again, &err));
    REQUIRE(again.n == s.n && !again.n_refused);
    for (size_t i = 0; i < s.n; i++)
        REQUIRE(!strcmp(again.all[i], s.all[i]));
    mr_tf_state_fini(&again);
    mr_tf_state_fini(&s);
    mr_bytes_fini(&out);
    return 0;
}
