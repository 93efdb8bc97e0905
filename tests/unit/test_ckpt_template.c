/* test_ckpt_template.c - a format that is no part of the library, through the library: saved, saved
 * again, drained, restored, read, verified, converted, cleaned up.  And the table of formats
 * itself.
 *
 * The linker gives this program a table with one row more (--wrap). */
#include "unit.h"

#include "ckpt_kit.h"
#include "ckpt_session.h"
#include "ckpt_template.h"
#include "convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAIN ((enum mr_checkpoint_format)(MR_CHECKPOINT_SAFETENSORS + 1)) /* behind the last */

const struct mr_ckpt_format *__real_mr_ckpt_format_row(unsigned i);
const struct mr_ckpt_format *__wrap_mr_ckpt_format_row(unsigned i);

const struct mr_ckpt_format *__wrap_mr_ckpt_format_row(unsigned i)
{
    return i == PLAIN ? &template_format : __real_mr_ckpt_format_row(i);
}

static void the_table_is_complete(void **state)
{
    char names[256] = "";
    const struct mr_ckpt_format *row;
    unsigned n;
    (void)state;
    for (n = 0; (row = __real_mr_ckpt_format_row(n)); n++) {
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", n ? "|" : "",
                 row->name);
        assert_true(row->title && row->ending && row->ending[0] == '.');
        assert_true(row->read_head && row->lay_out && row->write_head);
        assert_true(!row->side_ending == !row->read_side);
        assert_true(!row->data_name == !row->is_data);
        for (unsigned i = 0; i < n; i++)
            assert_string_not_equal(row->ending, __real_mr_ckpt_format_row(i)->ending);
    }
    assert_int_equal(n, PLAIN);
    assert_string_equal(names, MR_CKPT_FORMAT_NAMES);
}

static void it_is_saved_drained_and_restored(void **state)
{
    kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(KIT_LARGE);
    for (enum mr_checkpoint_mode mode = 0; mode <= MR_CHECKPOINT_SYNC; mode++) {
        struct mr_checkpoint_opts o = {.format = PLAIN,
                                       .mode = mode,
                                       .keep = 2,
                                       .drain_dir = kit_slow,
                                       .packed = mode == MR_CHECKPOINT_BURST};
        struct mr_checkpoint *c = kit_open(k, o, NULL);
        for (uint64_t step = 1; step <= 4; step++)
            kit_save(c, k, 10 * mode + step);
        assert_int_equal(kit_save_version(c, k, 10 * mode + 4, 7), 0);
        kit_close(c);
        kit_assert_found(k, kit_fast, NULL, 10 * mode + 4, 7);
        kit_assert_found(k, NULL, kit_slow, 10 * mode + 4, 7);
        assert_int_equal(kit_count(kit_slow, ".plain"), 2);
        assert_int_equal(kit_count(kit_fast, ".tmp") + kit_count(kit_slow, ".tmp"), 0);
    }
    ckpt_kit_free(k);
}

/* TensorFlow -> plain -> safetensors, every tensor verified on its way. */
static void it_is_converted_from_and_to_other_formats(void **state)
{
    struct tempdir *dir = kit_begin(state);
    struct ckpt_kit *k = ckpt_kit_new(70000);
    char from[600], to[600], path[MR_CKPT_MAX_PATH];
    struct mr_checkpoint *c = kit_open(k, (struct mr_checkpoint_opts){0}, NULL);
    kit_save(c, k, 5);
    kit_close(c);
    snprintf(path, sizeof path, "%s", kit_fast);
    for (unsigned i = 0; i < 2; i++) {
        struct mr_convert_opts o = {.format = i ? MR_CHECKPOINT_SAFETENSORS : PLAIN};
        struct mr_ckpt_file *file = NULL;
        struct mr_error err = {0};
        snprintf(from, sizeof from, "%.500s%s", path, i ? "" : "/model.ckpt-5");
        snprintf(to, sizeof to, "%s/to-%u", dir->path, i);
        if (mr_ckpt_file_open(from, &file, &err) || mr_ckpt_convert(file, to, &o, path, &err))
            fail_msg("%s", err.text);
        mr_ckpt_file_close(file);
        assert_true(mr_ends_in(path, i ? "model.ckpt-5.safetensors" : "model.ckpt-5.plain"));
        kit_assert_found(k, to, NULL, 5, 0);
    }
    ckpt_kit_free(k);
}

static void its_tensors_are_read_and_damage_is_found(void **state)
{
    kit_begin(state);
    float w[4][5];
    for (unsigned i = 0; i < 20; i++)
        w[i / 5][i % 5] = (float)i;
    struct mr_array a[] = {{"w", MR_DT_F32, 2, {4, 5}, w}};
    struct mr_checkpoint_opts o = {.dir = kit_fast, .format = PLAIN, .mode = MR_CHECKPOINT_SYNC};
    struct mr_checkpoint *c;
    struct mr_checkpoint_reader *r = NULL;
    struct mr_checkpoint_verdict v;
    float row[2];
    assert_int_equal(mr_checkpoint_open(a, 1, &o, &c, NULL), 0);
    assert_int_equal(mr_checkpoint_begin(c, 3, NULL), 0);
    assert_int_equal(mr_checkpoint_close(c, NULL), 0);
    assert_int_equal(mr_checkpoint_reader_open(kit_fast, &r, NULL), 0);
    assert_int_equal(mr_checkpoint_reader_read_slice(r, (uint64_t)mr_checkpoint_reader_find(r, "w"),
                                                     (uint64_t[]){2, 3}, (uint64_t[]){1, 2}, row,
                                                     sizeof row, NULL),
                     0);
    assert_true(row[0] == 13 && row[1] == 14);
    assert_int_equal(mr_checkpoint_reader_verify(r, NULL, &v, NULL), 0);
    mr_checkpoint_reader_close(r);
    for (unsigned i = 0; i < 2; i++) { /* a tensor, then the header */
        struct mr_error err = {0};
        r = NULL;
        kit_damage(kit_fast, "model.ckpt-3.plain", i ? 60 : 2 * 4096);
        int e = mr_checkpoint_reader_open(kit_fast, &r, &err);
        e = e ? e : mr_checkpoint_reader_verify(r, NULL, &v, &err);
        assert_true(e == -EBADMSG && err.text[0] && !r == (i == 1));
        mr_checkpoint_reader_close(r);
    }
}

static void types_that_it_lacks_are_refused(void **state)
{
    kit_begin(state);
    char text[8] = "";
    struct mr_array a[] = {{"s", MR_DT_STRING, 1, {1}, text}};
    struct mr_checkpoint_opts o = {.dir = kit_fast, .format = PLAIN};
    struct mr_checkpoint *c = NULL;
    assert_int_equal(mr_checkpoint_open(a, 1, &o, &c, NULL), -EINVAL);
    o.format = PLAIN + 1;
    assert_int_equal(mr_checkpoint_open(a, 1, &o, &c, NULL), -EINVAL);
    assert_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        WITH_TEMPDIR(it_is_saved_drained_and_restored),
        WITH_TEMPDIR(it_is_converted_from_and_to_other_formats),
        WITH_TEMPDIR(its_tensors_are_read_and_damage_is_found),
        WITH_TEMPDIR(types_that_it_lacks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
