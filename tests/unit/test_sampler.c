/* test_sampler.c - the sampler over /proc trees made here: wraps, resets, devices that come and go,
 * thousands of them, garbage, files that are missing; and its thread on the real one. */
#include "unit.h"

#include "clock.h"
#include "json.h"
#include "sample_columns.h"
#include "sample_csv.h"
#include "sample_series.h"
#include "sampler.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAT                                                                                       \
    "cpu  100 10 50 1000 20 1 2 3 0 0\ncpu0 100 10 50 1000 20 1 2 3 0 0\nintr 1 2 3\nctxt 500\n"   \
    "procs_running 2\nprocs_blocked 1\n"
#define MEMINFO                                                                                    \
    "MemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 700 kB\nBuffers: 10 kB\nCached: 200 kB\n"   \
    "SwapCached: 5 kB\nDirty: 30 kB\nWriteback: 7 kB\n"
#define NET_HEADING                                                                                \
    "Inter-|   Receive    |  Transmit\n face |bytes packets errs|bytes packets errs\n"
#define PSI "some avg10=1.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0 avg60=0 total=400\n"

static void whole_proc(struct tempdir *t)
{
    tempdir_text(t, "diskstats", "   8 0 sda 10 1 80 5 20 2 160 9 0 12 14 1 0 8 2 3 4\n");
    tempdir_text(t, "stat", STAT);
    tempdir_text(t, "meminfo", MEMINFO);
    tempdir_text(t, "net/dev", NET_HEADING "  eth0: 1000 10 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n");
    tempdir_text(t, "pressure/cpu", PSI);
    tempdir_text(t, "pressure/io", PSI);
    tempdir_text(t, "pressure/memory", PSI);
}

