/* test_study_few.c - a data set with hardly anything in it goes through every experiment: each
 * gives points or says why not, the page repeats that, and nothing is left behind.
 *
 * A study takes minutes because accelerators take seconds a step, the grid has many points, and
 * limits and checkpoints are files of gigabytes.  Here steps take milliseconds, of each row the
 * first and the last point are measured, and the disk claims to be nearly full.  All else is what
 * the program runs.
 *
 * The tests of the report look at a study that somebody made up; its path is the program's
 * argument.  What fields it has, one that ran must have. */
#include "unit.h"

#include "json.h"
#include "lab.h"
#include "report.h"
#include "train_set.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define QUICKER    300
#define FREE_BYTES ((uint64_t)24 << 20)

void __real_mr_lab_training(struct mr_lab *lab, double step_s, const struct mr_lab_storage *s,
                            struct mr_train_opts *out);
void __wrap_mr_lab_training(struct mr_lab *lab, double step_s, const struct mr_lab_storage *s,
                            struct mr_train_opts *out);
int __wrap_mr_lab_skips(struct mr_lab *lab, unsigned k, unsigned n);
int __real_statvfs64(const char *path, struct statvfs *out);
int __wrap_statvfs64(const char *path, struct statvfs *out);

void __wrap_mr_lab_training(struct mr_lab *lab, double step_s, const struct mr_lab_storage *s,
                            struct mr_train_opts *out)
{
    __real_mr_lab_training(lab, step_s / QUICKER, s, out);
}

int __wrap_mr_lab_skips(struct mr_lab *lab, unsigned k, unsigned n)
{
    int skips = k && k + 1 < n;
    lab->n_left_out += (unsigned)skips;
    return skips;
}

int __wrap_statvfs64(const char *path, struct statvfs *out)
{
    int r = __real_statvfs64(path, out);
    out->f_bavail = FREE_BYTES / out->f_frsize;
    return r;
}

/* Those that look at the data set, and no checkpoint, for which there is no room. */
static const char *const of_data[] = {"read",   "decode", "overlap", "activity",
                                      "phases", "files",  "verdict", NULL};

static void on_finished(void *ctx, const char *experiment, struct mr_json *result)
{
    assert_string_equal(mr_json_text(mr_json_at(result, "experiment")), experiment);
    mr_json_append(ctx, result);
}

/* Experiments of these names, NULL = all, that write to `t`; a study's results, to be freed. */
static struct mr_json *study(struct tempdir *t, struct mr_dataset *data, const char *const *only)
{
    struct mr_json *list = mr_json_array();
    struct mr_study_opts o = {.data = data,
                              .n_images = mr_dataset_size(data),
                              .data_path = "few",
                              .scratch = tempdir_mkdir(t, "scratch"),
                              .runs = 1,
                              .only = only,
                              .finished = on_finished,
                              .ctx = list};
    struct mr_error err = {0};
    struct mr_json *root = mr_json_object();
    char scratch[512];
    snprintf(scratch, sizeof scratch, "%s", o.scratch);
    o.scratch = scratch;
    if (mr_study_run(&o, &err))
        fail_msg("%s", err.text);
    assert_int_equal(tempdir_count(scratch), 0);
    mr_json_set(root, "command", mr_json_string("study"));
    mr_json_set(root, "results", list);
    return root;
}

static const struct mr_json *result_of(const struct mr_json *root, size_t i)
{
    return mr_json_item(mr_json_at(root, "results"), i);
}

static size_t n_results(const struct mr_json *root)
{
    return mr_json_len(mr_json_at(root, "results"));
}

/* Does the section of an experiment hold these words? */
static int section_says(const char *page, const char *experiment, const char *words)
{
    char head[64];
    snprintf(head, sizeof head, "<section id=\"%s\">", experiment);
    const char *begin = strstr(page, head), *at = begin ? strstr(begin, words) : NULL;
    return at && at < strstr(begin, "</section>");
}

