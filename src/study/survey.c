/* survey.c - see survey.h.
 *
 * Several threads take samples by number: size and residency of each file; the header of up to a
 * thousand, evenly spread; with `check` the whole of every file, decoded if it is an image.  What a
 * thread sees goes into an array at the look's number, so nothing is shared but the counter, and
 * the sums are made at the end, in order, by the caller's thread.
 *
 * A survey with a box looks at samples in the order of a permutation, and at no more than could be
 * seen in a moment: then neither time nor memory grows with the data set. */
#include "survey.h"

#include "buffer.h"
#include "clock.h"
#include "errtext.h"
#include "percentile.h"
#include "permutation.h"
#include "whole_file.h"

#include <millrace/image.h>
#include <millrace/store.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_THREADS 64
#define MOST_BOXED  ((uint64_t)1 << 17) /* looks of a survey with a box */

/* What was seen of one sample. */
struct sight {
    uint64_t size;
    struct mr_image_info *info; /* NULL: not probed; format 0: no image; owned */
    char *words;                /* the decoder's, when it refused; owned */
    int code;                   /* 0 usable, 1 not looked at, -errno */
};

struct expedition {
    const struct mr_dataset *data;
    const struct mr_survey_opts *o;
    uint64_t n, probe_every;     /* looks */
    struct mr_permutation order; /* boxed: in which samples are looked at */
    uint64_t end_ns;             /* boxed: when that ends; else 0 */
    atomic_uint_fast64_t next;
    atomic_int stop;
    struct sight *sight; /* [n] */
};

struct scout {
    struct expedition *x;
    pthread_t thread;
    struct mr_decoder *decoder;
    struct mr_buffer file;
    struct mr_cache_sweep cache;
    int leads; /* runs in the caller's thread: reports progress */
};

/* Read the file, say what image it is, and with `check` decode all of it. */
static int probe(struct scout *s, const char *path, struct sight *seen)
{
    size_t size;
    uint8_t pixel[3];
    int r = mr_whole_file_load(path, SIZE_MAX / 4, &s->file, &size);
    if (r)
        return r;
    seen->info = calloc(1, sizeof *seen->info);
    if (!seen->info)
        return -ENOMEM;
    mr_decoder_probe(s->decoder, s->file.data, size, seen->info); /* else format stays 0 */
    if (!s->x->o->check)
        return 0;
    r = mr_decoder_run(s->decoder, s->file.data, size, 0, pixel);
    if (r)
        seen->words = strdup(mr_decoder_error(s->decoder));
    return r;
}

/* The sample of look k. */
static uint64_t sample_of(const struct expedition *x, uint64_t k)
{
    return x->end_ns ? mr_permutation_at(&x->order, k) : k;
}

static int look_at(struct scout *s, uint64_t k, struct sight *seen)
{
    char path[PATH_MAX];
    struct stat st;
    int r = mr_dataset_path(s->x->data, sample_of(s->x, k), path, sizeof path);
    if (r < 0)
        return r;
    if (stat(path, &st))
        return -errno;
    seen->size = (uint64_t)st.st_size;
    r = mr_whole_file_allowed(st.st_mode, seen->size, SIZE_MAX);
    struct mr_cache_sweep was = s->cache;
    if (!r)
        r = mr_cache_sweep_file(&s->cache, path, 0);
    if (!r && (s->x->o->check || k % s->x->probe_every == 0)) {
        r = probe(s, path, seen);
        /* Looking at a data set must not warm it: what was not cached is dropped again. */
        if (s->cache.cached_before == was.cached_before && s->cache.n_unknown == was.n_unknown)
            mr_cache_evict(path, NULL, NULL, NULL);
    }
    return r;
}

static void *scout_main(void *arg)
{
    struct scout *s = arg;
    struct expedition *x = s->x;
    uint64_t i;
    while (!atomic_load(&x->stop) && (i = atomic_fetch_add(&x->next, 1)) < x->n) {
        if (x->end_ns && mr_clock_ns() >= x->end_ns)
            break;
        x->sight[i].code = look_at(s, i, &x->sight[i]);
        if (!s->leads)
            continue;
        if (x->o->progress)
            x->o->progress(x->o->ctx, i, x->n);
        if (x->o->should_stop && x->o->should_stop(x->o->ctx))
            atomic_store(&x->stop, 1);
    }
    return NULL;
}

