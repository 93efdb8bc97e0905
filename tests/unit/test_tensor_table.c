/* test_tensor_table.c - tensors are found by name, and many take no longer each than few.  Calls of
 * strcmp from our objects are counted. */
#include "tensor_table.h"

#include "ckpt_file.h"
#include "convert.h"
#include "unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TENSORS 2000

static atomic_size_t n_compared;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
    n_compared++;
    return __real_strcmp(a, b);
}

/* Names in no order at all. */
static const char *name_of(size_t i, char buf[32])
{
    snprintf(buf, 32, "layer_%zu/weights", i * 7919 % N_TENSORS);
    return buf;
}

static void add(struct mr_tensor_table *t, const char *name, uint64_t offset)
{
    struct mr_tensor x = {.name = name, .dtype = MR_DT_U8, .offset = offset};
    assert_int_equal(mr_tensor_table_add(t, &x), 0);
}

static void fill(struct mr_tensor_table *t)
{
    char name[32];
    mr_tensor_table_init(t);
    for (size_t i = 0; i < N_TENSORS; i++)
        add(t, name_of(i, name), i);
}

static int by_offset_down(const void *a, const void *b)
{
    const struct mr_tensor *x = a, *y = b;
    return (y->offset > x->offset) - (y->offset < x->offset);
}

static void all_are_found(const struct mr_tensor_table *t)
{
    char name[32];
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct mr_tensor *x = mr_tensor_table_find(t, name_of(i, name));
        assert_non_null(x);
        assert_string_equal(x->name, name);
        assert_int_equal(x->offset, i);
    }
    assert_null(mr_tensor_table_find(t, "layer_1/weight"));
    assert_null(mr_tensor_table_find(t, ""));
}

static void every_tensor_is_found_in_any_order(void **state)
{
    struct mr_tensor_table t;
    fill(&t);
    all_are_found(&t);
    mr_tensor_table_sort(&t);
    all_are_found(&t);
    mr_tensor_table_sort_by(&t, by_offset_down);
    assert_int_equal(t.tensors[0].offset, N_TENSORS - 1);
    all_are_found(&t);
    mr_tensor_table_fini(&t);
}

static void an_empty_table_has_none(void **state)
{
    struct mr_tensor_table t;
    mr_tensor_table_init(&t);
    assert_null(mr_tensor_table_find(&t, "w"));
    mr_tensor_table_sort(&t);
    assert_null(mr_tensor_table_find(&t, "w"));
    mr_tensor_table_fini(&t);
}

static void of_two_with_one_name_the_first_is_found(void **state)
{
    struct mr_tensor_table t;
    mr_tensor_table_init(&t);
    add(&t, "a", 0);
    add(&t, "w", 1);
    add(&t, "w", 2);
    assert_ptr_equal(mr_tensor_table_find(&t, "w"), &t.tensors[1]);
    mr_tensor_table_sort_by(&t, by_offset_down);
    assert_ptr_equal(mr_tensor_table_find(&t, "w"), &t.tensors[0]);
    assert_int_equal(t.tensors[0].offset, 2);
    mr_tensor_table_fini(&t);
}

static void finding_compares_few_names(void **state)
{
    struct mr_tensor_table t;
    char name[32];
    fill(&t);
    n_compared = 0;
    for (size_t i = 0; i < N_TENSORS; i++)
        mr_tensor_table_find(&t, name_of(i, name));
    assert_in_range(n_compared, N_TENSORS, 4 * N_TENSORS);
    mr_tensor_table_fini(&t);
}

/* A safetensors file as others write it: no checksums, one byte a tensor. */
static void write_many(struct tempdir *dir)
{
    size_t cap = N_TENSORS * 128 + 16, n = 8;
    char name[32], *text = malloc(cap);
    assert_non_null(text);
    for (size_t i = 0; i < N_TENSORS; i++)
        n +=
            (size_t)snprintf(text + n, cap - n,
                             "%s\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                             i ? "," : "{", name_of(i, name), i, i + 1);
    text[n++] = '}';
    for (int i = 0; i < 8; i++)
        text[i] = (char)((n - 8) >> 8 * i & 255);
    memset(text + n, 7, N_TENSORS);
    tempdir_write(dir, "model-1.safetensors", text, n + N_TENSORS);
    free(text);
}

/* Open, verify and convert; the path of what was made. */
static void convert(const char *from, const char *to, enum mr_checkpoint_format format,
                    char made[MR_CKPT_MAX_PATH])
{
    struct mr_ckpt_file *c;
    struct mr_checkpoint_verdict v;
    struct mr_convert_opts o = {.format = format};
    assert_int_equal(mr_ckpt_file_open(from, &c, NULL), 0);
    assert_int_equal(mr_ckpt_file_verify(c, NULL, &v, NULL), 0);
    assert_int_equal(mr_ckpt_convert(c, to, &o, made, NULL), 0);
    mr_ckpt_file_close(c);
}

static void converting_compares_names_in_proportion_to_the_tensors(void **state)
{
    struct tempdir *dir = *state;
    char made[MR_CKPT_MAX_PATH], again[MR_CKPT_MAX_PATH], from[512], to[512];
    write_many(dir);
    snprintf(from, sizeof from, "%s/model-1.safetensors", dir->path);
    snprintf(to, sizeof to, "%s", tempdir_mkdir(dir, "tf"));
    n_compared = 0;
    convert(from, to, MR_CHECKPOINT_TF, made);
    assert_in_range(n_compared, N_TENSORS, 64 * N_TENSORS);
    snprintf(to, sizeof to, "%s", tempdir_mkdir(dir, "back"));
    n_compared = 0;
    convert(made, to, MR_CHECKPOINT_SAFETENSORS, again); /* with its graph, which names them all */
    assert_in_range(n_compared, N_TENSORS, 64 * N_TENSORS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_is_found_in_any_order),
        cmocka_unit_test(an_empty_table_has_none),
        cmocka_unit_test(of_two_with_one_name_the_first_is_found),
        cmocka_unit_test(finding_compares_few_names),
        cmocka_unit_test_setup_teardown(converting_compares_names_in_proportion_to_the_tensors,
                                        tempdir_setup_in_memory, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
