/* test_verdict.c - runs whose account is made up so that one thing is the limit. */
#include "unit.h"

#include "device_profile.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* 100 steps of 64 samples of 100 KB in 20 s, four workers on four cores, prefetch 1: half of the
 * time training waits.  A caller says what the workers did. */
static struct mr_verdict_input half_waiting(void)
{
    return (struct mr_verdict_input){.seconds = 20,
                                     .input_wait_s = 10,
                                     .steps = 100,
                                     .samples = 6400,
                                     .bytes = 640000000,
                                     .workers = 4,
                                     .cores = 4,
                                     .batch = 64,
                                     .prefetch = 1,
                                     .depth = 4,
                                     .reads_hold_workers = 1};
}

static struct mr_verdict judged(const struct mr_verdict_input *in)
{
    struct mr_verdict v;
    mr_verdict_judge(in, &v);
    assert_true(v.text[0]);
    assert_true(strlen(v.text) < sizeof v.text - 1); /* not cut */
    assert_true(strlen(v.finding) < sizeof v.finding - 1);
    assert_memory_equal(v.text, v.finding, strlen(v.finding));
    return v;
}

static void expect(const struct mr_verdict_input *in, enum mr_limit limit, const char *words)
{
    struct mr_verdict v = judged(in);
    if (v.limit != limit)
        fail_msg("%s, should be %s: %s", mr_limit_name(v.limit), mr_limit_name(limit), v.text);
    if (!strstr(v.text, words))
        fail_msg("'%s' is not in: %s", words, v.text);
}

static void five_and_twenty_percent_are_the_thresholds(void **state)
{
    static const struct {
        double share;
        enum mr_input_wait rating;
    } row[] = {{0, MR_WAIT_FINE},         {0.049, MR_WAIT_FINE}, {0.051, MR_WAIT_MODERATE},
               {0.199, MR_WAIT_MODERATE}, {0.201, MR_WAIT_HIGH}, {1, MR_WAIT_HIGH}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct mr_verdict_input in = half_waiting();
        in.input_wait_s = row[i].share * in.seconds;
        in.map_s = 79;
        struct mr_verdict v = judged(&in);
        assert_int_equal(v.rating, row[i].rating);
        assert_true(fabs(v.wait_share - row[i].share) < 1e-9);
        assert_int_equal(v.limit == MR_LIMIT_NONE, row[i].rating == MR_WAIT_FINE);
    }
}

static void little_waiting_is_no_limit_whatever_the_workers_do(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.input_wait_s = 0.5;
    in.map_s = 79;
    in.ceiling_bytes_per_s = 30e6;
    expect(&in, MR_LIMIT_NONE, "waits for it 2.5% of the time");
}

static void workers_that_decode_all_the_time_lack_cpu(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.map_s = 70;
    in.read_s = 8;
    expect(&in, MR_LIMIT_DECODE, "More cores");
    in.cores = 8;
    expect(&in, MR_LIMIT_DECODE, "More --threads");
    /* with more workers than cores they wait for a core, too */
    in.cores = 2;
    in.workers = in.depth = 16;
    in.map_s = 280;
    in.read_s = 20;
    expect(&in, MR_LIMIT_DECODE, "16 workers on 2 cores");
    /* or for samples, while both cores are used up */
    in.map_s = 45;
    in.read_s = 3;
    expect(&in, MR_LIMIT_DECODE, "16 workers on 2 cores");
}

static void decoding_with_uring_is_seen_although_reads_wait_for_workers(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.reads_hold_workers = 0;
    in.depth = 32;
    in.map_s = 76;
    in.read_s = 600;
    expect(&in, MR_LIMIT_DECODE, "decoding");
}

