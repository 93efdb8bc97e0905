/* test_device.c - the model of an emulated device, on a clock that the tests move themselves. */
#include "unit.h"

#include "clock.h"
#include "device.h"
#include "draw.h"
#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MB  1000000u
#define MS  1000000u
#define MIB ((uint64_t)1 << 20)
#define T0  ((uint64_t)5000000000u) /* a moment to begin at */

/* 100 MB/s each way (10 ns a byte) and nothing else. */
static struct mr_device_profile plain(void)
{
    return (struct mr_device_profile){.name = "plain",
                                      .read_bytes_per_s = 100 * MB,
                                      .write_bytes_per_s = 100 * MB,
                                      .queue_depth = 32,
                                      .targets = 1,
                                      .stripe_bytes = MIB};
}

static struct mr_device *make(const struct mr_device_profile *p)
{
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    if (mr_device_new(p, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static struct mr_device *open_builtin(const char *name)
{
    struct mr_device *d = NULL;
    struct mr_error err = {0};
    if (mr_device_open(name, &d, &err))
        fail_msg("%s", err.text);
    return d;
}

static struct mr_device_place at(uint64_t physical)
{
    return (struct mr_device_place){.file = 1, .physical = physical, .has_physical = 1};
}

static uint64_t read_at(struct mr_device *d, uint64_t now, uint64_t physical, uint64_t bytes)
{
    struct mr_device_place place = at(physical);
    return mr_device_reserve_at(d, now, MR_DEV_READ, &place, bytes);
}

/* The i-th of some random numbers below n. */
static uint64_t below(uint64_t seed, uint64_t i, uint64_t n)
{
    return mr_below(mr_draw(seed, MR_DRAW_SYNTHETIC, i, 0, 0), n);
}

/* ---- bandwidth ---- */

/* `depth` clients, each of which asks again the moment it was served; the next to ask is the one
 * that was served first.  Checks after each answer that no more than the limit was delivered;
 * returns the rate reached, as a share of it. */
static double closed_loop(struct mr_device *d, unsigned depth, unsigned n_ops, uint64_t block,
                          int whole_files)
{
    uint64_t due[64], delivered = 0, last = T0;
    double limit = (double)mr_device_profile_of(d)->read_bytes_per_s;
    for (unsigned i = 0; i < depth; i++)
        due[i] = T0;
    for (unsigned n = 0; n < n_ops; n++) {
        unsigned first = 0;
        for (unsigned i = 1; i < depth; i++)
            first = due[i] < due[first] ? i : first;
        if (n >= depth) {
            delivered += block;
            last = due[first];
            assert_true((double)delivered <= limit * (double)(last - T0) / 1e9);
        }
        struct mr_device_place place = {.file = whole_files ? 1000 + below(7, n, 100000) : 1,
                                        .offset = whole_files ? 0 : n * block};
        due[first] = whole_files ? mr_device_reserve_file(d, due[first], &place, block)
                                 : mr_device_reserve_at(d, due[first], MR_DEV_READ, &place, block);
    }
    return (double)delivered / ((double)(last - T0) / 1e9) / limit;
}

static void no_number_of_outstanding_reads_exceeds_the_limit(void **state)
{
    static const unsigned depths[] = {1, 8, 64};
    const char *name;
    (void)state;
    for (unsigned i = 0; (name = mr_device_profile_builtin(i, NULL)); i++)
        for (unsigned k = 0; k < 3; k++)
            for (int files = 0; files < 2; files++) {
                struct mr_device *d = open_builtin(name);
                double share = closed_loop(d, depths[k], 3000, files ? 112000 : MIB, files);
                assert_true(share <= 1.0);
                if (!files && depths[k] == 64) /* latency is hidden: it must be reached */
                    assert_true(share > 0.97);
                mr_device_close(d);
            }
}

static void a_device_without_latency_is_used_fully_by_any_depth(void **state)
{
    static const unsigned depths[] = {1, 8, 64};
    struct mr_device_profile p = plain();
    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        struct mr_device *d = make(&p);
        double share = closed_loop(d, depths[k], 3000, 112000, 1);
        assert_true(share > 0.97 && share <= 1.0);
        mr_device_close(d);
    }
}

static void latency_alone_is_what_one_reader_waits_for_and_many_hide(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.read_latency_ns = 10 * MS; /* 1 MB takes 10 ms as well */
    struct mr_device *d = make(&p);
    assert_int_equal(read_at(d, T0, 0, MB), T0 + 20 * MS);
    assert_int_equal(read_at(d, T0, MB, MB), T0 + 30 * MS);
    assert_int_equal(read_at(d, T0 + 100 * MS, 2 * MB, MB), T0 + 120 * MS); /* idle since */
    mr_device_close(d);
}

static void reads_and_writes_share_the_time_of_a_target(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.write_bytes_per_s = 50 * MB;
    struct mr_device *d = make(&p);
    struct mr_device_place place = at(0);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_WRITE, &place, MB), T0 + 20 * MS);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_READ, &place, MB), T0 + 30 * MS);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_WRITE, &place, MB), T0 + 50 * MS);
    mr_device_close(d);
}

