/* verdict_words.c - see verdict_words.h.  The headline may end in the words of the advice. */
#include "verdict_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int mr_verdict_is_old(const struct mr_view *v)
{
    return mr_view_text(v, 0, "recommendation.text") &&
           !mr_view_text(v, 0, "recommendation.status");
}

const char *mr_verdict_text(const struct mr_view *v, char *buf, size_t cap)
{
    const char *text = mr_view_text(v, 0, "text");
    const char *at = text && mr_verdict_is_old(v)
                         ? strstr(text, mr_view_text(v, 0, "recommendation.text"))
                         : NULL;
    if (!at)
        return text;
    while (at > text && at[-1] == ' ')
        at--;
    snprintf(buf, cap, "%.*s", (int)(at - text), text);
    return buf;
}

const struct mr_json *mr_verdict_advice(const struct mr_view *v, const char *which)
{
    return mr_verdict_is_old(v) ? NULL : mr_view_at(v, 0, which);
}

const char *mr_advice_tried(const struct mr_json *advice)
{
    const char *status = mr_json_text(mr_json_at(advice, "status"));
    const struct mr_json *tried = mr_json_at(advice, "tried");
    if (!isfinite(mr_json_number(mr_json_at(advice, "predicted_images_per_s")) +
                  mr_json_number(mr_json_at(advice, "measured_images_per_s"))) ||
        (status && !strcmp(status, "no model")))
        return NULL;
    return mr_json_is_true(tried) ? "smaller images" : mr_json_text(tried);
}
