/* exp_activity.c - devices over time (Figures 8 and 10), and requests while files are read.
 *
 * The real device is sampled while the mini-application runs: with prefetch and without, and with
 * checkpoints that are written to one folder and drained to another at a hard disk's rate.
 * Sampling goes on until the drain has ended; the end of training is marked. */
#include "lab.h"

#include "clock.h"
#include "errtext.h"
#include "microbench.h"
#include "sampler.h"
#include "survey.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define INTERVAL_NS 100000000
#define STEP_S      1.5
#define SURVEY_S    1.5  /* files, quick: looking at sizes, */
#define SURVEY_ALL  4096 /* so few are all looked at */
#define READ_S      1.5  /* and reading */
#define READ_FILES  16384
#define EVICT_S     0.5
#define DRAIN_RATE  133140000 /* the study's hard disk writes that many bytes/s */

struct series {
    uint64_t start_ns;
    struct mr_json *time, *read, *write;
};

/* Devices that are not parts of others, added up. */
static void on_sample(void *ctx, const struct mr_system_sample *s)
{
    struct series *to = ctx;
    double seconds = (double)s->interval_ns / 1e9, moved[2] = {0, 0};
    if (!(s->known & MR_KNOWN_DISKS) || seconds <= 0)
        return;
    for (unsigned i = 0; i < s->n_disks; i++) {
        const struct mr_disk *d = &s->disks[i];
        if (d->partition || !d->present || !strncmp(d->name, "loop", 4))
            continue;
        moved[0] += (double)d->last.side[MR_DISK_READ].sectors * 512;
        moved[1] += (double)d->last.side[MR_DISK_WRITE].sectors * 512;
    }
    mr_json_append(to->time, mr_json_real((double)(s->at_ns - to->start_ns) / 1e9));
    mr_json_append(to->read, mr_json_real(moved[0] / seconds / 1e6));
    mr_json_append(to->write, mr_json_real(moved[1] / seconds / 1e6));
}

static int variant(struct mr_lab *lab, const char *name, unsigned prefetch, int checkpoints)
{
    struct mr_train_opts t;
    struct mr_train_result result;
    struct mr_sampler *sampler;
    char fast[PATH_MAX] = "", slow[PATH_MAX] = "";
    struct mr_checkpoint_opts how = {
        .mode = MR_CHECKPOINT_BURST, .keep = 1, .drain_bytes_per_s = DRAIN_RATE};
    struct series series = {mr_clock_ns(), mr_json_array(), mr_json_array(), mr_json_array()};
    struct mr_sampler_opts so = {
        .interval_ns = INTERVAL_NS, .on_sample = on_sample, .ctx = &series};
    mr_lab_say(lab, "%s", name);
    mr_lab_training(lab, STEP_S, &lab->storage[0], &t);
    t.pipe.prefetch = prefetch ? prefetch : MR_NONE;
    t.steps = lab->o->full ? 40 : 5;
    int r = 0, kept = 0;
    if (checkpoints) {
        r = mr_lab_make_dir(lab, "fast", fast, sizeof fast);
        if (!r)
            r = mr_lab_make_dir(lab, "slow", slow, sizeof slow);
        how.dir = fast;
        how.drain_dir = slow;
        t.checkpoint = &how;
        t.checkpoint_every = 2;
    }
    mr_lab_make_training_cold(lab, &t);
    if (!r)
        r = mr_sampler_open(&so, &sampler, lab->err);
    if (!r) {
        double begin = (double)(mr_clock_ns() - series.start_ns) / 1e9;
        r = mr_train_run(&t, &result, lab->err);
        mr_sampler_close(sampler);
        struct mr_json *p = mr_lab_storage_json(&lab->storage[0]);
        kept = 1;
        mr_json_set(p, "variant", mr_json_string(name));
        mr_json_set(p, "time_s", series.time);
        mr_json_set(p, "read_mb_per_s", series.read);
        mr_json_set(p, "write_mb_per_s", series.write);
        mr_json_set(p, "end_of_run_s",
                    checkpoints ? mr_json_real((double)(mr_clock_ns() - series.start_ns) / 1e9 -
                                               result.drain_s)
                                : mr_json_null());
        mr_json_set(p, "begin_s", mr_json_real(begin));
        if (!r)
            mr_lab_point(lab, p);
        else
            mr_json_free(p);
        mr_train_result_fini(&result);
    }
    if (!kept) {
        mr_json_free(series.time);
        mr_json_free(series.read);
        mr_json_free(series.write);
    }
    if (fast[0])
        mr_lab_remove_dir(fast);
    if (slow[0])
        mr_lab_remove_dir(slow);
    return r;
}

int mr_exp_activity(struct mr_lab *lab)
{
    mr_lab_command(lab,
                   "millrace watch --interval 100ms --csv activity.csv -- millrace train --data %s "
                   "--device emulated:%g --cold",
                   lab->o->data_path, STEP_S);
    int r = variant(lab, "prefetch 1", 1, 0);
    if (!r)
        r = variant(lab, "prefetch 0", 0, 0);
    struct mr_error full = {0};
    if (!r && mr_lab_checkpoint_room(lab, &full))
        mr_lab_warn(lab, "Without checkpoints: %s.", full.text);
    else if (!r)
        r = variant(lab, "checkpoints to a burst buffer, drained at 133 MB/s", 1, 1);
    return r;
}

