/* predict.c - see predict.h.
 *
 * Bottlenecks that are met one at a time need no more than a division.  Where two are nearly met
 * at once, they get in each other's way: a core is idle because all samples under way happen to be
 * read, a place is empty because the batch before is not complete.  So the pipeline is simulated,
 * event by event, with the parts that a real one has:
 *
 *     slot of an open batch -> read at the storage -> mapped by its worker -> batch complete
 *           ^                    (n under way share       (on a core, for as       |
 *           |                     the curve's rate)        long as it may)         v
 *           `------------- a batch is opened when the consumer takes one ------ consumer
 *
 * Places.  A worker owns one sample at a time in the threads engine, and its share of the requests
 * in the uring engine; a place is held from the begin of the read to the end of the mapping, which
 * a worker does one sample after the other.
 *
 * Storage.  With n reads at the storage it delivers what the curve says for n, and each read gets
 * an n-th of that: a latency when n reads are n times as quick, a bandwidth when they are not.  The
 * CPU's part of a read is in the measured curve, but takes place on a core; a point of the curve
 * (depth, rate) therefore stands for depth - rate * read_cpu reads at the storage itself.  As all
 * reads move on at the same speed and are as long, they end in the order in which they began, and
 * a queue of the distances at which they end is all there is to keep.
 *
 * Cores.  A worker has one for a sample at a time, and then any of those that wait gets it: the
 * system's scheduler is fair in the long run, but keeps no order, and so samples of the batch that
 * is due wait behind later ones.  That is where many workers with little room lose.  Images are not
 * alike, too: how much work each is, the input says.  What else it costs that workers take turns is
 * in the CPU time that was measured while they did.
 *
 * Room.  Slots are claimed in order; prefetch + 1 batches are open beyond the one the consumer has,
 * or, without prefetch, one and only while it waits.  A batch is taken when its last sample is
 * there and all before it have been taken.
 *
 * Consumer.  It takes a batch and is gone for a step.  It needs a core only for a moment, but when
 * all of them compute at the end of its step, or when the batch it sleeps for becomes complete, it
 * gets that moment wake_s later.
 *
 * The rate is that between two batches far apart, the first ones left out.  Nothing is random: the
 * order of large and small images is a fixed scramble, so equal input gives equal output. */
#include "predict.h"

#include "device_profile.h"
#include "draw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define SAMPLES     16000 /* that are simulated, or */
#define MIN_BATCHES 64
#define STRIDE      67 /* no number up to MR_SPREAD divides it */
#define NEVER       INFINITY

void mr_predict_curve(const struct mr_device_profile *p, double file_bytes,
                      struct mr_read_curve *out)
{
    double targets = p->targets ? (double)p->targets : 1;
    double transfer = file_bytes * targets / (double)p->read_bytes_per_s;
    double fixed = (double)(p->read_latency_ns + p->metadata_ns) / 1e9;
    double most_meta = p->metadata_parallel && p->metadata_ns
                           ? 1e9 * (double)p->metadata_parallel / (double)p->metadata_ns
                           : INFINITY;
    out->n = MR_CURVE_POINTS;
    for (unsigned i = 0; i < MR_CURVE_POINTS; i++) {
        double depth = (double)(1u << i), each = fmax(depth / targets, 1);
        double queue = fmin(each, p->queue_depth ? (double)p->queue_depth : 1);
        double busy =
            (double)p->seek_ns / 1e9 / pow(queue, (double)p->seek_shrink / 1000) + transfer;
        out->depth[i] = depth;
        out->per_s[i] = fmin(fmin(depth / (busy + fixed), targets / busy), most_meta);
    }
}

static double rate_at(const struct mr_read_curve *c, double depth)
{
    if (depth <= c->depth[0])
        return c->per_s[0] * depth / c->depth[0];
    for (unsigned i = 1; i < c->n; i++)
        if (depth <= c->depth[i]) {
            double share = (depth - c->depth[i - 1]) / (c->depth[i] - c->depth[i - 1]);
            return c->per_s[i - 1] + share * (c->per_s[i] - c->per_s[i - 1]);
        }
    return c->per_s[c->n - 1];
}

/* ---- the simulation ---- */

struct request { /* a place for one sample, and the sample in it */
    unsigned worker;
    unsigned next;  /* in its worker's queue */
    uint64_t batch; /* that it belongs to */
    double ends;    /* its read: in the storage's own measure of progress */
    double left_s;  /* CPU time that mapping it still takes */
};

struct worker {
    unsigned n, first, last; /* samples that are read, a list; the first is being mapped */
};