static void a_fraction_of_a_nanosecond_is_rounded_up(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.read_bytes_per_s = 3000000000u;
    struct mr_device *d = make(&p);
    assert_int_equal(read_at(d, T0, 0, 1), T0 + 1);
    assert_int_equal(read_at(d, T0, 1, 4), T0 + 3);
    mr_device_close(d);
}

/* ---- locality ---- */

static struct mr_device_profile seeking(void)
{
    struct mr_device_profile p = plain();
    p.seek_ns = 8 * MS;
    return p;
}

static void a_read_that_follows_pays_no_seek(void **state)
{
    /* where it begins, relative to the end of the one before; whether that costs a seek */
    static const struct {
        int64_t begins;
        int seek;
    } cases[] = {{0, 0},       {1, 0},  {4096, 0},          {MIB, 0},
                 {MIB + 1, 1}, {-1, 1}, {-(int64_t)MIB, 1}, {1 << 30, 1}};
    struct mr_device_profile p = seeking();
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct mr_device *d = make(&p);
        uint64_t first = read_at(d, T0, 100 * MIB, MB);
        assert_int_equal(first, T0 + 18 * MS); /* the first always seeks */
        uint64_t second = read_at(d, first, 100 * MIB + MB + (uint64_t)cases[i].begins, MB);
        assert_int_equal(second - first, (cases[i].seek ? 18 : 10) * MS);
        mr_device_close(d);
    }
}

static void without_addresses_inodes_tell_what_follows(void **state)
{
    static const struct {
        uint64_t file, offset;
        int seek;
    } cases[] = {
        {50, 1000, 0},                   /* the same file, read on */
        {50, 1000 + MIB, 0},             /* and a bit further */
        {50, 1001 + MIB, 1},             /* too far */
        {50, 0, 1},                      /* back */
        {51, 0, 0},                      /* the next file */
        {58, 0, 0},          {59, 0, 1}, /* a near one, a far one */
        {49, 0, 1},                      /* one before */
        {51, 4096, 1},                   /* the middle of the next */
        {0, 0, 1},                       /* who knows where */
    };
    struct mr_device_profile p = seeking();
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
        struct mr_device *d = make(&p);
        struct mr_device_place a = {.file = 50},
                               b = {.file = cases[i].file, .offset = cases[i].offset};
        uint64_t first = mr_device_reserve_at(d, T0, MR_DEV_READ, &a, 1000);
        uint64_t second = mr_device_reserve_at(d, first, MR_DEV_READ, &b, 1000);
        assert_int_equal(second - first, 10000 + (cases[i].seek ? 8 * MS : 0));
        mr_device_close(d);
    }
}

static void what_waits_is_sorted_so_neighbours_may_arrive_out_of_order(void **state)
{
    struct mr_device_profile p = seeking();
    (void)state;
    struct mr_device *d = make(&p);
    assert_int_equal(read_at(d, T0, 0, MB), T0 + 18 * MS);
    assert_int_equal(read_at(d, T0, 2 * MB, MB), T0 + 28 * MS);
    assert_int_equal(read_at(d, T0, MB, MB), T0 + 38 * MS);          /* between the two */
    assert_int_equal(read_at(d, T0, 3 * MB, MB), T0 + 48 * MS);      /* behind the second */
    assert_int_equal(read_at(d, T0, 500 * MB, 0), T0 + 56 * MS);     /* elsewhere */
    assert_int_equal(read_at(d, T0, 3200000, 0), T0 + 64 * MS);      /* too far behind one */
    assert_int_equal(read_at(d, T0 + 64 * MS, MB, 0), T0 + 72 * MS); /* they are all served */
    mr_device_close(d);
}

