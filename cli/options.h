/* options.h - the command line: one table that yields parsing, --help, the man page, completion and
 * "did you mean". */
#ifndef MR_OPTIONS_H
#define MR_OPTIONS_H

#include <millrace/pipeline.h>

#include "values.h"

#include <stddef.h>
#include <stdio.h>

enum command {
    CMD_BASELINE,
    CMD_BENCH,
    CMD_CHECKPOINT,
    CMD_EVICT,
    CMD_GENERATE,
    CMD_INSPECT,
    CMD_REPORT,
    CMD_STUDY,
    CMD_TRAIN,
    CMD_WATCH,
    N_COMMANDS,
    CMD_NONE = N_COMMANDS,
};

#define MAX_THREAD_SWEEP 32
#define MAX_OPTION_ROWS  128

struct unsigned_list {
    unsigned n, value[MAX_THREAD_SWEEP];
};

struct shuffle_choice {
    enum mr_shuffle kind;
    unsigned window;
};

struct shard_choice {
    unsigned rank, world;
};

struct image_size {
    unsigned width, height;
};

struct colours {
    float value[3];
};

enum option_dtype { DTYPE_F32, DTYPE_U8 }; /* the words of --dtype, in their order */

struct error_budget {
    double share;
    uint64_t count;
};

/* What was asked for.  options_parse fills in the defaults. */
struct options {
    enum command command;
    const char *list, *data;
    unsigned map; /* 0 read, 1 decode */
    struct image_size image_size;
    struct colours mean, std;
    unsigned resize, layout, augment, decoder; /* as the enums of image.h */
    unsigned dtype;                            /* enum option_dtype */
    int exact, accept_truncated;
    uint64_t max_pixels;
    struct shuffle_choice shuffle;
    uint64_t seed;
    unsigned epochs;
    struct shard_choice shard;
    int keep_last;
    unsigned engine;
    struct unsigned_list threads;
    unsigned io_depth, batch, prefetch;
    int direct;
    int batch_given; /* and not the default */
    uint64_t batches;
    unsigned on_error;
    struct error_budget max_errors;
    const char *ledger, *trace;
    uint64_t max_file_bytes;
    const char *storage;
    int cold, warm, drop_caches;
    unsigned runs;
    uint64_t size;
    const char *save_profile;
    int hash;
    int check;
    unsigned preset; /* as enum mr_preset */
    uint64_t count;
    unsigned classes;
    const char *out;
    uint64_t interval_ns, duration_ns; /* duration 0: not given */
    const char *csv, *device;
    const char *drain, *to;
    unsigned format; /* 0 TensorFlow, 1 safetensors */
    int packed;
    const char *accelerator; /* --device of train */
    uint64_t steps;
    int synthetic;
    double learning_rate;
    const char *eval, *until;
    const char *checkpoint_dir, *checkpoint_storage, *drain_storage;
    unsigned every, keep, checkpoint_mode, if_busy;
    uint64_t drain_rate;
    int resume, no_final_checkpoint;
    int quick, full, again;
    const char *only;
    unsigned study_runs;
    unsigned compute_threads;
    const char *json;
    int help;
    char **paths; /* operands */
    int n_paths;
    char given[MAX_OPTION_ROWS]; /* by the rows of the table: typed, not the default */
};

/* How --help and the manual page arrange options: in this order, those of a group as the table has
 * them, the common ones first. */
enum option_group {
    GROUP_DATA,
    GROUP_TRAINING,
    GROUP_CHECKPOINTS,
    GROUP_IMAGE,
    GROUP_ORDER,
    GROUP_IO,
    GROUP_ERRORS,
    GROUP_MEASURING,
    GROUP_GENERAL,
    N_GROUPS,
};

/* What an option has an effect with. */
enum option_need {
    NEEDS_NOTHING,
    NEEDS_URING,
    NEEDS_DECODE,
    NEEDS_SAVING,
    NEEDS_TF,
    NEEDS_DRAIN,
    NEEDS_MAKING,
    NEEDS_COMPUTE,
    NEEDS_SKIPPING,
    NEEDS_RUNS,
    N_NEEDS,
};

/* How an option's argument is understood. */
struct option_row {
    const char *name;  /* without the dashes */
    const char *arg;   /* what --help calls the argument; NULL for a flag */
    const char *value; /* the default, as it would be typed; NULL: none */
    unsigned commands; /* bit mask of 1 << enum command */
    size_t offset;     /* of the field in struct options */
    value_parser *parse;
    const char *choices; /* "read|decode" for value_choice, completion and errors; NULL */
    const char *help;
    enum option_group group;
    enum option_need needs; /* what it has an effect with; effects.c */
};

struct command_row {
    const char *name, *operands, *summary, *details;
    int min_operands, max_operands; /* max -1: any number */
    int runs_command; /* the first operand ends the options: what follows is its own */
};

extern const struct command_row command_table[N_COMMANDS];
extern const struct option_row option_table[];
extern const unsigned n_option_rows;
extern const char *const group_titles[N_GROUPS];

/* 0, or 2 with a message on stderr that says what is wrong and what would be right. */
int options_parse(int argc, char **argv, struct options *out);

/* effects.c: say on stderr which of the options that were typed have no effect with the others. */
void options_tell_unused(const struct options *o);

/* help.c */
void help_overview(FILE *to);
void help_command(FILE *to, enum command c);
void help_man_page(FILE *to);
void help_bash_completion(FILE *to);

#endif