static struct mr_json *requests(const struct mr_system_sample *s)
{
    struct mr_json *list = mr_json_array();
    double seconds = (double)s->since_open_ns / 1e9;
    for (unsigned i = 0; i < s->n_disks; i++) {
        const struct mr_disk *d = &s->disks[i];
        struct mr_disk_rates rates;
        if (d->partition || !d->total.side[MR_DISK_READ].ios)
            continue;
        mr_disk_rates_of(&d->total, seconds, &rates);
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "device", mr_json_string(d->name));
        mr_json_set(o, "read_kb", mr_json_real(rates.side[MR_DISK_READ].size));
        mr_json_set(o, "wait_ms", mr_json_real(rates.side[MR_DISK_READ].wait));
        mr_json_set(o, "queue", mr_json_real(rates.side[MR_DISK_READ].qlen));
        mr_json_set(o, "svc_ms", mr_json_real(rates.svctim));
        mr_json_set(o, "util", mr_json_real(rates.util));
        mr_json_append(list, o);
    }
    return list;
}

/* Draw until the end or, in a quick study, until the time is up; the number of samples. */
static int64_t read_boxed(struct mr_lab *lab, struct mr_pipeline *pipe)
{
    double start = mr_lab_now();
    struct mr_batch *b;
    int64_t n = 0;
    int r;
    while ((r = mr_pipeline_next(pipe, &b)) == 1) {
        n += b->n;
        mr_batch_unref(b);
        if (!lab->o->full && mr_lab_now() - start > READ_S)
            return n;
    }
    return r < 0 ? r : n;
}

/* Read cold once while the device is watched: everything, or what a quick study has time for. */
static int watch_reading(struct mr_lab *lab, struct mr_json *p)
{
    struct mr_sampler *sampler;
    struct mr_sampler_opts so = {.interval_ns = 1000000000};
    struct mr_pipeline *pipe;
    struct mr_pipeline_opts o = {.threads = 8,
                                 .batch = 64,
                                 .keep_last = 1,
                                 .seed = lab->o->seed,
                                 .should_stop = lab->o->should_stop,
                                 .should_stop_ctx = lab->o->ctx};
    o.batches = lab->o->full ? mr_lab_make_cold(lab, &o, UINT64_MAX, 0)
                             : mr_lab_make_cold(lab, &o, READ_FILES / o.batch, EVICT_S);
    int r = mr_pipeline_open(lab->o->data, &o, &pipe, lab->err);
    if (r)
        return r;
    r = mr_sampler_open(&so, &sampler, lab->err);
    if (r) {
        mr_pipeline_close(pipe);
        return r;
    }
    int64_t n = read_boxed(lab, pipe);
    const struct mr_system_sample *s = mr_sampler_take(sampler);
    mr_json_set(p, "requests", s ? requests(s) : mr_json_array());
    mr_json_set(p, "images_read", mr_json_int(n));
    mr_sampler_close(sampler);
    if (n < 0)
        mr_fail(lab->err, (int)n, "%s", mr_pipeline_error(pipe));
    mr_pipeline_close(pipe);
    return n < 0 ? (int)n : 0;
}

int mr_exp_files(struct mr_lab *lab)
{
    struct mr_survey survey;
    int boxed = !lab->o->full && mr_dataset_size(lab->o->data) > SURVEY_ALL;
    struct mr_survey_opts o = {
        .should_stop = lab->o->should_stop, .ctx = lab->o->ctx, .box_s = boxed ? SURVEY_S : 0};
    mr_lab_command(lab, "millrace inspect %s", lab->o->data_path);
    mr_lab_say(lab, "sizes");
    int r = mr_survey_run(lab->o->data, &o, &survey);
    if (r)
        return mr_fail(lab->err, r, "the data set could not be looked at: %s", mr_errno_text(r));
    struct mr_json *p = mr_json_object(), *bins = mr_json_array();
    unsigned first = MR_SURVEY_BINS, last = 0;
    for (unsigned i = 0; i < MR_SURVEY_BINS; i++)
        if (survey.bin[i]) {
            first = i < first ? i : first;
            last = i;
        }
    for (unsigned i = first; i <= last && first < MR_SURVEY_BINS; i++) {
        struct mr_json *b = mr_json_object();
        mr_json_set(b, "to_bytes", mr_json_int((int64_t)1 << i));
        mr_json_set(b, "n", mr_json_int((int64_t)survey.bin[i]));
        mr_json_append(bins, b);
    }
    mr_json_set(p, "samples", mr_json_int((int64_t)survey.samples));
    mr_json_set(p, "looked_at", mr_json_int((int64_t)survey.n_looked_at));
    mr_json_set(p, "histogram", bins);
    mr_lab_say(lab, "reading, the device watched");
    r = watch_reading(lab, p);
    mr_lab_point(lab, p);
    return r;
}
