/* unit.h - what every unit test includes: cmocka and the headers it wants before it. */
#ifndef MR_TEST_UNIT_H
#define MR_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tempdir.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof *(a))

/* A test that gets a struct tempdir in *state. */
#define WITH_TEMPDIR(test) cmocka_unit_test_setup_teardown(test, tempdir_setup, tempdir_teardown)

#endif
