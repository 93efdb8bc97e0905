/* test_smaller_images.c - images of a data set made smaller, and the advice to store them so.  What
 * is advised does not depend on this machine: the rates that it is compared with are made up. */
#include "unit.h"

#include "device.h"
#include "image_samples.h"
#include "scratch_dir.h"
#include "smaller_advice.h"
#include "train_set.h"

#include <millrace/image.h>

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N    10
#define SIDE 64

uint64_t __real_mr_free_bytes(int fd);
uint64_t __wrap_mr_free_bytes(int fd);

/* The wrapped call has no context; 0: what there is. */
static uint64_t free_bytes;

uint64_t __wrap_mr_free_bytes(int fd)
{
    return free_bytes ? free_bytes : __real_mr_free_bytes(fd);
}

static void write_jpeg(struct tempdir *t, const char *name, unsigned width, unsigned height,
                       enum sample_colour colour)
{
    struct photo p = sample_photo(width, height, 3);
    struct jpeg_kind kind = {.colour = colour, .h = colour == SAMPLE_YCC ? 2 : 1, .v = 1};
    struct sample s = sample_jpeg(&p, &kind);
    tempdir_write(t, name, s.bytes, s.len);
    free(s.bytes);
    free(p.rgb);
}

static void write_png(struct tempdir *t, const char *name, unsigned width, unsigned height)
{
    struct photo p = sample_photo(width, height, 5);
    struct png_kind kind = {.colour_type = 2, .bits = 8};
    struct sample s = sample_png(&p, &kind, NULL);
    tempdir_write(t, name, s.bytes, s.len);
    free(s.bytes);
    free(p.rgb);
}

