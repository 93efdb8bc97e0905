/* cmd_inspect.c - `millrace inspect`: what a data set is; traces are inspect_trace.c's. */
#include "commands.h"

#include "errtext.h"
#include "input.h"
#include "inspect_image.h"
#include "inspect_trace.h"
#include "output.h"
#include "say.h"
#include "survey.h"
#include "terminal.h"
#include "trace_log.h"

#include <errno.h>
#include <sys/stat.h>

#define BROKEN_TO_SHOW 20

struct show {
    struct mr_json *broken;
    unsigned n;
    int quiet;
};

static void on_broken(void *ctx, const char *path, const char *reason)
{
    struct show *s = ctx;
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "path", mr_json_string(path));
    mr_json_set(o, "reason", mr_json_string(reason));
    mr_json_append(s->broken, o);
    if (s->n++ < BROKEN_TO_SHOW && !s->quiet) {
        progress_clear();
        say("broken: %s: %s\n", path, reason);
    }
}

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    progress_show("inspecting", done, total);
}

static void print_histogram(const struct mr_survey *s)
{
    uint64_t most = 1;
    char edge[32];
    for (unsigned i = 0; i < MR_SURVEY_BINS; i++)
        most = s->bin[i] > most ? s->bin[i] : most;
    say("file sizes\n");
    for (unsigned i = 0; i < MR_SURVEY_BINS; i++) {
        if (!s->bin[i])
            continue;
        if (i >= 10)
            snprintf(edge, sizeof edge, "%llu %ciB", 1ull << (i % 10), "KMGT"[i / 10 - 1]);
        else
            snprintf(edge, sizeof edge, "%llu B", 1ull << i);
        say("  up to %8s %9llu  ", edge, (unsigned long long)s->bin[i]);
        for (uint64_t k = 0; k < (s->bin[i] * 50 + most - 1) / most; k++)
            putchar('#');
        putchar('\n');
    }
}

static void print_images(const struct mr_survey *s)
{
    uint64_t n = s->n_jpeg + s->n_png;
    if (!n) {
        say("images: none among the %llu file%s looked at\n", (unsigned long long)s->n_probed,
            plural(s->n_probed));
        return;
    }
    say("images: %llu JPEG", (unsigned long long)s->n_jpeg);
    if (s->n_jpeg) {
        const char *open = " (";
        for (unsigned i = 0; i < MR_SURVEY_SAMPLINGS && s->sampling[i].name[0]; i++, open = ", ")
            say("%s%s: %llu", open, s->sampling[i].name, (unsigned long long)s->sampling[i].n);
        say("%sgrey: %llu, CMYK: %llu, progressive: %llu)", open, (unsigned long long)s->n_grey,
            (unsigned long long)s->n_cmyk, (unsigned long long)s->n_progressive);
    }
    say(", %llu PNG, %llu neither; of %llu looked at\n", (unsigned long long)s->n_png,
        (unsigned long long)s->n_other, (unsigned long long)s->n_probed);
    say("dimensions: median %llux%llu, width %llu to %llu, height %llu to %llu\n",
        (unsigned long long)s->width.p50, (unsigned long long)s->height.p50,
        (unsigned long long)s->width.min, (unsigned long long)s->width.max,
        (unsigned long long)s->height.min, (unsigned long long)s->height.max);
}

static void print(const char *path, const struct mr_survey *s, const struct mr_dataset *d)
{
    char a[32], b[32], c[32];
    int64_t cached = mr_cache_sweep_cached(&s->cache);
    say("%s: data set, %llu sample%s, %u class%s", path, (unsigned long long)s->samples,
        plural(s->samples), s->classes, s->classes == 1 ? "" : "es");
    if (s->classes > 1)
        say(" of %llu to %llu", (unsigned long long)s->smallest_class,
            (unsigned long long)s->largest_class);
    if (mr_dataset_class_name(d, 0))
        say(" (0 = %s)", mr_dataset_class_name(d, 0));
    say("\n%llu usable file%s, %s; median %s, p10 %s, ", (unsigned long long)s->files,
        plural(s->files), human_bytes((double)s->bytes, a, sizeof a),
        human_bytes((double)s->size.p50, b, sizeof b),
        human_bytes((double)s->size.p10, c, sizeof c));
    say("p90 %s, largest %s\n", human_bytes((double)s->size.p90, a, sizeof a),
        human_bytes((double)s->size.max, b, sizeof b));
    if (cached < 0)
        say("cached: cannot be known (files of another owner)\n");
    else
        say("cached: %s (%.0f%%)\n", human_bytes((double)cached, a, sizeof a),
            s->bytes ? 100.0 * (double)cached / (double)s->bytes : 0);
    print_images(s);
    say("broken: %llu%s\n", (unsigned long long)s->n_broken,
        s->checked ? "" : " (by size and type; --check reads and decodes all)");
    print_histogram(s);
    if (s->partial)
        say("interrupted: this is a part of the data set\n");
}

/* Two paths are two traces: 0, or 1 with words when one of them cannot be. */
static int check_two(const struct options *o)
{
    struct stat st;
    for (int i = 0; i < o->n_paths; i++)
        if (!stat(o->paths[i], &st) && S_ISDIR(st.st_mode)) {
            say_to(stderr,
                   "millrace inspect: %s: Is a directory; two paths are two traces, to be joined: "
                   "inspect data sets one at a time\n",
                   o->paths[i]);
            return 1;
        }
    return 0;
}

int command_inspect(const struct options *o)
{
    struct mr_error err = {0};
    struct mr_dataset *d;
    struct mr_survey s;
    struct output out;
    if (o->n_paths == 2 && check_two(o))
        return 1;
    if (o->n_paths == 2 || mr_trace_recognise(o->paths[0]))
        return inspect_traces(o);
    if (inspect_is_image(o->paths[0]))
        return inspect_image(o);
    if (mr_dataset_open(o->paths[0], &d, &err)) {
        say_to(stderr, "millrace inspect: %s\n", err.text);
        return 1;
    }
    input_tell_unlabelled(d, o->paths[0]);
    struct show show = {.broken = mr_json_array()};
    struct mr_survey_opts opts = {.check = o->check,
                                  .on_broken = on_broken,
                                  .progress = on_progress,
                                  .should_stop = terminal_interrupted,
                                  .ctx = &show};
    int status = output_open(o, &out);
    show.quiet = out.quiet;
    int r = status ? 0 : mr_survey_run(d, &opts, &s);
    progress_clear();
    if (r && r != -ECANCELED) {
        say_to(stderr, "millrace inspect: %s\n", mr_errno_text(r));
        status = 1;
    }
    if (!status) {
        struct mr_json *results = mr_json_array(), *result = mr_survey_json(&s);
        if (show.n > BROKEN_TO_SHOW && !out.quiet)
            say("broken: %u more\n", show.n - BROKEN_TO_SHOW);
        if (!out.quiet)
            print(o->paths[0], &s, d);
        mr_json_set(result, "path", mr_json_string(o->paths[0]));
        mr_json_set(result, "broken_files", show.broken);
        mr_json_append(results, result);
        status = output_json(&out, o, o->paths[0], results);
        if (r == -ECANCELED)
            status = 130;
        else if (o->check && s.n_broken)
            status = 1;
    } else {
        mr_json_free(show.broken);
    }
    mr_dataset_unref(d);
    return status;
}
