/* steal.h - what the hypervisor took from this machine's cores meanwhile. */
#ifndef STEAL_H
#define STEAL_H

#include <stdint.h>

struct steal {
    uint64_t ticks, start_ns;
};

void steal_begin(struct steal *s);
/* Of all cores' time since then; 0 when the system does not tell. */
double steal_share(const struct steal *s);

#endif
