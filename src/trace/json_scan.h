/* json_scan.h - walk through JSON text without building it, as far as it goes.
 *
 * A trace may be cut anywhere (the program was killed) and may be much larger than what is wanted
 * of it.  Every call returns 1 = there is one, 0 = the end of this object or list, -1 = the text
 * does not go on as it should (then `at` is where, and at == end means that it just ends). */
#ifndef MR_JSON_SCAN_H
#define MR_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

struct mr_json_scan {
    const char *at, *end;
    int fresh; /* nothing was taken from the innermost object or list yet */
};

/* What the next value is: its first character, 0 at the end of the text. */
char mr_scan_peek(struct mr_json_scan *s);
/* Go into an object '{' or list '['; 1 or -1. */
int mr_scan_enter(struct mr_json_scan *s, char open);
/* In an object: the next key (cut to cap).  In a list: is there a next value? */
int mr_scan_key(struct mr_json_scan *s, char *key, size_t cap);
int mr_scan_item(struct mr_json_scan *s);

/* The next value, 1 or -1.  Text: a string's, decoded, or a number's or word's as it stands. */
int mr_scan_text(struct mr_json_scan *s, char *buf, size_t cap, size_t *len);
int mr_scan_skip(struct mr_json_scan *s);

/* A number in text, times 10^digits, rounded towards zero; 0, or -1 when it is none or too large.
 */
int mr_decimal(const char *text, size_t len, int digits, int64_t *out);

#endif
