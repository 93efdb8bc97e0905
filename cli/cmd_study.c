/* cmd_study.c - `millrace study`: every experiment, then the report.
 *
 *     DIR/NAME.json      an experiment that is through; found there, it is not run again if all
 *                        that it rests on (study_basis.h) is as it was, and that is said
 *     DIR/results.json   all of them, written anew after each
 *     DIR/report.html    the page, and a CSV file for each plot
 *     DIR/data           generated images, when no data set was named
 *
 * A trace (--trace) holds the experiments that run now; one that records traces of its own is a gap
 * in it.
 *
 * What experiments make for themselves goes to a folder beside the data and is removed; so is that
 * of a study that was killed, by the next one in the same place. */
#include "commands.h"

#include "environment.h"
#include "errtext.h"
#include "output.h"
#include "points.h"
#include "report.h"
#include "say.h"
#include "scratch_dir.h"
#include "study.h"
#include "study_basis.h"
#include "study_data.h"
#include "study_files.h"
#include "terminal.h"
#include "tracing.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ONLY 32
#define SCHEMA   1 /* of results.json: another number when a field means something else */

struct session {
    const struct options *o;
    const char *dir;
    int made_dir; /* by us, now */
    struct study_data images;
    double file_bytes;                      /* of an image, on average; NaN: not known */
    struct mr_json *done[MR_N_EXPERIMENTS]; /* by the experiments' numbers */
    const char *only[MAX_ONLY + 1];
    char *only_text;
    struct mr_json *basis; /* of what is measured now */
    char started[32];      /* the time */
    struct mr_scratch *scratch;
    int traced; /* the trace has ended: */
    struct mr_trace_stats trace;
};

static int is_full(const struct session *s)
{
    return s->o->full;
}

static int refuse_only(const char *format, const char *what)
{
    say_to(stderr, "millrace study: --only: ");
    say_to(stderr, format, what);
    say_to(stderr, "; there are");
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++)
        say_to(stderr, "%s %s", i ? "," : "", mr_experiment_name(i));
    say_to(stderr, "\n");
    return 2;
}

/* --only a,b */
static int parse_only(struct session *s)
{
    if (!s->o->only)
        return 0;
    s->only_text = strdup(s->o->only);
    if (!s->only_text) {
        say_to(stderr, "millrace study: %s\n", mr_errno_text(ENOMEM));
        return 1;
    }
    unsigned n = 0;
    for (char *name = strtok(s->only_text, ","); name; name = strtok(NULL, ",")) {
        if (mr_experiment_of(name) < 0)
            return refuse_only("there is no experiment '%s'", name);
        if (n == MAX_ONLY)
            return refuse_only("too many names, at '%s'", name);
        s->only[n++] = name;
    }
    return n ? 0 : refuse_only("'%s' names no experiment", s->o->only);
}

/* ---- what the study asks and tells ---- */

static const struct mr_json *on_earlier(void *ctx, const char *experiment)
{
    struct session *s = ctx;
    int i = mr_experiment_of(experiment);
    return i >= 0 ? s->done[i] : NULL;
}

static struct mr_json *data_json(const struct session *s)
{
    const struct study_data *d = &s->images;
    struct mr_study_data_set set = {.path = d->path,
                                    .images = d->data ? (double)d->n_images : 0,
                                    .classes = d->data ? mr_dataset_n_classes(d->data) : 0,
                                    .file_bytes = s->file_bytes,
                                    .generated = d->generated,
                                    .wanted = d->generated ? (double)d->n_wanted : NAN};
    return mr_study_data_set_json(&set);
}

/* The verdict's, as far as there is one. */
static struct mr_json *recommendation(const struct session *s)
{
    struct mr_verdict_point p =
        mr_verdict_point_of(mr_result_point(s->done[MR_EXPERIMENT_verdict], 0));
    return mr_json_copy(p.recommendation);
}

/* Everything so far; the caller frees it. */
static struct mr_json *results(const struct session *s)
{
    struct mr_json *list = mr_json_array();
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++)
        if (s->done[i])
            mr_json_append(list, mr_json_copy(s->done[i]));
    struct mr_study_results all = {
        .command = "study",
        .schema = SCHEMA,
        .version = mr_version(),
        .environment = mr_environment(s->images.path),
        .started_at = s->started,
        .mode = is_full(s) ? "full" : "quick",
        .data = data_json(s),
        .trace = s->traced ? tracing_json(s->o->trace, &s->trace) : NULL,
        .recommendation = recommendation(s),
        .results = list,
    };
    return mr_study_results_json(&all);
}

