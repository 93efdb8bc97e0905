/* verdict_words.h - what a study's verdict says, and what it advises. */
#ifndef MR_VERDICT_WORDS_H
#define MR_VERDICT_WORDS_H

#include "view.h"

/* Advice without a status recommends what was only predicted to be better.  It is not repeated. */
#define MR_HEADLINE 1024 /* room for it */
#define MR_OLD_ADVICE                                                                              \
    "The advice of this study is not shown: it was made by rules that no longer hold. millrace "   \
    "study --only verdict makes it anew."

/* 1 when the advice of that verdict is such. */
int mr_verdict_is_old(const struct mr_view *v);
/* The headline without advice that is old; NULL when there is none.  `buf` is room for it. */
const char *mr_verdict_text(const struct mr_view *v, char *buf, size_t cap);
/* `recommendation` or `smaller_images` of docs/json.md; NULL when absent or old. */
const struct mr_json *mr_verdict_advice(const struct mr_view *v, const char *which);
/* What a piece of advice is a prediction of: "--threads 4".  NULL when nothing was predicted and
 * measured, or by a model that does not hold. */
const char *mr_advice_tried(const struct mr_json *advice);

#endif
