/* test_ckpt_real.c - real files of TensorFlow and safetensors below $MILLRACE_TEST_FORMATS: every
 * checkpoint verifies, an index without a compressed block is written again byte for byte (and
 * there is one), whatever lies below a folder that ends in "_bad" is refused.  Without that
 * variable the test is skipped. */
#include "bytes.h"
#include "ckpt_file.h"
#include "in_file.h"
#include "tf_bundle.h"
#include "tf_state_reader.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIPPED 77
#define FOOTER  48

/* nftw has no context to pass. */
static struct {
    unsigned n_checkpoints, n_refused, n_indexes, n_identical, n_compressed, n_states, n_failures;
} all;

static void failed(const char *path, const char *what)
{
    printf("%s: %s\n", path, what);
    all.n_failures++;
}

/* The type of a block: the byte behind it. */
static int block_type(const uint8_t *index, size_t len, uint64_t offset, uint64_t size)
{
    return size < len && offset < len - size ? index[offset + size] : -1;
}

/* Is a block of an index that parses of type 1?  Then TensorFlow compressed, and we do not. */
static int is_compressed(const uint8_t *index, size_t len)
{
    struct mr_wire foot = mr_wire_over(index + len - FOOTER, FOOTER);
    uint64_t at[4], shared, unshared, n_value, offset, size;
    for (int i = 0; i < 4; i++)
        if (mr_wire_varint(&foot, &at[i]))
            return 0;
    if (block_type(index, len, at[0], at[1]) || block_type(index, len, at[2], at[3]))
        return 1;
    uint64_t restarts = at[2] + at[3] - 4;
    restarts -= 4 * (uint64_t)mr_get_u32(index + restarts);
    struct mr_wire w = mr_wire_over(index + at[2], restarts - at[2]);
    while (mr_wire_left(&w)) {
        if (mr_wire_varint(&w, &shared) || mr_wire_varint(&w, &unshared) ||
            mr_wire_varint(&w, &n_value))
            return 0;
        struct mr_wire value = mr_wire_over(w.at + unshared, n_value);
        if (mr_wire_varint(&value, &offset) || mr_wire_varint(&value, &size))
            return 0;
        if (block_type(index, len, offset, size))
            return 1;
        w.at += unshared + n_value;
    }
    return 0;
}

static void write_again(const char *path)
{
    struct mr_bundle b;
    struct mr_bytes out;
    uint8_t *index;
    size_t len;
    mr_bytes_init(&out);
    if (mr_in_small_file(AT_FDCWD, path, MR_BUNDLE_MAX_INDEX, NULL, &index, &len)) {
        failed(path, "cannot be read");
        return;
    }
    if (mr_bundle_parse(path, index, len, &b, NULL) || mr_bundle_write_index(&b, &out, NULL))
        failed(path, "cannot be written again");
    else if (out.len == len && !memcmp(out.data, index, len))
        all.n_identical++;
    else if (is_compressed(index, len))
        all.n_compressed++;
    else
        failed(path, "is written again otherwise");
    mr_bundle_fini(&b);
    mr_bytes_fini(&out);
    free(index);
}

static void check(const char *path, int bad)
{
    struct mr_ckpt_file *c = NULL;
    struct mr_checkpoint_verdict v;
    struct mr_error err = {0};
    int r = mr_ckpt_file_open(path, &c, &err);
    if (!r)
        r = mr_ckpt_file_verify(c, NULL, &v, &err);
    mr_ckpt_file_close(c);
    if (bad ? !r : r)
        failed(path, r ? err.text : "should have been refused");
    else if (bad)
        all.n_refused++;
    else
        all.n_checkpoints++;
}

static void check_state(const char *path)
{
    struct mr_tf_state s;
    uint8_t *text;
    size_t len;
    if (mr_in_small_file(AT_FDCWD, path, MR_STATE_MAX_FILE, NULL, &text, &len))
        return;
    if (mr_tf_state_parse(path, (char *)text, len, &s, NULL) || !s.latest || !s.n)
        failed(path, "is not understood");
    else {
        all.n_states++;
        mr_tf_state_fini(&s);
    }
    free(text);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
    if (type != FTW_F)
        return 0;
    if (mr_ends_in(path, ".index") || mr_ends_in(path, ".safetensors"))
        check(path, strstr(path, "_bad/") != NULL);
    if (mr_ends_in(path, ".index")) {
        all.n_indexes++;
        write_again(path);
    }
    if (!strcmp(path + where->base, "checkpoint"))
        check_state(path);
    return 0;
}

int main(void)
{
    const char *root = getenv("MILLRACE_TEST_FORMATS");
    if (!root || !*root) {
        printf("SKIP: MILLRACE_TEST_FORMATS is not set\n");
        return SKIPPED;
    }
    nftw(root, visit, 16, FTW_PHYS);
    printf("%u checkpoints verified, %u refused as they should be, %u indexes identical, %u were "
           "compressed, %u state files; %u failures\n",
           all.n_checkpoints, all.n_refused, all.n_identical, all.n_compressed, all.n_states,
           all.n_failures);
    if (!all.n_checkpoints && !all.n_failures) {
        printf("SKIP: no checkpoints below %s\n", root);
        return SKIPPED;
    }
    if (all.n_indexes && !all.n_identical)
        failed(root, "no index is without compressed blocks, so none was compared");
    return all.n_failures ? 1 : 0;
}
