/* test_sized.c - programs built with older and with newer headers than the library's.
 *
 * An older program's struct is a heap block of just its bytes, so a sanitizer sees a read or write
 * beyond them; a newer one has a field behind the last that the library knows. */
#include "sized.h"
#include "tempdir.h"
#include "unit.h"

#include <millrace/checkpoint.h>
#include <millrace/image.h>
#include <millrace/pipeline.h>
#include <millrace/trace.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* malloc that the compiler does not know, else it warns of structs cut short. */
static void *(*const volatile get)(size_t) = malloc;

/* What `whole` was before the field at `end` came. */
static void *older(const void *whole, size_t end)
{
    void *block = get(end);
    assert_non_null(block);
    return memcpy(block, whole, end);
}

/* `whole` with one more field, which is `later`. */
static void *newer(const void *whole, size_t size, uint64_t later)
{
    unsigned char *block = get(size + sizeof later);
    assert_non_null(block);
    memcpy(block, whole, size);
    memcpy(block + size, &later, sizeof later);
    return block;
}
#define NEWER(whole) (sizeof *(whole) + sizeof(uint64_t))

static void assert_refused(int code, const struct mr_error *err, const char *what)
{
    assert_int_equal(code, -E2BIG);
    assert_int_equal(err->code, -E2BIG);
    assert_non_null(strstr(err->text, what));
    assert_non_null(strstr(err->text, "built for a newer version"));
    assert_non_null(strstr(err->text, mr_version()));
}

static const char *folder(void **state)
{
    const struct tempdir *t = *state;
    return t->path;
}

static void a_shorter_struct_is_filled_with_zeros(void **state)
{
    const unsigned char from[4] = {1, 2, 3, 4};
    unsigned char to[6];
    memset(to, 9, sizeof to);
    assert_int_equal(mr_take_sized(to, 6, from, 4, "x", NULL), 0);
    assert_memory_equal(to, "\1\2\3\4\0\0", 6);
    memset(to, 9, sizeof to);
    assert_int_equal(mr_take_sized(to, 6, NULL, 4, "x", NULL), 0);
    assert_memory_equal(to, "\0\0\0\0\0\0", 6);
}

static void a_longer_struct_is_taken_while_its_tail_is_zero(void **state)
{
    unsigned char from[6] = {1, 2, 3, 4, 0, 0}, to[4] = {9, 9, 9, 9};
    struct mr_error err = {0};
    assert_int_equal(mr_take_sized(to, 4, from, 6, "x", &err), 0);
    assert_memory_equal(to, from, 4);
    from[5] = 1;
    memset(to, 9, sizeof to);
    assert_refused(mr_take_sized(to, 4, from, 6, "x", &err), &err, "x: a field");
    assert_memory_equal(to, "\11\11\11\11", 4);
}

static void outputs_are_cut_or_filled_with_zeros(void **state)
{
    unsigned char to[6];
    memset(to, 9, sizeof to);
    mr_give_sized(to, 2, "\1\2\3\4", 4);
    assert_memory_equal(to, "\1\2\11\11\11\11", 6);
    mr_give_sized(to, 6, "\1\2\3\4", 4);
    assert_memory_equal(to, "\1\2\3\4\0\0", 6);
    mr_give_sized(NULL, 6, "\1\2\3\4", 4);
}

static int write_index(void *ctx, const struct mr_map_input *in, void *slot)
{
    memcpy(slot, &in->index, sizeof in->index);
    return 0;
}

static const struct mr_pipeline_opts ten = {.batch = 5,
                                            .threads = 1,
                                            .seed = 3,
                                            .map = write_index,
                                            .map_bytes = sizeof(uint64_t),
                                            .map_without_bytes = 1};

/* Indices that the pipeline's two batches hold. */
static void drain(struct mr_pipeline *p, uint64_t out[10])
{
    struct mr_batch *b;
    for (unsigned i = 0; i < 10; i += 5) {
        assert_int_equal(mr_pipeline_next(p, &b), 1);
        memcpy(out + i, b->data, 5 * sizeof *out);
        mr_batch_unref(b);
    }
}

