/* sized.c - see sized.h. */
#include "sized.h"

#include "errtext.h"

#include <errno.h>
#include <string.h>

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

int mr_take_sized(void *to, size_t ours, const void *from, size_t theirs, const char *what,
                  struct mr_error *err)
{
    const unsigned char *bytes = from;
    size_t common = from ? smaller(ours, theirs) : 0;
    for (size_t i = ours; from && i < theirs; i++)
        if (bytes[i])
            return mr_fail(err, -E2BIG,
                           "%s: a field is set that millrace %s does not have; the program was "
                           "built for a newer version",
                           what, mr_version());
    if (common)
        memcpy(to, from, common);
    memset((unsigned char *)to + common, 0, ours - common);
    return 0;
}

void mr_give_sized(void *to, size_t theirs, const void *from, size_t ours)
{
    if (!to)
        return;
    size_t common = smaller(ours, theirs);
    memcpy(to, from, common);
    memset((unsigned char *)to + common, 0, theirs - common);
}