static void no_place_at_all_is_always_a_seek(void **state)
{
    struct mr_device_profile p = seeking();
    struct mr_device *d = make(&p);
    (void)state;
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_READ, NULL, 100), T0 + 8 * MS + 1000);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_READ, NULL, 100), T0 + 16 * MS + 2000);
    assert_int_equal(mr_device_reserve_file(d, T0, NULL, 100), T0 + 24 * MS + 3000);
    mr_device_close(d);
}

static void a_sync_leaves_the_head_elsewhere(void **state)
{
    struct mr_device_profile p = seeking();
    (void)state;
    p.sync_ns = 5 * MS;
    struct mr_device *d = make(&p);
    struct mr_device_place a = at(0), b = at(MB);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_WRITE, &a, MB), T0 + 18 * MS);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_SYNC, &a, 0), T0 + 23 * MS);
    assert_int_equal(mr_device_reserve_at(d, T0 + 23 * MS, MR_DEV_WRITE, &b, MB), T0 + 41 * MS);
    mr_device_close(d);
}

static void seeks_shrink_with_the_operations_outstanding(void **state)
{
    struct mr_device_profile p = seeking();
    (void)state;
    p.seek_shrink = 500; /* the square root */
    p.queue_depth = 9;
    struct mr_device *d = make(&p);
    uint64_t now = T0, before = T0;
    for (unsigned q = 1; q <= 100; q++) {
        uint64_t due = read_at(d, now, (1000 - q) * 100 * MIB, 0), seek = due - before;
        double want = 8.0 * MS / (q == 1 ? 1 : q == 4 ? 2 : 3);
        if (q == 1 || q == 4 || q >= 9)
            assert_in_range(seek, (uint64_t)want - 2, (uint64_t)want + 2);
        before = due;
    }
    /* All are served: alone again. */
    assert_int_equal(read_at(d, before, 77 * MIB, 0), before + 8 * MS);
    /* One of two is served when the third comes. */
    now = before + 8 * MS;
    uint64_t a = read_at(d, now, 0, 0), b = read_at(d, now, 1u << 30, 0);
    assert_int_equal(a, now + 8 * MS);
    uint64_t c = read_at(d, a, 0, 0);
    assert_int_equal(c - b, b - a);
    mr_device_close(d);
}

/* ---- targets ---- */

/* Bytes of an operation on the target that gets the most, stripe by stripe. */
static uint64_t most_on_one(uint64_t n, uint64_t stripe, uint64_t offset, uint64_t bytes)
{
    uint64_t on[MR_PROFILE_MAX_TARGETS] = {0}, most = 0;
    while (bytes) {
        uint64_t here = stripe - offset % stripe;
        here = here < bytes ? here : bytes;
        uint64_t *t = &on[offset / stripe % n];
        *t += here;
        most = *t > most ? *t : most;
        offset += here;
        bytes -= here;
    }
    return most;
}

static void an_operation_is_spread_over_the_targets_by_stripes(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3000; i++) {
        struct mr_device_profile p = plain();
        p.targets = 1 + below(1, i, 9);
        p.stripe_bytes = 4096 + below(2, i, 3) * 1000;
        p.read_bytes_per_s = p.targets * 1000000000u; /* 1 ns a byte on a target */
        struct mr_device *d = make(&p);
        struct mr_device_place place = {.file = 1 + i, .offset = below(3, i, 100000)};
        uint64_t bytes = below(4, i, i % 2 ? 5000 : 200000);
        assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_READ, &place, bytes) - T0,
                         most_on_one(p.targets, p.stripe_bytes, place.offset, bytes));
        mr_device_close(d);
    }
}

