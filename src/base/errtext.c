/* errtext.c - see errtext.h.  The first error wins: what follows it is usually its consequence. */
#include "errtext.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int mr_fail(struct mr_error *err, int code, const char *fmt, ...)
{
    if (err && !err->code) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

const char *mr_errno_text(int code)
{
    const char *text = strerrordesc_np(code < 0 ? -code : code);
    return text ? text : "unknown error";
}

const char *mr_version(void)
{
    return MR_VERSION;
}
