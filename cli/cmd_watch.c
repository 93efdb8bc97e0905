/* cmd_watch.c - `millrace watch`: sample the system while a command runs.
 *
 * The sampler's thread draws the table, writes the CSV and gathers the series; the main thread
 * waits for signals (watch_child.c).  They meet when the sampler is closed.
 *
 * Standard output is the command's.  So the table goes to standard error; without a command it is
 * our result and goes to standard output.  `--json -` or `--csv -` take standard output for
 * themselves, and the command's goes to standard error. */
#include "commands.h"

#include "errtext.h"
#include "output.h"
#include "sample_columns.h"
#include "sample_csv.h"
#include "sample_series.h"
#include "say.h"
#include "watch_child.h"
#include "watch_table.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_FOUND   127
#define CANNOT_RUN  126
#define INTERRUPTED 130

struct watch {
    const struct options *o;
    struct output out;
    struct watch_child child;
    FILE *live;   /* the table while it runs; NULL: none */
    FILE *totals; /* and at the end */
    unsigned lines;
    FILE *csv;
    int csv_failed;                  /* and this was said */
    struct mr_sample_series *series; /* NULL without --json */
    unsigned known;
    int device_missing; /* one that was asked for */
    struct mr_json *result;
};

static int is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

static int check_usage(const struct options *o)
{
    const char *wrong = NULL;
    if (o->n_paths && o->duration_ns)
        wrong = "--duration is for watching without a command: a command's end is the end";
    else if (is_stdout(o->json) && is_stdout(o->csv))
        wrong = "--json - and --csv - cannot both have standard output; name a file for one";
    if (wrong)
        say_to(stderr, "millrace watch: %s\nTry 'millrace watch --help'.\n", wrong);
    return wrong ? 2 : 0;
}

static void say_csv_failed(struct watch *w, int code)
{
    if (!w->csv_failed)
        say_to(stderr, "millrace: --csv %s: %s%s\n", w->o->csv, mr_errno_text(code ? code : EIO),
               w->known ? "; the samples from here on are lost" : "");
    w->csv_failed = 1;
}

/* Each sample is handed to the kernel at once: whatever happens to us, it can be read. */
static void write_csv(struct watch *w, const struct mr_system_sample *s)
{
    errno = 0;
    if (s)
        mr_sample_csv_rows(w->csv, s, w->o->device);
    else
        mr_sample_csv_heading(w->csv);
    if (fflush(w->csv) || ferror(w->csv))
        say_csv_failed(w, errno);
}

/* Say which of the devices that were asked for never came; 1 when there is one. */
static int say_missing_devices(const struct mr_system_sample *s, const char *only)
{
    int missing = 0;
    char name[MR_DISK_NAME + 8];
    for (const char *p = only; *p; p += p[0] == ',') {
        size_t n = strcspn(p, ",");
        int there = n == 0;
        if (n < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)n, p);
            for (unsigned i = 0; !there && i < s->n_disks; i++)
                there = mr_disk_chosen(&s->disks[i], name);
        }
        if (!there)
            say_to(stderr, "millrace watch: --device %.*s: there was no such block device\n",
                   (int)n, p);
        missing |= !there;
        p += n;
    }
    return missing;
}

static void on_sample(void *ctx, const struct mr_system_sample *s)
{
    struct watch *w = ctx;
    w->known |= s->known;
    if (w->csv && !w->csv_failed)
        write_csv(w, s);
    if (w->series)
        mr_sample_series_add(w->series, s);
    if (w->live && !s->final)
        watch_table_sample(w->live, s, w->o->device, &w->lines);
    if (!s->final)
        return;
    if (w->o->device)
        w->device_missing = say_missing_devices(s, w->o->device);
    if (w->totals)
        watch_table_totals(w->totals, s, w->o->device, w->known);
    if (w->series)
        mr_sample_series_json(w->series, s, w->result);
}

static struct mr_json *command_json(const struct options *o)
{
    if (!o->n_paths)
        return mr_json_null();
    struct mr_json *a = mr_json_array();
    for (int i = 0; i < o->n_paths; i++)
        mr_json_append(a, mr_json_string(o->paths[i]));
    return a;
}