static void targets_work_at_the_same_time_and_share_the_bandwidth(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.targets = 4;
    struct mr_device *d = make(&p);
    struct mr_device_place place = {.file = 9};
    /* One small file has a quarter of the bandwidth; a large one all of it. */
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_READ, &place, 100000), T0 + 4 * MS);
    uint64_t later = T0 + 1000 * (uint64_t)MS;
    assert_int_equal(mr_device_reserve_at(d, later, MR_DEV_READ, &place, 40 * MIB),
                     later + 10 * 40 * MIB);
    /* Files are spread: with many, no target is left out. */
    later += 10000 * (uint64_t)MS;
    uint64_t last = 0;
    for (unsigned i = 0; i < 4000; i++) {
        place.file = 100 + 2 * i;
        uint64_t due = mr_device_reserve_at(d, later, MR_DEV_READ, &place, 1000);
        last = due > last ? due : last;
    }
    assert_in_range(last - later, 4000 * 10000u, 4000 * 10000u * 11 / 10);
    mr_device_close(d);
}

static void a_striped_file_read_in_sequence_seeks_once_a_target(void **state)
{
    struct mr_device_profile p = seeking();
    (void)state;
    p.targets = 4;
    struct mr_device *d = make(&p);
    uint64_t due = T0;
    for (unsigned i = 0; i < 40; i++) {
        struct mr_device_place place = {
            .file = 9, .offset = i * MIB, .physical = 70 * MIB + i * MIB, .has_physical = 1};
        uint64_t next = mr_device_reserve_at(d, due, MR_DEV_READ, &place, MIB);
        assert_int_equal(next - due, 40 * MIB + (i < 4 ? 8 * MS : 0));
        due = next;
    }
    mr_device_close(d);
}

/* ---- metadata and sync ---- */

static void metadata_operations_run_in_parallel_up_to_a_number(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.metadata_ns = 6 * MS;
    struct mr_device *d = make(&p);
    for (unsigned i = 0; i < 100; i++) /* any number */
        assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_META, NULL, 0), T0 + 6 * MS);
    mr_device_close(d);
    p.metadata_parallel = 3; /* one every 2 ms */
    d = make(&p);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_META, NULL, 0),
                         T0 + 6 * MS + i * 2 * MS);
    mr_device_close(d);
}

static void a_whole_file_costs_its_metadata_and_its_read(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.metadata_ns = 6 * MS;
    p.read_latency_ns = 2 * MS;
    struct mr_device *d = make(&p);
    struct mr_device_place place = {.file = 3};
    assert_int_equal(mr_device_reserve_file(d, T0, &place, MB), T0 + 18 * MS);
    assert_int_equal(mr_device_reserve_file(d, T0, &place, MB), T0 + 28 * MS);
    mr_device_close(d);
}

static void a_sync_waits_for_what_was_written_on_any_target(void **state)
{
    struct mr_device_profile p = plain();
    (void)state;
    p.targets = 4;
    p.sync_ns = 3 * MS;
    struct mr_device *d = make(&p);
    struct mr_device_place place = {.file = 1}, other = {.file = 2};
    uint64_t due = mr_device_reserve_at(d, T0, MR_DEV_WRITE, &place, 100000);
    assert_int_equal(due, T0 + 4 * MS);
    assert_int_equal(mr_device_reserve_at(d, T0, MR_DEV_SYNC, &other, 0), due + 3 * MS);
    uint64_t later = T0 + 1000 * (uint64_t)MS;
    assert_int_equal(mr_device_reserve_at(d, later, MR_DEV_SYNC, NULL, 0), later + 3 * MS);
    mr_device_close(d);
}

/* ---- all of it ---- */

static uint64_t any_reservation(struct mr_device *d, uint64_t now, uint64_t seed, uint64_t i)
{
    struct mr_device_place place = {.file = below(seed, 5 * i, 50),
                                    .offset = below(seed, 5 * i + 1, 4 * MIB),
                                    .physical = below(seed, 5 * i + 2, 64 * MIB),
                                    .has_physical = i % 3 == 0};
    return mr_device_reserve_at(d, now, (enum mr_device_op)below(seed, 5 * i + 3, 4), &place,
                                below(seed, 5 * i + 4, 3 * MIB));
}

