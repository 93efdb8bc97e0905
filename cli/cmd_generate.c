/* cmd_generate.c - `millrace generate`: a data set of real JPEG files. */
#include "commands.h"

#include "clock.h"
#include "generate.h"
#include "output.h"
#include "say.h"
#include "terminal.h"

#include <errno.h>

static int on_progress(void *arg, uint64_t done, uint64_t total)
{
    progress_show("generating", done, total);
    return terminal_interrupted(arg);
}

static struct mr_json *to_json(const struct options *o, const struct mr_generate_result *made,
                               double seconds, int partial)
{
    struct mr_json *r = mr_json_object();
    mr_json_set(r, "path", mr_json_string(o->out));
    mr_json_set(r, "preset", mr_json_string(mr_preset_name(o->preset)));
    mr_json_set(r, "seed",
                o->seed <= INT64_MAX ? mr_json_int((int64_t)o->seed)
                                     : mr_json_real((double)o->seed));
    mr_json_set(r, "images", mr_json_int((int64_t)made->n_images));
    mr_json_set(r, "bytes", mr_json_int((int64_t)made->n_bytes));
    mr_json_set(r, "seconds", mr_json_real(seconds));
    mr_json_set(r, "partial", mr_json_bool(partial));
    return r;
}

int command_generate(const struct options *o)
{
    struct mr_error err = {0};
    struct mr_generate_result made = {0};
    struct output out;
    struct mr_generate_opts opts = {.preset = o->preset,
                                    .count = o->count,
                                    .classes = o->classes,
                                    .seed = o->seed,
                                    .again = o->again,
                                    .progress = on_progress};
    char bytes[32];
    if (!o->out) {
        say_to(stderr, "millrace generate: say where by --out DIR\n");
        return 2;
    }
    if (output_open(o, &out))
        return 1;
    uint64_t start = mr_clock_ns();
    int r = mr_generate(o->out, &opts, &made, &err);
    double seconds = (double)(mr_clock_ns() - start) / 1e9;
    progress_clear();
    if (r && r != -ECANCELED) {
        say_to(stderr, "millrace generate: %s%s\n", err.text,
               r == -EEXIST ? ": --again replaces it" : "");
        return 1;
    }
    if (!out.quiet)
        say("%s: %llu image%s, %s, in %.1f s; the list is %s/list.csv%s\n", o->out,
            (unsigned long long)made.n_images, plural(made.n_images),
            human_bytes((double)made.n_bytes, bytes, sizeof bytes), seconds, o->out,
            r ? " (interrupted: this is a part)" : "");
    struct mr_json *results = mr_json_array();
    mr_json_append(results, to_json(o, &made, seconds, r != 0));
    int failed = output_json(&out, o, o->out, results);
    return r ? 130 : failed;
}
