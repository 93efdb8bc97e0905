/* machine_rows.h - the record of a machine as rows of a table, whatever it holds. */
#ifndef MR_MACHINE_ROWS_H
#define MR_MACHINE_ROWS_H

#include "json.h"
#include "markup.h"

/* A row for each member of either, members of members too; without `b` one column of values. */
void mr_machine_rows(struct mr_markup *out, const struct mr_json *a, const struct mr_json *b);

#endif
