/* utf8.c - see utf8.h. */
#include "utf8.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t mr_utf8_length(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc2 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static uint32_t code_of(const char *s, size_t n)
{
    uint32_t code = n == 1 ? (unsigned char)s[0] : (unsigned char)s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3f);
    return code;
}

/* Characters that move, hide or reorder what others show. */
static int is_control(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},
        {0x61c, 0x61c},   {0x200b, 0x200f}, /* no width, direction */
        {0x2028, 0x202e},                   /* ends of lines and paragraphs, direction */
        {0x2060, 0x206f}, {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0xe0000, 0xe007f}, /* tags, which are not shown */
    };
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return 1;
    return 0;
}

size_t mr_printable(const char *s, size_t n, char piece[MR_PRINTABLE])
{
    char whole[5] = ""; /* what there is of the character, and an end */
    memcpy(whole, s, n < 4 ? n : 4);
    size_t len = mr_utf8_length(whole), at = 0;
    if (len && !is_control(code_of(whole, len))) {
        memcpy(piece, whole, len);
        piece[len] = 0;
        return len;
    }
    len = len ? len : 1;
    for (size_t i = 0; i < len; i++)
        at += (size_t)snprintf(piece + at, MR_PRINTABLE - at, "\\x%02x", (unsigned char)whole[i]);
    return len;
}