static void an_older_program_runs_a_pipeline(void **state)
{
    size_t end = offsetof(struct mr_pipeline_opts, max_file_bytes);
    size_t some = offsetof(struct mr_pipeline_stats, replaced);
    struct mr_pipeline_opts *opts = older(&ten, end);
    struct mr_pipeline_stats *stats = get(some);
    struct mr_pipeline *p[2];
    struct mr_dataset *data;
    uint64_t index[2][10];

    assert_int_equal(mr_dataset_range(10, &data, NULL), 0);
    assert_int_equal(mr_pipeline_open(data, &ten, &p[0], NULL), 0);
    assert_int_equal(mr_pipeline_open_sized(data, opts, end, 0, &p[1], NULL), 0);
    for (int i = 0; i < 2; i++)
        drain(p[i], index[i]);
    assert_memory_equal(index[0], index[1], sizeof index[0]);
    mr_pipeline_get_stats_sized(p[1], stats, some);
    assert_int_equal(stats->samples, 10);
    assert_int_equal(stats->batches, 2);
    for (int i = 0; i < 2; i++)
        mr_pipeline_close(p[i]);
    mr_dataset_unref(data);
    free(opts);
    free(stats);
}

static void a_newer_program_runs_a_pipeline_unless_it_wants_more(void **state)
{
    struct mr_pipeline *p = NULL;
    struct mr_dataset *data;
    struct mr_error err = {0};
    struct mr_pipeline_opts *plain = newer(&ten, sizeof ten, 0), *more = newer(&ten, sizeof ten, 1);

    assert_int_equal(mr_dataset_range(10, &data, NULL), 0);
    assert_refused(mr_pipeline_open_sized(data, more, NEWER(more), 0, &p, &err), &err,
                   "mr_pipeline_opts");
    assert_null(p);
    assert_int_equal(mr_pipeline_open_sized(data, plain, NEWER(plain), 0, &p, NULL), 0);
    mr_pipeline_close(p);
    mr_dataset_unref(data);
    free(plain);
    free(more);
}

static void a_pipeline_takes_decoder_options_of_any_version(void **state)
{
    const struct mr_decoder_opts decode = {.width = 8, .height = 8};
    size_t end = offsetof(struct mr_decoder_opts, exact);
    struct mr_decoder_opts *old = older(&decode, end), *more = newer(&decode, sizeof decode, 1);
    struct mr_pipeline *p = NULL;
    struct mr_dataset *data;
    struct mr_error err = {0};

    tempdir_text(*state, "class/1.jpg", "no image");
    assert_int_equal(mr_dataset_open(folder(state), &data, NULL), 0);
    struct mr_pipeline_opts o = {.threads = 1, .batch = 1, .decode = more, .start_on_next = 1};
    assert_refused(mr_pipeline_open_sized(data, &o, sizeof o, NEWER(more), &p, &err), &err,
                   "mr_decoder_opts");
    assert_null(p);
    o.decode = old;
    assert_int_equal(mr_pipeline_open_sized(data, &o, sizeof o, end, &p, NULL), 0);
    mr_pipeline_close(p);
    mr_dataset_unref(data);
    free(old);
    free(more);
}

