/* stand_in.h - a consumer that waits does a worker's work.
 *
 *   consumer   |next: fill, fill, fill| |next: fill, fill, fill| |next: ...
 *   worker     asks? sleeps ...................................................
 *   others     |fill|fill|fill|fill|fill|fill|fill|fill|fill|fill|fill|fill|...
 *
 * A batch of cached files is there in less than a millisecond.  When all cores are busy with them
 * and the consumer does nothing but ask for the next one, waking it for each batch costs a few
 * files' time: it takes a core from a worker, and later somebody else gives it back.  So a consumer
 * that has come back at once for some time asks for a worker's place.  The next worker that has
 * nothing in hand lays down its work and sleeps; the consumer fills slots in its stead whenever it
 * would wait.  There are as many at work as before, and nobody is woken.
 *
 * A consumer that takes its time has the worker back: it calls it when it comes late, and a worker
 * that sees that the consumer did not come looks after itself.  A place that was of no use to the
 * consumer (no descriptors; or io_uring, and files that have to be waited for) is asked for again
 * only after twice as many batches. */
#ifndef MR_STAND_IN_H
#define MR_STAND_IN_H

#include "feed.h"

/* All with pool->mu held. */

/* The consumer comes for a batch. */
void mr_stand_in_arrive(struct mr_pipeline *p, uint64_t now_ns);
/* The consumer asks, has slept for so long, and no worker has made room: they wait for files, and
 * should read ahead meanwhile. */
#define MR_STAND_IN_ASKS_NS 8000000
void mr_stand_in_withdraw(struct mr_pipeline *p);
/* If a worker has made room: fill slots until the consumer's batch is there or nothing can be done
 * about it.  Gives the lock back meanwhile. */
void mr_stand_in_work(struct mr_pipeline *p);
/* For a worker without work in hand, when p->asks: sleep until it is needed. */
void mr_stand_in_make_room(struct mr_worker *w);

#endif
