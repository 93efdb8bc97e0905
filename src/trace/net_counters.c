/* net_counters.c - see net_counters.h.
 *
 *     Inter-|   Receive                                                |  Transmit
 *      face |bytes packets errs drop fifo frame compressed multicast|bytes packets ...
 *       eth0: 134237500 3465 0 0 0 0 0 0 122236 1598 0 0 0 0 0 0
 *
 * The counters have 64 bits; one that falls belongs to a new interface (or to a driver that was
 * loaded again), which began at zero. */
#include "net_counters.h"

#include "grow.h"
#include "proc_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_FIELDS 8

void mr_nets_fini(struct mr_nets *s)
{
    free(s->row);
    *s = (struct mr_nets){0};
}

static int parse_line(const char *p, char name[MR_NET_NAME], struct mr_net_side side[MR_NET_SIDES])
{
    uint64_t v[RECEIVE_FIELDS + 2];
    if (mr_scan_word(&p, ':', name, MR_NET_NAME) || *p++ != ':')
        return -1;
    for (unsigned i = 0; i < RECEIVE_FIELDS + 2; i++)
        if (mr_scan_u64(&p, &v[i]))
            return -1;
    side[MR_NET_RECEIVE] = (struct mr_net_side){v[0], v[1]};
    side[MR_NET_TRANSMIT] = (struct mr_net_side){v[RECEIVE_FIELDS], v[RECEIVE_FIELDS + 1]};
    return 0;
}

static struct mr_net *row_of(struct mr_nets *s, const char *name)
{
    for (unsigned i = 0; i < s->n; i++)
        if (!strcmp(s->row[i].name, name))
            return &s->row[i];
    struct mr_net *row = mr_grown(s->row, s->n, &s->cap, sizeof *row);
    if (!row)
        return NULL;
    s->row = row;
    struct mr_net *k = &s->row[s->n++];
    *k = (struct mr_net){0};
    memcpy(k->name, name, strlen(name) + 1);
    return k;
}

static void take(const struct mr_nets *s, struct mr_net *k, const struct mr_net_side *now)
{
    int renewed = !k->present;
    if (k->seen == s->readings)
        return;
    for (unsigned d = 0; d < MR_NET_SIDES; d++)
        renewed |= now[d].bytes < k->raw[d].bytes || now[d].packets < k->raw[d].packets;
    for (unsigned d = 0; d < MR_NET_SIDES; d++) {
        struct mr_net_side from = renewed ? (struct mr_net_side){0} : k->raw[d];
        if (s->readings == 1 || (!k->seen && s->was_damaged))
            from = now[d];
        k->last[d] = (struct mr_net_side){now[d].bytes - from.bytes, now[d].packets - from.packets};
        k->total[d].bytes += k->last[d].bytes;
        k->total[d].packets += k->last[d].packets;
        k->used |= k->last[d].packets > 0;
        k->raw[d] = now[d];
    }
    k->present = 1;
    k->seen = s->readings;
}

static int is_heading(const char *p)
{
    return p[strcspn(p, "|\n")] == '|';
}

/* The heading is one: a name space may have no interface. */
static int has_good_line(const char *text)
{
    char name[MR_NET_NAME];
    struct mr_net_side side[MR_NET_SIDES];
    for (const char *p = text; *p; p = mr_next_line(p))
        if (is_heading(p) || !parse_line(p, name, side))
            return 1;
    return 0;
}

int mr_nets_update(struct mr_nets *s, const char *text)
{
    char name[MR_NET_NAME];
    struct mr_net_side side[MR_NET_SIDES];
    int r = 0;
    if (!has_good_line(text))
        return -EBADMSG;
    s->readings++;
    s->bad_lines = 0;
    for (const char *p = text; *p; p = mr_next_line(p)) {
        if (is_heading(p))
            continue;
        if (parse_line(p, name, side)) {
            s->bad_lines++;
            continue;
        }
        struct mr_net *k = row_of(s, name);
        if (k)
            take(s, k, side);
        else
            r = -ENOMEM;
    }
    for (unsigned i = 0; i < s->n; i++) {
        struct mr_net *k = &s->row[i];
        if (k->seen == s->readings)
            continue;
        memset(k->last, 0, sizeof k->last);
        k->present &= s->bad_lines > 0;
    }
    s->was_damaged = r || s->bad_lines;
    return r;
}

void mr_nets_skip(struct mr_nets *s)
{
    for (unsigned i = 0; i < s->n; i++)
        memset(s->row[i].last, 0, sizeof s->row[i].last);
}
