/* verdict_words.c - see verdict_words.h.  The headline may end in the words of the advice. */
#include "verdict_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int mr_verdict_is_old(const struct mr_verdict_point *p)
{
    struct mr_recommendation r = mr_recommendation_of(p->recommendation);
    return r.text && !r.status;
}

const char *mr_verdict_text(const struct mr_verdict_point *p, char *buf, size_t cap)
{
    const char *text = p->text;
    const char *at = text && mr_verdict_is_old(p)
                         ? strstr(text, mr_recommendation_of(p->recommendation).text)
                         : NULL;
    if (!at)
        return text;
    while (at > text && at[-1] == ' ')
        at--;
    snprintf(buf, cap, "%.*s", (int)(at - text), text);
    return buf;
}

void mr_verdict_advice(const struct mr_verdict_point *p, struct mr_advice_shown out[2])
{
    struct mr_recommendation r = mr_recommendation_of(p->recommendation);
    struct mr_smaller_images s = mr_smaller_images_of(p->smaller_images);
    int old = mr_verdict_is_old(p), no_model = r.status && !strcmp(r.status, "no model");
    out[0] = (struct mr_advice_shown){.text = old ? NULL : r.text,
                                      .tried = old || no_model ? NULL : r.tried,
                                      .now = old ? NAN : r.now_images_per_s,
                                      .now_predicted = r.now_predicted_images_per_s,
                                      .predicted = r.predicted_images_per_s,
                                      .measured = r.measured_images_per_s};
    out[1] = (struct mr_advice_shown){.text = old ? NULL : s.text,
                                      .tried = !old && s.tried ? "smaller images" : NULL,
                                      .now = NAN,
                                      .now_predicted = NAN,
                                      .predicted = s.predicted_images_per_s,
                                      .measured = s.measured_images_per_s};
    for (unsigned i = 0; i < 2; i++)
        if (!isfinite(out[i].predicted + out[i].measured))
            out[i].tried = NULL;
}