static unsigned n_threads(const struct mr_survey_opts *o)
{
    cpu_set_t set;
    unsigned n = o->threads;
    if (!n)
        n = sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
    return n > MAX_THREADS ? MAX_THREADS : n;
}

/* Send the scouts out and wait for them.  Fewer threads than wanted are enough. */
static int explore(struct expedition *x, struct mr_survey *s)
{
    /* The smallest output that needs every row of an image. */
    struct mr_decoder_opts decode = {
        .width = 1, .height = 1, .dtype = MR_DT_U8, .resize = MR_RESIZE_AREA, .exact = 1};
    struct scout *scouts = calloc(MAX_THREADS, sizeof *scouts);
    unsigned n = n_threads(x->o), n_started = 0;
    if (!scouts)
        return -ENOMEM;
    int r = 0;
    for (unsigned i = 0; !r && i < n; i++) {
        scouts[i].x = x;
        scouts[i].leads = i == 0;
        r = mr_decoder_new(&decode, &scouts[i].decoder, NULL);
    }
    for (unsigned i = 1; !r && i < n; i++, n_started++)
        if (pthread_create(&scouts[i].thread, NULL, scout_main, &scouts[i]))
            break;
    if (!r && x->o->progress) /* the others may leave nothing to the one that reports */
        x->o->progress(x->o->ctx, 0, x->n);
    if (!r)
        scout_main(&scouts[0]);
    for (unsigned i = 0; i < n; i++) {
        if (i && i <= n_started)
            pthread_join(scouts[i].thread, NULL);
        mr_cache_sweep_merge(&s->cache, &scouts[i].cache);
        mr_decoder_free(scouts[i].decoder);
        mr_buffer_fini(&scouts[i].file);
    }
    free(scouts);
    return r;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct mr_quantiles quantiles(uint64_t *v, uint64_t n)
{
    if (!n)
        return (struct mr_quantiles){0};
    qsort(v, n, sizeof *v, by_value);
    return (struct mr_quantiles){.min = v[0],
                                 .p10 = v[mr_percentile_index(0.10, n)],
                                 .p25 = v[mr_percentile_index(0.25, n)],
                                 .p50 = v[mr_percentile_index(0.50, n)],
                                 .p75 = v[mr_percentile_index(0.75, n)],
                                 .p90 = v[mr_percentile_index(0.90, n)],
                                 .max = v[n - 1]};
}

static unsigned bin_of(uint64_t size)
{
    unsigned bin = size <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(size - 1);
    return bin < MR_SURVEY_BINS ? bin : MR_SURVEY_BINS - 1;
}

static void count_sampling(struct mr_survey *s, const char *name)
{
    for (unsigned i = 0; *name && i < MR_SURVEY_SAMPLINGS; i++) {
        if (s->sampling[i].name[0] && strcmp(s->sampling[i].name, name))
            continue;
        snprintf(s->sampling[i].name, sizeof s->sampling[i].name, "%s", name);
        s->sampling[i].n++;
        return;
    }
}

static void count_image(struct mr_survey *s, const struct sight *seen)
{
    const struct mr_image_info *info = seen->info;
    s->n_probed++;
    s->n_jpeg += info->format == MR_IMAGE_JPEG;
    s->n_png += info->format == MR_IMAGE_PNG;
    s->n_other += !info->format;
    if (!info->format)
        return;
    s->n_progressive += info->progressive;
    s->n_grey += info->format == MR_IMAGE_JPEG && info->components == 1;
    s->n_cmyk += info->format == MR_IMAGE_JPEG && info->components == 4;
    count_sampling(s, info->sampling);
}

static void report_broken(struct expedition *x, uint64_t i)
{
    const struct sight *seen = &x->sight[i];
    char path[PATH_MAX];
    if (!x->o->on_broken)
        return;
    i = sample_of(x, i);
    if (mr_dataset_path(x->data, i, path, sizeof path) < 0)
        snprintf(path, sizeof path, "sample %llu", (unsigned long long)i);
    x->o->on_broken(x->o->ctx, path,
                    seen->words              ? seen->words
                    : seen->code == -ENODATA ? "empty, or it shrank while it was read"
                                             : mr_errno_text(seen->code));
}

static int is_image(const struct sight *seen)
{
    return seen->info && seen->info->format;
}

/* A data set without a single image is one of other files, and these are not broken images. */
static void forgive_if_no_images(struct expedition *x)
{
    for (uint64_t i = 0; i < x->n; i++)
        if (is_image(&x->sight[i]))
            return;
    for (uint64_t i = 0; i < x->n; i++)
        if (x->sight[i].words)
            x->sight[i].code = 0;
}

/* Sums over everything that was seen; v is room for n numbers. */
static void add_up(struct expedition *x, struct mr_survey *s, uint64_t *v)
{
    uint64_t n = 0;
    forgive_if_no_images(x);
    for (uint64_t i = 0; i < x->n; i++) {
        const struct sight *seen = &x->sight[i];
        s->n_looked_at += seen->code <= 0;
        if (seen->code < 0) {
            s->n_broken++;
            report_broken(x, i);
        }
        if (seen->info)
            count_image(s, seen);
        if (seen->code)
            continue;
        s->files++;
        s->bytes += seen->size;
        s->bin[bin_of(seen->size)]++;
        v[n++] = seen->size;
    }
    s->size = quantiles(v, n);
    n = 0;
    for (uint64_t i = 0; i < x->n; i++)
        if (is_image(&x->sight[i]))
            v[n++] = x->sight[i].info->width;
    s->width = quantiles(v, n);
    n = 0;
    for (uint64_t i = 0; i < x->n; i++)
        if (is_image(&x->sight[i]))
            v[n++] = x->sight[i].info->height;
    s->height = quantiles(v, n);
}

/* Labels may have gaps, and one may be huge, so they are sorted, not used as places. */
static void count_classes(const struct mr_dataset *data, struct mr_survey *s, uint64_t *v)
{
    uint64_t n_present = 0;
    for (uint64_t i = 0; i < s->samples; i++)
        v[i] = mr_dataset_label(data, i);
    qsort(v, s->samples, sizeof *v, by_value);
    s->smallest_class = s->samples;
    for (uint64_t i = 0, first = 0; i < s->samples; i++) {
        if (i + 1 < s->samples && v[i + 1] == v[i])
            continue;
        uint64_t n = i + 1 - first;
        s->smallest_class = n < s->smallest_class ? n : s->smallest_class;
        s->largest_class = n > s->largest_class ? n : s->largest_class;
        first = i + 1;
        n_present++;
    }
    if (n_present < s->classes)
        s->smallest_class = 0;
}

int mr_survey_run(const struct mr_dataset *data, const struct mr_survey_opts *o,
                  struct mr_survey *out)
{
    struct mr_survey s = {.samples = mr_dataset_size(data),
                          .classes = mr_dataset_n_classes(data),
                          .memory_bytes = mr_dataset_memory(data),
                          .checked = o->check};
    struct expedition x = {.data = data, .o = o, .n = s.samples};
    if (o->box_s > 0 && x.n) {
        mr_permutation_init(&x.order, x.n, 0);
        x.end_ns = mr_clock_ns() + (uint64_t)(o->box_s * 1e9);
        x.n = x.n < MOST_BOXED ? x.n : MOST_BOXED;
    }
    x.probe_every = (x.n + MR_SURVEY_PROBES - 1) / MR_SURVEY_PROBES;
    x.probe_every += !x.probe_every;
    x.sight = calloc(x.n + 1, sizeof *x.sight);
    uint64_t *v = calloc(x.n + 1, sizeof *v);
    int r = x.sight && v ? 0 : -ENOMEM;
    for (uint64_t i = 0; !r && i < x.n; i++)
        x.sight[i].code = 1;
    if (!r)
        r = explore(&x, &s);
    if (!r) {
        add_up(&x, &s, v);
        if (x.n == s.samples)
            count_classes(data, &s, v);
        s.partial = atomic_load(&x.stop);
        *out = s;
        r = s.partial ? -ECANCELED : 0;
    }
    for (uint64_t i = 0; x.sight && i < x.n; i++) {
        free(x.sight[i].words);
        free(x.sight[i].info);
    }
    free(x.sight);
    free(v);
    return r;
}

static struct mr_json *quantiles_json(const struct mr_quantiles *q)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "min", mr_json_int((int64_t)q->min));
    mr_json_set(o, "p10", mr_json_int((int64_t)q->p10));
    mr_json_set(o, "p25", mr_json_int((int64_t)q->p25));
    mr_json_set(o, "p50", mr_json_int((int64_t)q->p50));
    mr_json_set(o, "p75", mr_json_int((int64_t)q->p75));
    mr_json_set(o, "p90", mr_json_int((int64_t)q->p90));
    mr_json_set(o, "max", mr_json_int((int64_t)q->max));
    return o;
}

