/* help.c - the option table as text: --help, the manual page, bash completion. */
#include "options.h"

#include <millrace/api.h>

#include <string.h>

#define WIDTH 96

/* Print text in lines of up to WIDTH columns, the first one continuing at column `at`. */
static void wrap(FILE *to, const char *text, unsigned indent, unsigned at)
{
    while (*text) {
        size_t n = strcspn(text, " ");
        if (at + n > WIDTH && at > indent) {
            fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
        }
        fprintf(to, "%.*s", (int)n, text);
        at += (unsigned)n;
        text += n;
        if (*text == ' ') {
            text++;
            fputc(' ', to);
            at++;
        }
    }
    fputc('\n', to);
}

void help_overview(FILE *to)
{
    fprintf(to,
            "millrace %s - feeds deep-learning training from storage, and says what it costs\n\n"
            "Usage: millrace COMMAND [options]\n\n",
            mr_version());
    for (unsigned c = 0; c < N_COMMANDS; c++)
        fprintf(to, "  %-9s %s\n", command_table[c].name, command_table[c].summary);
    fprintf(to,
            "\n'millrace COMMAND --help' explains a command and its options.\n"
            "Results go to standard output, progress to the terminal; --json FILE writes JSON.\n"
            "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

static const char *const examples[N_COMMANDS] = {
    [CMD_BENCH] =
        ("  millrace bench --data photos --threads 1,2,4,8 --cold\n"
         "  millrace bench --list train.csv --engine uring --io-depth 64 --json result.json\n"),
    [CMD_EVICT] = "  millrace evict photos\n",
    [CMD_INSPECT] = "  millrace inspect photos --check\n",
};

void help_command(FILE *to, enum command c)
{
    const struct command_row *row = &command_table[c];
    fprintf(to, "Usage: millrace %s%s%s [options]\n\n", row->name, *row->operands ? " " : "",
            row->operands);
    wrap(to, row->details, 0, 0);
    fprintf(to, "\nOptions:\n");
    for (unsigned i = 0; i < n_option_rows; i++) {
        const struct option_row *o = &option_table[i];
        char left[64];
        if (!(o->commands & 1u << c))
            continue;
        snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        fprintf(to, "  %-24s ", left);
        char text[512];
        snprintf(text, sizeof text, "%s%s%s%s", o->help, o->value ? " [" : "",
                 o->value ? o->value : "", o->value ? "]" : "");
        wrap(to, text, 27, 27);
    }
    fprintf(to, "\nExamples:\n%s", examples[c]);
}

/* Text for troff: a leading dot or quote and every dash or backslash need care. */
static void man_text(FILE *to, const char *s)
{
    for (; *s; s++) {
        if (*s == '-' || *s == '\\')
            fputc('\\', to);
        fputc(*s, to);
    }
}

static void man_command(FILE *to, enum command c)
{
    const struct command_row *row = &command_table[c];
    fprintf(to, ".SS millrace %s %s\n", row->name, row->operands);
    man_text(to, row->details);
    fputc('\n', to);
    for (unsigned i = 0; i < n_option_rows; i++) {
        const struct option_row *o = &option_table[i];
        if (!(o->commands & 1u << c))
            continue;
        fprintf(to, ".TP\n.B \\-\\-");
        man_text(to, o->name);
        if (o->arg)
            fprintf(to, " \\fI%s\\fR", o->arg);
        fputc('\n', to);
        man_text(to, o->help);
        if (o->value) {
            fprintf(to, " (default ");
            man_text(to, o->value);
            fputc(')', to);
        }
        fputc('\n', to);
    }
    fprintf(to, ".PP\n.nf\n");
    man_text(to, examples[c]);
    fprintf(to, ".fi\n");
}

void help_man_page(FILE *to)
{
    fprintf(to, ".TH MILLRACE 1 \"\" \"millrace %s\" \"User Commands\"\n", mr_version());
    fprintf(to,
            ".SH NAME\nmillrace \\- feed deep\\-learning training from storage and measure it\n");
    fprintf(to, ".SH SYNOPSIS\n.B millrace\n.I COMMAND\n[options]\n");
    fprintf(to, ".SH DESCRIPTION\nResults go to standard output; progress goes to standard error, "
                "and only on a terminal.\nSizes take K, M, G (powers of 1024). MB in results is "
                "10^6 bytes.\n");
    fprintf(to, ".SH COMMANDS\n");
    for (unsigned c = 0; c < N_COMMANDS; c++)
        man_command(to, (enum command)c);
    fprintf(to, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

void help_bash_completion(FILE *to)
{
    fprintf(to, "# bash completion for millrace, made from its option table\n_millrace()\n{\n"
                "    local cur prev cmd\n    cur=${COMP_WORDS[COMP_CWORD]}\n"
                "    prev=${COMP_WORDS[COMP_CWORD-1]}\n    cmd=${COMP_WORDS[1]}\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '");
    for (unsigned c = 0; c < N_COMMANDS; c++)
        fprintf(to, "%s ", command_table[c].name);
    fprintf(to, "--help --version' -- \"$cur\"))\n        return\n    fi\n    case $prev in\n");
    for (unsigned i = 0; i < n_option_rows; i++) {
        const struct option_row *o = &option_table[i];
        if (!o->choices)
            continue;
        fprintf(to, "    --%s) COMPREPLY=($(compgen -W '", o->name);
        for (const char *p = o->choices; *p; p++)
            fputc(*p == '|' ? ' ' : *p, to);
        fprintf(to, "' -- \"$cur\")); return ;;\n");
    }
    fprintf(to, "    esac\n    case $cur in\n    --*) case $cmd in\n");
    for (unsigned c = 0; c < N_COMMANDS; c++) {
        fprintf(to, "        %s) COMPREPLY=($(compgen -W '", command_table[c].name);
        for (unsigned i = 0; i < n_option_rows; i++)
            if (option_table[i].commands & 1u << c)
                fprintf(to, "--%s ", option_table[i].name);
        fprintf(to, "' -- \"$cur\")) ;;\n");
    }
    fprintf(to, "        esac ;;\n    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n    esac\n}\n"
                "complete -o filenames -F _millrace millrace\n");
}
