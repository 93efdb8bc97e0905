/* commands.h - one function a command: the process's exit status. */
#ifndef MR_COMMANDS_H
#define MR_COMMANDS_H

#include "options.h"

int command_baseline(const struct options *o);
int command_bench(const struct options *o);
int command_checkpoint(const struct options *o);
int command_evict(const struct options *o);
int command_generate(const struct options *o);
int command_inspect(const struct options *o);
int command_watch(const struct options *o);
int command_study(const struct options *o);
int command_train(const struct options *o);
int command_report(const struct options *o);

#endif
