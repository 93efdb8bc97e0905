/* options.c - the table of commands and options, and the parser that walks it.
 *
 * A new option is one row (and a field in struct options).  Everything a user sees of it comes from
 * here: the parser below, and help.c, which prints --help, the man page and the completion. */
#include "options.h"

#include "ckpt_format.h"
#include "experiments.h"
#include "say.h"

#include <string.h>

#define DEFAULT_BATCH 64

#define BASELINE   (1u << CMD_BASELINE)
#define BENCH      (1u << CMD_BENCH)
#define CHECKPOINT (1u << CMD_CHECKPOINT)
#define EVICT      (1u << CMD_EVICT)
#define GENERATE   (1u << CMD_GENERATE)
#define INSPECT    (1u << CMD_INSPECT)
#define REPORT     (1u << CMD_REPORT)
#define STUDY      (1u << CMD_STUDY)
#define TRAIN      (1u << CMD_TRAIN)
#define WATCH      (1u << CMD_WATCH)
#define INPUT      (BENCH | TRAIN) /* commands that feed from a data set */
#define EVERY      (~0u)

const struct command_row command_table[N_COMMANDS] = {
    [CMD_BASELINE] =
        {"baseline", "DIR", "measure the raw limits of a folder's storage",
         "Writes one large file into the folder and measures, around the page cache, what the "
         "device behind it can do: reading and writing in order, reads at random places with "
         "ImageNet's sizes and of 16 and 4 KiB, small files, syncs. No loader and no checkpoint "
         "can be faster. All files are removed at the end, also after Ctrl-C.",
         1, 1},
    [CMD_BENCH] =
        {"bench", "", "measure how fast samples arrive",
         "Draws batches from a data set as fast as they come, several times, and prints "
         "the median rate. A list of thread counts is a sweep. The first run is a warm-up "
         "and left out. Rate = images / (first call to last batch).",
         0, 0},
    [CMD_CHECKPOINT] =
        {"checkpoint", "ls|verify|convert|restore PATH",
         "list, verify, convert, restore checkpoints",
         "Checkpoints of TensorFlow (version 2: .index, .data, .meta) and safetensors files, "
         "whoever wrote them. PATH is a folder, a TensorFlow prefix such as run/model.ckpt-100, "
         "or a .safetensors file. 'ls' lists a folder's checkpoints, newest first, or the "
         "tensors of one. 'verify' reads every byte back, compares it with its checksum and "
         "names the tensor of the first bad one; of a folder, all are verified. A safetensors "
         "file of another program has no checksums: it is read, and that is said. 'convert' "
         "writes one (of a folder, the newest) again in another format or layout. 'restore' "
         "copies the newest checkpoint whose every byte verifies, and says which it passed over "
         "and why. What is written appears whole or not at all, and nothing is overwritten.",
         2, 2},
    [CMD_EVICT] =
        {"evict", "PATH...", "drop files from the page cache and prove it",
         "Takes files, and all files below folders, out of the page cache, and asks the "
         "kernel afterwards whether they are gone. \"Unproven\" means that it cannot or will "
         "not tell: files of other owners, FUSE, network file systems, loop devices "
         "that cache. Files in memory (tmpfs), and those that somebody keeps mapped, "
         "stay cached: that is a failure.",
         1, -1},
    [CMD_GENERATE] =
        {"generate", "", "make a data set of real JPEG files",
         "Writes photo-like images, every one different, as JPEG files that weigh, measure and "
         "decode like those of a known data set: DIR/class/number.jpg and DIR/list.csv, "
         "in a folder that is new or empty. The same "
         "options give the same bytes.",
         0, 0},
    [CMD_WATCH] =
        {"watch", "[-- COMMAND...]", "sample devices, CPU and memory while a command runs",
         "Runs a command and samples all block devices, CPU, memory, page cache, pressure, network "
         "and the command's own I/O until it ends; without a command, until Ctrl-C. Standard "
         "output "
         "belongs to the command: the table goes to standard error, live if that is a terminal, "
         "totals at the end. The exit status is the command's (128 + N when signal N ended it; 127 "
         "not found, 126 cannot be run; 1 when it succeeded but a file could not be written or a "
         "--device was never there). "
         "KBytes, Merged, IOs are per second; Size in KB, Wait and SvcTim in ms, QLen requests "
         "under way, Util per cent.",
         0, -1, 1},
    [CMD_STUDY] =
        {"study", "", "characterize this machine, then write the report",
         "Runs every experiment of the original studies on this machine and beside it on emulated "
         "devices: raw limits, reading, decoding, training with input, checkpoints, phases. Writes "
         "DIR/report.html, one page with a verdict, plots and what to change (threads, I/O depth, "
         "smaller stored images); what each change gains is predicted and then measured. Without "
         "--data it makes photos of its own: 2,048, with --full 16,384. What is through is not run "
         "again after Ctrl-C.",
         0, 0},
    [CMD_TRAIN] =
        {"train", "", "train, and say where the time of each step went",
         "Trains the study's AlexNet on the CPU, or emulates an accelerator that takes a given "
         "time "
         "a step, fed from a data set as bench is. Prints how long training waited for "
         "input, and what limits it. With --synthetic the same batch is used again and again: the "
         "upper bound.",
         0, 0},
    [CMD_INSPECT] =
        {"inspect", "PATH [TRACE2]", "say what a data set or a trace is",
         "Counts samples and classes of a folder or list, shows the distribution of "
         "file sizes, formats and dimensions, how much of it is cached, and which "
         "files cannot be used. Of a trace (--trace, or a Chrome trace of PyTorch or TensorFlow): "
         "how long each phase took, what ran at the same time, the slowest files; two "
         "traces are joined on one clock.",
         1, 2},
    [CMD_REPORT] = {"report", "DIR [DIR2]", "render a study again, or compare two",
                    "Makes DIR/report.html, one page that needs nothing else, and a CSV file for "
                    "each plot, from the results of a study in DIR. With a second study it makes "
                    "DIR2/compare.html: both side by side, with the differences that are larger "
                    "than the measurements' spread.",
                    1, 2},
};

