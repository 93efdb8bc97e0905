/* say.h - the only way to standard output and standard error.
 *
 * As printf and fprintf, but what a %s brings is shown as it may go to a terminal: file names,
 * traces, results and error texts are other people's, and may hold escape sequences or the end of a
 * line.  Control characters and bytes that are no text become \xNN.  What the format itself says is
 * ours and stays.
 *
 *   %-20s       columns are characters, not bytes
 *   %.*s        the string has at most that many bytes
 *   %20.20s     with a width, what does not fit into that many columns is left out
 *
 * No %n, no wide characters. */
#ifndef MR_SAY_H
#define MR_SAY_H

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
__attribute__((format(printf, 2, 3))) void say_to(FILE *to, const char *format, ...);
__attribute__((format(printf, 2, 0))) void say_args(FILE *to, const char *format, va_list args);
/* Text of several lines that the report composed; its foreign parts have no line ends. */
void say_lines(const char *text);

#endif