static void storage_at_its_ceiling_is_the_limit(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.read_s = 76;
    in.map_s = 3;
    in.ceiling_bytes_per_s = 33e6;
    expect(&in, MR_LIMIT_DEVICE, "32 of the 33 MB/s");
    in.ceiling_bytes_per_s = 39e6;
    expect(&in, MR_LIMIT_DEVICE, "32 of the 39 MB/s");
    in.ceiling_bytes_per_s = 32e6 / 0.79;
    expect(&in, MR_LIMIT_READ_DEPTH, "less than it could");
    in.reads_hold_workers = 0;
    in.depth = 32;
    in.ceiling_bytes_per_s = 33e6;
    expect(&in, MR_LIMIT_DEVICE, "32 of the 33 MB/s");
}

/* Nearly used up both: the one that is nearer to its end. */
static void between_cpu_and_storage_the_more_used_decides(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.map_s = 77;
    in.read_s = 2;
    in.ceiling_bytes_per_s = 32e6 / 0.85;
    expect(&in, MR_LIMIT_DECODE, "CPU");
    in.map_s = 60;
    in.read_s = 19;
    expect(&in, MR_LIMIT_DEVICE, "storage");
}

static void reads_that_wait_for_a_storage_that_could_more_are_too_few(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.read_s = 76;
    in.map_s = 3;
    in.ceiling_bytes_per_s = 500e6;
    expect(&in, MR_LIMIT_READ_DEPTH, "with 4 at once, 11.9 ms each");
    in.reads_hold_workers = 0;
    in.depth = 1;
    in.read_s = 19;
    expect(&in, MR_LIMIT_READ_DEPTH, "--io-depth");
}

static void without_a_ceiling_it_is_either_or(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.read_s = 76;
    in.map_s = 3;
    expect(
        &in, MR_LIMIT_READING,
        "The limit is either the storage, if 32 MB/s are all that it can with such files, or the "
        "number of reads under way, 4 at once, 11.9 ms each. More --threads");
    in.workers = in.depth = 8; /* many reads at once are no evidence either */
    in.read_s = 150;
    expect(&in, MR_LIMIT_READING, "either the storage");
    in.reads_hold_workers = 0;
    in.depth = 64;
    in.read_s = 1200;
    expect(&in, MR_LIMIT_READING, "if the rate stays the same, it is the storage");
    /* what does not concern reads is still known */
    in = half_waiting();
    in.map_s = 70;
    in.read_s = 8;
    expect(&in, MR_LIMIT_DECODE, "CPU");
}

/* Files that were read with 1, 2, 4, ... reads at once. */
static void a_rate_that_does_not_change_with_depth_is_the_storages(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.read_s = 76;
    in.map_s = 3;
    in.ceiling_bytes_per_s = 33e6;
    in.ceiling_reads = 16;
    expect(&in, MR_LIMIT_DEVICE,
           "it delivers 32 MB/s, and no number of reads at once, up to 16, yielded more than 33.");
    in.ceiling_bytes_per_s = 30e6; /* what the run itself delivers, the storage can */
    expect(&in, MR_LIMIT_DEVICE, "yielded more than 32.");
    in.ceiling_bytes_per_s = 80e6;
    expect(&in, MR_LIMIT_READ_DEPTH, "delivers 32 MB/s; with 16 at once it delivered 80.");
    /* where it rose to the end, nobody knows how much more there is */
    in.ceiling_open = 1;
    expect(&in, MR_LIMIT_READ_DEPTH, "with 16 at once it delivered 80.");
    in.ceiling_bytes_per_s = 33e6;
    expect(&in, MR_LIMIT_READING, "either the storage");
}

static void a_ceiling_that_is_exceeded_is_not_said_to_be_more(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.read_s = 76;
    in.map_s = 3;
    in.ceiling_bytes_per_s = 30e6;
    expect(&in, MR_LIMIT_DEVICE, "it delivers 32 MB/s, all that it can with such files");
}

static void taking_turns_is_a_matter_of_prefetch(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.prefetch = 0;
    in.input_wait_s = 9;
    in.map_s = 35;
    expect(&in, MR_LIMIT_HAND_OVER, "--prefetch 1");
    /* but where input takes longer than training, prefetch would only hide a part */
    in.input_wait_s = 15;
    in.map_s = 58;
    expect(&in, MR_LIMIT_DECODE, "decoding");
    in.map_s = 5;
    in.read_s = 53;
    in.ceiling_bytes_per_s = 640e6 / 15;
    expect(&in, MR_LIMIT_DEVICE, "43 of the 43 MB/s");
}