/* Indices in a fixed order of arrival. */
struct queue {
    unsigned *of; /* [n_requests], which are no fewer than workers */
    unsigned first, n;
};

struct sim {
    const struct mr_predict_input *in;
    unsigned n_requests, window;
    double now;

    struct request *request; /* [n_requests] */
    unsigned *free, n_free;  /* requests without a sample, the one that ended last on top */
    struct queue reading;    /* as all reads are as long, they end in the order of their begin */
    double *rate;            /* [n_requests + 1] of the storage, by reads there; 0 = at once */
    double progress;         /* of any read at the storage since the beginning */

    struct worker *worker; /* [in->workers] */
    struct queue ready;    /* workers with something to map; the first `cores` of them run */
    uint64_t n_draws;      /* of who runs next */

    unsigned *done;     /* [window] finished samples of the batches that may be open */
    uint64_t n_claimed; /* samples */
    uint64_t n_taken;   /* batches */
    double until;       /* the consumer does not look before; NEVER = it sleeps until it is woken */
    enum { WAITS, TRAINS, IS_LATE } doing;
};

static void push(struct sim *s, struct queue *q, unsigned f)
{
    q->of[(q->first + q->n++) % s->n_requests] = f;
}

static unsigned pop(struct sim *s, struct queue *q)
{
    unsigned f = q->of[q->first];
    q->first = (q->first + 1) % s->n_requests;
    q->n--;
    return f;
}

/* The curve without what its reads do on a core. */
static void fill_rates(struct sim *s)
{
    struct mr_read_curve c = {0};
    for (unsigned i = 0; i < s->in->storage.n; i++) {
        double per_s = s->in->storage.per_s[i];
        double depth = s->in->storage.depth[i] - per_s * s->in->read_cpu_s;
        if (depth <= (c.n ? c.depth[c.n - 1] : 0))
            continue; /* nothing but CPU time */
        c.depth[c.n] = depth;
        c.per_s[c.n++] = per_s;
    }
    for (unsigned n = 1; c.n && n <= s->n_requests; n++)
        s->rate[n] = rate_at(&c, n);
}

static void map_begins(struct sim *s, unsigned f)
{
    struct worker *w = &s->worker[s->request[f].worker];
    if (w->n++) {
        s->request[w->last].next = f;
    } else {
        w->first = f;
        push(s, &s->ready, s->request[f].worker);
    }
    w->last = f;
}

/* Samples of batches that are open. */
static uint64_t n_open(const struct sim *s)
{
    uint64_t ahead = s->in->prefetch ? s->in->prefetch + 1u : s->doing == WAITS;
    return (s->n_taken + ahead) * s->in->batch;
}

/* What mapping the i-th sample takes. */
static double cpu_of(const struct sim *s, uint64_t i)
{
    const struct mr_spread *spread = &s->in->spread;
    double mapping = fmax(s->in->image_cpu_s - s->in->read_cpu_s, 0);
    /* Each round takes every share once, beginning anywhere. */
    uint64_t round = spread->n ? mr_mix(i / spread->n + 1) : 0;
    double share = spread->n ? spread->share[(i * STRIDE + round) % spread->n] : 1;
    return s->in->image_cpu_s - mapping + mapping * share;
}

static void claim(struct sim *s)
{
    while (s->n_free && s->n_claimed < n_open(s)) {
        unsigned at = s->free[--s->n_free];
        struct request *f = &s->request[at];
        f->batch = s->n_claimed / s->in->batch;
        f->left_s = cpu_of(s, s->n_claimed++);
        f->ends = s->progress + 1;
        if (s->rate[1] > 0)
            push(s, &s->reading, at);
        else
            map_begins(s, at);
    }
}

static int is_ready(const struct sim *s)
{
    return s->done[s->n_taken % s->window] == s->in->batch;
}

static unsigned *ready_at(struct sim *s, unsigned i)
{
    return &s->ready.of[(s->ready.first + i) % s->n_requests];
}

/* Take the core from the i-th of the workers that run; any of those that wait gets it. */
static unsigned leave(struct sim *s, unsigned i)
{
    unsigned number = *ready_at(s, i), cores = s->in->cores;
    for (; i; i--) /* those before it move up */
        *ready_at(s, i) = *ready_at(s, i - 1);
    pop(s, &s->ready);
    if (s->ready.n > cores) {
        uint64_t any = mr_below(mr_mix(++s->n_draws), s->ready.n - cores + 1);
        unsigned *next = ready_at(s, cores - 1), *lucky = ready_at(s, cores - 1 + (unsigned)any);
        unsigned swap = *next;
        *next = *lucky;
        *lucky = swap;
    }
    return number;
}