static int open_outputs(struct watch *w)
{
    const struct options *o = w->o;
    int taken = is_stdout(o->json) || is_stdout(o->csv), command = o->n_paths > 0;
    if (output_open(o, &w->out))
        return 1;
    if (o->csv) {
        w->csv = is_stdout(o->csv) ? stdout : output_stream("csv", o->csv);
        if (!w->csv)
            return 1;
        write_csv(w, NULL);
        if (w->csv_failed)
            return 1;
    }
    if (o->json) {
        w->series = mr_sample_series_new(o->device, 0);
        w->result = mr_json_object();
        if (!w->series || !w->result) {
            say_to(stderr, "millrace watch: no memory\n");
            return 1;
        }
        mr_json_set(w->result, "command", command_json(o));
        mr_json_set(w->result, "interval_s", mr_json_real((double)o->interval_ns / 1e9));
    }
    w->totals = command || taken ? stderr : stdout;
    w->live = w->totals == stdout || isatty(STDERR_FILENO) ? w->totals : NULL;
    return 0;
}

/* The command is there to be sampled, but does not run yet. */
static int start_sampler(struct watch *w, struct mr_sampler **sampler)
{
    struct mr_error err = {0};
    struct mr_sampler_opts opts = {.interval_ns = w->o->interval_ns,
                                   .on_sample = on_sample,
                                   .ctx = w,
                                   .process = w->child.pid};
    int r = mr_sampler_open(&opts, sampler, &err);
    if (r)
        say_to(stderr, "millrace watch: %s\n", err.text);
    return r;
}

static int cannot_run(struct watch *w, int r)
{
    w->totals = NULL;
    say_to(stderr, "millrace watch: %s: %s\n", w->o->paths[0], mr_errno_text(r));
    return r == -ENOENT ? NOT_FOUND : CANNOT_RUN;
}

static void set_ending(struct watch *w, int status, int signal_number)
{
    int command = w->o->n_paths > 0;
    if (!w->result)
        return;
    mr_json_set(w->result, "exit_status", command ? mr_json_int(status) : mr_json_null());
    mr_json_set(w->result, "signal", signal_number ? mr_json_int(signal_number) : mr_json_null());
}

/* Run, sample, wait: the exit status. */
static int watch(struct watch *w)
{
    const struct options *o = w->o;
    struct mr_sampler *sampler = NULL;
    int signal_number = 0, status = 1;
    int r = o->n_paths
                ? watch_child_fork(&w->child, o->paths, is_stdout(o->json) || is_stdout(o->csv))
                : 0;
    if (r) {
        say_to(stderr, "millrace watch: no process: %s\n", mr_errno_text(r));
        goto done;
    }
    if (start_sampler(w, &sampler))
        goto done;
    if (o->n_paths && (r = watch_child_go(&w->child)) != 0) {
        status = cannot_run(w, r);
        goto done;
    }
    signal_number = watch_child_wait(&w->child, o->duration_ns);
    status = signal_number ? INTERRUPTED : 0;
    watch_child_unblock(&w->child); /* from here on a signal is for us: a CSV may be stuck */
done:
    mr_sampler_close(sampler); /* before reaping: the command's counters go with it */
    if (w->child.pid && w->child.go < 0)
        status = watch_child_reap(&w->child, &signal_number);
    watch_child_fini(&w->child);
    set_ending(w, status, signal_number);
    return status;
}

static int close_outputs(struct watch *w)
{
    int bad = w->csv_failed;
    if (w->csv && w->csv != stdout && fclose(w->csv) && !bad) {
        say_csv_failed(w, errno);
        bad = 1;
    }
    mr_sample_series_free(w->series);
    return bad;
}

int command_watch(const struct options *o)
{
    struct watch w = {.o = o};
    int status = check_usage(o);
    if (status)
        return status;
    if (open_outputs(&w)) {
        close_outputs(&w);
        mr_json_free(w.result);
        return 1;
    }
    watch_child_init(&w.child);
    if (o->n_paths)
        o->paths[o->n_paths] = NULL;
    status = watch(&w);
    int bad = close_outputs(&w);
    if (w.result) {
        struct mr_json *results = mr_json_array();
        mr_json_append(results, w.result);
        bad |= output_json(&w.out, o, ".", results);
    }
    return status ? status : bad || w.device_missing;
}