#define EXPERIMENT_WORD(name) " " #name
#define FIELD(name)           offsetof(struct options, name)

const struct option_row option_table[] = {
    {"data", "SPEC", NULL, INPUT | STUDY, FIELD(data), value_string, NULL,
     "the data set: a folder with one sub-folder per class, or a list in a file, one 'path,label' "
     "or "
     "'path;label' a line, with paths relative to the list's folder and numbers or class names as "
     "labels; file://PATH is the same",
     GROUP_DATA},
    {"list", "SPEC", NULL, INPUT | STUDY, FIELD(list), value_string, NULL, "another name of --data",
     GROUP_DATA},
    {"out", "DIR", NULL, GENERATE | STUDY, FIELD(out), value_string, NULL,
     "the folder; created if need be (study: millrace-study)", GROUP_DATA},
    {"preset", "NAME", "imagenet", GENERATE, FIELD(preset), value_choice, "imagenet|caltech101",
     "which data set to resemble", GROUP_DATA},
    {"count", "N", NULL, GENERATE, FIELD(count), value_count, NULL,
     "images (default: 16384 for imagenet, 9144 for caltech101)", GROUP_DATA},
    {"classes", "K", NULL, GENERATE, FIELD(classes), value_positive, NULL,
     "classes (default: 1000 or 102)", GROUP_DATA},
    {"map", "KIND", "read", BENCH, FIELD(map), value_choice, "read|decode",
     "what becomes of a file: 'read' delivers its bytes, 'decode' an image of one size",
     GROUP_DATA},
    {"batch", "N", NULL, INPUT, FIELD(batch), value_batch, NULL,
     "samples in a batch (default: 64, or what an emulated accelerator is known to take)",
     GROUP_DATA},
    {"batches", "N", NULL, BENCH, FIELD(batches), value_count, NULL,
     "batches in a run (default: all of the epochs)", GROUP_DATA},
    {"epochs", "N", "1", INPUT, FIELD(epochs), value_positive, NULL, "passes over the data set",
     GROUP_DATA},
    {"to", "DIR", NULL, CHECKPOINT, FIELD(to), value_string, NULL,
     "where convert and restore write; created if need be", GROUP_DATA, NEEDS_MAKING},
    {"interval", "TIME", "1s", WATCH, FIELD(interval_ns), value_interval, NULL,
     "between two samples, from 10ms to 1h: 100ms, 0.5s, 1s", GROUP_DATA},
    {"duration", "TIME", NULL, WATCH, FIELD(duration_ns), value_duration, NULL,
     "how long to watch when there is no command (default: until Ctrl-C)", GROUP_DATA},
    {"device", "NAME[,NAME...]", NULL, WATCH, FIELD(device), value_string, NULL,
     "show these devices, busy or not, and no others (default: all that are busy, no partitions)",
     GROUP_DATA},
    {"csv", "FILE", NULL, WATCH, FIELD(csv), value_string, NULL,
     "write every sample as CSV while it runs; '-' is standard output", GROUP_DATA},
    {"size", "SIZE", "5G", BASELINE, FIELD(size), value_size, NULL,
     "of the file; larger than the caches of device and controller, or they are measured",
     GROUP_DATA},
    {"save-profile", "FILE", NULL, BASELINE, FIELD(save_profile), value_string, NULL,
     "write what was measured as a profile, so that --storage FILE behaves like this storage",
     GROUP_DATA},
    {"quick", NULL, NULL, STUDY, FIELD(quick), value_flag, NULL,
     "about ten minutes: fewer steps, files and runs (the default)", GROUP_DATA},
    {"full", NULL, NULL, STUDY, FIELD(full), value_flag, NULL, "the original studies' sizes; hours",
     GROUP_DATA},
    {"only", "a,b", NULL, STUDY, FIELD(only), value_string, NULL,
     "just these experiments, of:" MR_EXPERIMENTS(EXPERIMENT_WORD), GROUP_DATA},
    {"again", NULL, NULL, STUDY, FIELD(again), value_flag, NULL,
     "run also what an earlier study in the same folder has finished", GROUP_DATA},
    {"again", NULL, NULL, GENERATE, FIELD(again), value_flag, NULL,
     "replace the set that an earlier generate made in this folder; nothing else is removed",
     GROUP_DATA},

    {"device", "NAME", "cpu", TRAIN, FIELD(accelerator), value_string, NULL,
     "cpu: train for real; emulated:SECONDS or emulated:SECONDS+PER_IMAGE: wait that long a step, "
     "without using a core; emulated:resnet50-v100, -a100 or -h100, with xN for N of them",
     GROUP_TRAINING},
    {"steps", "N", NULL, TRAIN, FIELD(steps), value_count, NULL,
     "training steps (default: all of the epochs)", GROUP_TRAINING},
    {"lr", "RATE", "0.0001", TRAIN, FIELD(learning_rate), value_rate, NULL,
     "Adam's learning rate; with ten times the default AlexNet's loss rises from the second step",
     GROUP_TRAINING, NEEDS_COMPUTE},
    {"eval", "LIST or N%", NULL, TRAIN, FIELD(eval), value_string, NULL,
     "after every epoch, test on this list, or on N% of the data set that are kept out of "
     "training",
     GROUP_TRAINING},
    {"until", "accuracy=X", NULL, TRAIN, FIELD(until), value_string, NULL,
     "stop when the test reaches this share (0 to 1), and say how long it took; needs --eval",
     GROUP_TRAINING},
    {"synthetic", NULL, NULL, TRAIN, FIELD(synthetic), value_flag, NULL,
     "one batch in memory, used in every step; without --data or --list random pixels",
     GROUP_TRAINING},
    {"compute-threads", "N", NULL, TRAIN, FIELD(compute_threads), value_positive, NULL,
     "threads that compute with --device cpu (default: one per core)", GROUP_TRAINING,
     NEEDS_COMPUTE},

    {"checkpoint", "DIR", NULL, TRAIN, FIELD(checkpoint_dir), value_string, NULL,
     "save the training state into this folder, the fast tier when there is a --drain",
     GROUP_CHECKPOINTS},
    {"every", "N", "20", TRAIN, FIELD(every), value_positive, NULL,
     "steps from one checkpoint to the next", GROUP_CHECKPOINTS, NEEDS_SAVING},
    {"resume", NULL, NULL, TRAIN, FIELD(resume), value_flag, NULL,
     "go on from the newest checkpoint in --checkpoint or --drain that verifies",
     GROUP_CHECKPOINTS},
    {"keep", "N", "5", TRAIN, FIELD(keep), value_unsigned, NULL,
     "newest checkpoints that stay; 0: all", GROUP_CHECKPOINTS, NEEDS_SAVING},
    {"mode", "HOW", "lazy", TRAIN, FIELD(checkpoint_mode), value_choice, "lazy|burst|sync",
     "lazy: training goes on while its state is copied; burst: it waits for the fast tier; sync: "
     "it "
     "waits until all is durable",
     GROUP_CHECKPOINTS, NEEDS_SAVING},
    {"drain", "DIR", NULL, CHECKPOINT | TRAIN, FIELD(drain), value_string, NULL,
     "the slow tier: a second folder that checkpoints are copied to, or found in",
     GROUP_CHECKPOINTS},
    {"format", "FORMAT", "tf", CHECKPOINT | TRAIN, FIELD(format), value_choice,
     MR_CKPT_FORMAT_NAMES,
     "tf: for TensorFlow's Saver and import_meta_graph; safetensors: for PyTorch and others",
     GROUP_CHECKPOINTS, NEEDS_SAVING},
    {"packed", NULL, NULL, CHECKPOINT | TRAIN, FIELD(packed), value_flag, NULL,
     "tf: tensors without gaps, as TensorFlow writes them, instead of at multiples of 4096",
     GROUP_CHECKPOINTS, NEEDS_TF},
    {"no-final-checkpoint", NULL, NULL, TRAIN, FIELD(no_final_checkpoint), value_flag, NULL,
     "do not save the last step: without this, a run with --checkpoint also saves at its end and "
     "on "
     "Ctrl-C",
     GROUP_CHECKPOINTS},
    {"if-busy", "WHAT", "wait", TRAIN, FIELD(if_busy), value_choice, "wait|skip",
     "what a checkpoint does when the ones before it still fill the buffers", GROUP_CHECKPOINTS,
     NEEDS_SAVING},
    {"drain-rate", "BYTES", NULL, TRAIN, FIELD(drain_rate), value_size, NULL,
     "bytes a second that draining may take (default: as fast as it goes)", GROUP_CHECKPOINTS,
     NEEDS_DRAIN},
    {"checkpoint-storage", "PROFILE", NULL, TRAIN, FIELD(checkpoint_storage), value_string,
     "hdd|ssd|optane|lustre", "writes to --checkpoint are charged to this emulated device",
     GROUP_CHECKPOINTS},
    {"drain-storage", "PROFILE", NULL, TRAIN, FIELD(drain_storage), value_string,
     "hdd|ssd|optane|lustre", "and those to --drain to this one", GROUP_CHECKPOINTS},

    {"image-size", "N or WxH", "224", INPUT, FIELD(image_size), value_image_size, NULL,
     "width and height of decoded images", GROUP_IMAGE, NEEDS_DECODE},
    {"augment", "HOW", "none", INPUT, FIELD(augment), value_choice, "none|crop-flip",
     "crop-flip: a random part of 8 to 100% of the area, every second one mirrored", GROUP_IMAGE,
     NEEDS_DECODE},
    {"mean", "R,G,B", "0", BENCH, FIELD(mean), value_colours, NULL,
     "f32: taken off each colour, which goes from 0 to 1; one number stands for all three",
     GROUP_IMAGE, NEEDS_DECODE},
    {"mean", "R,G,B", "0.485,0.456,0.406", TRAIN, FIELD(mean), value_colours, NULL,
     "f32: taken off each colour, which goes from 0 to 1; one number stands for all three. The "
     "default is the mean of ImageNet",
     GROUP_IMAGE, NEEDS_DECODE},
    {"std", "R,G,B", "1", BENCH, FIELD(std), value_scales, NULL,
     "f32: what is left is divided by this; 0.00392 gives steps of 1 as bytes have them",
     GROUP_IMAGE, NEEDS_DECODE},
    {"std", "R,G,B", "0.00392", TRAIN, FIELD(std), value_scales, NULL,
     "f32: what is left is divided by this. The default gives steps of 1, as bytes have them: the "
     "scale that AlexNet's initial weights are made for",
     GROUP_IMAGE, NEEDS_DECODE},
    {"resize", "RULE", "bilinear", INPUT, FIELD(resize), value_choice, "bilinear|area",
     "bilinear: TensorFlow 1's, two neighbours a side; area: the mean of what a pixel covers",
     GROUP_IMAGE, NEEDS_DECODE},
    {"dtype", "TYPE", "f32", INPUT, FIELD(dtype), value_choice, "f32|u8",
     "f32 from 0 to 1, or bytes", GROUP_IMAGE, NEEDS_DECODE},
    {"layout", "ORDER", "nhwc", INPUT, FIELD(layout), value_choice, "nhwc|nchw",
     "colours of a pixel side by side, or one plane a colour", GROUP_IMAGE, NEEDS_DECODE},
    {"exact", NULL, NULL, INPUT, FIELD(exact), value_flag, NULL,
     "no shortcuts: decode all of an image to RGB, then resize", GROUP_IMAGE, NEEDS_DECODE},
    {"decoder", "WHICH", "auto", INPUT, FIELD(decoder), value_choice, "auto|turbo",
     "auto: our own decoder for plain baseline JPEG files and libjpeg-turbo for all others; turbo: "
     "libjpeg-turbo for all. The pixels are the same",
     GROUP_IMAGE, NEEDS_DECODE},

    {"shuffle", "ORDER", "global", INPUT, FIELD(shuffle), value_shuffle, "global|window:1024|none",
     "global: a new permutation of all samples in every epoch; window:N: drawn from a buffer of N; "
     "none: as listed",
     GROUP_ORDER},
    {"seed", "N", "1", INPUT | GENERATE | STUDY, FIELD(seed), value_u64, NULL,
     "same seed, same batches (or files)", GROUP_ORDER},
    {"shard", "R/W", "0/1", INPUT, FIELD(shard), value_shard, NULL,
     "take part R (from 0) of W; shards do not overlap and lose nothing", GROUP_ORDER},
    {"keep-last", NULL, NULL, INPUT, FIELD(keep_last), value_flag, NULL,
     "deliver an epoch's last, short batch too", GROUP_ORDER},

    {"threads", "N[,N...]", NULL, INPUT, FIELD(threads), value_threads, NULL,
     "worker threads (default: one per CPU); bench takes a list and sweeps over it", GROUP_IO},
    {"engine", "NAME", "threads", INPUT, FIELD(engine), value_choice, "threads|uring",
     "threads: each reads one file at a time; uring: many reads under way by io_uring", GROUP_IO},
    {"io-depth", "N", "32", INPUT, FIELD(io_depth), value_io_depth, NULL,
     "reads under way at once in all, uring engine", GROUP_IO, NEEDS_URING},
    {"prefetch", "N", "1", INPUT, FIELD(prefetch), value_prefetch, NULL,
     "finished batches kept ready; 0: a batch is begun only when it is asked for", GROUP_IO},
    {"direct", NULL, NULL, INPUT, FIELD(direct), value_flag, NULL,
     "read around the page cache (O_DIRECT): for data larger than memory; nothing is left cached",
     GROUP_IO},
    {"storage", "PROFILE", NULL, INPUT | BASELINE, FIELD(storage), value_string,
     "hdd|ssd|optane|lustre",
     "emulate a device: hdd, ssd, optane, lustre or a profile's file; every byte is charged at its "
     "rates, cached or not, and results say 'emulated'",
     GROUP_IO},

    {"on-error", "WHAT", "skip", INPUT, FIELD(on_error), value_choice, "skip|fail",
     "a bad sample is replaced and noted, or ends the run", GROUP_ERRORS},
    {"max-errors", "N or N%", "10%", INPUT, FIELD(max_errors), value_budget, NULL,
     "bad samples that are allowed, in all or of those tried; 100%: any number", GROUP_ERRORS,
     NEEDS_SKIPPING},
    {"ledger", "FILE", NULL, INPUT, FIELD(ledger), value_string, NULL,
     "write every bad sample, the reason and its substitute as CSV", GROUP_ERRORS},
    {"accept-truncated", NULL, NULL, INPUT, FIELD(accept_truncated), value_flag, NULL,
     "take what there is of a truncated or damaged image", GROUP_ERRORS, NEEDS_DECODE},
    {"max-file-bytes", "SIZE", "64M", INPUT, FIELD(max_file_bytes), value_size, NULL,
     "larger files are bad samples", GROUP_ERRORS},
    {"max-pixels", "N", "67108864", INPUT, FIELD(max_pixels), value_size, NULL,
     "larger images are bad samples, refused by their header", GROUP_ERRORS, NEEDS_DECODE},

    {"runs", "N", "6", BENCH | BASELINE, FIELD(runs), value_runs, NULL,
     "runs; the first is left out when there are several", GROUP_MEASURING},
    {"runs", "N", NULL, STUDY, FIELD(study_runs), value_runs, NULL,
     "runs of each point of baseline (emulated devices: 2 in a quick study), read, decode and "
     "verdict, of which the first is left out (default: 3, or 6 with --full); the others count "
     "steps",
     GROUP_MEASURING},
    {"cold", NULL, NULL, INPUT, FIELD(cold), value_flag, NULL,
     "evict the data set's files before every run, and say whether that is proven",
     GROUP_MEASURING},
    {"warm", NULL, NULL, INPUT, FIELD(warm), value_flag, NULL,
     "read everything once before the first run", GROUP_MEASURING, NEEDS_RUNS},
    {"drop-caches", NULL, NULL, INPUT | BASELINE, FIELD(drop_caches), value_flag, NULL,
     "before every run drop the whole system's caches, metadata included, not only what --cold "
     "evicts (root)",
     GROUP_MEASURING},
    {"hash", NULL, NULL, BENCH, FIELD(hash), value_flag, NULL,
     "in an extra pass, hash all batches in order: equal for any threads, engine and prefetch",
     GROUP_MEASURING},
    {"check", NULL, NULL, INSPECT, FIELD(check), value_flag, NULL,
     "read every file to its end and decode every image", GROUP_MEASURING},
    {"trace", "FILE", NULL, INPUT | STUDY, FIELD(trace), value_string, NULL,
     "record when each sample was read, decoded, waited for: FILE.csv in TimeLogger's columns, "
     "else Chrome's trace JSON; 'millrace inspect FILE' sums it up, Perfetto draws it",
     GROUP_MEASURING},

    {"json", "FILE", NULL, EVERY, FIELD(json), value_string, NULL,
     "write the result as JSON; '-' is standard output, and then nothing else goes there",
     GROUP_GENERAL},
    {"help", NULL, NULL, EVERY, FIELD(help), value_flag, NULL, "this text", GROUP_GENERAL},
};

