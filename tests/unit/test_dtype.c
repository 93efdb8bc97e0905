/* test_dtype.c - types of elements: names, sizes, and the numbers that files have for them. */
#include "tf_types.h"
#include "unit.h"

#include <millrace/dtype.h>

#include <string.h>

#define N_TYPES 29

static void every_type_has_a_name_of_its_own(void **state)
{
    for (int i = 1; i <= N_TYPES; i++) {
        assert_non_null(mr_dtype_name(i));
        for (int j = 1; j < i; j++)
            assert_string_not_equal(mr_dtype_name(i), mr_dtype_name(j));
    }
    assert_string_equal(mr_dtype_name(MR_DT_BF16), "bfloat16");
}

static void what_is_no_type_has_neither_name_nor_size(void **state)
{
    static const int numbers[] = {MR_DT_NONE, N_TYPES + 1, 1000, -1};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_null(mr_dtype_name(numbers[i]));
        assert_int_equal(mr_dtype_bits(numbers[i]), 0);
        assert_int_equal(mr_dtype_size(numbers[i]), 0);
        assert_int_equal(mr_tf_type(numbers[i]), 0);
    }
}

static void sizes_are_those_of_c(void **state)
{
    assert_int_equal(mr_dtype_size(MR_DT_F32), sizeof(float));
    assert_int_equal(mr_dtype_size(MR_DT_F64), sizeof(double));
    assert_int_equal(mr_dtype_size(MR_DT_U8), 1);
    assert_int_equal(mr_dtype_size(MR_DT_I64), sizeof(int64_t));
    assert_int_equal(mr_dtype_size(MR_DT_C128), 16);
    assert_int_equal(mr_dtype_size(MR_DT_STRING), 0);
    assert_int_equal(mr_dtype_bits(MR_DT_F6_E2M3), 6);
    assert_int_equal(mr_dtype_size(MR_DT_F6_E2M3), 0);
}

/* tensorflow/core/framework/types.proto */
static void tensorflow_has_its_own_numbers(void **state)
{
    static const struct {
        int dtype;
        unsigned number;
    } of_tf[] = {
        {MR_DT_F32, 1},     {MR_DT_F64, 2},      {MR_DT_I32, 3},      {MR_DT_U8, 4},
        {MR_DT_I16, 5},     {MR_DT_I8, 6},       {MR_DT_STRING, 7},   {MR_DT_C64, 8},
        {MR_DT_I64, 9},     {MR_DT_BOOL, 10},    {MR_DT_QINT8, 11},   {MR_DT_QUINT8, 12},
        {MR_DT_QINT32, 13}, {MR_DT_BF16, 14},    {MR_DT_QINT16, 15},  {MR_DT_QUINT16, 16},
        {MR_DT_U16, 17},    {MR_DT_C128, 18},    {MR_DT_F16, 19},     {MR_DT_U32, 22},
        {MR_DT_U64, 23},    {MR_DT_F8_E5M2, 24}, {MR_DT_F8_E4M3, 25}, {MR_DT_NONE, 0},
        {MR_DT_NONE, 20},   {MR_DT_NONE, 21},    {MR_DT_NONE, 26},    {MR_DT_NONE, 1000},
    };
    for (unsigned i = 0; i < sizeof of_tf / sizeof *of_tf; i++) {
        assert_int_equal(mr_tf_type_of(of_tf[i].number), of_tf[i].dtype);
        if (of_tf[i].dtype)
            assert_int_equal(mr_tf_type(of_tf[i].dtype), of_tf[i].number);
    }
    assert_int_equal(mr_tf_type(MR_DT_F4), 0);
    assert_int_equal(mr_tf_type_of(UINT64_MAX), MR_DT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_name_of_its_own),
        cmocka_unit_test(what_is_no_type_has_neither_name_nor_size),
        cmocka_unit_test(sizes_are_those_of_c),
        cmocka_unit_test(tensorflow_has_its_own_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