/* Each experiment has points, or words why not; so has the page. */
static void check(const struct mr_json *root)
{
    struct mr_report_opts o = {0};
    struct mr_markup page = {0};
    struct mr_error err = {0};
    if (mr_report_render(root, &o, &page, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n_results(root); i++) {
        const struct mr_json *e = result_of(root, i);
        const char *name = mr_json_text(mr_json_at(e, "experiment"));
        const char *why = mr_json_text(mr_json_at(e, "missing"));
        assert_int_equal(mr_json_is_true(mr_json_at(e, "finished")), !why);
        if (why ? !why[0] : !mr_json_len(mr_json_at(e, "points")))
            fail_msg("%s has neither points nor words", name);
        if (!section_says(page.data, name, why ? "chip missing" : "<figure"))
            fail_msg("%s is not on the page", name);
    }
    mr_markup_fini(&page);
}

/* The most that points of an experiment delivered; of the real storage alone, or of all. */
static double most_of(const struct mr_json *root, const char *experiment, int with_emulated)
{
    double most = 0;
    for (size_t i = 0; i < n_results(root); i++) {
        const struct mr_json *e = result_of(root, i), *points = mr_json_at(e, "points");
        if (strcmp(mr_json_text(mr_json_at(e, "experiment")), experiment))
            continue;
        for (size_t k = 0; k < mr_json_len(points); k++) {
            const struct mr_json *p = mr_json_item(points, k);
            double x = mr_json_number(mr_json_at(p, "images_per_s"));
            if (x > most && (with_emulated || !mr_json_is_true(mr_json_at(p, "emulated"))))
                most = x;
        }
    }
    assert_true(most > 0);
    return most;
}

/* The bounds of the sizing are no less than anything that was measured. */
static void check_bounds(const struct mr_json *root)
{
    const struct mr_json *e = result_of(root, n_results(root) - 1);
    assert_string_equal(mr_json_text(mr_json_at(e, "experiment")), "verdict");
    const struct mr_json *p = mr_json_item(mr_json_at(e, "points"), 0);
    double files = mr_json_number(mr_json_at(p, "storage_files_per_s")),
           images = mr_json_number(mr_json_at(p, "cores_images_per_s")),
           cold = mr_json_number(mr_json_at(p, "rates.cold"));
    assert_true(files >= most_of(root, "read", 0) && files >= most_of(root, "decode", 0));
    assert_true(files >= mr_json_number(mr_json_at(p, "rates.cold_read")) && files >= cold);
    assert_true(images >= most_of(root, "decode", 1) && images >= cold);
    assert_true(images >= mr_json_number(mr_json_at(p, "rates.warm")));
    double need = mr_json_number(mr_json_at(p, "sizing.0.images_per_s_each"));
    assert_true(mr_json_number(mr_json_at(p, "sizing.0.by_storage")) >= 0.999 * files / need);
    assert_true(mr_json_number(mr_json_at(p, "sizing.0.by_cores")) >= 0.999 * images / need);
}

static const char *made_up_path;

struct made_up {                  /* a made-up value, and where its like should be */
    const struct mr_json *points; /* that were measured */
    const char *experiment;
    char path[128];
};

/* Does a point have that member?  Null is a value, too. */
static const struct mr_json *measured(const struct made_up *m, const char *path)
{
    const struct mr_json *found = NULL;
    for (size_t i = 0; i < mr_json_len(m->points); i++) {
        const struct mr_json *at = mr_json_at(mr_json_item(m->points, i), path);
        if (at && (!found || mr_json_is_null(found)))
            found = at;
    }
    return found;
}

/* Member `key` of a made-up object, and what is below it, are among the measured ones. */
static int check_field(void *ctx, const char *key, const struct mr_json *value)
{
    const struct made_up *m = ctx;
    struct made_up below = *m;
    int items = mr_json_is_array(value) && mr_json_is_object(mr_json_item(value, 0));
    snprintf(below.path, sizeof below.path, "%.90s%s%.30s", m->path, m->path[0] ? "." : "", key);
    const struct mr_json *like = measured(m, below.path);
    if (!like)
        fail_msg("%s: no point has %s, which the made-up study has", m->experiment, below.path);
    if (items && mr_json_len(like)) {
        strcat(below.path, ".0");
        mr_json_each(mr_json_item(value, 0), check_field, &below);
    } else if (mr_json_is_object(value) && mr_json_is_object(like)) {
        mr_json_each(value, check_field, &below);
    }
    return 0;
}

static struct mr_json *read_made_up(void)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(made_up_path, "r");
    if (!f)
        fail_msg("%s cannot be read", made_up_path);
    char *text = test_malloc(MOST);
    size_t len = fread(text, 1, MOST, f);
    fclose(f);
    struct mr_json *all = mr_json_parse(text, len);
    test_free(text);
    assert_non_null(all);
    return all;
}

/* Fields of an experiment that the made-up study has and this one has not fail. */
static void check_made_up(const struct mr_json *root)
{
    struct mr_json *all = read_made_up();
    const struct mr_json *list = mr_json_at(all, "results");
    size_t n = 0;
    for (size_t i = 0; i < mr_json_len(list); i++)
        for (size_t k = 0; k < n_results(root); k++) {
            const struct mr_json *made = mr_json_item(list, i), *e = result_of(root, k);
            const char *name = mr_json_text(mr_json_at(made, "experiment"));
            struct made_up m = {mr_json_at(e, "points"), name, ""};
            if (strcmp(name, mr_json_text(mr_json_at(e, "experiment"))) ||
                mr_json_text(mr_json_at(e, "missing")))
                continue;
            const struct mr_json *points = mr_json_at(made, "points");
            for (size_t p = 0; p < mr_json_len(points); p++)
                mr_json_each(mr_json_item(points, p), check_field, &m);
            n++;
        }
    assert_int_equal(n, n_results(root) - 1); /* all but checkpoints */
    mr_json_free(all);
}

/* Does one of the texts hold these words? */
static int says(const struct mr_json *texts, const char *words)
{
    for (size_t i = 0; i < mr_json_len(texts); i++)
        if (strstr(mr_json_text(mr_json_item(texts, i)), words))
            return 1;
    return 0;
}