const char *const group_titles[N_GROUPS] = {
    [GROUP_DATA] = "Data",     [GROUP_TRAINING] = "Training",   [GROUP_CHECKPOINTS] = "Checkpoints",
    [GROUP_IMAGE] = "Image",   [GROUP_ORDER] = "Order",         [GROUP_IO] = "I/O",
    [GROUP_ERRORS] = "Errors", [GROUP_MEASURING] = "Measuring", [GROUP_GENERAL] = "General",
};

const unsigned n_option_rows = sizeof option_table / sizeof *option_table;
_Static_assert(sizeof option_table / sizeof *option_table <= MAX_OPTION_ROWS, "options.given");

/* Edits that turn a into b; for b of up to 31 characters, more distant otherwise. */
static unsigned distance(const char *a, const char *b)
{
    size_t m = strlen(a), n = strlen(b);
    unsigned row[32];
    if (n > 31)
        return 99;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= m; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned change = corner + (a[i - 1] != b[j - 1]);
            unsigned drop = row[j] + 1, insert = row[j - 1] + 1;
            corner = row[j];
            row[j] = change < drop ? change : drop;
            row[j] = row[j] < insert ? row[j] : insert;
        }
    }
    return row[n];
}

/* Wrong letters that still count as a typing error; two swapped letters count as two. */
static unsigned slips(const char *name)
{
    size_t n = strlen(name);
    return n < 3 ? 0 : n < 4 ? 1 : n < 6 ? 2 : 3;
}

