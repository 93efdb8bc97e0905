/* input.c - see input.h. */
#include "input.h"

#include "output.h"
#include "sample_set.h"
#include "say.h"
#include "terminal.h"

#include <errno.h>
#include <string.h>

static int normalises(const struct options *o)
{
    for (unsigned c = 0; c < 3; c++)
        if (o->mean.value[c] != 0 || o->std.value[c] != 1)
            return 1;
    return 0;
}

int input_open_data(const struct options *o, struct mr_dataset **out, const char **path)
{
    const char *command = command_table[o->command].name;
    struct mr_error err = {0};
    if ((o->cold || o->drop_caches) && o->warm) {
        say_to(stderr, "millrace %s: --%s and --warm exclude each other\n", command,
               o->cold ? "cold" : "drop-caches");
        return 2;
    }
    if (o->dtype == DTYPE_U8 && normalises(o)) {
        say_to(stderr, "millrace %s: --mean and --std need --dtype f32\n", command);
        return 2;
    }
    if (!o->data == !o->list) {
        say_to(stderr, "millrace %s: name the data set by --data SPEC%s\n", command,
               o->data ? ", or by --list, not both" : "");
        return 2;
    }
    *path = o->data ? o->data : o->list;
    if (mr_dataset_open(*path, out, &err)) {
        say_to(stderr, "millrace: %s\n", err.text);
        return 1;
    }
    input_tell_unlabelled(*out, *path);
    return 0;
}

void input_say_error(const char *command, const struct mr_error *err)
{
    static const struct {
        const char *begin; /* of the library's text */
        const char *hint;
    } hints[] = {
        {"too many bad samples",
         "--max-errors says how many a run may have; --ledger FILE lists them."},
    };
    say_to(stderr, "millrace %s: %s\n", command, err->text);
    for (unsigned i = 0; i < sizeof hints / sizeof *hints; i++)
        if (!strncmp(err->text, hints[i].begin, strlen(hints[i].begin)))
            say_to(stderr, "%s\n", hints[i].hint);
}

void input_tell_unlabelled(const struct mr_dataset *d, const char *path)
{
    if (mr_dataset_is_unlabelled(d))
        say_to(stderr, "note: %s has no labels ('path,label' a line): all samples are of class 0\n",
               path);
}

int input_open_storage(const struct options *o, struct mr_device **out)
{
    struct mr_error err = {0};
    *out = NULL;
    if (!o->storage || !mr_device_open(o->storage, out, &err))
        return 0;
    say_to(stderr, "millrace: --storage: %s\n", err.text);
    return 2;
}

void input_print_storage(const char *of_what, const struct mr_device *d)
{
    if (d)
        say("EMULATED storage%s '%s', calibrated to: %s\n", of_what, mr_device_name(d),
            mr_device_calibrated(d)[0] ? mr_device_calibrated(d) : "(not said)");
}

struct mr_decoder_opts input_decoder(const struct options *o)
{
    return (struct mr_decoder_opts){
        .width = o->image_size.width,
        .height = o->image_size.height,
        .resize = o->resize,
        .dtype = o->dtype == DTYPE_U8 ? MR_DT_U8 : MR_DT_F32,
        .mean = {o->mean.value[0], o->mean.value[1], o->mean.value[2]},
        .std = {o->std.value[0], o->std.value[1], o->std.value[2]},
        .layout = o->layout,
        .augment = o->augment,
        .max_pixels = o->max_pixels,
        .exact = o->exact,
        .accept_truncated = o->accept_truncated,
        .decoder = o->decoder,
    };
}

struct mr_pipeline_opts input_pipeline(const struct options *o, unsigned threads)
{
    return (struct mr_pipeline_opts){
        .engine = o->engine,
        .threads = threads,
        .io_depth = o->io_depth,
        .direct = o->direct,
        .batch = o->batch,
        .prefetch = o->prefetch ? o->prefetch : MR_NONE,
        .shuffle = o->shuffle.kind,
        .window = o->shuffle.window,
        .seed = o->seed,
        .epochs = o->epochs,
        .batches = o->batches,
        .rank = o->shard.rank,
        .world = o->shard.world,
        .keep_last = o->keep_last,
        .max_file_bytes = o->max_file_bytes,
        .on_error_policy = o->on_error,
        .max_error_share = o->max_errors.share,
        .max_error_count = o->max_errors.count,
        .should_stop = terminal_interrupted,
    };
}

/* ---- the ledger ---- */

static void csv_field(FILE *f, const char *s, char after)
{
    int quote = strpbrk(s, ",\"\r\n") != NULL;
    if (quote)
        fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    if (quote)
        fputc('"', f);
    fputc(after, f);
}

static void on_bad_sample(void *ctx, const struct mr_bad_sample *bad)
{
    FILE *f = ((struct ledger_file *)ctx)->file;
    fprintf(f, "%llu,%llu,%u,%u,", (unsigned long long)bad->epoch, (unsigned long long)bad->batch,
            bad->slot, bad->attempt);
    csv_field(f, bad->path, ',');
    fprintf(f, "%s,%s,", bad->stage, bad->reason);
    csv_field(f, bad->detail, ',');
    csv_field(f, bad->substitute ? bad->substitute : "", '\n');
}

int ledger_open(struct ledger_file *l, const char *path)
{
    *l = (struct ledger_file){.path = path};
    if (!path)
        return 0;
    l->file = output_stream("ledger", path);
    if (!l->file)
        return 1;
    fprintf(l->file, "epoch,batch,slot,attempt,path,stage,reason,error,substitute\n");
    return 0;
}

void ledger_attach(struct ledger_file *l, struct mr_pipeline_opts *pipe)
{
    if (!l->file)
        return;
    pipe->on_error = on_bad_sample;
    pipe->on_error_ctx = l;
}

int ledger_close(struct ledger_file *l)
{
    if (!l->file)
        return 0;
    int bad = ferror(l->file);
    int closed = fclose(l->file);
    l->file = NULL;
    if (!closed && !bad)
        return 0;
    say_to(stderr, "millrace: --ledger %s: could not be written completely\n", l->path);
    return 1;
}
