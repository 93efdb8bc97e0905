/* advice_words.h - advice as text and as JSON. */
#ifndef MR_ADVICE_WORDS_H
#define MR_ADVICE_WORDS_H

#include "advice.h"
#include "json.h"

/* The options that make it so: "--engine uring --io-depth 16 --threads 2".  Prefetch and storage
 * are named when they change. */
void mr_advice_text(const struct mr_advice_opts *o, const struct mr_advice *a, char *text,
                    size_t cap);
/* "none", "recommended", "withdrawn", "no model" */
const char *mr_advice_standing_name(enum mr_advice_standing standing);
/* `recommendation` of docs/json.md: its text says what to change and what it gained, or why nothing
 * is recommended. */
struct mr_json *mr_advice_json(const struct mr_advice_opts *o, const struct mr_findings *f,
                               const struct mr_advice *a);

#endif
