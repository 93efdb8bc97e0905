/* survey.c - see survey.h.  One pass over the files: stat and residency, and with `check` a read.
 * Sizes are kept (8 bytes a file) for exact quantiles. */
#include "survey.h"

#include "buffer.h"
#include "errtext.h"
#include "whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static unsigned bin_of(uint64_t size)
{
    unsigned bin = size <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(size - 1);
    return bin < MR_SURVEY_BINS ? bin : MR_SURVEY_BINS - 1;
}

static int read_to_end(const char *path, struct mr_buffer *buf)
{
    size_t size;
    int fd = mr_whole_file_open(path, SIZE_MAX / 4, &size);
    if (fd < 0)
        return fd;
    if (mr_buffer_reserve(buf, size)) {
        close(fd);
        return -ENOMEM;
    }
    return mr_whole_file_fill(fd, buf->data, size);
}

/* 0 with the size, or why the file is no good. */
static int look_at(struct mr_survey *s, const char *path, int check, struct mr_buffer *buf,
                   uint64_t *size)
{
    struct stat st;
    if (stat(path, &st))
        return -errno;
    int r = mr_whole_file_allowed(st.st_mode, (uint64_t)st.st_size, SIZE_MAX);
    if (!r)
        r = mr_cache_sweep_file(&s->cache, path, 0);
    if (!r && check)
        r = read_to_end(path, buf);
    *size = (uint64_t)st.st_size;
    return r;
}

/* By sorting the labels, not by a counter for each class: one large label must not cost memory. */
static int count_classes(const struct mr_dataset *data, struct mr_survey *s)
{
    uint64_t *label = malloc((s->samples + 1) * sizeof *label), run = 0, n_used = 0;
    if (!label)
        return -ENOMEM;
    for (uint64_t i = 0; i < s->samples; i++)
        label[i] = mr_dataset_label(data, i);
    qsort(label, s->samples, sizeof *label, by_value);
    s->smallest_class = s->samples;
    for (uint64_t i = 0; i < s->samples; i++) {
        run++;
        if (i + 1 < s->samples && label[i + 1] == label[i])
            continue;
        s->smallest_class = run < s->smallest_class ? run : s->smallest_class;
        s->largest_class = run > s->largest_class ? run : s->largest_class;
        n_used++;
        run = 0;
    }
    if (n_used < s->classes)
        s->smallest_class = 0;
    free(label);
    return 0;
}

static void count_sizes(struct mr_survey *s, uint64_t *size)
{
    uint64_t n = s->files;
    if (!n)
        return;
    qsort(size, n, sizeof *size, by_value);
    s->smallest = size[0];
    s->largest = size[n - 1];
    s->p10 = size[(n - 1) / 10];
    s->p25 = size[(n - 1) / 4];
    s->p50 = size[(n - 1) / 2];
    s->p75 = size[(n - 1) - (n - 1) / 4];
    s->p90 = size[(n - 1) - (n - 1) / 10];
}

static const char *broken_reason(int code)
{
    return code == -ENODATA ? "empty, or it shrank while it was read" : mr_errno_text(code);
}

int mr_survey_run(const struct mr_dataset *data, const struct mr_survey_opts *o,
                  struct mr_survey *out)
{
    struct mr_survey s = {.samples = mr_dataset_size(data),
                          .classes = mr_dataset_n_classes(data),
                          .memory_bytes = mr_dataset_memory(data),
                          .checked = o->check};
    struct mr_buffer buf = {0};
    char path[PATH_MAX];
    int r = 0;
    uint64_t *sizes = malloc((s.samples + 1) * sizeof *sizes);
    if (!sizes)
        return -ENOMEM;
    for (uint64_t i = 0; !r && i < s.samples; i++) {
        if (i % 64 == 0 && o->progress)
            o->progress(o->ctx, i, s.samples);
        if (i % 64 == 0 && o->should_stop && o->should_stop(o->ctx)) {
            r = -ECANCELED;
            break;
        }
        uint64_t size = 0;
        int code = mr_dataset_path(data, i, path, sizeof path);
        if (code >= 0)
            code = look_at(&s, path, o->check, &buf, &size);
        if (code < 0) {
            s.n_broken++;
            if (o->on_broken)
                o->on_broken(o->ctx, path, broken_reason(code));
            continue;
        }
        sizes[s.files++] = size;
        s.bytes += size;
        s.bin[bin_of(size)]++;
    }
    s.partial = r == -ECANCELED;
    count_sizes(&s, sizes);
    int counted = count_classes(data, &s);
    free(sizes);
    mr_buffer_fini(&buf);
    if (counted)
        return counted;
    *out = s;
    return r;
}

struct mr_json *mr_survey_json(const struct mr_survey *s)
{
    struct mr_json *o = mr_json_object(), *q = mr_json_object(), *bins = mr_json_array();
    int64_t cached = mr_cache_sweep_cached(&s->cache);
    mr_json_set(o, "kind", mr_json_string("data set"));
    mr_json_set(o, "samples", mr_json_int((int64_t)s->samples));
    mr_json_set(o, "classes", mr_json_int(s->classes));
    mr_json_set(o, "smallest_class", mr_json_int((int64_t)s->smallest_class));
    mr_json_set(o, "largest_class", mr_json_int((int64_t)s->largest_class));
    mr_json_set(o, "files", mr_json_int((int64_t)s->files));
    mr_json_set(o, "bytes", mr_json_int((int64_t)s->bytes));
    mr_json_set(q, "min", mr_json_int((int64_t)s->smallest));
    mr_json_set(q, "p10", mr_json_int((int64_t)s->p10));
    mr_json_set(q, "p25", mr_json_int((int64_t)s->p25));
    mr_json_set(q, "p50", mr_json_int((int64_t)s->p50));
    mr_json_set(q, "p75", mr_json_int((int64_t)s->p75));
    mr_json_set(q, "p90", mr_json_int((int64_t)s->p90));
    mr_json_set(q, "max", mr_json_int((int64_t)s->largest));
    mr_json_set(o, "file_bytes", q);
    for (unsigned i = 0; i < MR_SURVEY_BINS; i++) {
        if (!s->bin[i])
            continue;
        struct mr_json *bin = mr_json_object();
        mr_json_set(bin, "up_to_bytes", mr_json_int((int64_t)1 << i));
        mr_json_set(bin, "files", mr_json_int((int64_t)s->bin[i]));
        mr_json_append(bins, bin);
    }
    mr_json_set(o, "size_histogram", bins);
    mr_json_set(o, "cached_bytes", cached < 0 ? mr_json_null() : mr_json_int(cached));
    mr_json_set(o, "broken", mr_json_int((int64_t)s->n_broken));
    mr_json_set(o, "checked", mr_json_bool(s->checked));
    mr_json_set(o, "table_bytes", mr_json_int((int64_t)s->memory_bytes));
    mr_json_set(o, "partial", mr_json_bool(s->partial));
    return o;
}
