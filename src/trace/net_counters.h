/* net_counters.h - network interfaces: bytes and packets of /proc/net/dev. */
#ifndef MR_NET_COUNTERS_H
#define MR_NET_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#define MR_NET_NAME 32

enum { MR_NET_RECEIVE, MR_NET_TRANSMIT, MR_NET_SIDES };

struct mr_net_side {
    uint64_t bytes, packets;
};

struct mr_net {
    char name[MR_NET_NAME];
    int present, used; /* as in struct mr_disk */
    struct mr_net_side last[MR_NET_SIDES], total[MR_NET_SIDES], raw[MR_NET_SIDES];
    uint64_t seen;
};

struct mr_nets {
    struct mr_net *row;
    unsigned n;
    size_t cap;
    uint64_t readings;
    unsigned bad_lines; /* of the last reading */
    int was_damaged;    /* it could not be taken over whole */
};

void mr_nets_fini(struct mr_nets *s); /* begin with {0} */
/* As mr_disks_update and mr_disks_skip.  An interface that appears later counts from its
 * beginning. */
int mr_nets_update(struct mr_nets *s, const char *text);
void mr_nets_skip(struct mr_nets *s);

#endif