static struct mr_dataset *open_set(struct tempdir *t, const char *name)
{
    struct mr_dataset *d;
    struct mr_error err = {0};
    if (mr_dataset_open(tempdir_path(t, name), &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static struct mr_smaller_opts example(struct tempdir *t, struct mr_dataset *d)
{
    return (struct mr_smaller_opts){
        .data = d, .side = SIDE, .scratch = t->path, .of_its_own = 1, .box_s = 60};
}

static struct mr_smaller_set make(const struct mr_smaller_opts *o)
{
    struct mr_smaller_set s;
    struct mr_error err = {0};
    if (mr_smaller_set_make(o, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

/* What the i-th file of a data set is; its bytes are to be freed. */
static struct mr_image_info look_at(struct mr_dataset *d, uint64_t i, struct sample *file)
{
    struct mr_image_info info;
    struct mr_decoder *dec;
    char path[PATH_MAX];
    assert_true(mr_dataset_name(d, i, path, sizeof path) > 0);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    file->bytes = malloc(1 << 20);
    file->len = fread(file->bytes, 1, 1 << 20, f);
    fclose(f);
    assert_int_equal(mr_decoder_new(NULL, &dec, NULL), 0);
    assert_int_equal(mr_decoder_probe(dec, file->bytes, file->len, &info), 0);
    float *slot = malloc(mr_decoder_bytes(NULL));
    assert_int_equal(mr_decoder_run(dec, file->bytes, file->len, 0, slot), 0);
    free(slot);
    mr_decoder_free(dec);
    return info;
}

static void photos_become_smaller_and_keep_their_shape(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_smaller_opts o = example(*state, d);
    unsigned entries = tempdir_count(o.scratch);
    struct mr_smaller_set s = make(&o);
    assert_non_null(s.data);
    assert_int_equal(mr_dataset_size(s.data), N);
    assert_int_equal(s.n_files, N);
    assert_int_equal(s.n_images, N);
    assert_int_equal(s.n_looked_at, N);
    assert_int_equal(s.n_larger, N);
    assert_int_equal(s.n_broken, 0);
    assert_true(s.shorter_side > SIDE && s.bytes_after < s.bytes_before);
    for (uint64_t i = 0; i < N; i++) {
        struct sample was, is;
        struct mr_image_info a = look_at(d, i, &was), b = look_at(s.data, i, &is);
        assert_int_equal(b.width < b.height ? b.width : b.height, SIDE);
        assert_true(fabs((double)a.width / a.height - (double)b.width / b.height) < 0.05);
        assert_true(is.len < was.len);
        free(was.bytes);
        free(is.bytes);
    }
    mr_smaller_set_fini(&s);
    assert_int_equal(tempdir_count(o.scratch), entries);
    mr_dataset_unref(d);
}

static void every_kind_of_image_is_taken_and_broken_ones_are_not(void **state)
{
    struct tempdir *t = *state;
    write_jpeg(t, "mixed/a.jpg", 200, 100, SAMPLE_YCC);
    write_jpeg(t, "mixed/b.jpg", 100, 240, SAMPLE_GREY);
    write_jpeg(t, "mixed/c.jpg", 150, 150, SAMPLE_CMYK);
    write_png(t, "mixed/d.png", 120, 90);
    tempdir_text(t, "mixed/e.jpg", "no image at all");
    write_jpeg(t, "mixed/f.jpg", 40, 30, SAMPLE_YCC); /* as small as it need be */
    struct mr_dataset *d = open_set(t, "mixed");
    struct mr_smaller_opts o = example(t, d);
    struct mr_smaller_set s = make(&o);
    assert_int_equal(s.n_looked_at, 6);
    assert_int_equal(s.n_broken, 1);
    assert_int_equal(s.n_larger, 4);
    assert_int_equal(s.n_images, 5);
    assert_int_equal(s.n_files, 6); /* as many as there were; the first one twice */
    assert_int_equal(s.shorter_side, 100);
    unsigned colours[] = {3, 1, 3, 3};
    for (uint64_t i = 0; i < 4; i++) {
        struct sample is;
        struct mr_image_info info = look_at(s.data, i, &is);
        assert_int_equal(info.format, MR_IMAGE_JPEG);
        assert_int_equal(info.components, colours[i]);
        assert_int_equal(info.width < info.height ? info.width : info.height, SIDE);
        free(is.bytes);
    }
    struct sample was, is;
    look_at(d, 5, &was);
    look_at(s.data, 4, &is);
    assert_int_equal(is.len, was.len);
    assert_memory_equal(is.bytes, was.bytes, is.len);
    free(was.bytes);
    free(is.bytes);
    mr_smaller_set_fini(&s);
    o.of_its_own = 0;
    s = make(&o);
    assert_int_equal(s.n_files, 5); /* each once */
    mr_smaller_set_fini(&s);
    mr_dataset_unref(d);
}

static void images_that_are_small_enough_are_left_alone(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_smaller_opts o = example(*state, d);
    unsigned entries = tempdir_count(o.scratch);
    o.side = 1000;
    struct mr_smaller_set s = make(&o);
    assert_null(s.data);
    assert_int_equal(s.n_larger, 0);
    assert_in_range(s.shorter_side, 50, 999);
    assert_int_equal(tempdir_count(o.scratch), entries);
    mr_smaller_set_fini(&s);
    mr_dataset_unref(d);
}

static void a_set_without_images_has_nothing_to_make_smaller(void **state)
{
    tempdir_text(*state, "texts/a.jpg", "no image");
    tempdir_text(*state, "texts/b.jpg", "nor this");
    struct mr_dataset *d = open_set(*state, "texts");
    struct mr_smaller_opts o = example(*state, d);
    struct mr_smaller_set s = make(&o);
    assert_null(s.data);
    assert_int_equal(s.n_broken, 2);
    mr_smaller_set_fini(&s);
    mr_dataset_unref(d);
}

/* A header says nothing about the rest of a file. */
static void images_that_end_in_the_middle_cannot_be_made_smaller(void **state)
{
    struct photo p = sample_photo(200, 200, 3);
    struct sample whole = sample_jpeg(&p, &(struct jpeg_kind){.quality = 90});
    tempdir_write(*state, "cut/a.jpg", whole.bytes, whole.len / 2);
    free(whole.bytes);
    free(p.rgb);
    struct mr_dataset *d = open_set(*state, "cut");
    struct mr_smaller_opts o = example(*state, d);
    struct mr_smaller_set s;
    struct mr_error err = {0};
    unsigned entries = tempdir_count(o.scratch);
    assert_int_equal(mr_smaller_set_make(&o, &s, &err), -EBADMSG);
    assert_string_equal(err.text, "no image could be made smaller");
    assert_int_equal(tempdir_count(o.scratch), entries);
    mr_dataset_unref(d);
}

static void what_there_is_no_room_for_is_not_made(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_smaller_opts o = example(*state, d);
    unsigned entries = tempdir_count(o.scratch);
    struct mr_smaller_set s;
    struct mr_error err = {0};
    free_bytes = 4096;
    assert_int_equal(mr_smaller_set_make(&o, &s, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "has 0 MB free, and trying them needs 1 MB"));
    assert_int_equal(tempdir_count(o.scratch), entries);
    free_bytes = 0;
    mr_dataset_unref(d);
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_smaller_opts o = example(*state, d);
    struct mr_smaller_set s;
    struct mr_error err = {0};
    o.scratch = "/nowhere/at/all";
    assert_int_equal(mr_smaller_set_make(&o, &s, &err), -ENOENT);
    assert_non_null(strstr(err.text, o.scratch));
    mr_dataset_unref(d);
}

struct patience {
    unsigned asked, until;
};

static int is_over(void *ctx)
{
    struct patience *p = ctx;
    return ++p->asked > p->until;
}

static void it_can_be_stopped_at_any_time(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", N, 2);
    struct mr_smaller_opts o = example(*state, d);
    unsigned entries = tempdir_count(o.scratch);
    struct mr_smaller_set s;
    /* It asks for each image it looks at, each it makes smaller, each it writes. */
    for (unsigned n = 0; n < 3 * N; n++) {
        struct patience p = {.until = n};
        o.should_stop = is_over;
        o.ctx = &p;
        assert_int_equal(mr_smaller_set_make(&o, &s, NULL), -ECANCELED);
        assert_int_equal(tempdir_count(o.scratch), entries);
    }
    mr_dataset_unref(d);
}

/* ---- advice ---- */

static const struct mr_decoder_opts decode = {.width = 56, .height = 28}; /* 64 are enough */

/* A storage of 1 MB/s, of which a pipeline with one worker makes the most. */
static struct mr_advice_opts narrow(struct tempdir *t)
{
    static const char text[] = "name = narrow\nread_mb_per_s = 1\nwrite_mb_per_s = 1\n";
    struct mr_advice_opts o = {.data = train_set_new(t, "set", N, 2),
                               .decode = &decode,
                               .now = {.threads = 1, .batch = 4, .prefetch = 1},
                               .scratch = t->path,
                               .runs = 1,
                               .box_s = 0.01};
    struct mr_device_profile p;
    assert_int_equal(mr_device_profile_parse(text, strlen(text), "profile", &p, NULL), 0);
    assert_int_equal(mr_device_new(&p, &o.storage, NULL), 0);
    return o;
}

static struct mr_findings findings(void)
{
    return (struct mr_findings){.cores = 2,
                                .warm_cpu_s = 1e-4,
                                .crowded_cpu_s = 2e-4,
                                .image_cpu_s = 1e-4,
                                .read_cpu_s = 1e-5};
}

static void clean_up(struct mr_advice_opts *o)
{
    mr_dataset_unref(o->data);
    mr_device_close(o->storage);
}

static void check_text(const struct mr_smaller_advice *s, const struct mr_advice *a,
                       const char *words, int measured)
{
    struct mr_json *j = mr_smaller_json(s, a, "for no reason");
    const char *text = mr_json_text(mr_json_at(j, "text"));
    if (!strstr(text, words))
        fail_msg("'%s' should say '%s'", text, words);
    assert_int_equal(isfinite(mr_json_number(mr_json_at(j, "measured_images_per_s"))), measured);
    assert_int_equal(isfinite(mr_json_number(mr_json_at(j, "error"))), measured);
    mr_json_free(j);
}

static struct mr_smaller_advice prove(const struct mr_advice_opts *o, const struct mr_advice *a)
{
    struct mr_findings f = findings();
    struct mr_smaller_advice s;
    struct mr_error err = {0};
    unsigned entries = tempdir_count(o->scratch);
    if (mr_smaller_prove(o, &f, a, &s, &err))
        fail_msg("%s", err.text);
    assert_int_equal(tempdir_count(o->scratch), entries);
    assert_null(s.set.data);
    return s;
}

static void a_gain_that_is_predicted_is_measured(void **state)
{
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1};
    struct mr_smaller_advice s = prove(&o, &a);
    char text[96];
    assert_int_equal(s.side, SIDE);
    assert_true(s.image_cpu_s > 0 && s.predicted_per_s > 1.03 && s.measured.per_s > 0);
    /* The storage's rate and the size of a file are all that matters here. */
    assert_true(s.predicted_per_s < 2e6 / s.set.bytes_after);
    mr_smaller_text(&s, text, sizeof text);
    assert_memory_equal(text, "shorter side 64 instead of ", 27);
    assert_non_null(strstr(text, ", JPEG quality 90"));
    check_text(&s, &a, "Store the images smaller (shorter side 64 instead of ", 1);
    o.step_s = 0.001;
    s = prove(&o, &a);
    assert_true(s.measured.per_s > 0 && s.measured.per_s <= 4 / 0.001);
    clean_up(&o);
}

static void where_nothing_is_gained_nothing_is_recommended(void **state)
{
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1e12};
    struct mr_smaller_advice s = prove(&o, &a);
    assert_true(isfinite(s.predicted_per_s) && isnan(s.measured.per_s));
    check_text(&s, &a, "would not help: something else limits", 0);
    clean_up(&o);
}

static void what_did_not_measure_better_is_not_recommended(void **state)
{
    struct mr_smaller_advice s = {.side = 64,
                                  .set = {.shorter_side = 375},
                                  .predicted_per_s = 2000,
                                  .measured = {.per_s = 1020}};
    struct mr_advice a = {.measured.per_s = 1000};
    (void)state;
    check_text(&s, &a, "are not recommended: they measured 1020 images/s, 2% more than the 1000",
               1);
    s.measured.per_s = 900;
    check_text(&s, &a, "are not recommended: they measured 900 images/s, 10% less than the 1000",
               1);
    s.measured.per_s = 1500;
    check_text(&s, &a, "they measured 1500 images/s, 50% more than the 1000", 1);
}

/* A model that is off may see no gain where there is one. */
static void a_model_that_is_off_does_not_decide_what_is_run(void **state)
{
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1e12, .standing = MR_ADVICE_NO_MODEL};
    struct mr_smaller_advice s = prove(&o, &a);
    assert_true(s.measured.per_s > 0);
    clean_up(&o);
}

static void small_images_are_called_small_enough(void **state)
{
    static const struct mr_decoder_opts large = {.width = 1000, .height = 10};
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1};
    o.decode = &large;
    struct mr_smaller_advice s = prove(&o, &a);
    assert_int_equal(s.side, 1143);
    assert_true(isnan(s.predicted_per_s) && isnan(s.measured.per_s));
    check_text(&s, &a, "no larger than training needs", 0);
    check_text(NULL, &a, "Smaller stored images were not tried: for no reason.", 0);
    clean_up(&o);
}

static void another_storage_would_prove_nothing(void **state)
{
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1};
    struct mr_findings f = findings();
    struct mr_smaller_advice s;
    struct mr_error err = {0};
    mr_device_close(o.storage);
    o.storage = NULL;
    o.scratch = "/proc";
    assert_int_equal(mr_smaller_prove(&o, &f, &a, &s, &err), -EXDEV);
    assert_non_null(strstr(err.text, "/proc is on another storage"));
    clean_up(&o);
}

static void the_real_storage_is_read_cold(void **state)
{
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1};
    mr_device_close(o.storage);
    o.storage = NULL;
    struct mr_smaller_advice s = prove(&o, &a);
    assert_non_null(s.proof);
    assert_int_equal(s.set.n_files, N);
    clean_up(&o);
}

