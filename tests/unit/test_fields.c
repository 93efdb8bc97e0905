/* test_fields.c - a record written is the record read; what is absent or of another kind is
 * nothing, never a wrong value.  Each experiment has a number and a name. */
#include "unit.h"

#include "points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MR_FIELDS_tide(F)                                                                          \
    F(TEXT, place)                                                                                 \
    F(FLAG, high)                                                                                  \
    F(REAL, height_m)                                                                              \
    F(COUNT, waves)                                                                                \
    F(LIST, each_height_m)                                                                         \
    F(PART, gauge)
MR_RECORD(tide)

static void what_is_written_is_read(void **state)
{
    const double heights[] = {1.5, 2.5};
    struct mr_json *gauge = mr_json_object();
    (void)state;
    mr_json_set(gauge, "name", mr_json_string("north"));
    struct mr_json *j = mr_tide_json(&(struct mr_tide){.place = "Brest",
                                                       .high = 1,
                                                       .height_m = 2.25,
                                                       .waves = 9007199254740992.0,
                                                       .each_height_m = mr_number_list(heights, 2),
                                                       .gauge = gauge});
    struct mr_tide t = mr_tide_of(j);
    int64_t waves;
    assert_string_equal(t.place, "Brest");
    assert_true(t.high && t.height_m == 2.25 && t.waves == 9007199254740992.0);
    assert_int_equal(mr_json_integer(mr_json_at(j, "waves"), &waves), 0);
    assert_true(waves == 9007199254740992);
    assert_int_equal(mr_json_len(t.each_height_m), 2);
    assert_true(mr_json_number(mr_json_item(t.each_height_m, 1)) == 2.5);
    assert_string_equal(mr_json_text(mr_json_at(t.gauge, "name")), "north");
    mr_json_free(j);
}

static void what_is_not_known_is_null(void **state)
{
    struct mr_tide none = mr_tide_of(NULL);
    struct mr_json *j = mr_tide_json(&none);
    (void)state;
    assert_true(!none.place && !none.high && isnan(none.height_m) && isnan(none.waves));
    assert_true(!none.each_height_m && !none.gauge);
    for (const struct mr_result_field *f = mr_tide_fields(); f->name; f++)
        if (f->kind == MR_FIELD_FLAG)
            assert_false(mr_json_is_true(mr_json_at(j, f->name)));
        else
            assert_true(mr_json_is_null(mr_json_at(j, f->name)));
    struct mr_tide again = mr_tide_of(j);
    assert_true(!again.place && isnan(again.waves) && !again.gauge);
    mr_json_free(j);
}

static void a_value_of_another_kind_is_nothing(void **state)
{
    static const char text[] = "{\"place\": 3, \"high\": \"yes\", \"height_m\": \"tall\", "
                               "\"waves\": [], \"each_height_m\": {\"a\": 1}, \"gauge\": null}";
    struct mr_json *j = mr_json_parse(text, strlen(text)), *list = mr_json_parse("[1]", 3);
    struct mr_tide t = mr_tide_of(j);
    (void)state;
    assert_true(!t.place && !t.high && isnan(t.height_m) && isnan(t.waves));
    assert_true(!t.each_height_m && !t.gauge);
    assert_true(isnan(mr_tide_of(list).height_m));
    mr_json_free(j);
    mr_json_free(list);
}

static void one_field_is_read_alone(void **state)
{
    struct mr_json *j = mr_json_object();
    (void)state;
    mr_tide_put(j, &(struct mr_tide){.place = "Brest", .high = 1, .height_m = 2});
    assert_string_equal(mr_field_text(MR_FIELD(tide, place), j), "Brest");
    assert_true(mr_field_number(MR_FIELD(tide, height_m), j) == 2);
    assert_true(mr_field_flag(MR_FIELD(tide, high), j));
    assert_null(mr_field_list(MR_FIELD(tide, each_height_m), j));
    assert_int_equal(MR_FIELD(tide, height_m)->at, offsetof(struct mr_tide, height_m));
    assert_int_equal(MR_FIELD(tide, place)->kind, MR_FIELD_TEXT);
    mr_json_free(j);
}

static void putting_a_record_keeps_the_rest_of_an_object(void **state)
{
    struct mr_json *j = mr_json_object();
    (void)state;
    mr_json_set(j, "more", mr_json_int(7));
    mr_json_set(j, "place", mr_json_string("Cadiz"));
    mr_tide_put(j, &(struct mr_tide){.place = "Brest"});
    assert_true(mr_json_number(mr_json_at(j, "more")) == 7);
    assert_string_equal(mr_json_text(mr_json_at(j, "place")), "Brest");
    mr_json_free(j);
}

static void experiments_have_numbers_and_names(void **state)
{
    (void)state;
    for (int i = 0; i < MR_N_EXPERIMENTS; i++)
        assert_int_equal(mr_experiment_of(mr_experiment_name((unsigned)i)), i);
    assert_null(mr_experiment_name(MR_N_EXPERIMENTS));
    assert_int_equal(mr_experiment_of("overlaps"), -1);
    assert_string_equal(mr_experiment_name(MR_EXPERIMENT_overlap), "overlap");
}

static void results_are_found_by_name(void **state)
{
    static const char text[] = "[{\"experiment\": 4}, {}, {\"experiment\": \"files\", \"points\": "
                               "[{\"samples\": 5}]}]";
    struct mr_json *list = mr_json_parse(text, strlen(text));
    const struct mr_json *files = mr_result_find(list, "files");
    (void)state;
    assert_int_equal(mr_result_n_points(files), 1);
    assert_true(mr_files_point_of(mr_result_point(files, 0)).samples == 5);
    assert_null(mr_result_point(files, 1));
    assert_null(mr_result_find(list, "read"));
    assert_null(mr_result_find(files, "files"));
    assert_int_equal(mr_result_n_points(NULL), 0);
    mr_json_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(a_value_of_another_kind_is_nothing),
        cmocka_unit_test(one_field_is_read_alone),
        cmocka_unit_test(putting_a_record_keeps_the_rest_of_an_object),
        cmocka_unit_test(experiments_have_numbers_and_names),
        cmocka_unit_test(results_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
