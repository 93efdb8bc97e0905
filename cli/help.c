/* help.c - the option table as text: --help, the manual page, bash completion. */
#include "options.h"

#include "section.h"

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
                   "  millrace train --data photos --checkpoint run --resume\n"
                   "  millrace train --synthetic --steps 20\n"),
    [CMD_INSPECT] = ("  millrace inspect photos --check\n"
                     "  millrace inspect run.json pytorch.json\n"),
    [CMD_REPORT] = "  millrace report millrace-study\n"
                   "  millrace report before after\n",
};

/* Options of a command that has fewer are one list. */
#define MANY_OPTIONS 15

static int in_groups(enum command c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_option_rows; i++)
        n += (option_table[i].commands & 1u << c) != 0;
    return n >= MANY_OPTIONS;
}

/* Print the command's options, group by group, each group after its title. */
static void each_option(FILE *to, enum command c, void (*title)(FILE *to, const char *text),
                        void (*option)(FILE *to, const struct option_row *o))
{
    int grouped = in_groups(c);
    if (!grouped)
        title(to, "Options");
    for (unsigned g = 0; g < N_GROUPS; g++) {
        unsigned n = 0;
        for (unsigned i = 0; i < n_option_rows; i++) {
            if (option_table[i].group != g || !(option_table[i].commands & 1u << c))
                continue;
            if (grouped && !n++)
                title(to, group_titles[g]);
            option(to, &option_table[i]);
        }
    }
}

static void help_title(FILE *to, const char *text)
{
    fprintf(to, "\n%s:\n", text);
}

static void help_option(FILE *to, const struct option_row *o)
{
    char left[64], text[512];
    snprintf(left, sizeof left, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    fprintf(to, "  %-24s ", left);
    if (strlen(left) > 24)
        fprintf(to, "\n%27s", "");
    snprintf(text, sizeof text, "%s%s%s%s", o->help, o->value ? " [" : "", o->value ? o->value : "",
             o->value ? "]" : "");
    wrap(to, text, 27, 27);
}

/* What `study` repeats: figure, experiment, command, and the papers. */
static void help_studies(FILE *to)
{
    char text[1024];
    fprintf(to, "\nThe studies, figure by figure:\n");
    struct mr_section_row rows[MR_MAX_SECTIONS];
    unsigned n = mr_sections(NULL, rows);
    for (unsigned i = 0; i < n; i++) {
        const struct mr_repeats *f = &rows[i].section->repeats;
        if (!f->figure)
            continue;
        snprintf(text, sizeof text, "%s, %s", mr_references[f->of].name, f->figure);
        fprintf(to, "  %-36s --only %-11s %s\n", text, rows[i].name, f->shows);
        fprintf(to, "      %s\n", f->by_hand);
    }
    fprintf(to, "\nTheir papers:\n");
    for (unsigned i = 0; i < MR_N_REFERENCES; i++) {
        const struct mr_reference *r = &mr_references[i];
        snprintf(text, sizeof text, "%s: %s. %s. %s.", r->authors, r->title, r->published,
                 r->where);
        fprintf(to, "  ");
        wrap(to, text, 4, 2);
    }
}

void help_command(FILE *to, enum command c)
{
    const struct command_row *row = &command_table[c];
    fprintf(to,
            row->runs_command ? "Usage: millrace %s [options]%s%s\n\n"
                              : "Usage: millrace %s%s%s [options]\n\n",
            row->name, *row->operands ? " " : "", row->operands);
    wrap(to, row->details, 0, 0);
    each_option(to, c, help_title, help_option);
    fprintf(to, "\nExamples:\n%s", examples[c]);
    if (c == CMD_STUDY)
        help_studies(to);
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

static void man_title(FILE *to, const char *text)
{
    fprintf(to, ".PP\n.I %s\n", text);
}

static void man_option(FILE *to, const struct option_row *o)
{
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

static void man_command(FILE *to, enum command c)
{
    const struct command_row *row = &command_table[c];
    fprintf(to, ".SS millrace %s%s%s\n", row->name, *row->operands ? " " : "", row->operands);
    man_text(to, row->details);
    fputc('\n', to);
    each_option(to, c, man_title, man_option);
    fprintf(to, ".PP\n.nf\n");
    for (const char *p = examples[c]; *p; p++)
        man_char(to, *p);
    fprintf(to, ".fi\n");
}

static void man_references(FILE *to)
{
    fprintf(to, ".SH REFERENCES\n");
    for (unsigned i = 0; i < MR_N_REFERENCES; i++) {
        const struct mr_reference *r = &mr_references[i];
        const char *const parts[] = {r->authors, r->title, r->published, r->where};
        fprintf(to, "%s", i ? ".PP\n" : "");
        for (unsigned k = 0; k < 4; k++) {
            man_text(to, parts[k]);
            fprintf(to, "%s\n", k ? "." : ":");
        }
    }
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
    man_references(to);
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
        } else if (!strncmp(o->arg, "FILE", 4) || !strcmp(o->arg, "SPEC")) {
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