static void a_decoder_takes_options_of_any_version(void **state)
{
    const struct mr_decoder_opts opts = {.width = 8, .height = 4, .dtype = MR_DT_U8};
    size_t end = offsetof(struct mr_decoder_opts, layout);
    struct mr_decoder_opts *old = older(&opts, end), *more = newer(&opts, sizeof opts, 1);
    struct mr_decoder_stats *stats = get(sizeof stats->begin_ns);
    struct mr_decoder *d = NULL;
    struct mr_error err = {0};

    assert_int_equal(mr_decoder_bytes_sized(old, end), 8 * 4 * 3);
    assert_int_equal(mr_decoder_bytes_sized(more, NEWER(more)), 0);
    assert_refused(mr_decoder_new_sized(more, NEWER(more), &d, &err), &err, "mr_decoder_opts");
    assert_null(d);
    assert_int_equal(mr_decoder_new_sized(old, end, &d, NULL), 0);
    mr_decoder_get_stats_sized(d, stats, sizeof stats->begin_ns);
    assert_int_equal(stats->begin_ns, 0);
    mr_decoder_free(d);
    free(stats);
    free(old);
    free(more);
}

static void a_trace_takes_options_of_any_version(void **state)
{
    const struct mr_trace_opts opts = {.path = tempdir_path(*state, "run.json")};
    size_t end = offsetof(struct mr_trace_opts, ring_spans);
    struct mr_trace_opts *old = older(&opts, end), *more = newer(&opts, sizeof opts, 1);
    struct mr_trace_stats *stats = get(sizeof stats->events);
    struct mr_error err = {0};

    assert_refused(mr_trace_start_sized(more, NEWER(more), &err), &err, "mr_trace_opts");
    assert_int_equal(mr_trace_on(), 0);
    assert_int_equal(mr_trace_start_sized(old, end, NULL), 0);
    uint64_t now = mr_trace_now();
    mr_trace_span(MR_PHASE_TRAIN, now, now + 1, 0, MR_NONE);
    assert_int_equal(mr_trace_stop_sized(stats, sizeof stats->events, NULL), 0);
    assert_true(stats->events >= 1);
    free(stats);
    free(old);
    free(more);
}

static void a_checkpoint_takes_options_of_any_version(void **state)
{
    float weight = 1;
    const struct mr_array arrays[] = {{"w", MR_DT_F32, 0, {0}, &weight}};
    const struct mr_checkpoint_opts opts = {.dir = folder(state), .mode = MR_CHECKPOINT_SYNC};
    size_t end = offsetof(struct mr_checkpoint_opts, packed);
    struct mr_checkpoint_opts *old = older(&opts, end), *more = newer(&opts, sizeof opts, 1);
    struct mr_checkpoint_stats *stats = get(sizeof stats->begun);
    struct mr_checkpoint_record *record = get(sizeof record->step);
    struct mr_checkpoint *c = NULL;
    struct mr_error err = {0};
    uint64_t bytes;

    assert_refused(mr_checkpoint_open_sized(arrays, 1, more, NEWER(more), &c, &err), &err,
                   "mr_checkpoint_opts");
    assert_null(c);
    assert_refused(mr_checkpoint_memory_sized(arrays, 1, more, NEWER(more), &bytes, &err), &err,
                   "mr_checkpoint_opts");
    assert_int_equal(mr_checkpoint_open_sized(arrays, 1, old, end, &c, NULL), 0);
    assert_int_equal(mr_checkpoint_begin(c, 7, NULL), 0);
    mr_checkpoint_get_stats_sized(c, stats, sizeof stats->begun);
    assert_int_equal(stats->begun, 1);
    assert_int_equal(mr_checkpoint_get_sized(c, 0, record, sizeof record->step), 0);
    assert_int_equal(record->step, 7);
    assert_int_equal(mr_checkpoint_close(c, NULL), 0);
    free(record);
    free(stats);
    free(old);
    free(more);
}

