/* sampler.c - see sampler.h.
 *
 * A source is a file of /proc that is opened once.  One that is missing at opening stays unknown;
 * one that cannot be read or understood for a sample is unknown in that sample.  Differences are
 * taken from the last good reading, so the next one covers more than an interval: it goes into the
 * totals, but is no rate, and the source stays unknown for that sample, too.
 *
 *     thread:  wait until start + n * interval -> take -> on_sample -> n + 1, or later if late
 *
 * Invariant: `sample` and everything it points to is touched by one thread at a time: the opener
 * until the thread runs, then the thread, then the closer after the join.
 * Lock: mu guards `stop`; never held while sampling or calling back. */
#include "sampler.h"

#include "clock.h"
#include "errtext.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DISKS, CPU, MEMORY, NET, PRESSURE, N_SOURCES = PRESSURE + MR_PRESSURE_KINDS };

static const char *const source_files[N_SOURCES] = {
    [DISKS] = "diskstats",
    [CPU] = "stat",
    [MEMORY] = "meminfo",
    [NET] = "net/dev",
    [PRESSURE + MR_PRESSURE_CPU] = "pressure/cpu",
    [PRESSURE + MR_PRESSURE_IO] = "pressure/io",
    [PRESSURE + MR_PRESSURE_MEMORY] = "pressure/memory",
};

struct mr_sampler {
    struct mr_sampler_opts opts;
    char *proc_root, *sys_root;
    pid_t owner; /* who opened */
    int fd[N_SOURCES];
    struct mr_text text;
    struct mr_disks disks;
    struct mr_nets nets;
    struct mr_process_tree tree;
    uint64_t open_ns;
    /* The last good readings; `have` says of which there was one, `stale` of which it is older
     * than the last sample. */
    unsigned have, stale;
    struct mr_system_counts raw;
    struct mr_system_sample sample;

    pthread_t thread;
    int has_thread, has_lock;
    pthread_mutex_t mu;
    pthread_cond_t wake;
    int stop;
};

static void add_cpu(struct mr_cpu *to, const struct mr_cpu *c)
{
    for (unsigned i = 0; i < MR_CPU_KINDS; i++)
        to->ticks[i] += c->ticks[i];
    to->switches += c->switches;
    to->running = c->running;
    to->blocked = c->blocked;
}

/* Each of the following takes over one source's text: 0, or not 0 when it makes no sense. */

static int take_cpu(struct mr_sampler *s)
{
    struct mr_cpu now;
    if (mr_cpu_parse(s->text.buf, &now))
        return -1;
    if (s->have & MR_KNOWN_CPU)
        mr_cpu_difference(&s->raw.cpu, &now, &s->sample.last.cpu);
    add_cpu(&s->sample.total.cpu, &s->sample.last.cpu);
    s->raw.cpu = now;
    return 0;
}

static int take_pressure(struct mr_sampler *s, unsigned kind)
{
    struct mr_pressure now, *last = &s->sample.last.pressure[kind],
                            *total = &s->sample.total.pressure[kind];
    if (mr_pressure_parse(s->text.buf, &now))
        return -1;
    if (s->have & (unsigned)MR_KNOWN_PRESSURE << kind)
        mr_pressure_difference(&s->raw.pressure[kind], &now, last);
    total->some_us += last->some_us;
    total->full_us += last->full_us;
    s->raw.pressure[kind] = now;
    return 0;
}

static int take_source(struct mr_sampler *s, unsigned i)
{
    switch (i) {
    case DISKS:
        return mr_disks_update(&s->disks, s->text.buf);
    case CPU:
        return take_cpu(s);
    case MEMORY:
        return mr_memory_parse(s->text.buf, &s->sample.memory);
    case NET:
        return mr_nets_update(&s->nets, s->text.buf);
    default:
        return take_pressure(s, i - PRESSURE);
    }
}

