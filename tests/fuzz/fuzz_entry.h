/* fuzz_entry.h - the function that libFuzzer, or run_corpus.c in its place, calls. */
#ifndef MR_TEST_FUZZ_ENTRY_H
#define MR_TEST_FUZZ_ENTRY_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