static void the_same_reservations_in_the_same_order_are_charged_the_same(void **state)
{
    const char *name;
    (void)state;
    for (unsigned k = 0; (name = mr_device_profile_builtin(k, NULL)); k++) {
        struct mr_device *a = open_builtin(name), *b = open_builtin(name);
        uint64_t now = T0;
        for (uint64_t i = 0; i < 5000; i++) {
            uint64_t due = any_reservation(a, now, 11, i);
            assert_int_equal(any_reservation(b, now, 11, i), due);
            assert_true(due >= now);
            now += below(12, i, 4 * MS);
        }
        mr_device_close(a);
        mr_device_close(b);
    }
}

#define CROWD_OPS 50000

struct crowd {
    struct mr_device *d;
    uint64_t latest;
};

static void *reserve_many(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; i < CROWD_OPS; i++) {
        uint64_t due = mr_device_reserve_at(c->d, T0, MR_DEV_READ, NULL, 1000);
        c->latest = due > c->latest ? due : c->latest;
    }
    return NULL;
}

static void threads_that_reserve_at_once_lose_nothing(void **state)
{
    struct mr_device_profile p = plain();
    struct mr_device *d = make(&p);
    struct crowd crowd[8];
    pthread_t thread[8];
    uint64_t latest = 0;
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        crowd[i] = (struct crowd){.d = d};
        assert_int_equal(pthread_create(&thread[i], NULL, reserve_many, &crowd[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
        latest = crowd[i].latest > latest ? crowd[i].latest : latest;
    }
    assert_int_equal(latest, T0 + (uint64_t)8 * CROWD_OPS * 10000);
    mr_device_close(d);
}

static void absurd_requests_end_far_in_the_future_and_never_wrap(void **state)
{
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 60, 1};
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned k = 0; k < 4; k++) {
            struct mr_device_profile p = seeking();
            p.read_bytes_per_s = 1000;
            p.targets = 7;
            p.metadata_ns = p.read_latency_ns = 3600000000000u;
            struct mr_device *d = make(&p);
            struct mr_device_place place = {
                .file = 1, .offset = huge[i], .physical = huge[k], .has_physical = 1};
            uint64_t last = T0;
            for (unsigned n = 0; n < 100; n++) {
                uint64_t due = mr_device_reserve_file(d, T0, &place, huge[k]);
                assert_true(due >= last && due <= INT64_MAX);
                last = due;
            }
            mr_device_close(d);
        }
}

static void a_profile_out_of_range_is_refused(void **state)
{
    struct mr_device_profile p[4] = {plain(), plain(), plain(), plain()};
    (void)state;
    p[0].read_bytes_per_s = 0;
    p[1].targets = 0;
    p[2].queue_depth = MR_PROFILE_MAX_QUEUE + 1;
    p[3].name[0] = '\n';
    for (unsigned i = 0; i < 4; i++) {
        struct mr_device *d = NULL;
        struct mr_error err = {0};
        assert_int_equal(mr_device_new(&p[i], &d, &err), -EINVAL);
        assert_null(d);
        assert_true(err.text[0]);
    }
}

/* ---- files and waiting ---- */

