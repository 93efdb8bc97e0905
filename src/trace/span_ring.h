/* span_ring.h - events of one thread on their way to the trace's file.
 *
 * One thread puts, one thread (the recorder's) takes; no lock.  Full: the event is dropped and
 * counted.  Room comes back a block of events at a time, and the block that came back last is
 * filled next: a ring takes as much memory as there ever was in it at once. */
#ifndef MR_SPAN_RING_H
#define MR_SPAN_RING_H

#include <stddef.h>
#include <stdatomic.h>
#include <stdint.h>

enum mr_event_kind { MR_EVENT_SPAN, MR_EVENT_COUNTER, MR_EVENT_MARK };

#define MR_MAX_LANE 16383

/* What is stored, 40 bytes. */
struct mr_event {
    uint64_t begin_ns;
    union {
        uint64_t end_ns;
        double value; /* of a counter */
    };
    uint64_t bytes;
    uint32_t id, epoch, step;
    uint16_t name;     /* an enum mr_phase, or another name of the recorder's table */
    uint16_t kind : 2; /* an enum mr_event_kind */
    uint16_t lane : 14;
};

struct mr_span_ring {
    struct mr_event *slot; /* [n_blocks << shift] */
    unsigned shift;        /* a block has 1 << shift events */
    uint32_t n_blocks;
    uint32_t *used; /* [n_blocks] which block holds events n << shift and on, by n % n_blocks */

    /* The producer's */
    _Alignas(64) _Atomic uint64_t head; /* events put so far */
    uint64_t room_end;                  /* the current block is full then */
    struct mr_event *block;             /* the current one */
    uint32_t *free, n_free;             /* [n_blocks] a stack */
    uint64_t n_back;                    /* blocks that came back so far */
    uint64_t wake_mask;                 /* these bits of head are 0: many were put */
    _Atomic uint64_t dropped;

    /* The consumer's */
    _Alignas(64) _Atomic uint64_t tail; /* events taken so far */
};

/* Room for at least `n` events; 0 or -ENOMEM. */
int mr_span_ring_init(struct mr_span_ring *r, size_t n);
void mr_span_ring_fini(struct mr_span_ring *r);

/* Producer, when the current block is full: begin another, or count a dropped event; 0 then. */
int mr_span_ring_more(struct mr_span_ring *r);

/* Producer: a place for the next event, or NULL when the ring is full (it is counted).  What was
 * written there is seen by the consumer after mr_span_ring_put. */
static inline struct mr_event *mr_span_ring_next(struct mr_span_ring *r)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head == r->room_end && !mr_span_ring_more(r))
        return NULL;
    return &r->block[head & ((1u << r->shift) - 1)];
}

/* Nonzero now and then, when it is time to wake the consumer. */
static inline int mr_span_ring_put(struct mr_span_ring *r)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + 1;
    atomic_store_explicit(&r->head, head, memory_order_release);
    return (head & r->wake_mask) == 0;
}

/* Consumer: up to `max` events of a block at *first; they stay until mr_span_ring_took. */
size_t mr_span_ring_peek(struct mr_span_ring *r, size_t max, const struct mr_event **first);
void mr_span_ring_took(struct mr_span_ring *r, size_t n);
/* Consumer: forget what is in it. */
void mr_span_ring_clear(struct mr_span_ring *r);

#endif