static unsigned known_bit(unsigned source)
{
    static const unsigned bit[] = {
        [DISKS] = MR_KNOWN_DISKS,
        [CPU] = MR_KNOWN_CPU,
        [MEMORY] = MR_KNOWN_MEMORY,
        [NET] = MR_KNOWN_NET,
    };
    return source < PRESSURE ? bit[source] : (unsigned)MR_KNOWN_PRESSURE << (source - PRESSURE);
}

static unsigned take_process(struct mr_sampler *s, int walk)
{
    struct mr_process_io now, *was = &s->raw.process;
    if (!s->opts.process || mr_process_tree_read(&s->tree, &s->text, s->sample.at_ns, walk, &now))
        return 0;
    for (unsigned i = 0; i < MR_IO_KINDS && s->have & MR_KNOWN_PROCESS; i++) {
        s->sample.last.process.count[i] = now.count[i] - was->count[i];
        s->sample.total.process.count[i] += s->sample.last.process.count[i];
    }
    *was = now;
    s->sample.n_processes = mr_process_tree_size(&s->tree);
    return MR_KNOWN_PROCESS;
}

/* Read everything.  The moment is that of the block devices, which come first. */
static void take(struct mr_sampler *s, int walk)
{
    struct mr_system_sample *m = &s->sample;
    uint64_t now = mr_clock_ns();
    unsigned good = 0;
    m->interval_ns = now - m->at_ns;
    m->since_open_ns = now - s->open_ns;
    m->at_ns = now;
    m->n_processes = 0;
    memset(&m->last, 0, sizeof m->last);
    for (unsigned i = 0; i < N_SOURCES; i++)
        if (s->fd[i] >= 0 && !mr_proc_read(s->fd[i], &s->text) && !take_source(s, i))
            good |= known_bit(i);
    good |= take_process(s, walk);
    m->known = good & ~s->stale;
    if (!(m->known & MR_KNOWN_DISKS))
        mr_disks_skip(&s->disks);
    if (!(m->known & MR_KNOWN_NET))
        mr_nets_skip(&s->nets);
    s->have |= good;
    s->stale = ~good;
    m->disks = s->disks.row;
    m->n_disks = s->disks.n;
    m->nets = s->nets.row;
    m->n_nets = s->nets.n;
}

const struct mr_system_sample *mr_sampler_take(struct mr_sampler *s)
{
    take(s, 0);
    s->sample.number++;
    return &s->sample;
}

/* 0 when the moment has come, 1 when it is time to stop. */
static int wait_until(struct mr_sampler *s, uint64_t deadline_ns)
{
    struct timespec t = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    pthread_mutex_lock(&s->mu);
    while (!s->stop && mr_clock_ns() < deadline_ns)
        pthread_cond_timedwait(&s->wake, &s->mu, &t);
    int stop = s->stop;
    pthread_mutex_unlock(&s->mu);
    return stop;
}

static void *run(void *arg)
{
    struct mr_sampler *s = arg;
    uint64_t deadline = s->open_ns + s->opts.interval_ns;
    while (!wait_until(s, deadline)) {
        s->opts.on_sample(s->opts.ctx, mr_sampler_take(s));
        uint64_t behind = (mr_clock_ns() - deadline) / s->opts.interval_ns;
        s->sample.n_missed += behind;
        deadline += (behind + 1) * s->opts.interval_ns;
    }
    return NULL;
}

static int open_lock(struct mr_sampler *s)
{
    pthread_condattr_t attr;
    int r = pthread_condattr_init(&attr);
    if (r)
        return -r;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    r = pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    if (r)
        return -r;
    pthread_mutex_init(&s->mu, NULL);
    s->has_lock = 1;
    return 0;
}