static struct mr_sampler *opened(struct tempdir *t, struct mr_sampler_opts o)
{
    struct mr_sampler *s = NULL;
    struct mr_error err = {0};
    o.proc_root = o.sys_root = t->path;
    if (mr_sampler_open(&o, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static const struct mr_disk *disk(const struct mr_system_sample *s, const char *name)
{
    for (unsigned i = 0; i < s->n_disks; i++)
        if (!strcmp(s->disks[i].name, name))
            return &s->disks[i];
    fail_msg("no device %s", name);
    return NULL;
}

static void an_interval_is_the_difference_of_two_readings(void **state)
{
    struct tempdir *t = *state;
    whole_proc(t);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    tempdir_text(t, "diskstats",
                 "   8 0 sda 110 11 880 1005 70 12 4160 209 3 512 1214 3 0 24 4 9 9\n");
    const struct mr_disk *d = disk(mr_sampler_take(s), "sda");
    const struct mr_disk_side *r = &d->last.side[MR_DISK_READ], *w = &d->last.side[MR_DISK_WRITE],
                              *c = &d->last.side[MR_DISK_DISCARD];
    assert_true(r->ios == 100 && r->merged == 10 && r->sectors == 800 && r->ms == 1000);
    assert_true(w->ios == 50 && w->merged == 10 && w->sectors == 4000 && w->ms == 200);
    assert_true(c->ios == 2 && c->merged == 0 && c->sectors == 16 && c->ms == 2);
    assert_true(d->last.busy_ms == 500 && d->last.weighted_ms == 1200);
    assert_true(d->present && d->used && !d->partition);
    /* Nothing moves: the interval is zero, the totals stay. */
    d = disk(mr_sampler_take(s), "sda");
    assert_true(d->last.side[MR_DISK_READ].ios == 0 && d->total.side[MR_DISK_READ].ios == 100);
    mr_sampler_close(s);
}

static void columns_follow_the_formulas(void **state)
{
    (void)state;
    struct mr_disk_counts c = {
        .side = {[MR_DISK_READ] = {200, 20, 4000, 1600}, [MR_DISK_WRITE] = {50, 0, 800, 100}},
        .busy_ms = 1500,
        .weighted_ms = 1800};
    struct mr_disk_rates r;
    mr_disk_rates_of(&c, 2.0, &r);
    const struct mr_disk_side_rates *read = &r.side[MR_DISK_READ];
    assert_true(read->kbytes == 1000 && read->merged == 10 && read->ios == 100);
    assert_true(read->size == 10 && read->wait == 8 && read->qlen == 0.8);
    assert_true(r.qlen == 0.9 && r.svctim == 6 && r.util == 75);
    c = (struct mr_disk_counts){.busy_ms = 12};
    mr_disk_rates_of(&c, 0.010, &r); /* more ticks than time, and no request ended */
    assert_true(r.util == 100 && r.svctim == 0 && r.side[0].size == 0 && r.side[0].wait == 0);
}

/* One more reading of one device; the row. */
static struct mr_disk reading(struct mr_disks *d, const char *text)
{
    assert_int_equal(mr_disks_update(d, text), 0);
    return d->row[0];
}

static void times_wrap_at_32_bits_on_every_kernel(void **state)
{
    struct mr_disks d;
    (void)state;
    mr_disks_init(&d, "/nowhere", 64);
    reading(&d, "8 0 sda 1 0 8 4294967290 1 0 8 0 0 4294967295 4294000000\n");
    struct mr_disk k = reading(&d, "8 0 sda 2 0 16 10 1 0 8 0 0 99 32704\n");
    assert_int_equal(k.last.side[0].ios, 1);
    assert_int_equal(k.last.side[0].ms, 16);
    assert_int_equal(k.last.busy_ms, 100);
    assert_int_equal(k.last.weighted_ms, 1000000);
    k = reading(&d, "8 0 sda 3 0 24 12 1 0 8 0 0 98 32704\n"); /* a time that steps back */
    assert_true(k.last.busy_ms == 0 && k.last.side[0].ms == 2 && k.last.side[0].ios == 1);
    mr_disks_fini(&d);
}

static void a_counter_that_falls_is_a_wrap_on_32_bits_and_a_new_device_on_64(void **state)
{
    (void)state;
    for (unsigned bits = 32; bits <= 64; bits += 32) {
        struct mr_disks d;
        mr_disks_init(&d, "/nowhere", bits);
        reading(&d, "8 0 sda 5 0 4294967288 7 0 0 0 0 0 50 50\n");
        struct mr_disk k = reading(&d, "8 0 sda 6 0 8 9 0 0 0 0 0 52 53\n");
        assert_int_equal(k.last.side[0].sectors, bits == 32 ? 16 : 8);
        assert_int_equal(k.last.side[0].ios, bits == 32 ? 1 : 6);
        assert_int_equal(k.last.busy_ms, bits == 32 ? 2 : 52);
        /* Far back: a new device under the old name on any kernel; it began at zero. */
        k = reading(&d, "8 0 sda 1 0 4 2 0 0 0 0 0 3 3\n");
        assert_true(k.last.side[0].ios == 1 && k.last.side[0].sectors == 4);
        assert_true(k.last.side[0].ms == 2 && k.last.busy_ms == 3);
        mr_disks_fini(&d);
    }
}

static void counters_beyond_32_bits_keep_their_bits(void **state)
{
    struct mr_disks d;
    (void)state;
    mr_disks_init(&d, "/nowhere", 0);
    reading(&d, "8 0 sda 5 0 1099511627776 7 0 0 0 0 0 50 50\n");
    struct mr_disk k = reading(&d, "8 0 sda 6 0 1108101562368 9 0 0 0 0 0 52 53\n");
    assert_true(k.last.side[0].sectors == 8589934592u);
    mr_disks_fini(&d);
}

static void a_device_may_vanish_come_back_and_be_new(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "diskstats",
                 "7 0 loop0 10 0 80 1 0 0 0 0 0 1 1\n8 0 sda 5 0 40 1 0 0 0 0 0 1 1\n");
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    tempdir_text(t, "diskstats", "8 0 sda 6 0 48 1 0 0 0 0 0 1 1\n");
    const struct mr_system_sample *m = mr_sampler_take(s);
    assert_false(disk(m, "loop0")->present);
    assert_int_equal(disk(m, "loop0")->last.side[0].ios, 0);
    assert_int_equal(disk(m, "sda")->last.side[0].ios, 1);
    unsigned sda = (unsigned)(disk(m, "sda") - m->disks);
    /* Back with higher counters than before: still a new one, that did all this by now. */
    tempdir_text(t, "diskstats",
                 "7 0 loop0 12 0 96 1 0 0 0 0 0 1 1\n8 0 sda 6 0 48 1 0 0 0 0 0 1 1\n"
                 "9 0 md0 3 0 24 1 0 0 0 0 0 1 1\n");
    m = mr_sampler_take(s);
    assert_true(disk(m, "loop0")->present && disk(m, "loop0")->last.side[0].ios == 12);
    assert_int_equal(disk(m, "md0")->last.side[0].ios, 3);
    assert_ptr_equal(disk(m, "sda"), &m->disks[sda]); /* rows keep their index */
    mr_sampler_close(s);
}

static void garbage_is_passed_over_and_never_becomes_a_number(void **state)
{
    struct mr_disks d;
    (void)state;
    mr_disks_init(&d, "/nowhere", 64);
    assert_int_equal(mr_disks_update(&d, "what is this\n"), -EBADMSG);
    assert_int_equal(mr_disks_update(&d, "\n\n"), -EBADMSG);
    assert_int_equal(mr_disks_update(&d, "8 0 sda 1 2 3\n"), -EBADMSG); /* too short */
    assert_int_equal(d.n, 0);
    assert_int_equal(
        mr_disks_update(&d,
                        "8 0 sda 500 0 9 9 9 9 9 9 0 9 9\n8 16 s\xff 99999999999999999999999 0\n"),
        0);
    assert_true(d.n == 1 && d.bad_lines == 1);
    /* A damaged reading does not make the others vanish ... */
    assert_int_equal(mr_disks_update(&d, "8 16 sdb 700 0 9 9 9 9 9 9 0 9 9\n-8 0 sda 501\n"), 0);
    assert_true(d.row[0].present && d.row[0].last.side[0].ios == 0);
    /* ... and what is new after one may be old: it counts from now. */
    assert_int_equal(d.row[1].last.side[0].ios, 0);
    assert_int_equal(mr_disks_update(&d, "8 0 sda 502 0 9 9 9 9 9 9 0 9 9\n"
                                         "8 16 sdb 701 0 9 9 9 9 9 9 0 9 9\n"
                                         "8 16 sdb 999 0 9 9 9 9 9 9 0 9 9\n"),
                     0);
    assert_true(d.row[0].last.side[0].ios == 2 && d.row[1].last.side[0].ios == 1);
    mr_disks_fini(&d);
}

static void a_source_may_fail_for_one_sample(void **state)
{
    struct tempdir *t = *state;
    whole_proc(t);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    tempdir_text(t, "diskstats", "\1\2\3 garbage");
    tempdir_text(t, "stat", "cpu  x\n");
    tempdir_text(t, "meminfo", "");
    tempdir_text(t, "net/dev", "no colon here\n");
    tempdir_text(t, "pressure/io", "some avg10=1 total=banana\n");
    const struct mr_system_sample *m = mr_sampler_take(s);
    assert_int_equal(m->known, MR_KNOWN_PRESSURE << MR_PRESSURE_CPU | MR_KNOWN_PRESSURE
                                                                          << MR_PRESSURE_MEMORY);
    assert_true(disk(m, "sda")->present);
    whole_proc(t);
    tempdir_text(t, "stat", "cpu  110 10 50 1030 20 1 2 3 0 0\nctxt 700\n");
    tempdir_text(t, "pressure/io", "some total=51000\nfull total=400\n");
    tempdir_text(t, "diskstats", "   8 0 sda 17 1 80 5 20 2 160 9 0 12 14 1 0 8 2 3 4\n");
    /* What it says now belongs to two intervals: to the totals, but it is no rate. */
    m = mr_sampler_take(s);
    assert_false(m->known & (MR_KNOWN_CPU | MR_KNOWN_DISKS | MR_KNOWN_NET | MR_KNOWN_MEMORY));
    assert_int_equal(m->total.cpu.ticks[MR_CPU_USER], 10);
    assert_int_equal(m->total.pressure[MR_PRESSURE_IO].some_us, 50000);
    assert_true(disk(m, "sda")->total.side[0].ios == 7 && disk(m, "sda")->last.side[0].ios == 0);
    m = mr_sampler_take(s);
    assert_true(m->known & MR_KNOWN_CPU && m->known & MR_KNOWN_DISKS && m->known & MR_KNOWN_NET);
    mr_sampler_close(s);
}

static void system_columns_are_shares_levels_and_rates(void **state)
{
    struct tempdir *t = *state;
    struct mr_system_rates r;
    whole_proc(t);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    /* Idle falls, as it does on some machines: it did not move. */
    tempdir_text(t, "stat", "cpu  130 20 70 990 50 4 5 7 0 0\nctxt 700\nprocs_blocked 4\n");
    tempdir_text(t, "net/dev",
                 NET_HEADING "  eth0:3048 12 0 0 0 0 0 0 400 9 0 0 0 0 0 0\n"
                             "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n");
    const struct mr_system_sample *m = mr_sampler_take(s);
    mr_system_rates_of(m, &m->last, m->known, 2.0, &r);
    assert_true(r.cpu_user == 40 && r.cpu_system == 26 && r.cpu_iowait == 30 && r.cpu_steal == 4);
    assert_true(r.cpu_idle == 0 && r.switches == 100 && r.tasks_blocked == 4);
    assert_true(r.free_bytes == 400 * 1024 && r.cached_bytes == 200 * 1024);
    assert_true(r.dirty_bytes == 30 * 1024 && r.writeback_bytes == 7 * 1024);
    assert_true(r.io_some == 0 && isnan(r.read_bytes) && isnan(r.processes));
    /* One counter of eth0 fell, so it is a new interface, and so is lo. */
    assert_true(m->n_nets == 2 && m->nets[0].last[MR_NET_RECEIVE].bytes == 3048);
    assert_true(m->nets[0].last[MR_NET_TRANSMIT].packets == 9 && m->nets[1].last[0].bytes == 7);
    mr_sampler_close(s);
}

static void what_is_missing_is_not_known(void **state)
{
    struct tempdir *t = *state;
    struct mr_system_rates r;
    whole_proc(t);
    assert_int_equal(unlink(tempdir_path(t, "pressure/io")), 0);
    assert_int_equal(unlink(tempdir_path(t, "diskstats")), 0);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    const struct mr_system_sample *m = mr_sampler_take(s);
    assert_false(m->known & (MR_KNOWN_DISKS | MR_KNOWN_PRESSURE << MR_PRESSURE_IO));
    assert_true(m->n_disks == 0);
    mr_system_rates_of(m, &m->last, m->known, 1.0, &r);
    assert_true(isnan(r.io_some) && isnan(r.io_full) && r.cpu_some == 0);
    mr_sampler_close(s);
}

static void what_is_not_asked_for_is_not_read(void **state)
{
    struct tempdir *t = *state;
    whole_proc(t);
    struct mr_sampler *s =
        opened(t, (struct mr_sampler_opts){.only = MR_KNOWN_DISKS | MR_KNOWN_CPU});
    assert_int_equal(mr_sampler_take(s)->known, MR_KNOWN_DISKS | MR_KNOWN_CPU);
    mr_sampler_close(s);
    s = opened(t, (struct mr_sampler_opts){.only = MR_KNOWN_PRESSURE << MR_PRESSURE_IO});
    assert_int_equal(mr_sampler_take(s)->known, MR_KNOWN_PRESSURE << MR_PRESSURE_IO);
    mr_sampler_close(s);
}

static void errors_name_the_reason(void **state)
{
    struct tempdir *t = *state;
    struct mr_sampler *s = NULL;
    struct mr_error err = {0};
    struct mr_sampler_opts o = {.proc_root = t->path};
    assert_int_equal(mr_sampler_open(&o, &s, &err), -ENOENT);
    assert_non_null(strstr(err.text, "mounted proc file system"));
    tempdir_text(t, "stat", "nonsense");
    err = (struct mr_error){0};
    assert_int_equal(mr_sampler_open(&o, &s, &err), -ENODATA);
    tempdir_text(t, "stat", STAT);
    o.process = 4711;
    err = (struct mr_error){0};
    assert_int_equal(mr_sampler_open(&o, &s, &err), -ESRCH);
    assert_non_null(strstr(err.text, "4711/io"));
    o.process = 0;
    o.interval_ns = MR_SAMPLER_MIN_NS - 1;
    assert_int_equal(mr_sampler_open(&o, &s, NULL), -EINVAL);
    assert_null(s);
    mr_sampler_close(NULL);
}

static void thousands_of_devices_are_followed_in_any_order(void **state)
{
    enum { N = 5000, LINE = 96 };
    struct tempdir *t = *state;
    char *text = malloc(N * LINE + 1);
    struct mr_sampler *s = NULL;
    for (unsigned round = 0; round < 4; round++) {
        size_t len = 0;
        for (unsigned i = 0; i < N; i++) {
            unsigned k = round == 2 ? N - 1 - i : i; /* once the other way round */
            if (round == 3 && k % 3 == 0)            /* and then every third is gone */
                continue;
            len += (size_t)snprintf(text + len, LINE, "%u %u dev%u %u 0 %u 1 0 0 0 0 0 1 1\n",
                                    k / 256, k % 256, k, 1000 + round * (k + 1), 8 * round * k);
        }
        tempdir_write(t, "diskstats", text, len);
        if (!s) {
            s = opened(t, (struct mr_sampler_opts){0});
            continue;
        }
        const struct mr_system_sample *m = mr_sampler_take(s);
        assert_int_equal(m->n_disks, N);
        for (unsigned k = 0; k < N; k++) {
            int gone = round == 3 && k % 3 == 0;
            assert_int_equal(m->disks[k].last.side[0].ios, gone ? 0 : k + 1);
            assert_int_equal(m->disks[k].present, !gone);
        }
    }
    mr_sampler_close(s);
    free(text);
}

static void partitions_are_known_by_sys(void **state)
{
    struct tempdir *t = *state;
    tempdir_text(t, "dev/block/8:1/partition", "1\n");
    tempdir_text(t, "diskstats", "8 0 sda 1 0 8 1 0 0 0 0 0 1 1\n8 1 sda1 1 0 8 1 0 0 0 0 0 1 1\n");
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    tempdir_text(t, "diskstats", "8 0 sda 2 0 8 1 0 0 0 0 0 1 1\n8 1 sda1 2 0 8 1 0 0 0 0 0 1 1\n");
    const struct mr_system_sample *m = mr_sampler_take(s);
    assert_true(mr_disk_chosen(disk(m, "sda"), NULL) && !mr_disk_chosen(disk(m, "sda1"), NULL));
    assert_true(mr_disk_chosen(disk(m, "sda1"), "nvme0n1,/dev/sda1"));
    assert_true(!mr_disk_chosen(disk(m, "sda"), "sda1,sd,sdaa") &&
                !mr_disk_chosen(disk(m, "sda"), ",/dev/,"));
    mr_sampler_close(s);
}

#define IO(rchar, read, write)                                                                     \
    "rchar: " rchar "\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: " read "\nwrite_bytes: " write    \
    "\ncancelled_write_bytes: 0\n"

static void process(struct tempdir *t, unsigned pid, unsigned parent, const char *io)
{
    char name[64], text[128];
    snprintf(name, sizeof name, "%u/stat", pid);
    snprintf(text, sizeof text, "%u (a ) (name) S %u 1 1 0\n", pid, parent);
    tempdir_text(t, name, text);
    snprintf(name, sizeof name, "%u/io", pid);
    tempdir_text(t, name, io);
}

static void forget_process(struct tempdir *t, unsigned pid)
{
    char name[64];
    snprintf(name, sizeof name, "%u/stat", pid);
    unlink(tempdir_path(t, name));
    snprintf(name, sizeof name, "%u/io", pid);
    unlink(tempdir_path(t, name));
}

static void a_tree_of_processes_is_summed_and_never_falls(void **state)
{
    struct tempdir *t = *state;
    struct mr_process_tree tree = {0};
    struct mr_text text = {0};
    struct mr_process_io io;
    process(t, 90, 1, IO("100", "10", "0"));
    process(t, 40, 95, IO("1", "1", "1")); /* a grandchild whose number is smaller */
    process(t, 95, 90, IO("1000", "0", "7"));
    process(t, 96, 1, IO("5000", "5000", "5000")); /* a stranger */
    tempdir_text(t, "97/stat", "97 no parentheses\n");
    assert_int_equal(mr_process_tree_init(&tree, t->path, 90), 0);
    assert_int_equal(mr_process_tree_read(&tree, &text, 1, 1, &io), 0);
    assert_int_equal(mr_process_tree_size(&tree), 3);
    assert_int_equal(io.count[MR_IO_RCHAR], 1101);
    assert_true(io.count[MR_IO_READ_BYTES] == 11 && io.count[MR_IO_WRITE_BYTES] == 8);
    /* The child ends; the parent has its counters a moment later. */
    forget_process(t, 40);
    assert_int_equal(mr_process_tree_read(&tree, &text, 2, 1, &io), 0);
    assert_int_equal(io.count[MR_IO_RCHAR], 1101);
    process(t, 95, 90, IO("1005", "1", "8"));
    process(t, 98, 95, IO("20", "0", "0"));
    assert_int_equal(mr_process_tree_read(&tree, &text, 3, 1, &io), 0);
    assert_int_equal(io.count[MR_IO_RCHAR], 1125);
    /* The root's file becomes garbage: no reading. */
    tempdir_text(t, "90/io", "rchar: 1\n");
    assert_int_equal(mr_process_tree_read(&tree, &text, 4, 1, &io), -EBADMSG);
    assert_int_equal(io.count[MR_IO_RCHAR], 1125);
    mr_process_tree_fini(&tree);
    mr_text_fini(&text);
}

/* A real child that writes, and a grandchild; both are counted to the byte once they have ended. */
static void what_children_did_is_counted_to_the_byte(void **state)
{
    enum { N = 100000 };
    struct tempdir *t = *state;
    struct mr_sampler *s = NULL;
    struct mr_error err = {0};
    int go[2];
    const char *path = tempdir_path(t, "out");
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte, *bytes = calloc(1, N);
        if (read(go[0], &byte, 1) != 1)
            _exit(1);
        pid_t grandchild = fork();
        FILE *f = fopen(path, "ab");
        setvbuf(f, NULL, _IONBF, 0);
        fwrite(bytes, 1, N, f);
        fclose(f);
        if (grandchild > 0)
            waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    int r = mr_sampler_open(&(struct mr_sampler_opts){.process = pid}, &s, &err);
    assert_int_equal(write(go[1], "", 1), 1);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    close(go[0]);
    close(go[1]);
    if (!r) {
        const struct mr_system_sample *m = mr_sampler_take(s);
        assert_true(m->known & MR_KNOWN_PROCESS);
        assert_int_equal(m->total.process.count[MR_IO_WCHAR], 2 * N);
        assert_int_equal(m->total.process.count[MR_IO_SYSCW], 2);
        waitpid(pid, NULL, 0);
        m = mr_sampler_take(s); /* its number is free now */
        assert_false(m->known & MR_KNOWN_PROCESS);
        assert_int_equal(m->total.process.count[MR_IO_WCHAR], 2 * N);
        mr_sampler_close(s);
        return;
    }
    waitpid(pid, NULL, 0);
    print_message("%s\n", err.text);
    skip(); /* a kernel without I/O accounting */
}

struct seen {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    unsigned n, n_final;
    uint64_t number, at_ns, sum_ns, since_ns;
};

static void note(void *ctx, const struct mr_system_sample *s)
{
    struct seen *k = ctx;
    pthread_mutex_lock(&k->mu);
    k->n++;
    k->n_final += (unsigned)s->final;
    assert_true(s->number == k->number + 1 && s->at_ns > k->at_ns);
    k->number = s->number;
    k->at_ns = s->at_ns;
    k->sum_ns += s->interval_ns;
    k->since_ns = s->since_open_ns;
    pthread_cond_signal(&k->changed);
    pthread_mutex_unlock(&k->mu);
}

static void wait_for(struct seen *k, unsigned n)
{
    pthread_mutex_lock(&k->mu);
    while (k->n < n)
        pthread_cond_wait(&k->changed, &k->mu);
    pthread_mutex_unlock(&k->mu);
}

static void the_thread_samples_until_it_is_closed(void **state)
{
    (void)state;
    struct seen k = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
    struct mr_sampler *s = NULL;
    struct mr_sampler_opts o = {.interval_ns = MR_SAMPLER_MIN_NS, .on_sample = note, .ctx = &k};
    assert_int_equal(mr_sampler_open(&o, &s, NULL), 0);
    wait_for(&k, 5);
    mr_sampler_close(s);
    assert_true(k.n >= 6 && k.n_final == 1);
    assert_true(k.sum_ns == k.since_ns); /* intervals leave nothing out */
    /* Closed long before the first sample is due: at once, with the last one. */
    struct seen late = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
    o = (struct mr_sampler_opts){.interval_ns = 3600000000000u, .on_sample = note, .ctx = &late};
    assert_int_equal(mr_sampler_open(&o, &s, NULL), 0);
    mr_sampler_close(s);
    assert_true(late.n == 1 && late.n_final == 1);
}

static void a_forked_child_may_close_what_it_inherited(void **state)
{
    (void)state;
    struct seen k = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
    struct mr_sampler *s = NULL;
    struct mr_sampler_opts o = {.interval_ns = MR_SAMPLER_MIN_NS, .on_sample = note, .ctx = &k};
    assert_int_equal(mr_sampler_open(&o, &s, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        mr_sampler_close(s); /* there is no thread here to wait for */
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    wait_for(&k, 2); /* and ours goes on */
    mr_sampler_close(s);
}

static void csv_has_a_row_for_each_thing_and_as_many_fields_as_the_heading(void **state)
{
    struct tempdir *t = *state;
    char *text = NULL;
    size_t len = 0;
    whole_proc(t);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    tempdir_text(t, "diskstats", "8 0 sda 20 1 880 5 20 2 160 9 0 12 14 1 0 8 2 3 4\n");
    tempdir_text(t, "net/dev", NET_HEADING "  eth0: 3048 12 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n");
    FILE *f = open_memstream(&text, &len);
    mr_sample_csv_heading(f);
    mr_sample_csv_rows(f, mr_sampler_take(s), NULL);
    fclose(f);
    unsigned rows = 0, commas[8] = {0};
    for (const char *p = text; *p; p++) {
        commas[rows] += *p == ',';
        rows += *p == '\n';
    }
    assert_int_equal(rows, 6); /* heading, system, sda read and write, eth0 in and out */
    for (unsigned i = 1; i < rows; i++)
        assert_int_equal(commas[i], commas[0]);
    assert_non_null(strstr(text, ",disk,sda,read,"));
    assert_non_null(strstr(text, ",net,eth0,receive,"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "discard"));
    free(text);
    mr_sampler_close(s);
}

static void a_series_becomes_columns_with_null_before_a_device_came(void **state)
{
    struct tempdir *t = *state;
    struct mr_sample_series *k = mr_sample_series_new(NULL, 0);
    struct mr_json *o = mr_json_object();
    whole_proc(t);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    const struct mr_system_sample *m = NULL;
    for (unsigned i = 0; i < 100; i++) { /* more than the first block of a column */
        char text[256];
        snprintf(text, sizeof text, "8 0 sda %u 1 80 5 20 2 160 9 0 12 14 1 0 8 2 3 4\n%s", 10 + i,
                 i < 90 ? "" : "8 16 sdb 4 0 32 5 0 0 0 0 0 1 1\n");
        tempdir_text(t, "diskstats", text);
        m = mr_sampler_take(s);
        mr_sample_series_add(k, m);
    }
    mr_sample_series_json(k, m, o);
    assert_int_equal(mr_json_len(mr_json_at(o, "series.time_s")), 100);
    assert_int_equal(mr_json_len(mr_json_at(o, "series.devices.sdb.read.ios_per_s")), 100);
    assert_true(mr_json_is_null(mr_json_at(o, "series.devices.sdb.read.ios_per_s.89")));
    assert_true(mr_json_number(mr_json_at(o, "series.devices.sdb.read.ios_per_s.90")) > 0);
    assert_true(mr_json_number(mr_json_at(o, "devices.1.read.bytes")) == 32 * 512);
    assert_true(mr_json_number(mr_json_at(o, "devices.0.read.ios")) == 99);
    assert_true(mr_json_number(mr_json_at(o, "samples")) == 100);
    assert_true(mr_json_is_null(mr_json_at(o, "process")));
    mr_json_free(o);
    mr_sample_series_free(k);
    mr_sampler_close(s);
}

static void a_series_has_a_limit_and_totals_have_none(void **state)
{
    struct tempdir *t = *state;
    struct mr_sample_series *k = mr_sample_series_new("sda", 300);
    struct mr_json *o = mr_json_object(), *whole = mr_json_object();
    whole_proc(t);
    struct mr_sampler *s = opened(t, (struct mr_sampler_opts){0});
    for (unsigned i = 0; i < 20; i++)
        mr_sample_series_add(k, mr_sampler_take(s));
    mr_sample_series_json(k, mr_sampler_take(s), o);
    size_t n = mr_json_len(mr_json_at(o, "series.time_s"));
    assert_true(n > 1 && n < 12);
    assert_true(mr_json_number(mr_json_at(o, "samples")) == 21);
    assert_int_equal(mr_json_len(mr_json_at(o, "devices")), 1);
    mr_json_set(whole, "o", o);
    FILE *f = tmpfile();
    char text[65536];
    assert_int_equal(mr_json_write(whole, fileno(f)), 0);
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    assert_non_null(strstr(text, "\"truncated\": true"));
    fclose(f);
    mr_json_free(whole);
    mr_sample_series_free(k);
    mr_sampler_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TEMPDIR(an_interval_is_the_difference_of_two_readings),
        cmocka_unit_test(columns_follow_the_formulas),
        cmocka_unit_test(times_wrap_at_32_bits_on_every_kernel),
        cmocka_unit_test(a_counter_that_falls_is_a_wrap_on_32_bits_and_a_new_device_on_64),
        cmocka_unit_test(counters_beyond_32_bits_keep_their_bits),
        WITH_TEMPDIR(a_device_may_vanish_come_back_and_be_new),
        cmocka_unit_test(garbage_is_passed_over_and_never_becomes_a_number),
        WITH_TEMPDIR(a_source_may_fail_for_one_sample),
        WITH_TEMPDIR(system_columns_are_shares_levels_and_rates),
        WITH_TEMPDIR(what_is_missing_is_not_known),
        WITH_TEMPDIR(what_is_not_asked_for_is_not_read),
        WITH_TEMPDIR(errors_name_the_reason),
        WITH_TEMPDIR(thousands_of_devices_are_followed_in_any_order),
        WITH_TEMPDIR(partitions_are_known_by_sys),
        WITH_TEMPDIR(a_tree_of_processes_is_summed_and_never_falls),
        WITH_TEMPDIR(what_children_did_is_counted_to_the_byte),
        cmocka_unit_test(the_thread_samples_until_it_is_closed),
        cmocka_unit_test(a_forked_child_may_close_what_it_inherited),
        WITH_TEMPDIR(csv_has_a_row_for_each_thing_and_as_many_fields_as_the_heading),
        WITH_TEMPDIR(a_series_becomes_columns_with_null_before_a_device_came),
        WITH_TEMPDIR(a_series_has_a_limit_and_totals_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