static void restore_takes_options_and_gives_results_of_any_version(void **state)
{
    float weight = 2;
    const struct mr_array arrays[] = {{"w", MR_DT_F32, 0, {0}, &weight}};
    const struct mr_restore_opts opts = {.dir = folder(state)};
    size_t end = offsetof(struct mr_restore_opts, io_depth);
    struct mr_restore_opts *old = older(&opts, end), *more = newer(&opts, sizeof opts, 1);
    struct mr_restored *got = get(sizeof got->step);
    struct mr_checkpoint *c;
    struct mr_error err = {0};

    assert_int_equal(
        mr_checkpoint_open(arrays, 1, &(struct mr_checkpoint_opts){.dir = folder(state)}, &c, NULL),
        0);
    assert_int_equal(mr_checkpoint_begin(c, 9, NULL), 0);
    assert_int_equal(mr_checkpoint_close(c, NULL), 0);
    weight = 0;
    assert_refused(
        mr_checkpoint_restore_sized(arrays, 1, more, NEWER(more), got, sizeof got->step, &err),
        &err, "mr_restore_opts");
    assert_int_equal(mr_checkpoint_restore_sized(arrays, 1, old, end, got, sizeof got->step, NULL),
                     0);
    assert_int_equal(got->step, 9);
    assert_true(weight == 2);
    free(got);
    free(old);
    free(more);
}

static void a_reader_gives_results_of_any_version(void **state)
{
    float weight = 3;
    const struct mr_array arrays[] = {{"w", MR_DT_F32, 0, {0}, &weight}};
    const struct mr_checkpoint_watch watch = {0};
    struct mr_checkpoint_watch *more = newer(&watch, sizeof watch, 1);
    struct mr_checkpoint_info *info = get(offsetof(struct mr_checkpoint_info, bytes));
    struct mr_tensor_info *tensor = get(sizeof tensor->name);
    struct mr_checkpoint_verdict *verdict = get(sizeof verdict->bytes);
    struct mr_checkpoint *c;
    struct mr_checkpoint_reader *r;
    struct mr_error err = {0};

    assert_int_equal(
        mr_checkpoint_open(arrays, 1, &(struct mr_checkpoint_opts){.dir = folder(state)}, &c, NULL),
        0);
    assert_int_equal(mr_checkpoint_begin(c, 5, NULL), 0);
    assert_int_equal(mr_checkpoint_close(c, NULL), 0);
    assert_int_equal(mr_checkpoint_reader_open(folder(state), &r, NULL), 0);
    mr_checkpoint_reader_get_info_sized(r, info, offsetof(struct mr_checkpoint_info, bytes));
    assert_int_equal(info->step, 5);
    int64_t i = mr_checkpoint_reader_find(r, "w");
    assert_true(i >= 0);
    assert_int_equal(
        mr_checkpoint_reader_get_tensor_sized(r, (uint64_t)i, tensor, sizeof tensor->name), 0);
    assert_string_equal(tensor->name, "w");
    assert_refused(mr_checkpoint_reader_verify_sized(r, more, NEWER(more), verdict,
                                                     sizeof verdict->bytes, &err),
                   &err, "mr_checkpoint_watch");
    assert_int_equal(mr_checkpoint_reader_verify_sized(r, &watch, sizeof watch, verdict,
                                                       sizeof verdict->bytes, NULL),
                     0);
    assert_true(verdict->bytes >= sizeof weight);
    mr_checkpoint_reader_close(r);
    free(verdict);
    free(tensor);
    free(info);
    free(more);
}

#define IN_TEMPDIR(f) cmocka_unit_test_setup_teardown(f, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shorter_struct_is_filled_with_zeros),
        cmocka_unit_test(a_longer_struct_is_taken_while_its_tail_is_zero),
        cmocka_unit_test(outputs_are_cut_or_filled_with_zeros),
        cmocka_unit_test(an_older_program_runs_a_pipeline),
        cmocka_unit_test(a_newer_program_runs_a_pipeline_unless_it_wants_more),
        IN_TEMPDIR(a_pipeline_takes_decoder_options_of_any_version),
        cmocka_unit_test(a_decoder_takes_options_of_any_version),
        IN_TEMPDIR(a_trace_takes_options_of_any_version),
        IN_TEMPDIR(a_checkpoint_takes_options_of_any_version),
        IN_TEMPDIR(restore_takes_options_and_gives_results_of_any_version),
        IN_TEMPDIR(a_reader_gives_results_of_any_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
