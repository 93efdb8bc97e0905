/* input.h - what commands that feed from a data set share: opening it, the options of pipeline and
 * decoder, the emulated device, the ledger of bad samples. */
#ifndef MR_INPUT_H
#define MR_INPUT_H

#include "options.h"

/* The data set that --data or --list names.  0, or an exit status after a message. */
int input_open_data(const struct options *o, struct mr_dataset **out, const char **path);
/* Show why a run over the data failed, and which option would help: the library knows none. */
void input_say_error(const char *command, const struct mr_error *err);
/* Say on stderr that a list has no labels, if so. */
void input_tell_unlabelled(const struct mr_dataset *d, const char *path);
/* The emulated device that --storage names, for the caller to close; NULL when there is none.  0,
 * or an exit status after a message. */
int input_open_storage(const struct options *o, struct mr_device **out);
/* A line that says so: "EMULATED storage OF-WHAT 'ssd', calibrated to: ..."; NULL is a no-op. */
void input_print_storage(const char *of_what, const struct mr_device *d);
struct mr_decoder_opts input_decoder(const struct options *o);
/* `decode` and `storage` are left to the caller, who owns them. */
struct mr_pipeline_opts input_pipeline(const struct options *o, unsigned threads);

struct ledger_file {
    FILE *file; /* NULL: nobody asked for it */
    const char *path;
};

/* 0, or 1 after a message.  `path` may be NULL. */
int ledger_open(struct ledger_file *l, const char *path);
/* Have the pipeline write its bad samples there. */
void ledger_attach(struct ledger_file *l, struct mr_pipeline_opts *pipe);
int ledger_close(struct ledger_file *l);

#endif