static const char *nearest_command(const char *name)
{
    const char *best = NULL;
    unsigned best_distance = slips(name) + 1;
    for (unsigned c = 0; c < N_COMMANDS; c++) {
        unsigned d = distance(name, command_table[c].name);
        if (d < best_distance) {
            best_distance = d;
            best = command_table[c].name;
        }
    }
    return best;
}

static const struct option_row *nearest_option(const char *name, enum command c)
{
    const struct option_row *best = NULL;
    unsigned best_distance = slips(name) + 1;
    for (unsigned i = 0; i < n_option_rows; i++) {
        unsigned d = distance(name, option_table[i].name);
        if (option_table[i].commands & 1u << c && d < best_distance) {
            best_distance = d;
            best = &option_table[i];
        }
    }
    return best;
}

static enum command find_command(const char *name)
{
    for (unsigned c = 0; c < N_COMMANDS; c++)
        if (!strcmp(name, command_table[c].name))
            return (enum command)c;
    return CMD_NONE;
}

/* `name` of `len` characters among the options of command c. */
static const struct option_row *find_option(const char *name, size_t len, enum command c)
{
    for (unsigned i = 0; i < n_option_rows; i++) {
        const struct option_row *row = &option_table[i];
        if (row->commands & 1u << c && !strncmp(row->name, name, len) && !row->name[len])
            return row;
    }
    return NULL;
}

