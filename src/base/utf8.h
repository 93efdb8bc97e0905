/* utf8.h - text of unknown origin: its characters, and how to show it on a terminal. */
#ifndef MR_UTF8_H
#define MR_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character at s (1 to 4), 0 when there is none: a byte that belongs to no
 * character, more bytes than needed, half of a surrogate pair.  Reads no further than the first
 * byte that does not belong to it; the end of the string is one byte. */
size_t mr_utf8_length(const char *s);

#define MR_PRINTABLE 20 /* the longest piece, and its end */

/* The next character of the `n` bytes at s as it may go to a terminal: as it is, or as \xNN for
 * each byte when it is a control character (C0, DEL, C1), ends a line, turns the direction of the
 * text, or is no character.  Returns how many bytes of s it stands for; n must not be 0. */
size_t mr_printable(const char *s, size_t n, char piece[MR_PRINTABLE]);

#endif