/* How much later a thread goes on that is woken now. */
static double lateness(const struct sim *s)
{
    return s->ready.n >= s->in->cores ? s->in->wake_s : 0;
}

/* The i-th of the workers that run has mapped its sample. */
static void map_ends(struct sim *s, unsigned i)
{
    unsigned number = leave(s, i);
    struct worker *w = &s->worker[number];
    unsigned at = w->first;
    w->first = s->request[at].next;
    if (--w->n)
        push(s, &s->ready, number);
    s->done[s->request[at].batch % s->window]++;
    s->free[s->n_free++] = at;
    if (s->doing == WAITS && s->until == NEVER && is_ready(s))
        s->until = s->now + lateness(s);
}

/* The consumer is awake: its step is over, or there is a batch. */
static void consume(struct sim *s)
{
    if (s->doing == TRAINS && lateness(s) > 0) {
        s->doing = IS_LATE;
        s->until = s->now + lateness(s);
        return;
    }
    s->doing = WAITS;
    s->until = NEVER;
    if (!is_ready(s))
        return;
    s->done[s->n_taken % s->window] = 0;
    s->n_taken++;
    s->doing = s->in->step_s > 0 ? TRAINS : WAITS;
    s->until = s->now + s->in->step_s;
}

/* CPU time that the sample of the i-th of the workers that run still needs. */
static double *left_of(struct sim *s, unsigned i)
{
    return &s->request[s->worker[*ready_at(s, i)].first].left_s;
}

/* Go on to whatever happens next. */
static void advance(struct sim *s)
{
    unsigned n = s->reading.n, n_run = s->ready.n < s->in->cores ? s->ready.n : s->in->cores;
    double per_read = n ? s->rate[n] / n : 0, wait = s->until - s->now, read = NEVER, map = NEVER;
    unsigned next = 0;
    if (n)
        read = fmax(s->request[s->reading.of[s->reading.first]].ends - s->progress, 0) / per_read;
    for (unsigned i = 0; i < n_run; i++)
        if (*left_of(s, i) < map) {
            map = *left_of(s, i);
            next = i;
        }
    double dt = fmin(wait, fmin(read, map));
    s->now += dt;
    s->progress += dt * per_read;
    for (unsigned i = 0; i < n_run; i++)
        *left_of(s, i) -= dt;
    if (dt == wait)
        consume(s);
    else if (dt == map)
        map_ends(s, next);
    else
        map_begins(s, pop(s, &s->reading));
}

static double run(struct sim *s)
{
    uint64_t batch = s->in->batch, n = SAMPLES / batch;
    uint64_t first = 2 * (s->window + s->n_requests / batch + 1), at = 0;
    double from = 0;
    n = n < MIN_BATCHES ? MIN_BATCHES : n;
    while (s->n_taken < first + n) {
        claim(s);
        advance(s);
        if (s->n_taken != at && s->n_taken <= first) {
            at = s->n_taken;
            from = s->now;
        }
    }
    return (double)((s->n_taken - at) * batch) / (s->now - from);
}

static void init(struct sim *s)
{
    unsigned workers = s->in->workers;
    for (unsigned i = 0; i < s->n_requests; i++) {
        s->request[i].worker = i % workers;
        s->free[s->n_free++] = i;
    }
    fill_rates(s);
}

int mr_predict_rate(const struct mr_predict_input *in, double *per_s)
{
    struct sim s = {.in = in, .window = in->prefetch + 1, .until = NEVER};
    if (!in->storage.n && in->image_cpu_s <= 0) {
        *per_s = in->step_s > 0 ? in->batch / in->step_s : INFINITY;
        return 0;
    }
    s.n_requests = in->io_depth > in->workers ? in->io_depth : in->workers;
    s.request = calloc(s.n_requests, sizeof *s.request);
    s.free = calloc(s.n_requests, sizeof *s.free);
    s.reading.of = calloc(s.n_requests, sizeof *s.reading.of);
    s.ready.of = calloc(s.n_requests, sizeof *s.ready.of);
    s.rate = calloc(s.n_requests + 1, sizeof *s.rate);
    s.worker = calloc(in->workers, sizeof *s.worker);
    s.done = calloc(s.window, sizeof *s.done);
    int r = s.request && s.free && s.reading.of && s.ready.of && s.rate && s.worker && s.done
                ? 0
                : -ENOMEM;
    if (!r) {
        init(&s);
        *per_s = run(&s);
    }
    free(s.request);
    free(s.free);
    free(s.reading.of);
    free(s.ready.of);
    free(s.rate);
    free(s.worker);
    free(s.done);
    return r;
}
