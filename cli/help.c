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
        fprintf(to, "  %-10s %s\n", command_table[c].name, command_table[c].summary);
    fprintf(to,
            "\n'millrace COMMAND --help' explains a command and its options.\n"
            "Results go to standard output, progress to the terminal; --json FILE writes JSON.\n"
            "Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

static const char *const examples[N_COMMANDS] = {
    [CMD_BASELINE] =
        "  millrace baseline /data\n"
        "  millrace baseline /data --save-profile data.profile   # then bench --storage "
        "data.profile\n"
        "  millrace baseline /tmp --size 1G --storage hdd\n",
    [CMD_BENCH] =
        ("  millrace bench --data photos --threads 1,2,4,8 --cold\n"
         "  millrace bench --data photos --map decode --augment crop-flip\n"
         "  millrace bench --list train.csv --engine uring --io-depth 64 --json result.json\n"),
    [CMD_CHECKPOINT] =
        ("  millrace checkpoint ls run\n"
         "  millrace checkpoint verify run --drain /slow/run\n"
         "  millrace checkpoint convert run/model.ckpt-100 --format safetensors --to out\n"
         "  millrace checkpoint restore run --drain /slow/run --to rescued\n"),
    [CMD_EVICT] = "  millrace evict photos\n",
    [CMD_GENERATE] = "  millrace generate --preset caltech101 --out photos\n",
    [CMD_WATCH] = ("  millrace watch -- millrace bench --data photos --cold\n"
                   "  millrace watch --interval 100ms --csv io.csv --json io.json -- make\n"
                   "  millrace watch --device vda,sdb --duration 60s\n"),
    [CMD_STUDY] = ("  millrace study\n"
                   "  millrace study --data photos --out study-of-photos\n"
                   "  millrace study --only baseline,read --again\n"),
    [CMD_TRAIN] = ("  millrace train --data photos --eval 10% --epochs 10\n"
                   "  millrace train --data photos --device emulated:0.2 --steps 50\n"
                   "  millrace train --data photos --device emulated:resnet50-a100x4\n"
                   "  millrace train --synthetic --steps 20\n"),
    [CMD_INSPECT] = ("  millrace inspect photos --check\n"
                     "  millrace inspect run.json pytorch.json\n"),
    [CMD_REPORT] = "  millrace report millrace-study\n"
                   "  millrace report before after\n",
};

void help_command(FILE *to, enum command c)
{
    const struct command_row *row = &command_table[c];
    fprintf(to,
            row->runs_command ? "Usage: millrace %s [options]%s%s\n\n"
                              : "Usage: millrace %s%s%s [options]\n\n",
            row->name, *row->operands ? " " : "", row->operands);
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

static void man_char(FILE *to, char c)
{
    if (c == '-' || c == '\\')
        fputc('\\', to);
    fputc(c, to);
}

/* Text for troff, which wants each sentence on a line of its own, lines of up to 80 columns, and
 * none that begins with a dot or a quote. */
static void man_text(FILE *to, const char *s)
{
    unsigned at = 0;
    for (; *s; s++) {
        if (*s == ' ' && (at + strcspn(s + 1, " ") > 70 || s[-1] == '.')) {
            fputc('\n', to);
            at = 0;
            continue;
        }
        if (!at && (*s == '.' || *s == '\''))
            fputs("\\&", to);
        man_char(to, *s);
        at++;
    }
}

static void man_command(FILE *to, enum command c)
{
    const struct command_row *row = &command_table[c];
    fprintf(to, ".SS millrace %s%s%s\n", row->name, *row->operands ? " " : "", row->operands);
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
        fputc('\n', to);
        if (o->value)
            fprintf(to, "(default %s)\n", o->value);
    }
    fprintf(to, ".PP\n.nf\n");
    for (const char *p = examples[c]; *p; p++)
        man_char(to, *p);
    fprintf(to, ".fi\n");
}

void help_man_page(FILE *to)
{
    fprintf(to, ".TH MILLRACE 1 \"\" \"millrace %s\" \"User Commands\"\n", mr_version());
    fprintf(to,
            ".SH NAME\nmillrace \\- feed deep\\-learning training from storage and measure it\n");
    fprintf(to, ".SH SYNOPSIS\n.B millrace\n.I COMMAND\n[options]\n");
    fprintf(to, ".SH DESCRIPTION\nResults go to standard output; progress goes to standard error, "
                "and only\non a terminal.\nSizes take K, M, G, T (powers of 1024).\n"
                "MB in results is 10^6 bytes.\n");
    fprintf(to, ".SH COMMANDS\n");
    for (unsigned c = 0; c < N_COMMANDS; c++)
        man_command(to, (enum command)c);
    fprintf(to, ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

static void completion_choices(FILE *to)
{
    fprintf(to, "    case $prev in\n");
    for (unsigned i = 0; i < n_option_rows; i++) {
        const struct option_row *o = &option_table[i];
        if (!o->arg)
            continue;
        fprintf(to, "    --%s) ", o->name);
        if (o->choices) {
            fprintf(to, "_millrace_reply -W '");
            for (const char *p = o->choices; *p; p++)
                fputc(*p == '|' ? ' ' : *p, to);
            fprintf(to, "' ;;\n");
        } else if (!strcmp(o->arg, "DIR")) {
            fprintf(to, "_millrace_reply -d ;;\n");
        } else if (!strncmp(o->arg, "FILE", 4)) {
            fprintf(to, "_millrace_reply -f ;;\n");
        } else {
            fprintf(to, "COMPREPLY=() ;;\n");
        }
    }
}

/* Bash hands --name=value over as three words. */
void help_bash_completion(FILE *to)
{
    fprintf(to, "# bash completion for millrace, made from its option table\n"
                "_millrace_reply()\n{\n    mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\")\n"
                "}\n\n_millrace()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "    if [ \"$cur\" = = ]; then\n        cur=\n"
                "    elif [ \"$prev\" = = ]; then\n        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                "    fi\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        _millrace_reply -W '");
    for (unsigned c = 0; c < N_COMMANDS; c++)
        fprintf(to, "%s ", command_table[c].name);
    fprintf(to, "--help --version'\n        return\n    fi\n");
    completion_choices(to);
    fprintf(to, "    *) case $cur in\n       -*) case ${COMP_WORDS[1]} in\n");
    for (unsigned c = 0; c < N_COMMANDS; c++) {
        fprintf(to, "           %s) _millrace_reply -W '", command_table[c].name);
        for (unsigned i = 0; i < n_option_rows; i++)
            if (option_table[i].commands & 1u << c)
                fprintf(to, "--%s ", option_table[i].name);
        fprintf(to, "' ;;\n");
    }
    fprintf(to, "           esac ;;\n       *) _millrace_reply -f ;;\n       esac ;;\n    esac\n}\n"
                "complete -o filenames -F _millrace millrace\n");
}
