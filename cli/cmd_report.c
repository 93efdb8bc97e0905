/* cmd_report.c - `millrace report DIR [DIR2]`: the page of a study again, or two side by side. */
#include "commands.h"

#include "errtext.h"
#include "output.h"
#include "report.h"
#include "say.h"
#include "study_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* "DIR/name" for the eyes, or as JSON; `warning` may be NULL. */
static int tell(const struct options *o, const char *what, const char *dir, const char *name,
                const char *warning)
{
    struct output out;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int status = output_open(o, &out);
    if (status)
        return status;
    if (!out.quiet)
        say("%s: %s\n", what, path);
    if (warning)
        say_to(stderr, "warning: %s\n", warning);
    struct mr_json *results = mr_json_array(), *one = mr_json_object();
    mr_json_set(one, "page", mr_json_string(path));
    if (warning)
        mr_json_set(one, "warning", mr_json_string(warning));
    mr_json_append(results, one);
    return output_json(&out, o, dir, results);
}

static int render(const struct options *o, const char *dir)
{
    struct mr_json *root = study_load(dir);
    struct mr_markup text = {0};
    if (!root)
        return 1;
    int status = study_render(dir, root);
    if (!status && !mr_report_summary(root, &text, NULL)) {
        if (!o->json || strcmp(o->json, "-"))
            say_lines(text.data);
        status = tell(o, "Report", dir, "report.html", NULL);
    }
    mr_markup_fini(&text);
    mr_json_free(root);
    return status;
}

static int compare(const struct options *o, const char *dir_a, const char *dir_b)
{
    struct mr_json *a = study_load(dir_a), *b = a ? study_load(dir_b) : NULL;
    struct mr_markup page = {0};
    struct mr_error err = {0};
    int r = 1;
    if (a && b) {
        struct mr_report_opts opts = {.on_csv = study_write_csv, .ctx = (void *)dir_b};
        r = mr_report_compare(a, dir_a, b, dir_b, &opts, &page, &err);
        if (!r) {
            r = study_write(dir_b, "compare.html", page.data, page.len);
            if (r)
                mr_fail(&err, r, "%s/compare.html: %s", dir_b, mr_errno_text(r));
        }
        char why[MR_REPORT_WHY];
        int other = mr_report_data_differ(a, b, why, sizeof why);
        if (r)
            say_to(stderr, "millrace report: %s\n", err.text);
        else
            r = tell(o, "Comparison", dir_b, "compare.html", other ? why : NULL);
    }
    mr_markup_fini(&page);
    mr_json_free(a);
    mr_json_free(b);
    return r ? 1 : 0;
}

int command_report(const struct options *o)
{
    return o->n_paths == 2 ? compare(o, o->paths[0], o->paths[1]) : render(o, o->paths[0]);
}