static int unknown_option(const char *arg, size_t len, enum command c)
{
    char name[64] = "";
    if (len < sizeof name)
        memcpy(name, arg, len);
    const struct option_row *near = nearest_option(name, c);
    say_to(stderr, "millrace %s: there is no option --%.*s", command_table[c].name, (int)len, arg);
    if (near)
        say_to(stderr, "; did you mean --%s?", near->name);
    say_to(stderr, "\nTry 'millrace %s --help'.\n", command_table[c].name);
    return 2;
}

static int bad_value(const struct option_row *row, const char *value)
{
    const char *range = value_range(row->parse);
    say_to(stderr, "millrace: --%s: '%s' is not %s%s\n", row->name, value,
           range ? range : "one of ", range ? "" : row->choices);
    if (row->value)
        say_to(stderr, "The default is %s: %s.\n", row->value, row->help);
    else
        say_to(stderr, "It takes %s: %s.\n", row->arg, row->help);
    return 2;
}

static int set_option(const struct option_row *row, const char *value, struct options *o)
{
    return row->parse(row, value, (char *)o + row->offset) ? bad_value(row, value) : 0;
}

/* Those of the command: two may have an option of one name with different defaults. */
static void set_defaults(struct options *o)
{
    for (unsigned i = 0; i < n_option_rows; i++)
        if (option_table[i].value && option_table[i].commands & 1u << o->command)
            option_table[i].parse(&option_table[i], option_table[i].value,
                                  (char *)o + option_table[i].offset);
}

