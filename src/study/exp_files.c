/* exp_files.c - what the data look like to the device: sizes of files, and the requests that
 * reading them makes (a storage vendor's study of ImageNet).
 *
 * A quick study looks at a random part of a large data set, and reads as much as it has time for.
 */
#include "lab.h"

#include "errtext.h"
#include "sampler.h"
#include "studied_disk.h"
#include "survey.h"

#include <math.h>
#include <stdio.h>

#define SURVEY_S   1.5  /* quick: seconds for sizes, */
#define SURVEY_ALL 4096 /* a set of at most this many is looked at whole */
#define READ_S     1.5  /* and reading */
#define READ_FILES 16384
#define EVICT_S    0.5

static struct mr_json *requests(struct mr_lab *lab, const struct mr_system_sample *s)
{
    struct mr_studied_disk disk;
    struct mr_json *list = mr_json_array();
    double seconds = (double)s->since_open_ns / 1e9;
    char sample[PATH_MAX];
    mr_studied_disk_find(&disk, mr_lab_sample(lab, sample, sizeof sample));
    for (unsigned i = 0; i < s->n_disks; i++) {
        const struct mr_disk *d = &s->disks[i];
        struct mr_disk_rates rates;
        if (!mr_studied_disk_has(&disk, d) || !d->total.side[MR_DISK_READ].ios)
            continue;
        mr_disk_rates_of(&d->total, seconds, &rates);
        struct mr_device_requests seen = {.device = d->name,
                                          .read_kb = rates.side[MR_DISK_READ].size,
                                          .wait_ms = rates.side[MR_DISK_READ].wait,
                                          .queue = rates.side[MR_DISK_READ].qlen,
                                          .svc_ms = rates.svctim,
                                          .util = rates.util};
        mr_json_append(list, mr_device_requests_json(&seen));
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

/* The same by hand: as many batches as there was time for. */
static void tell_reading(struct mr_lab *lab, const struct mr_pipeline_opts *o, uint64_t n_read)
{
    char part[48] = "";
    if (n_read < mr_dataset_size(lab->o->data))
        snprintf(part, sizeof part, " --batches %llu", (unsigned long long)(n_read / o->batch));
    mr_lab_command(lab,
                   "millrace watch -- millrace bench %s --map read --threads %u --batch %u "
                   "--keep-last --runs 1 --cold%s",
                   lab->input, o->threads, o->batch, part);
}

/* Read cold once while the device is watched: everything, or what a quick study has time for. */
static int watch_reading(struct mr_lab *lab, struct mr_files_point *p)
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
    struct mr_lab_input input;
    struct mr_pipeline_stats stats;
    o.batches = lab->o->full ? mr_lab_make_cold(lab, &o, UINT64_MAX, 0, &input)
                             : mr_lab_make_cold(lab, &o, READ_FILES / o.batch, EVICT_S, &input);
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
    p->requests = s ? requests(lab, s) : mr_json_array();
    p->images_read = (double)n;
    mr_sampler_close(sampler);
    mr_pipeline_get_stats(pipe, &stats);
    mr_lab_note_replaced(lab, &input, stats.replaced);
    p->cold = input.cold;
    if (n >= 0)
        tell_reading(lab, &o, (uint64_t)n);
    if (n < 0)
        mr_fail(lab->err, (int)n, "%s", mr_pipeline_error(pipe));
    mr_pipeline_close(pipe);
    return n < 0 ? (int)n : 0;
}

/* From the smallest bin that has a file to the largest. */
static struct mr_json *histogram(const struct mr_survey *survey)
{
    struct mr_json *bins = mr_json_array();
    unsigned first = MR_SURVEY_BINS, last = 0;
    for (unsigned i = 0; i < MR_SURVEY_BINS; i++)
        if (survey->bin[i]) {
            first = i < first ? i : first;
            last = i;
        }
    for (unsigned i = first; i <= last && first < MR_SURVEY_BINS; i++) {
        struct mr_size_bin bin = {.to_bytes = (double)((int64_t)1 << i),
                                  .n = (double)survey->bin[i]};
        mr_json_append(bins, mr_size_bin_json(&bin));
    }
    return bins;
}

static int run(struct mr_lab *lab)
{
    struct mr_survey survey;
    int boxed = !lab->o->full && mr_dataset_size(lab->o->data) > SURVEY_ALL;
    struct mr_survey_opts o = {
        .should_stop = lab->o->should_stop, .ctx = lab->o->ctx, .box_s = boxed ? SURVEY_S : 0};
    char path[2 * PATH_MAX];
    mr_lab_command(lab, "millrace inspect %s", mr_lab_quote(lab->o->data_path, path, sizeof path));
    mr_lab_say(lab, "sizes");
    int r = mr_survey_run(lab->o->data, &o, &survey);
    if (r)
        return mr_fail(lab->err, r, "the data set could not be looked at: %s", mr_errno_text(r));
    struct mr_files_point p = {.samples = (double)survey.samples,
                               .looked_at = (double)survey.n_looked_at,
                               .histogram = histogram(&survey),
                               .images_read = NAN};
    mr_lab_say(lab, "reading, the device watched");
    r = watch_reading(lab, &p);
    mr_lab_point(lab, mr_files_point_json(&p));
    return r;
}

const struct mr_experiment mr_experiment_files = {
    .quick_s = 4, .full_s = 2, .full_image_s = 0.001, .run = run};
