/* train_set.c - see train_set.h. */
#include "train_set.h"

#include "generate.h"
#include "photo_set.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

struct mr_dataset *train_set_new(struct tempdir *t, const char *name, unsigned n, unsigned classes)
{
    struct mr_generate_opts o = {
        .preset = MR_PRESET_CALTECH101, .count = n, .classes = classes, .threads = 1};
    struct mr_error err = {0};
    char list[512];
    if (mr_generate(tempdir_path(t, name), &o, NULL, &err))
        fail_msg("%s", err.text);
    snprintf(list, sizeof list, "%s/list.csv", tempdir_path(t, name));
    return photo_set_open(list);
}

struct mr_train_opts train_set_opts(struct mr_dataset *data, const char *device)
{
    struct mr_train_opts o = {
        .data = data,
        .pipe = {.threads = 2, .batch = 4, .seed = 1},
        .decode = {.width = 16, .height = 16},
        .epochs = 1,
        .learning_rate = 0.001,
    };
    struct mr_error err = {0};
    if (mr_accelerator_spec_parse(device, &o.device, &err))
        fail_msg("%s", err.text);
    return o;
}

struct mr_train_result train_set_run(const struct mr_train_opts *o)
{
    struct mr_train_result r;
    struct mr_error err = {0};
    if (mr_train_run(o, &r, &err))
        fail_msg("%s", err.text);
    assert_int_equal(r.partial, 0);
    return r;
}

void train_set_fails(const struct mr_train_opts *o, int code, const char *words, uint64_t steps)
{
    struct mr_train_result r;
    struct mr_error err = {0};
    int got = mr_train_run(o, &r, &err);
    if (got != code || !strstr(err.text, words))
        fail_msg("%d with '%s', should be %d with '%s'", got, err.text, code, words);
    assert_int_equal(r.steps, steps);
    mr_train_result_fini(&r);
}