static int parse_option(int argc, char **argv, int *at, struct options *o)
{
    const char *arg = argv[*at] + 2, *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const struct option_row *row = find_option(arg, len, o->command);
    if (!row)
        return unknown_option(arg, len, o->command);
    if (!row->arg && equals) {
        say_to(stderr, "millrace: --%s takes no argument\n", row->name);
        return 2;
    }
    const char *value = !row->arg ? "" : equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
    if (!value) {
        say_to(stderr, "millrace: --%s needs an argument: %s\n", row->name, row->arg);
        return 2;
    }
    o->given[row - option_table] = 1;
    return set_option(row, value, o);
}

static int check_operands(const struct options *o)
{
    const struct command_row *c = &command_table[o->command];
    if (o->help ||
        (o->n_paths >= c->min_operands && (c->max_operands < 0 || o->n_paths <= c->max_operands)))
        return 0;
    if (!c->max_operands)
        say_to(stderr, "millrace %s: '%s' is not expected%s\n", c->name, o->paths[0],
               find_option("list", 4, o->command) ? " (a data set is named by --data)" : "");
    else
        say_to(stderr, "millrace %s: expects %s\n", c->name, c->operands);
    say_to(stderr, "Try 'millrace %s --help'.\n", c->name);
    return 2;
}

