/* wake_delay.h - how late a sleeping thread wakes while others compute.
 *
 *   mr_wake_delay_begin(&w);  ... the machine is made busy ...  mean_s = mr_wake_delay_end(w);
 *
 * A thread of its own sleeps a millisecond at a time and looks at the clock when it wakes up. */
#ifndef MR_WAKE_DELAY_H
#define MR_WAKE_DELAY_H

struct mr_wake_delay;

/* 0, -ENOMEM, or -EAGAIN when there can be no thread. */
int mr_wake_delay_begin(struct mr_wake_delay **out);
/* Stop, free, and return the mean delay in seconds.  NULL: 0. */
double mr_wake_delay_end(struct mr_wake_delay *w);

#endif
