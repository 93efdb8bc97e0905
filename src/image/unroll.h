/* unroll.h - how often a loop's body is to stand in the code; UNROLL(1): once.
 *
 * A compiler that does not optimise has no use for it, and gcc says so, as an error with -Werror.
 */
#ifndef MR_UNROLL_H
#define MR_UNROLL_H

#ifdef __OPTIMIZE__
#define MR_PRAGMA(text) _Pragma(#text)
#define UNROLL(n)       MR_PRAGMA(GCC unroll n)
#else
#define UNROLL(n)
#endif

#endif