int options_parse(int argc, char **argv, struct options *o)
{
    memset(o, 0, sizeof *o);
    o->command = find_command(argv[1]);
    if (o->command == CMD_NONE) {
        const char *near = nearest_command(argv[1]);
        say_to(stderr, "millrace: there is no command '%s'", argv[1]);
        if (near)
            say_to(stderr, "; did you mean '%s'?", near);
        say_to(stderr, "\nTry 'millrace --help'.\n");
        return 2;
    }
    set_defaults(o);
    /* Operands are gathered at the front of argv, in place. */
    o->paths = argv + 2;
    int only_operands = 0, r = 0;
    for (int i = 2; !r && i < argc; i++) {
        if (!only_operands && !strcmp(argv[i], "--"))
            only_operands = 1;
        else if (!only_operands && !strcmp(argv[i], "-h"))
            o->help = 1;
        else if (!only_operands && !strncmp(argv[i], "--", 2))
            r = parse_option(argc, argv, &i, o);
        else if (!only_operands && argv[i][0] == '-' && argv[i][1]) {
            say_to(stderr, "millrace: options begin with two dashes: -%s\n", argv[i]);
            r = 2;
        } else {
            o->paths[o->n_paths++] = argv[i];
            only_operands |= command_table[o->command].runs_command;
        }
    }
    o->batch_given = o->batch != 0;
    if (!o->batch)
        o->batch = DEFAULT_BATCH;
    return r ? r : check_operands(o);
}
