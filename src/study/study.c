/* study.c - see study.h: the order of the experiments, and what happens when one fails.
 *
 * An experiment that was through in an earlier study is handed on as it was, so a study that was
 * interrupted goes on where it stopped.  The verdict comes last: it rests on the others. */
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

/* Seconds on two cores with nothing else to do, generated data.  Quick: at most 29 points of two or
 * three steps of 1.5 s for overlap, 28 of three runs of 0.8 s for read and decode, and so on; in
 * all there should be room for a seventh more within ten minutes.  Full: the studies' sizes at the
 * profiles' rates, six runs. */
static const struct mr_experiment_row rows[] = {
    {"baseline", 60, 1150, 0, mr_exp_baseline},
    {"read", 62, 60, 0.29, mr_exp_read},
    {"decode", 82, 60, 0.37, mr_exp_decode},
    {"overlap", 122, 9400, 0, mr_exp_overlap},
    {"batch", 25, 150, 0, mr_exp_batch},
    {"activity", 36, 260, 0, mr_exp_activity},
    {"checkpoint", 87, 1600, 0, mr_exp_checkpoint},
    {"phases", 16, 85, 0, mr_exp_phases, .traces = 1},
    {"files", 4, 2, 0.001, mr_exp_files},
    {"verdict", 39, 760, 0.003, mr_exp_verdict},
};

#define N_ROWS (sizeof rows / sizeof *rows)

const char *mr_study_name(unsigned i)
{
    return i < N_ROWS ? rows[i].name : NULL;
}

int mr_study_knows(const char *experiment)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (!strcmp(rows[i].name, experiment))
            return 1;
    return 0;
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
        return row->quick_s;
    return row->full_s + row->full_image_s * (double)o->n_images;
}

double mr_study_estimate(const struct mr_study_opts *o)
{
    double sum = 0;
    for (unsigned i = 0; i < N_ROWS; i++)
        sum += seconds_of(o, &rows[i]);
    return sum;
}

static void begin(struct mr_lab *lab, const struct mr_experiment_row *row)
{
    lab->experiment = row->name;
    lab->started_s = mr_lab_now();
    lab->budget_s = seconds_of(lab->o, row);
    lab->n_left_out = 0;
    lab->result = mr_json_object();
    lab->points = mr_json_array();
    mr_json_set(lab->result, "experiment", mr_json_string(row->name));
    mr_json_set(lab->result, "commands", mr_json_array());
    mr_json_set(lab->result, "warnings", mr_json_array());
    mr_json_set(lab->result, "points", lab->points);
}

/* Run one, and hand it on.  0 or -ECANCELED. */
static int run_one(struct mr_lab *lab, const struct mr_experiment_row *row)
{
    struct mr_error err = {0};
    lab->err = &err;
    begin(lab, row);
    mr_lab_say(lab, "starting");
    int paused = row->traces && mr_trace_pause();
    int r = row->run(lab);
    int still = paused ? mr_trace_resume() : 0;
    if (still)
        mr_lab_warn(lab, "The trace of this study ends here: %s.", mr_errno_text(still));
    if (r == -ECANCELED || mr_lab_stopped(lab)) {
        mr_json_free(lab->result);
        return -ECANCELED;
    }
    mr_json_set(lab->result, "finished", mr_json_bool(!r));
    mr_json_set(lab->result, "missing",
                r ? mr_json_string(err.text[0] ? err.text : mr_errno_text(r)) : mr_json_null());
    mr_json_set(lab->result, "seconds", mr_json_real(mr_lab_now() - lab->started_s));
    mr_json_set(lab->result, "foreseen_s", mr_json_real(lab->budget_s));
    mr_json_set(lab->result, "left_out", mr_json_int(lab->n_left_out));
    if (lab->n_left_out)
        mr_lab_warn(lab,
                    "%u points were left out: the %.0f s that were foreseen were used up. "
                    "millrace study --full has no such limit.",
                    lab->n_left_out, lab->budget_s);
    lab->o->finished(lab->o->ctx, row->name, lab->result);
    return 0;
}

/* What an earlier study found a storage to deliver at random; NaN when there is none. */
static double earlier_random_rate(const struct mr_study_opts *o, const char *storage)
{
    const struct mr_json *points = mr_json_at(earlier(o, "baseline"), "points");
    for (size_t i = 0; points && i < mr_json_len(points); i++) {
        const struct mr_json *p = mr_json_item(points, i);
        const char *pattern = mr_json_text(mr_json_at(p, "pattern"));
        const char *name = mr_json_text(mr_json_at(p, "storage"));
        if (pattern && !strcmp(pattern, "random-imagenet") && name && !strcmp(name, storage))
            return mr_json_number(mr_json_at(p, "read_mb_per_s"));
    }
    return NAN;
}

/* The best rates of an earlier study. */
static void note_earlier_rates(struct mr_lab *lab)
{
    static const char *const names[] = {"read", "decode"};
    for (unsigned k = 0; k < 2; k++) {
        const struct mr_json *points = mr_json_at(earlier(lab->o, names[k]), "points");
        for (size_t i = 0; points && i < mr_json_len(points); i++) {
            const struct mr_json *p = mr_json_item(points, i);
            mr_lab_note_rate(lab, names[k], mr_json_is_true(mr_json_at(p, "emulated")),
                             mr_json_number(mr_json_at(p, "images_per_s")));
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
    for (unsigned i = 0; !r && i < N_ROWS; i++) {
        double foreseen = seconds_of(o, &rows[i]);
        if (foreseen > 0)
            r = run_one(&lab, &rows[i]);
        lab.before_s += foreseen;
    }
    for (unsigned i = 1; i < MR_LAB_STORAGES; i++)
        mr_device_close(lab.storage[i].device);
    return r == -ECANCELED ? mr_fail(err, r, "stopped") : r;
}
