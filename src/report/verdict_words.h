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
int mr_verdict_is_old(const struct mr_verdict_point *p);
/* The headline without advice that is old; NULL when there is none.  `buf` is room for it. */
const char *mr_verdict_text(const struct mr_verdict_point *p, char *buf, size_t cap);

/* A piece of advice, as far as it is shown. */
struct mr_advice_shown {
    const char *text; /* NULL: there is none, or it is old */
    /* What was predicted and measured: "--threads 4".  NULL when nothing was, or by a model that
     * does not hold. */
    const char *tried;
    double now, now_predicted;  /* images/s; NaN: not known */
    double predicted, measured; /* of what was tried */
};

/* The recommended configuration, and smaller images. */
void mr_verdict_advice(const struct mr_verdict_point *p, struct mr_advice_shown out[2]);

#endif
