/* mapping.h - what the kernel says of the memory at an address. */
#ifndef MR_TEST_MAPPING_H
#define MR_TEST_MAPPING_H

/* Has its mapping this flag?  As in /proc/PID/smaps: "hg" wants huge pages, "nh" wants none. */
int mapping_has(const void *address, const char *flag);

#endif