static void proving_it_can_be_stopped(void **state)
{
    struct mr_advice_opts o = narrow(*state);
    struct mr_advice a = {.best = o.now, .predicted_per_s = 1};
    struct mr_findings f = findings();
    struct mr_smaller_advice s;
    unsigned entries = tempdir_count(o.scratch);
    for (unsigned n = 0; n < 40; n += 7) {
        struct patience p = {.until = n};
        o.should_stop = is_over;
        o.ctx = &p;
        int r = mr_smaller_prove(&o, &f, &a, &s, NULL);
        assert_int_equal(r, -ECANCELED);
        assert_int_equal(tempdir_count(o.scratch), entries);
    }
    clean_up(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(photos_become_smaller_and_keep_their_shape),
        WITH_TEMPDIR(every_kind_of_image_is_taken_and_broken_ones_are_not),
        WITH_TEMPDIR(images_that_are_small_enough_are_left_alone),
        WITH_TEMPDIR(a_set_without_images_has_nothing_to_make_smaller),
        WITH_TEMPDIR(images_that_end_in_the_middle_cannot_be_made_smaller),
        WITH_TEMPDIR(what_there_is_no_room_for_is_not_made),
        WITH_TEMPDIR(a_folder_that_is_not_there_is_named),
        WITH_TEMPDIR(it_can_be_stopped_at_any_time),
        WITH_TEMPDIR(a_gain_that_is_predicted_is_measured),
        WITH_TEMPDIR(where_nothing_is_gained_nothing_is_recommended),
        cmocka_unit_test(what_did_not_measure_better_is_not_recommended),
        WITH_TEMPDIR(a_model_that_is_off_does_not_decide_what_is_run),
        WITH_TEMPDIR(small_images_are_called_small_enough),
        WITH_TEMPDIR(another_storage_would_prove_nothing),
        WITH_TEMPDIR(the_real_storage_is_read_cold),
        WITH_TEMPDIR(proving_it_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
