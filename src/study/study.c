/* study.c - see study.h: the order of the experiments, and what happens when one fails.
 *
 * An experiment that an earlier study finished is not run again, so an interrupted study continues
 * where it stopped.  The verdict comes last: it rests on the others. */
#include "study.h"

#include "sample_set.h"
#include "errtext.h"
#include "lab.h"
#include "studied_disk.h"
#include "trace_pause.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_SIZES 100000 /* files whose size is asked for: seconds */

#define DECLARE(name) extern const struct mr_experiment mr_experiment_##name;
MR_EXPERIMENTS(DECLARE)

#define ROW(name) {#name, &mr_experiment_##name},
static const struct mr_experiment_row all[] = {MR_EXPERIMENTS(ROW)};

static const struct mr_experiment_row *rows_of(const struct mr_study_opts *o, unsigned *n)
{
    *n = o->experiments ? o->n_experiments : MR_N_EXPERIMENTS;
    return o->experiments ? o->experiments : all;
}

static int wanted(const struct mr_study_opts *o, const char *name)
{
    if (!o->only)
        return 1;
    for (const char *const *n = o->only; *n; n++)
        if (!strcmp(*n, name))
            return 1;
    return 0;
}

static const struct mr_json *earlier(const struct mr_study_opts *o, const char *name)
{
    return o->earlier ? o->earlier(o->ctx, name) : NULL;
}

static double seconds_of(const struct mr_study_opts *o, const struct mr_experiment_row *row)
{
    if (!wanted(o, row->name) || earlier(o, row->name))
        return 0;
    if (!o->full)
        return row->experiment->quick_s;
    return row->experiment->full_s + row->experiment->full_image_s * (double)o->n_images;
}

double mr_study_estimate(const struct mr_study_opts *o)
{
    double sum = 0;
    unsigned n;
    const struct mr_experiment_row *rows = rows_of(o, &n);
    for (unsigned i = 0; i < n; i++)
        sum += seconds_of(o, &rows[i]);
    return sum;
}

static void begin(struct mr_lab *lab, const struct mr_experiment_row *row)
{
    lab->experiment = row->name;
    lab->started_s = mr_lab_now();
    lab->budget_s = seconds_of(lab->o, row);
    lab->n_left_out = 0;
    lab->commands = mr_json_array();
    lab->warnings = mr_json_array();
    lab->points = mr_json_array();
}

/* Run one, and hand it on.  0 or -ECANCELED. */
static int run_one(struct mr_lab *lab, const struct mr_experiment_row *row)
{
    struct mr_error err = {0};
    lab->err = &err;
    begin(lab, row);
    mr_lab_say(lab, "starting");
    int paused = row->experiment->traces && mr_trace_pause();
    int r = row->experiment->run(lab);
    int still = paused ? mr_trace_resume() : 0;
    if (still)
        mr_lab_warn(lab, "The trace of this study ends here: %s.", mr_errno_text(still));
    if (lab->n_left_out)
        mr_lab_warn(lab,
                    "%u points were left out: the %.0f s that were foreseen were used up. "
                    "millrace study --full has no such limit.",
                    lab->n_left_out, lab->budget_s);
    struct mr_result result = {
        .experiment = row->name,
        .commands = lab->commands,
        .warnings = lab->warnings,
        .points = lab->points,
        .finished = !r,
        .missing = !r            ? NULL
                   : err.text[0] ? err.text
                                 : mr_errno_text(r),
        .seconds = mr_lab_now() - lab->started_s,
        .foreseen_s = lab->budget_s,
        .left_out = lab->n_left_out,
    };
    struct mr_json *j = mr_result_json(&result);
    if (r == -ECANCELED || mr_lab_stopped(lab)) {
        mr_json_free(j);
        return -ECANCELED;
    }
    lab->o->finished(lab->o->ctx, row->name, j);
    return 0;
}

/* What an earlier study found a storage to deliver at random; NaN when there is none. */
static double earlier_random_rate(const struct mr_study_opts *o, const char *storage)
{
    const struct mr_json *e = earlier(o, mr_experiment_name(MR_EXPERIMENT_baseline));
    for (size_t i = 0; i < mr_result_n_points(e); i++) {
        struct mr_baseline_point p = mr_baseline_point_of(mr_result_point(e, i));
        if (p.pattern && !strcmp(p.pattern, "random-imagenet") && p.storage &&
            !strcmp(p.storage, storage))
            return p.read_mb_per_s;
    }
    return NAN;
}

/* The best rates of an earlier study. */
static void note_earlier_rates(struct mr_lab *lab)
{
    for (int decoded = 0; decoded < 2; decoded++) {
        const struct mr_json *e = earlier(
            lab->o, mr_experiment_name(decoded ? MR_EXPERIMENT_decode : MR_EXPERIMENT_read));
        for (size_t i = 0; i < mr_result_n_points(e); i++) {
            struct mr_read_point p = mr_read_point_of(mr_result_point(e, i));
            mr_lab_note_rate(lab, decoded, p.emulated, p.images_per_s);
        }
    }
}

static void open_storages(struct mr_lab *lab)
{
    static const char *const names[MR_LAB_STORAGES] = {"disk", "hdd", "ssd", "optane", "lustre"};
    for (unsigned i = 0; i < MR_LAB_STORAGES; i++) {
        int ours = i || lab->same_storage;
        lab->storage[i] = (struct mr_lab_storage){
            .name = names[i],
            .whole_grid = i < 2,
            .random_mb_per_s = ours ? earlier_random_rate(lab->o, names[i]) : NAN};
        if (i)
            mr_device_open(names[i], &lab->storage[i].device, NULL);
    }
}

double mr_study_file_bytes(const struct mr_dataset *data)
{
    uint64_t n = mr_dataset_size(data), step = (n + MOST_SIZES - 1) / MOST_SIZES;
    uint64_t seen = 0, bytes = 0;
    for (uint64_t i = 0; i < n; i += step) {
        struct mr_blob_stat st;
        uint64_t of_sample;
        if (!mr_dataset_stat(data, i, &st) && st.kind == MR_BLOB_FILE &&
            !mr_dataset_bytes(data, i, &of_sample)) {
            bytes += of_sample;
            seen++;
        }
    }
    return seen ? (double)bytes / (double)seen : NAN;
}

int mr_study_run(const struct mr_study_opts *o, struct mr_error *err)
{
    struct mr_lab lab = {.o = o};
    unsigned n;
    const struct mr_experiment_row *rows = rows_of(o, &n);
    int r = 0;
    mr_lab_name_input(&lab);
    lab.same_storage = mr_is_on_storage(o->data, o->scratch);
    open_storages(&lab);
    note_earlier_rates(&lab);
    for (unsigned i = 0; i < MR_LAB_STORAGES; i++)
        if (i && !lab.storage[i].device)
            r = mr_fail(err, -ENOMEM, "no memory for an emulated device");
    lab.foreseen_s = mr_study_estimate(o);
    lab.image_bytes = mr_study_file_bytes(o->data);
    for (unsigned i = 0; !r && i < n; i++) {
        double foreseen = seconds_of(o, &rows[i]);
        if (foreseen > 0)
            r = run_one(&lab, &rows[i]);
        lab.before_s += foreseen;
    }
    for (unsigned i = 1; i < MR_LAB_STORAGES; i++)
        mr_device_close(lab.storage[i].device);
    return r == -ECANCELED ? mr_fail(err, r, "stopped") : r;
}