static int open_sources(struct mr_sampler *s, struct mr_error *err)
{
    unsigned n = 0;
    for (unsigned i = 0; i < N_SOURCES; i++) {
        if (s->opts.only && !(s->opts.only & known_bit(i)))
            continue;
        int fd = mr_proc_open(s->proc_root, source_files[i]);
        if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
            return mr_fail(err, fd, "%s/%s: %s", s->proc_root, source_files[i], mr_errno_text(fd));
        s->fd[i] = fd < 0 ? -1 : fd;
        n += fd >= 0;
    }
    if (!n)
        return mr_fail(err, -ENOENT,
                       "%s: none of diskstats, stat, meminfo, net/dev, pressure is "
                       "there; is it a mounted proc file system?",
                       s->proc_root);
    if (!s->opts.process)
        return 0;
    int r = mr_process_tree_init(&s->tree, s->proc_root, s->opts.process);
    if (r == -ENOENT)
        r = -ESRCH;
    return r ? mr_fail(err, r, "%s/%d/io: %s", s->proc_root, (int)s->opts.process, mr_errno_text(r))
             : 0;
}

/* Everything is set but the thread; the first reading is what counting begins from. */
static int begin(struct mr_sampler *s, struct mr_error *err)
{
    int r = open_sources(s, err);
    if (r)
        return r;
    mr_disks_init(&s->disks, s->sys_root, s->opts.counter_bits);
    s->open_ns = s->sample.at_ns = mr_clock_ns();
    take(s, 1);
    if (!s->text.buf)
        return mr_fail(err, -ENOMEM, "no memory for a sample");
    if (!s->have)
        return mr_fail(err, -ENODATA, "%s: none of its files could be read and understood",
                       s->proc_root);
    s->open_ns = s->sample.at_ns;
    if (!s->opts.on_sample)
        return 0;
    r = open_lock(s);
    if (!r)
        r = -pthread_create(&s->thread, NULL, run, s);
    if (r)
        return mr_fail(err, r, "no thread for samples: %s", mr_errno_text(r));
    s->has_thread = 1;
    return 0;
}

int mr_sampler_open(const struct mr_sampler_opts *opts, struct mr_sampler **out,
                    struct mr_error *err)
{
    struct mr_sampler_opts o = opts ? *opts : (struct mr_sampler_opts){0};
    if (!o.interval_ns)
        o.interval_ns = 1000000000u;
    if (o.interval_ns < MR_SAMPLER_MIN_NS)
        return mr_fail(err, -EINVAL, "samples cannot be nearer than 10 ms");
    struct mr_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(err, -ENOMEM, "no memory for a sampler");
    s->opts = o;
    s->owner = getpid();
    for (unsigned i = 0; i < N_SOURCES; i++)
        s->fd[i] = -1;
    s->proc_root = strdup(o.proc_root ? o.proc_root : "/proc");
    s->sys_root = strdup(o.sys_root ? o.sys_root : "/sys");
    int r = s->proc_root && s->sys_root ? begin(s, err)
                                        : mr_fail(err, -ENOMEM, "no memory for a sampler");
    if (!r)
        *out = s;
    else {
        s->opts.on_sample = NULL;
        mr_sampler_close(s);
    }
    return r;
}

void mr_sampler_close(struct mr_sampler *s)
{
    if (!s)
        return;
    if (s->has_thread && s->owner == getpid()) {
        pthread_mutex_lock(&s->mu);
        s->stop = 1;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->mu);
        pthread_join(s->thread, NULL);
        take(s, 1);
        s->sample.number++;
        s->sample.final = 1;
        s->opts.on_sample(s->opts.ctx, &s->sample);
    }
    if (s->has_lock && s->owner == getpid()) {
        pthread_mutex_destroy(&s->mu);
        pthread_cond_destroy(&s->wake);
    }
    for (unsigned i = 0; i < N_SOURCES; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
    mr_process_tree_fini(&s->tree);
    mr_disks_fini(&s->disks);
    mr_nets_fini(&s->nets);
    mr_text_fini(&s->text);
    free(s->proc_root);
    free(s->sys_root);
    free(s);
}
