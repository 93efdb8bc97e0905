/* effects.c - options that were typed and have no effect, because of other options.
 *
 * A row of the option table names what it needs; here is what that means.  Nothing is refused: a
 * script may pass the same options to several commands.  But a user who measures a depth that
 * nobody uses has to be told. */
#include "options.h"
#include "say.h"

#include <string.h>

/* Each returns NULL when such options have an effect, else why not: "without --engine uring". */
typedef const char *need_check(const struct options *o);

static const char *uring(const struct options *o)
{
    return o->engine ? NULL : "without --engine uring";
}

static const char *decode(const struct options *o)
{
    return o->command != CMD_BENCH || o->map ? NULL : "without --map decode";
}

static int does(const struct options *o, const char *action)
{
    return o->n_paths && !strcmp(o->paths[0], action);
}

static const char *saving(const struct options *o)
{
    if (o->command == CMD_CHECKPOINT)
        return does(o, "convert") ? NULL : "except with 'convert'";
    return o->checkpoint_dir ? NULL : "without --checkpoint";
}

static const char *tf(const struct options *o)
{
    const char *why = saving(o);
    return why ? why : o->format ? "without --format tf" : NULL;
}

static const char *drain(const struct options *o)
{
    return o->drain ? NULL : "without --drain";
}

static const char *making(const struct options *o)
{
    return does(o, "convert") || does(o, "restore") ? NULL : "except with 'convert' and 'restore'";
}

static const char *compute(const struct options *o)
{
    return strncmp(o->accelerator, "emulated", 8) ? NULL : "with an emulated accelerator";
}

static const char *skipping(const struct options *o)
{
    return o->on_error ? "with --on-error fail" : NULL;
}

static const char *runs(const struct options *o)
{
    return o->command == CMD_BENCH ? NULL : "except with 'millrace bench'";
}

static need_check *const needs[N_NEEDS] = {
    [NEEDS_URING] = uring,     [NEEDS_DECODE] = decode,     [NEEDS_SAVING] = saving,
    [NEEDS_TF] = tf,           [NEEDS_DRAIN] = drain,       [NEEDS_MAKING] = making,
    [NEEDS_COMPUTE] = compute, [NEEDS_SKIPPING] = skipping, [NEEDS_RUNS] = runs,
};

void options_tell_unused(const struct options *o)
{
    for (unsigned i = 0; i < n_option_rows; i++) {
        need_check *check = needs[option_table[i].needs];
        const char *why = o->given[i] && check ? check(o) : NULL;
        if (why)
            say_to(stderr, "note: --%s has no effect %s\n", option_table[i].name, why);
    }
}