static struct mr_json *images_json(const struct mr_survey *s)
{
    struct mr_json *o = mr_json_object(), *sampling = mr_json_object();
    mr_json_set(o, "probed", mr_json_int((int64_t)s->n_probed));
    mr_json_set(o, "jpeg", mr_json_int((int64_t)s->n_jpeg));
    mr_json_set(o, "png", mr_json_int((int64_t)s->n_png));
    mr_json_set(o, "other", mr_json_int((int64_t)s->n_other));
    mr_json_set(o, "progressive", mr_json_int((int64_t)s->n_progressive));
    mr_json_set(o, "grey", mr_json_int((int64_t)s->n_grey));
    mr_json_set(o, "cmyk", mr_json_int((int64_t)s->n_cmyk));
    mr_json_set(o, "width", quantiles_json(&s->width));
    mr_json_set(o, "height", quantiles_json(&s->height));
    for (unsigned i = 0; i < MR_SURVEY_SAMPLINGS && s->sampling[i].name[0]; i++)
        mr_json_set(sampling, s->sampling[i].name, mr_json_int((int64_t)s->sampling[i].n));
    mr_json_set(o, "sampling", sampling);
    return o;
}

struct mr_json *mr_survey_json(const struct mr_survey *s)
{
    struct mr_json *o = mr_json_object(), *bins = mr_json_array();
    int64_t cached = mr_cache_sweep_cached(&s->cache);
    mr_json_set(o, "kind", mr_json_string("data set"));
    mr_json_set(o, "samples", mr_json_int((int64_t)s->samples));
    mr_json_set(o, "classes", mr_json_int(s->classes));
    mr_json_set(o, "smallest_class", mr_json_int((int64_t)s->smallest_class));
    mr_json_set(o, "largest_class", mr_json_int((int64_t)s->largest_class));
    mr_json_set(o, "files", mr_json_int((int64_t)s->files));
    mr_json_set(o, "bytes", mr_json_int((int64_t)s->bytes));
    mr_json_set(o, "file_bytes", quantiles_json(&s->size));
    for (unsigned i = 0; i < MR_SURVEY_BINS; i++) {
        if (!s->bin[i])
            continue;
        struct mr_json *bin = mr_json_object();
        mr_json_set(bin, "up_to_bytes", mr_json_int((int64_t)1 << i));
        mr_json_set(bin, "files", mr_json_int((int64_t)s->bin[i]));
        mr_json_append(bins, bin);
    }
    mr_json_set(o, "size_histogram", bins);
    mr_json_set(o, "images", images_json(s));
    mr_json_set(o, "cached_bytes", cached < 0 ? mr_json_null() : mr_json_int(cached));
    mr_json_set(o, "broken", mr_json_int((int64_t)s->n_broken));
    mr_json_set(o, "checked", mr_json_bool(s->checked));
    mr_json_set(o, "table_bytes", mr_json_int((int64_t)s->memory_bytes));
    mr_json_set(o, "partial", mr_json_bool(s->partial));
    return o;
}