static void a_place_is_found_for_a_file_whatever_its_file_system_tells(void **state)
{
    struct tempdir *t = *state;
    static char bytes[100000];
    const char *path = tempdir_write(t, "file", bytes, sizeof bytes);
    struct mr_device *hdd = open_builtin("hdd"), *lustre = open_builtin("lustre"),
                     *ssd = open_builtin("ssd");
    struct mr_device_place a, b;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && !fstat(fd, &st));
    fsync(fd);
    mr_device_place_fd(hdd, fd, 0, &a);
    assert_int_equal(a.file, st.st_ino);
    mr_device_place_path(hdd, AT_FDCWD, path, st.st_ino, 0, &b);
    assert_int_equal(b.file, st.st_ino);
    assert_int_equal(a.has_physical, b.has_physical);
    assert_int_equal(a.physical, b.physical);
    int dir = open(t->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    mr_device_place_path(hdd, dir, "file", st.st_ino, 0, &b);
    assert_int_equal(a.has_physical, b.has_physical);
    assert_int_equal(a.physical, b.physical);
    close(dir);
    mr_device_place_fd(hdd, fd, 8192, &b);
    assert_int_equal(b.offset, 8192);
    struct mr_device_place by_path; /* of a part, and without its inode's number */
    mr_device_place_path(hdd, AT_FDCWD, path, 0, 8192, &by_path);
    assert_memory_equal(&by_path, &b, sizeof b);
    struct mr_filesystem fs;
    assert_int_equal(mr_filesystem_of(fd, &fs), 0);
    if (fs.magic == EXT4_SUPER_MAGIC) { /* which tells, and lays so small a file out in one piece */
        assert_true(a.has_physical && b.has_physical);
        assert_true(a.physical > 0);
        assert_int_equal(b.physical - a.physical, 8192);
    }
    mr_device_place_fd(hdd, fd, 1 << 30, &b); /* behind the end */
    assert_false(b.has_physical);
    mr_device_place_fd(lustre, fd, 0, &b); /* no seeks: nobody asks */
    assert_int_equal(b.file, st.st_ino);
    assert_false(b.has_physical);
    mr_device_place_fd(ssd, fd, 0, &b);
    assert_false(b.has_physical);
    mr_device_place_fd(hdd, -1, 0, &b);
    assert_true(!b.file && !b.has_physical);
    mr_device_place_path(hdd, AT_FDCWD, "/nonexistent", 17, 0, &b);
    assert_true(b.file == 17 && !b.has_physical);
    close(fd);
    mr_device_close(hdd);
    mr_device_close(lustre);
    mr_device_close(ssd);
}

static void a_wait_ends_no_sooner_than_its_deadline(void **state)
{
    (void)state;
    mr_device_wait_until(0);
    for (unsigned us = 0; us < 2000; us += 23) {
        uint64_t due = mr_clock_ns() + us * 1000;
        mr_device_wait_until(due);
        assert_true(mr_clock_ns() >= due);
    }
}

static void only_delays_that_the_host_caused_are_carried_on(void **state)
{
    (void)state;
    /* The bytes were there: whatever came later is a late timer, within bounds. */
    assert_int_equal(mr_device_late_ns(1000, 500, 900, 0, MS), 0);
    assert_int_equal(mr_device_late_ns(1000, 500, 1300, 0, MS), 300);
    assert_int_equal(mr_device_late_ns(1000, 999, 1300, 200, MS), 300);
    assert_int_equal(mr_device_late_ns(1000, 500, 5 * MS, 0, MS), MS);
    /* They were not: the storage is slow, and only what was carried here goes on. */
    assert_int_equal(mr_device_late_ns(1000, 1200, 1300, 0, MS), 0);
    assert_int_equal(mr_device_late_ns(1000, 1200, 1300, 100, MS), 100);
    assert_int_equal(mr_device_late_ns(1000, 1200, 1300, 400, MS), 300);
    assert_int_equal(mr_device_late_ns(1000, 1200, 1300, 400, 50), 50);
}

/* Readers as the engines have them, on a host whose reads take real_ns[] and whose timers are late
 * by late_ns[], both repeated.  Checks the limit from the start, and over every stretch of 64
 * reads; returns the share of it that was reached. */
static double read_with_late_timers(unsigned n_readers, const uint64_t real_ns[4],
                                    const uint64_t late_ns[4])
{
    enum { STRETCH = 64, BYTES = 112000 };
    struct mr_device_profile p = plain();
    p.read_bytes_per_s = 1000000000; /* a nanosecond a byte */
    struct mr_device *d = make(&p);
    uint64_t now[64], late[64] = {0}, delivered = 0, last = T0, before[STRETCH] = {0};
    for (unsigned i = 0; i < n_readers; i++)
        now[i] = T0;
    for (unsigned n = 0; n < 10000; n++) {
        unsigned r = 0;
        for (unsigned i = 1; i < n_readers; i++)
            r = now[i] < now[r] ? i : r;
        uint64_t due = mr_device_reserve_file(d, now[r] - late[r], NULL, BYTES);
        uint64_t ready = now[r] + real_ns[n % 4];
        now[r] = ready < due ? due + late_ns[n % 4] : ready;
        late[r] = mr_device_late_ns(due, ready, now[r], late[r], MR_DEVICE_LATE_NS);
        assert_true(now[r] >= due);
        delivered += BYTES;
        last = now[r] > last ? now[r] : last;
        assert_true(last >= T0 + delivered);
        if (n >= STRETCH && n_readers == 1)
            assert_true(last - before[n % STRETCH] + MR_DEVICE_LATE_NS >= STRETCH * BYTES);
        before[n % STRETCH] = last;
    }
    mr_device_close(d);
    return (double)delivered / (double)(last - T0);
}

