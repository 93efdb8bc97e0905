/* main.c - millrace COMMAND: find the command, run it. */
#include "commands.h"
#include "output.h"
#include "terminal.h"

#include <string.h>

static int (*const run[N_COMMANDS])(const struct options *o) = {
    [CMD_BENCH] = command_bench,       [CMD_EVICT] = command_evict,
    [CMD_GENERATE] = command_generate, [CMD_INSPECT] = command_inspect,
    [CMD_REPORT] = command_report,
};

/* Things that are no command; -1 when it is none of them. */
static int about(const char *arg)
{
    if (!strcmp(arg, "--help") || !strcmp(arg, "-h") || !strcmp(arg, "help"))
        help_overview(stdout);
    else if (!strcmp(arg, "--version"))
        printf("millrace %s\n", mr_version());
    else if (!strcmp(arg, "--man-page"))
        help_man_page(stdout);
    else if (!strcmp(arg, "--bash-completion"))
        help_bash_completion(stdout);
    else
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct options o;
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
        help_command(stdout, o.command);
        return output_end(0);
    }
    terminal_catch_signals();
    return output_end(run[o.command](&o));
}