static int write_json(const char *dir, const char *name, const struct mr_json *j)
{
    char *text = mr_json_format(j);
    int r = text ? study_write(dir, name, text, strlen(text)) : -ENOMEM;
    if (r)
        say_to(stderr, "millrace study: %s/%s: %s\n", dir, name, mr_errno_text(r));
    free(text);
    return r;
}

static void on_finished(void *ctx, const char *experiment, struct mr_json *result)
{
    struct session *s = ctx;
    int i = mr_experiment_of(experiment);
    char name[64];
    study_basis_stamp(s->basis, result);
    snprintf(name, sizeof name, "%s.json", experiment);
    progress_hide(); /* and no more: the time that is left is reckoned from the study's start */
    struct mr_result r = mr_result_of(result);
    if (r.missing)
        say_to(stderr, "%-10s missing: %s\n", experiment, r.missing);
    else if (!s->o->json || strcmp(s->o->json, "-"))
        say("%-10s %6.1f s\n", experiment, r.seconds);
    fflush(stdout);
    mr_json_free(s->done[i]);
    s->done[i] = result;
    write_json(s->dir, name, result);
    struct mr_json *all = results(s);
    write_json(s->dir, "results.json", all);
    mr_json_free(all);
}

static void on_progress(void *ctx, const struct mr_study_progress *now)
{
    char what[160];
    (void)ctx;
    snprintf(what, sizeof what, "%s: %s", now->experiment, now->what);
    progress_step("study", what, (uint64_t)(now->done_s * 10), (uint64_t)(now->total_s * 10));
}

/* ---- before ---- */

/* The folder that holds the data set: on the same storage unless the data set is a mount point,
 * and not among the samples.  0 when it cannot be written. */
static int beside_data(const struct session *s, char *parent)
{
    struct stat data, up;
    if (!s->o->data || !realpath(s->o->data, parent))
        return 0;
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent || stat(parent, &data))
        return 0;
    *slash = 0;
    return !stat(parent, &up) && up.st_dev == data.st_dev && !access(parent, W_OK);
}

/* The folder that experiments write in: on the storage that is studied if that can be written. */
static void find_scratch(const struct session *s, char *parent)
{
    if (!beside_data(s, parent))
        snprintf(parent, PATH_MAX, "%s", s->dir);
}

static unsigned n_runs(const struct session *s)
{
    unsigned runs = is_full(s) ? 6 : 3;
    return s->o->study_runs ? s->o->study_runs : runs;
}

/* What results from now on rest on.  Photos that are not made yet will be in `dir`. */
static void take_basis(struct session *s)
{
    char sample[PATH_MAX], scratch[PATH_MAX];
    int there = s->images.data && mr_dataset_name(s->images.data, 0, sample, sizeof sample) > 0 &&
                !access(sample, F_OK);
    find_scratch(s, scratch);
    struct study_basis b = {
        .mode = is_full(s) ? "full" : "quick",
        .data = s->images.path,
        .n_images = s->images.n_images,
        .seed = s->o->seed,
        .runs = n_runs(s),
        .data_at = there            ? sample
                   : s->images.data ? s->images.path
                                    : s->dir,
        .scratch_at = scratch,
        .out_at = s->dir,
    };
    mr_json_free(s->basis);
    s->basis = study_basis_json(&b);
}

/* "read, decode": those of `mask`. */
static void print_names(FILE *to, unsigned mask)
{
    const char *comma = "";
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++)
        if (mask & 1u << i) {
            say_to(to, "%s%s", comma, mr_experiment_name(i));
            comma = ", ";
        }
}

static void tell_taken_over(const struct session *s)
{
    unsigned mask = 0;
    const char *first = NULL, *last = NULL;
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++) {
        const char *at = mr_result_origin_of(s->done[i]).measured_at;
        if (!at)
            continue;
        mask |= 1u << i;
        first = !first || strcmp(at, first) < 0 ? at : first;
        last = !last || strcmp(at, last) > 0 ? at : last;
    }
    if (!mask)
        return;
    say_to(stderr, "Not measured again: ");
    print_names(stderr, mask);
    say_to(stderr, ". These results in %s are of %s", s->dir, first);
    if (strcmp(first, last))
        say_to(stderr, " to %s", last);
    say_to(stderr, "; --again measures them anew.\n");
}

