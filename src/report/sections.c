/* sections.c - the table of sections, made from the list of experiments. */
#include "section.h"

#include <string.h>

#define DECLARE(name) extern const struct mr_section mr_section_##name;
MR_EXPERIMENTS(DECLARE)

#define ROW(name) {#name, &mr_section_##name},
static const struct mr_section_row all[] = {MR_EXPERIMENTS(ROW)};

_Static_assert(MR_N_EXPERIMENTS <= MR_MAX_SECTIONS, "room for all on a page");

unsigned mr_sections(const struct mr_report_opts *o, struct mr_section_row out[MR_MAX_SECTIONS])
{
    int own = o && o->sections;
    const struct mr_section_row *rows = own ? o->sections : all;
    unsigned n_rows = own ? o->n_sections : MR_N_EXPERIMENTS, n = 0;
    for (int leads = 1; leads >= 0; leads--)
        for (unsigned i = 0; i < n_rows && n < MR_MAX_SECTIONS; i++)
            if (!!rows[i].section->leads == leads)
                out[n++] = rows[i];
    return n;
}

unsigned mr_view_origins(const struct mr_view *v)
{
    unsigned origins = 0;
    for (unsigned i = 0; i < mr_view_n(v); i++) {
        struct mr_any_point p = mr_view_any(v, i);
        int accelerator = p.device && !strncmp(p.device, "emulated:", 9);
        if (p.emulated)
            origins |= 1u << v->section->emulated;
        else if (accelerator)
            origins |= 1u << MR_ORIGIN_PREDICTED;
        if (!p.emulated)
            origins |= 1u << MR_ORIGIN_REAL;
    }
    return origins;
}