static void idle_workers_are_not_handed_work(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.read_s = 10;
    in.map_s = 15;
    expect(&in, MR_LIMIT_HAND_OVER, "neither storage nor CPU is busy");
}

static void a_pool_smaller_than_the_depth_is_named(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.batch = 2;
    in.workers = in.depth = 8; /* and room for 4 samples */
    in.read_s = 75;
    in.ceiling_bytes_per_s = 500e6;
    expect(&in, MR_LIMIT_HAND_OVER, "room for 4 samples");
    in.reads_hold_workers = 0;
    in.workers = 4;
    in.depth = 32;
    expect(&in, MR_LIMIT_HAND_OVER, "--batch");
    /* a storage that is used up by so few reads is still the limit */
    in.ceiling_bytes_per_s = 33e6;
    expect(&in, MR_LIMIT_DEVICE, "32 of the 33");
    /* one image at a time keeps one worker busy */
    in = half_waiting();
    in.batch = 1;
    in.prefetch = 0;
    in.input_wait_s = 16;
    in.map_s = 15.5;
    expect(&in, MR_LIMIT_HAND_OVER, "");
}

/* The first batch is made before training begins: its reads belong to that time. */
static void the_first_fill_is_no_waiting_but_batches_are_made(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.seconds = 2;
    in.input_wait_s = 1;
    in.first_fill_s = 2;
    in.read_s = 4;
    in.map_s = 10;
    in.ceiling_bytes_per_s = 300e6; /* the 640 MB took 4 s, not 2 */
    expect(&in, MR_LIMIT_DECODE, "waits for input 50.0%");
    in.bytes = 1150000000;
    expect(&in, MR_LIMIT_DEVICE, "288 of the 300 MB/s");
}

static void what_was_computed_is_not_said_to_have_happened(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.computed = 1;
    in.map_s = 70;
    in.read_s = 8;
    expect(&in, MR_LIMIT_DECODE, "Training would wait for input 50.0% of the time. The limit is");
    in.input_wait_s = 0.5;
    expect(&in, MR_LIMIT_NONE, "training would wait for it 2.5% of the time");
}

static void checkpoints_that_stop_training_more_than_input_are_the_limit(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.input_wait_s = 0.2;
    in.checkpoint_stall_s = 14.8;
    in.checkpoints_hold = 1;
    expect(&in, MR_LIMIT_CHECKPOINT,
           "Training stands still for checkpoints 74.0% of the time, and waits for input 1.0%. The "
           "limit is the checkpoints. --mode lazy");
    expect(&in, MR_LIMIT_CHECKPOINT, "--every");
    expect(&in, MR_LIMIT_CHECKPOINT, "--drain");
    in.checkpoints_hold = 0;
    assert_null(strstr(judged(&in).text, "--mode"));
    in.checkpoints_drain = 1;
    assert_null(strstr(judged(&in).text, "--drain"));
    expect(&in, MR_LIMIT_CHECKPOINT, "--every");
    in.input_wait_s = 4; /* less than the stalls, but much */
    expect(&in, MR_LIMIT_CHECKPOINT, "waits for input 20.0%");
}

static void stalls_that_are_less_than_the_waiting_are_said_with_it(void **state)
{
    struct mr_verdict_input in = half_waiting();
    (void)state;
    in.map_s = 79;
    in.checkpoint_stall_s = 4;
    expect(&in, MR_LIMIT_DECODE, "Checkpoints stop it another 20.0%.");
    in.checkpoint_stall_s = 0.9; /* below 5%: not worth a word */
    assert_null(strstr(judged(&in).text, "heckpoint"));
    in.input_wait_s = 0.5;
    in.checkpoint_stall_s = 0.9;
    expect(&in, MR_LIMIT_NONE, "Input is not the limit");
}