/* Earlier results that rest on something else, those with the same reason in one line. */
static void tell_left(const struct session *s, char why[MR_N_EXPERIMENTS][256])
{
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++) {
        unsigned mask = 0;
        for (unsigned k = i; why[i][0] && k < MR_N_EXPERIMENTS; k++)
            if (!strcmp(why[i], why[k])) {
                mask |= 1u << k;
                if (k > i)
                    why[k][0] = 0;
            }
        if (!mask)
            continue;
        say_to(stderr, "Earlier results in %s are not taken over (", s->dir);
        print_names(stderr, mask);
        say_to(stderr, "): %s.\n", why[i]);
    }
}

/* Was it asked for that this one is measured, whatever there is? */
static int is_asked_for(const struct session *s, const char *experiment)
{
    int again = s->o->again;
    for (unsigned k = 0; s->o->only && s->only[k]; k++)
        again |= !strcmp(s->only[k], experiment);
    return again;
}

/* Finished experiments of an earlier study of the same kind, on the same machine and data. */
static void load_earlier(struct session *s)
{
    char why[MR_N_EXPERIMENTS][256] = {{0}};
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++) {
        char name[64];
        if (is_asked_for(s, mr_experiment_name(i)))
            continue;
        snprintf(name, sizeof name, "%s.json", mr_experiment_name(i));
        struct mr_json *j = study_read(s->dir, name);
        if (mr_result_of(j).finished && !study_basis_differs(s->basis, j, why[i], sizeof why[i]))
            s->done[i] = j;
        else
            mr_json_free(j);
    }
    tell_left(s, why);
    tell_taken_over(s);
}

static int make_scratch(struct session *s)
{
    char parent[PATH_MAX];
    struct mr_error err = {0};
    find_scratch(s, parent);
    if (mr_scratch_open(parent, &s->scratch, &err)) {
        say_to(stderr, "millrace study: %s\n", err.text);
        return 1;
    }
    unsigned n = mr_scratch_n_stale(s->scratch);
    if (n)
        say_to(stderr, "note: removed what %u killed run%s had left in %s\n", n, n > 1 ? "s" : "",
               parent);
    return 0;
}

static int make_out(struct session *s)
{
    struct stat st;
    s->made_dir = !mkdir(s->dir, 0777);
    if (!s->made_dir && errno == EEXIST && !stat(s->dir, &st))
        errno = !S_ISDIR(st.st_mode) ? ENOTDIR : !access(s->dir, W_OK | X_OK) ? 0 : errno;
    if (s->made_dir || !errno)
        return 0;
    say_to(stderr,
           "millrace study: --out %s: %s; name a folder that can be written, or one to be made\n",
           s->dir, mr_errno_text(errno));
    return 1;
}

/* "40 seconds", "8 minutes" */
static const char *about(double seconds, char *buf, size_t cap)
{
    snprintf(buf, cap, seconds < 90 ? "%.0f seconds" : "%.0f minutes",
             seconds < 90 ? seconds : seconds / 60);
    return buf;
}

/* --full takes hours: on a terminal somebody is asked, before anything is made. */
static int is_agreed(const struct session *s, double seconds)
{
    char answer[8] = "";
    if (!is_full(s))
        return 1;
    char text[32];
    say_to(stderr, "This will take about %s.\n", about(seconds, text, sizeof text));
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return 1;
    say_to(stderr, "Go on? [y/N] ");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* ---- after ---- */

/* Not a single experiment came to its end. */
static int is_empty(const struct session *s)
{
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++)
        if (mr_result_of(s->done[i]).finished)
            return 0;
    return 1;
}

static int conclude(struct session *s, struct output *out)
{
    struct mr_json *all = results(s);
    struct mr_markup text = {0};
    int status = write_json(s->dir, "results.json", all) || study_render(s->dir, all);
    if (!status && !out->quiet && !mr_report_summary(all, &text, NULL)) {
        say("\n");
        say_lines(text.data);
        say("Report: %s/report.html\n", s->dir);
    }
    mr_markup_fini(&text);
    if (out->path && !is_empty(s)) { /* else an earlier file stays */
        struct mr_json *list = mr_json_copy(mr_study_results_of(all).results);
        if (output_json(out, s->o, s->images.path, list))
            status = 1;
    }
    mr_json_free(all);
    return status || is_empty(s);
}

