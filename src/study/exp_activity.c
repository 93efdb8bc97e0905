/* exp_activity.c - the device over time (Figures 8 and 10).
 *
 * The real device is sampled while the mini-application runs, its accelerator emulated: with
 * prefetch and without, and with checkpoints that are written to one folder and drained to another
 * at a hard disk's rate.  Sampling goes on until the drain has ended; the end of training is
 * marked.
 */
#include "lab.h"

#include "clock.h"
#include "sampler.h"
#include "studied_disk.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#define INTERVAL_NS 100000000
#define STEP_S      1.5
#define EVERY       2         /* steps between checkpoints */
#define DRAIN_RATE  133140000 /* the study's hard disk writes that many bytes/s */

struct series {
    struct mr_studied_disk disk;
    uint64_t start_ns;
    struct mr_json *time, *read, *write;
};

static void on_sample(void *ctx, const struct mr_system_sample *s)
{
    struct series *to = ctx;
    double seconds = (double)s->interval_ns / 1e9, moved[2] = {0, 0};
    if (!(s->known & MR_KNOWN_DISKS) || seconds <= 0)
        return;
    for (unsigned i = 0; i < s->n_disks; i++) {
        const struct mr_disk *d = &s->disks[i];
        if (!d->present || !mr_studied_disk_has(&to->disk, d))
            continue;
        moved[0] += (double)d->last.side[MR_DISK_READ].sectors * 512;
        moved[1] += (double)d->last.side[MR_DISK_WRITE].sectors * 512;
    }
    mr_json_append(to->time, mr_json_real((double)(s->at_ns - to->start_ns) / 1e9));
    mr_json_append(to->read, mr_json_real(moved[0] / seconds / 1e6));
    mr_json_append(to->write, mr_json_real(moved[1] / seconds / 1e6));
}

static int n_steps(const struct mr_lab *lab)
{
    return lab->o->full ? 40 : 5;
}

/* The mean rate during each step; the first fill belongs to the first one.  Steps are placed
 * backward from `end_s`, when the last one ended: sampling began before training did. */
static struct mr_json *each_step(const struct mr_json *time, const struct mr_json *rate,
                                 const struct mr_train_result *r, double end_s)
{
    struct mr_json *list = mr_json_array();
    double to = end_s - r->first_fill_s - r->seconds;
    for (uint64_t i = 0; i < r->steps; i++) {
        double from = to, sum = 0, n = 0;
        to += r->step[i].step_s + (i ? 0 : r->first_fill_s);
        for (size_t k = 0; k < mr_json_len(time); k++) {
            double at = mr_json_number(mr_json_item(time, k));
            if (at > from && at <= to) {
                sum += mr_json_number(mr_json_item(rate, k));
                n++;
            }
        }
        if (n > 0)
            mr_json_append(list, mr_json_real(sum / n));
    }
    return list;
}

static double since(uint64_t start_ns)
{
    return (double)(mr_clock_ns() - start_ns) / 1e9;
}

/* Train while the device is sampled, and add the point, which takes the series' arrays. */
static int sample_training(struct mr_lab *lab, const char *name, const struct mr_train_opts *t,
                           struct series *series)
{
    const struct mr_lab_storage *storage = &lab->storage[0];
    struct mr_train_result result;
    struct mr_sampler *sampler;
    struct mr_lab_input input;
    struct mr_sampler_opts so = {.interval_ns = INTERVAL_NS, .on_sample = on_sample, .ctx = series};
    int r = mr_lab_make_ready(lab, t, &input);
    if (!r)
        r = mr_sampler_open(&so, &sampler, lab->err);
    if (r)
        return r;
    double begin = since(series->start_ns);
    r = mr_lab_train(lab, storage, t, &input, &result);
    mr_sampler_close(sampler);
    double end = since(series->start_ns) - result.drain_s;
    if (!r) {
        struct mr_activity_point p = {
            .storage = storage->name,
            .emulated = storage->device != NULL,
            .block_device = series->disk.name[0] ? series->disk.name : NULL,
            .time_s = series->time,
            .read_mb_per_s = series->read,
            .write_mb_per_s = series->write,
            .begin_s = begin,
            .end_of_run_s = t->checkpoint ? end : NAN,
            .each_read_mb_per_s = each_step(series->time, series->read, &result, end),
            .each_write_mb_per_s = each_step(series->time, series->write, &result, end),
            .variant = name,
            .device = t->device.name,
            .cold = input.cold,
            .late_share = input.late_share};
        mr_lab_point(lab, mr_activity_point_json(&p));
        series->time = series->read = series->write = NULL;
    }
    mr_train_result_fini(&result);
    return r;
}

static int variant(struct mr_lab *lab, const char *name, unsigned prefetch, int checkpoints)
{
    struct mr_train_opts t;
    char fast[PATH_MAX] = "", slow[PATH_MAX] = "", sample[PATH_MAX];
    struct mr_checkpoint_opts how = {
        .mode = MR_CHECKPOINT_BURST, .keep = 1, .drain_bytes_per_s = DRAIN_RATE};
    struct series series = {
        .time = mr_json_array(), .read = mr_json_array(), .write = mr_json_array()};
    /* what is read lies with the data, what is written in scratch */
    mr_studied_disk_find(&series.disk,
                         checkpoints ? lab->o->scratch : mr_lab_sample(lab, sample, sizeof sample));
    series.start_ns = mr_clock_ns();
    mr_lab_say(lab, "%s", name);
    mr_lab_training(lab, STEP_S, &lab->storage[0], &t);
    t.pipe.prefetch = prefetch ? prefetch : MR_NONE;
    t.steps = (uint64_t)n_steps(lab);
    int r = 0;
    if (checkpoints) {
        r = mr_lab_make_dir(lab, "fast", fast, sizeof fast);
        if (!r)
            r = mr_lab_make_dir(lab, "slow", slow, sizeof slow);
        how.dir = fast;
        how.drain_dir = slow;
        t.checkpoint = &how;
        t.checkpoint_every = EVERY;
    }
    if (!r)
        r = sample_training(lab, name, &t, &series);
    mr_json_free(series.time);
    mr_json_free(series.read);
    mr_json_free(series.write);
    if (fast[0])
        mr_lab_remove_dir(fast);
    if (slow[0])
        mr_lab_remove_dir(slow);
    return r;
}

static int run(struct mr_lab *lab)
{
    char burst[128];
    snprintf(burst, sizeof burst,
             "--checkpoint fast --drain slow --mode burst --every %d --keep 1 --drain-rate %d",
             EVERY, DRAIN_RATE);
    const char *const more[] = {"--prefetch 1", "--prefetch 0", burst};
    for (unsigned i = 0; i < 3; i++)
        mr_lab_command(lab,
                       "millrace watch --interval 100ms --csv activity.csv -- millrace train %s "
                       "--device emulated:%g --steps %d --cold %s",
                       lab->input, STEP_S, n_steps(lab), more[i]);
    int r = variant(lab, "prefetch 1", 1, 0);
    if (!r)
        r = variant(lab, "prefetch 0", 0, 0);
    struct mr_error full = {0};
    if (!r && mr_lab_checkpoint_room(lab, &full))
        mr_lab_warn(lab, "Without checkpoints: %s.", full.text);
    else if (!r)
        r = variant(lab,
                    "checkpoints to a burst buffer, drained at an emulated hard disk's 133 MB/s", 1,
                    1);
    return r;
}

const struct mr_experiment mr_experiment_activity = {.quick_s = 36, .full_s = 260, .run = run};
