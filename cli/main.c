/* main.c - millrace COMMAND: find the command, run it. */
#include "commands.h"
#include "output.h"
#include "say.h"
#include "terminal.h"
#include "wait_policy.h"

#include <string.h>

/* One a line, so that two new commands do not collide. */
/* clang-format off */
static int (*const run[N_COMMANDS])(const struct options *o) = {
    [CMD_BASELINE] = command_baseline,
    [CMD_BENCH] = command_bench,
    [CMD_CHECKPOINT] = command_checkpoint,
    [CMD_EVICT] = command_evict,
    [CMD_GENERATE] = command_generate,
    [CMD_INSPECT] = command_inspect,
    [CMD_REPORT] = command_report,
    [CMD_STUDY] = command_study,
    [CMD_TRAIN] = command_train,
    [CMD_WATCH] = command_watch,
};
/* clang-format on */

static void print_version(FILE *to)
{
    say_to(to, "millrace %s\n", mr_version());
}

/* Things that are no command; -1 when it is none of them. */
static int about(const char *arg)
{
    static const struct {
        const char *arg;
        void (*print)(FILE *to);
    } known[] = {
        {"--help", help_overview},     {"-h", help_overview},
        {"help", help_overview},       {"--version", print_version},
        {"--man-page", help_man_page}, {"--bash-completion", help_bash_completion},
    };
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(arg, known[i].arg)) {
            if (known[i].print == help_overview) /* what others print goes into files */
                output_for_a_reader();
            known[i].print(stdout);
            return 0;
        }
    return -1;
}

/* Commands that compute with oneDNN, whose idle threads must leave the cores to the pipeline. */
static int computes(const char *command)
{
    return !strcmp(command, "train") || !strcmp(command, "study");
}

int main(int argc, char **argv)
{
    struct options o;
    if (argc > 1 && computes(argv[1]))
        mr_wait_policy_restart(argv); /* failing that, threads spin: slower, not wrong */
    output_begin();
    if (argc < 2) {
        help_overview(stderr);
        return 2;
    }
    if (about(argv[1]) == 0)
        return output_end(0);
    int status = options_parse(argc, argv, &o);
    if (status)
        return status;
    if (o.help) {
        output_for_a_reader();
        help_command(stdout, o.command);
        return output_end(0);
    }
    options_tell_unused(&o);
    terminal_catch_signals();
    return output_end(run[o.command](&o));
}