static void an_empty_account_has_no_limit(void **state)
{
    struct mr_verdict_input in = {0};
    (void)state;
    expect(&in, MR_LIMIT_NONE, "0.0%");
    in.seconds = in.input_wait_s = 1; /* stopped while waiting for the first batch */
    assert_true(isfinite(judged(&in).wait_share));
}

static void limits_have_names(void **state)
{
    (void)state;
    assert_string_equal(mr_limit_name(MR_LIMIT_NONE), "none");
    assert_string_equal(mr_limit_name(MR_LIMIT_DEVICE), "device");
    assert_string_equal(mr_limit_name(MR_LIMIT_READ_DEPTH), "read-depth");
    assert_string_equal(mr_limit_name(MR_LIMIT_DECODE), "decode-cpu");
    assert_string_equal(mr_limit_name(MR_LIMIT_CHECKPOINT), "checkpoints");
    assert_string_equal(mr_limit_name(MR_LIMIT_HAND_OVER), "hand-over");
    assert_string_equal(mr_limit_name(MR_LIMIT_READING), "device-or-read-depth");
}

static double ceiling(const char *text, double file_bytes)
{
    struct mr_device_profile p;
    struct mr_error err = {0};
    if (mr_device_profile_parse(text, strlen(text), "profile", &p, &err))
        fail_msg("%s", err.text);
    return mr_verdict_ceiling(&p, file_bytes);
}

#define PLAIN "name = x\nread_mb_per_s = 100\nwrite_mb_per_s = 100\n"

static int about(double a, double b)
{
    return fabs(a - b) < 0.001 * b;
}

static void a_ceiling_is_what_bandwidth_seeks_and_metadata_leave(void **state)
{
    (void)state;
    assert_true(about(ceiling(PLAIN, 1e5), 100e6));
    /* latency passes side by side: no limit to a device that is asked often enough */
    assert_true(about(ceiling(PLAIN "read_latency_us = 50000\n", 1e5), 100e6));
    /* 1 ms of seek before each 1 ms of transfer */
    assert_true(about(ceiling(PLAIN "seek_us = 1000\n", 1e5), 50e6));
    /* 100 opens a second */
    assert_true(about(ceiling(PLAIN "metadata_us = 10000\nmetadata_parallel = 1\n", 1e5), 10e6));
    assert_true(about(ceiling(PLAIN "metadata_us = 10000\nmetadata_parallel = 4\n", 1e5), 40e6));
    assert_true(about(ceiling(PLAIN "metadata_us = 10000\n", 1e5), 100e6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_and_twenty_percent_are_the_thresholds),
        cmocka_unit_test(little_waiting_is_no_limit_whatever_the_workers_do),
        cmocka_unit_test(workers_that_decode_all_the_time_lack_cpu),
        cmocka_unit_test(decoding_with_uring_is_seen_although_reads_wait_for_workers),
        cmocka_unit_test(storage_at_its_ceiling_is_the_limit),
        cmocka_unit_test(between_cpu_and_storage_the_more_used_decides),
        cmocka_unit_test(reads_that_wait_for_a_storage_that_could_more_are_too_few),
        cmocka_unit_test(without_a_ceiling_it_is_either_or),
        cmocka_unit_test(a_rate_that_does_not_change_with_depth_is_the_storages),
        cmocka_unit_test(a_ceiling_that_is_exceeded_is_not_said_to_be_more),
        cmocka_unit_test(taking_turns_is_a_matter_of_prefetch),
        cmocka_unit_test(idle_workers_are_not_handed_work),
        cmocka_unit_test(a_pool_smaller_than_the_depth_is_named),
        cmocka_unit_test(the_first_fill_is_no_waiting_but_batches_are_made),
        cmocka_unit_test(what_was_computed_is_not_said_to_have_happened),
        cmocka_unit_test(checkpoints_that_stop_training_more_than_input_are_the_limit),
        cmocka_unit_test(stalls_that_are_less_than_the_waiting_are_said_with_it),
        cmocka_unit_test(an_empty_account_has_no_limit),
        cmocka_unit_test(limits_have_names),
        cmocka_unit_test(a_ceiling_is_what_bandwidth_seeks_and_metadata_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