/* Points on the processor, where it can compute at all, come with a word about the one that a quick
 * study leaves out. */
static void check_batches(const struct mr_json *e)
{
    const struct mr_json *points = mr_json_at(e, "points");
    int on_cpu = 0;
    for (size_t i = 0; i < mr_json_len(points); i++) {
        const struct mr_json *p = mr_json_item(points, i);
        on_cpu |= !strcmp(mr_json_text(mr_json_at(p, "device")), "cpu");
        assert_int_equal(mr_json_len(mr_json_at(p, "each_s_per_image")), 3);
    }
    assert_int_equal(says(mr_json_at(e, "warnings"), "A batch of 128 on the processor was left"),
                     on_cpu);
}

static void three_images_go_through_every_experiment(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 3, 1);
    struct mr_json *root = study(*state, d, NULL);
    check(root);
    check_bounds(root);
    for (unsigned i = 0; mr_experiment_name(i); i++) {
        const struct mr_json *e = result_of(root, i);
        const char *why = mr_json_text(mr_json_at(e, "missing"));
        assert_string_equal(mr_json_text(mr_json_at(e, "experiment")), mr_experiment_name(i));
        if (!strcmp(mr_experiment_name(i), "checkpoint"))
            assert_non_null(strstr(why, "has 24 MB free, and checkpoints"));
        else if (why)
            fail_msg("%s: %s", mr_experiment_name(i), why);
        if (!strcmp(mr_experiment_name(i), "batch"))
            check_batches(e);
    }
    check_made_up(root);
    mr_json_free(root);
    mr_dataset_unref(d);
}

static void a_single_image_does(void **state)
{
    struct mr_dataset *d = train_set_new(*state, "set", 1, 1);
    struct mr_json *root = study(*state, d, of_data);
    assert_int_equal(n_results(root), ARRAY_LEN(of_data) - 1);
    check(root);
    mr_json_free(root);
    mr_dataset_unref(d);
}

/* Points of the real storage or of emulated ones whose share of a limit is known. */
static unsigned n_shares(const struct mr_json *points, int emulated)
{
    unsigned n = 0;
    for (size_t i = 0; i < mr_json_len(points); i++) {
        const struct mr_json *p = mr_json_item(points, i);
        n += mr_json_is_true(mr_json_at(p, "emulated")) == emulated &&
             !mr_json_is_null(mr_json_at(p, "baseline_share"));
    }
    return n;
}

static void the_limits_of_another_storage_say_nothing_of_the_images(void **state)
{
    static const char *const only[] = {"baseline", "read", NULL};
    static const char warning[] = "The images are on another one, whose limits are not known";
    struct tempdir *here = *state, *there = tempdir_new("/dev/shm");
    struct stat a, b;
    assert_int_equal(stat(here->path, &a) | stat(there->path, &b), 0);
    int other = a.st_dev != b.st_dev;
    struct mr_dataset *d = train_set_new(here, "set", 3, 1);
    for (int elsewhere = 0; elsewhere <= other; elsewhere++) {
        struct mr_json *root = study(elsewhere ? there : here, d, only);
        const struct mr_json *read = mr_json_at(result_of(root, 1), "points");
        assert_int_equal(says(mr_json_at(result_of(root, 0), "warnings"), warning), elsewhere);
        assert_int_equal(n_shares(read, 0) > 0, !elsewhere);
        assert_true(n_shares(read, 1) > 0);
        mr_json_free(root);
    }
    mr_dataset_unref(d);
    tempdir_free(there);
    if (!other)
        skip(); /* temporary files are in memory, too */
}

/* What only looks at files has results; all others name one. */
static void broken_images_are_named_by_every_experiment_that_decodes(void **state)
{
    struct mr_dataset *d;
    for (unsigned i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "broken/%u.jpg", i);
        tempdir_text(*state, name, "\xff\xd8 that is all there is of it");
    }
    assert_int_equal(mr_dataset_open(tempdir_path(*state, "broken"), &d, NULL), 0);
    struct mr_json *root = study(*state, d, of_data);
    assert_int_equal(n_results(root), ARRAY_LEN(of_data) - 1);
    check(root);
    for (size_t i = 0; i < n_results(root); i++) {
        const struct mr_json *e = result_of(root, i);
        const char *name = mr_json_text(mr_json_at(e, "experiment"));
        const char *why = mr_json_text(mr_json_at(e, "missing"));
        int decodes = strcmp(name, "read") && strcmp(name, "files");
        if (decodes ? !why || !strstr(why, ".jpg") : !!why)
            fail_msg("%s: %s", name, why ? why : "has results");
    }
    mr_json_free(root);
    mr_dataset_unref(d);
}

int main(int argc, char **argv)
{
    made_up_path = argc > 1 ? argv[1] : "made_up_study.json";
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(three_images_go_through_every_experiment),
        WITH_TEMPDIR(a_single_image_does),
        WITH_TEMPDIR(the_limits_of_another_storage_say_nothing_of_the_images),
        WITH_TEMPDIR(broken_images_are_named_by_every_experiment_that_decodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