static void late_timers_do_not_make_a_device_slower(void **state)
{
    static const uint64_t quick[] = {30000, 30000, 40000, 30000},
                          slow[] = {130000, 130000, 130000, 130000};
    static const uint64_t punctual[] = {0, 0, 0, 0}, by_the_slack[] = {5000, 60000, 90000, 50000},
                          by_a_slice[] = {0, 4000000, 0, 0};
    static const unsigned n_readers[] = {1, 8, 64};
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_true(read_with_late_timers(n_readers[i], quick, punctual) > 0.999);
        assert_true(read_with_late_timers(n_readers[i], quick, by_the_slack) > 0.99);
        assert_true(read_with_late_timers(n_readers[i], quick, by_a_slice) > 0.98);
    }
    /* Storage that really is slower stays what it is. */
    assert_true(read_with_late_timers(1, slow, by_the_slack) < 112.0 / 129);
}

static void *wait_for_ever(void *stop)
{
    return (void *)(intptr_t)mr_device_wait_unless(INT64_MAX, stop);
}

static void a_wait_can_be_stopped(void **state)
{
    atomic_int stop;
    pthread_t thread;
    void *code;
    (void)state;
    atomic_init(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, &stop), 0);
    atomic_store(&stop, 1);
    pthread_join(thread, &code);
    assert_int_equal((intptr_t)code, -ECANCELED);
    assert_int_equal(mr_device_wait_unless(mr_clock_ns(), &stop), 0); /* it is over */
    mr_device_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_of_outstanding_reads_exceeds_the_limit),
        cmocka_unit_test(a_device_without_latency_is_used_fully_by_any_depth),
        cmocka_unit_test(latency_alone_is_what_one_reader_waits_for_and_many_hide),
        cmocka_unit_test(reads_and_writes_share_the_time_of_a_target),
        cmocka_unit_test(a_fraction_of_a_nanosecond_is_rounded_up),
        cmocka_unit_test(a_read_that_follows_pays_no_seek),
        cmocka_unit_test(without_addresses_inodes_tell_what_follows),
        cmocka_unit_test(what_waits_is_sorted_so_neighbours_may_arrive_out_of_order),
        cmocka_unit_test(no_place_at_all_is_always_a_seek),
        cmocka_unit_test(a_sync_leaves_the_head_elsewhere),
        cmocka_unit_test(seeks_shrink_with_the_operations_outstanding),
        cmocka_unit_test(an_operation_is_spread_over_the_targets_by_stripes),
        cmocka_unit_test(targets_work_at_the_same_time_and_share_the_bandwidth),
        cmocka_unit_test(a_striped_file_read_in_sequence_seeks_once_a_target),
        cmocka_unit_test(metadata_operations_run_in_parallel_up_to_a_number),
        cmocka_unit_test(a_whole_file_costs_its_metadata_and_its_read),
        cmocka_unit_test(a_sync_waits_for_what_was_written_on_any_target),
        cmocka_unit_test(the_same_reservations_in_the_same_order_are_charged_the_same),
        cmocka_unit_test(threads_that_reserve_at_once_lose_nothing),
        cmocka_unit_test(absurd_requests_end_far_in_the_future_and_never_wrap),
        cmocka_unit_test(a_profile_out_of_range_is_refused),
        WITH_TEMPDIR(a_place_is_found_for_a_file_whatever_its_file_system_tells),
        cmocka_unit_test(a_wait_ends_no_sooner_than_its_deadline),
        cmocka_unit_test(only_delays_that_the_host_caused_are_carried_on),
        cmocka_unit_test(late_timers_do_not_make_a_device_slower),
        cmocka_unit_test(a_wait_can_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