/* Without data nothing runs, and the page says so.  An earlier study's page stays. */
static void report_no_data(struct session *s, struct output *out)
{
    struct mr_json *earlier = study_read(s->dir, "results.json");
    for (unsigned i = 0; !earlier && i < MR_N_EXPERIMENTS; i++) {
        struct mr_result e = {.experiment = mr_experiment_name(i),
                              .commands = mr_json_array(),
                              .warnings = mr_json_array(),
                              .points = mr_json_array(),
                              .missing = s->images.err.text,
                              .foreseen_s = NAN,
                              .left_out = NAN};
        mr_json_free(s->done[i]);
        s->done[i] = mr_result_json(&e);
    }
    if (!earlier)
        conclude(s, out);
    mr_json_free(earlier);
}

/* What the study is asked to do, with the data as far as they are there. */
static struct mr_study_opts study_opts(struct session *s)
{
    return (struct mr_study_opts){
        .data = s->images.data,
        .n_images = s->images.n_images,
        .data_path = s->images.path,
        .scratch = s->scratch ? mr_scratch_path(s->scratch) : NULL,
        .full = is_full(s),
        .runs = n_runs(s),
        .seed = s->o->seed,
        .only = s->o->only ? s->only : NULL,
        .earlier = on_earlier,
        .finished = on_finished,
        .progress = on_progress,
        .should_stop = terminal_interrupted,
        .ctx = s,
    };
}

/* Data, those asked who have to be, and a place to write; exit status. */
static int prepare(struct session *s, struct output *out)
{
    int status = study_data_plan(&s->images, s->o, s->dir);
    if (!status) {
        take_basis(s);
        load_earlier(s);
        struct mr_study_opts o = study_opts(s);
        if (!is_agreed(s, mr_study_estimate(&o) + s->images.seconds))
            return 1;
        status = study_data_make(&s->images, s->o->seed);
        take_basis(s);
        if (s->images.data)
            s->file_bytes = mr_study_file_bytes(s->images.data);
    }
    if (status == 1 && s->images.err.text[0] && s->images.err.code != -ENOENT)
        report_no_data(s, out);
    return status ? status : make_scratch(s);
}

static int run(struct session *s, struct output *out)
{
    struct mr_error err = {0};
    char text[32];
    struct mr_study_opts o = study_opts(s);
    if (!out->quiet)
        say("%s: %llu image%s; about %s; results in %s\n", s->images.path,
            (unsigned long long)s->images.n_images, plural(s->images.n_images),
            about(mr_study_estimate(&o), text, sizeof text), s->dir);
    fflush(stdout);
    if (tracing_start(s->o, s->images.data,
                      "hdd, ssd, optane, lustre, and the real one: marks tell which"))
        return 1;
    int r = mr_study_run(&o, &err);
    progress_clear();
    if (r && r != -ECANCELED)
        say_to(stderr, "millrace study: %s\n", err.text);
    s->traced = s->o->trace != NULL;
    int untraced = s->traced && tracing_stop(&s->trace);
    int status = conclude(s, out) || untraced;
    return r == -ECANCELED ? 130 : r ? 1 : status;
}

int command_study(const struct options *o)
{
    struct session s = {.o = o, .dir = o->out ? o->out : "millrace-study", .file_bytes = NAN};
    struct output out = {0};
    if (o->quick && o->full) {
        say_to(stderr, "millrace study: --quick and --full exclude each other\n");
        return 2;
    }
    mr_environment_now(s.started, sizeof s.started);
    int status = parse_only(&s);
    if (!status)
        status = tracing_check(o);
    if (!status)
        status = make_out(&s);
    if (!status)
        status = output_open(o, &out);
    if (!status)
        status = prepare(&s, &out);
    if (!status)
        status = run(&s, &out);
    mr_scratch_close(s.scratch);
    if (status && s.made_dir)
        rmdir(s.dir); /* if nothing is in it */
    for (unsigned i = 0; i < MR_N_EXPERIMENTS; i++)
        mr_json_free(s.done[i]);
    mr_json_free(s.basis);
    study_data_fini(&s.images);
    free(s.only_text);
    return status;
}
