/* unpack.c - see unpack.h.  A text whose end is missing is the reader's to judge: a trace whose
 * writer was killed is of use up to there. */
#include "unpack.h"

#include "inflate.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* Twice the room, `max` at the most, for text that fills what there is. */
static int grow(char **text, size_t *cap, size_t max)
{
    if (*cap >= max)
        return -EFBIG;
    size_t want = *cap > max / 2 ? max : *cap * 2;
    char *larger = realloc(*text, want);
    if (!larger)
        return -ENOMEM;
    *text = larger;
    *cap = want;
    return 0;
}

static int inflate_all(struct mr_inflate *z, const char *in, size_t len, size_t max, char **text,
                       size_t *used)
{
    const uint8_t *at = (const uint8_t *)in;
    size_t cap = len < max / 4 ? len * 4 + 1024 : max;
    *text = malloc(cap);
    if (!*text)
        return -ENOMEM;
    for (;;) {
        int r = *used == cap ? grow(text, &cap, max) : 0;
        if (r)
            return r;
        uint8_t *end = (uint8_t *)*text + *used;
        size_t room = cap - *used;
        enum mr_inflate_said said = mr_inflate_run(z, &at, &len, &end, &room);
        *used = cap - room;
        if (said == MR_INFLATE_NO_MEMORY)
            return -ENOMEM;
        if (said == MR_INFLATE_END && len)
            mr_inflate_reset(z); /* another member follows */
        else if (said != MR_INFLATE_MORE)
            return 0; /* the end, or as far as it makes sense */
    }
}

int mr_unpack(const char *in, size_t len, size_t max, char **out, size_t *out_len)
{
    struct mr_inflate *z = NULL;
    char *text = NULL;
    size_t used = 0;
    int r = mr_inflate_new(MR_INFLATE_GZIP, &z);
    if (!r)
        r = inflate_all(z, in, len, max, &text, &used);
    mr_inflate_free(z);
    if (r) {
        free(text);
        return r;
    }
    *out = text;
    *out_len = used;
    return 0;
}
