/* fuzz_check.h - what has to hold in a fuzz target, or the run ends there. */
#ifndef MR_TEST_FUZZ_CHECK_H
#define MR_TEST_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(what)                                                                              \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
