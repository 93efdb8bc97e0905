/* test_sample_rows.c - one sample with numbers that are all different, as CSV and as JSON: each
 * is in the column that is called after it. */
#include "unit.h"

#include "json.h"
#include "sample_csv.h"
#include "sample_series.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB           1024
#define ALL_PRESSURE (MR_KNOWN_PRESSURE * 7)

/* Two seconds of a disk: 100 reads of 40 KB that took 7 ms, 10 writes of 8 KB that took 90 ms. */
static const struct mr_disk_counts moved = {
    .side[MR_DISK_READ] = {.ios = 100, .merged = 20, .sectors = 8000, .ms = 700},
    .side[MR_DISK_WRITE] = {.ios = 10, .merged = 3, .sectors = 160, .ms = 900},
    .busy_ms = 500,
    .weighted_ms = 1600,
};

static struct mr_system_sample sample(void)
{
    static struct mr_disk disk = {.name = "vdx", .present = 1, .used = 1};
    static struct mr_net net = {.name = "eth7",
                                .present = 1,
                                .used = 1,
                                .last[MR_NET_RECEIVE] = {20 * KB, 40},
                                .last[MR_NET_TRANSMIT] = {4 * KB, 2}};
    disk.last = disk.total = moved;
    memcpy(net.total, net.last, sizeof net.total);
    struct mr_system_sample s = {
        .number = 1,
        .interval_ns = 2000000000,
        .since_open_ns = 2000000000,
        .known = MR_KNOWN_DISKS | MR_KNOWN_CPU | MR_KNOWN_MEMORY | MR_KNOWN_NET | MR_KNOWN_PROCESS |
                 ALL_PRESSURE,
        .last = {.cpu = {.ticks = {100, 20, 30, 800, 40, 2, 3, 5},
                         .switches = 5000,
                         .running = 3,
                         .blocked = 2},
                 .pressure = {{20000, 0}, {40000, 30000}, {60000, 50000}},
                 .process.count = {[MR_IO_RCHAR] = 20000,
                                   [MR_IO_WCHAR] = 14000,
                                   [MR_IO_READ_BYTES] = 8192,
                                   [MR_IO_WRITE_BYTES] = 6000}},
        .memory = {.free_bytes = 11,
                   .available_bytes = 12,
                   .buffers_bytes = 13,
                   .cached_bytes = 14 * KB,
                   .dirty_bytes = 15 * KB,
                   .writeback_bytes = 16},
        .n_processes = 4,
        .disks = &disk,
        .n_disks = 1,
        .nets = &net,
        .n_nets = 1,
    };
    s.total = s.last;
    return s;
}

static void csv_rows_are_these(void **state)
{
    (void)state;
    struct mr_system_sample s = sample();
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    assert_non_null(to);
    mr_sample_csv_heading(to);
    mr_sample_csv_rows(to, &s, NULL);
    fclose(to);
    assert_string_equal(
        text, "Time,Interval,Kind,Name,Direction,KBytes,Merged,IOs,Size,Wait,QLen,SvcTim,Util,"
              "CpuUser,CpuSystem,CpuIowait,CpuSteal,CpuIdle,Switches,Running,Blocked,FreeBytes,"
              "AvailableBytes,BuffersBytes,CachedBytes,DirtyBytes,WritebackBytes,PressureCpuSome,"
              "PressureIoSome,PressureIoFull,PressureMemorySome,PressureMemoryFull,Processes,"
              "ProcessReadBytes,ProcessWriteBytes,ProcessRchar,ProcessWchar\n"
              "2.000,2.000,system,,,,,,,,,,,12,3.500,4,0.500,80,2500,3,2,11,12,13,14336,15360,16,"
              "1,2,1.500,3,2.500,4,4096,3000,10000,7000\n"
              "2.000,2.000,disk,vdx,read,2000,10,50,40,7,0.350,4.545,25,,,,,,,,,,,,,,,,,,,,,,,,\n"
              "2.000,2.000,disk,vdx,write,40,1.500,5,8,90,0.450,4.545,25,,,,,,,,,,,,,,,,,,,,,,,,\n"
              "2.000,2.000,net,eth7,receive,10,,20,0.500,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n"
              "2.000,2.000,net,eth7,transmit,2,,1,2,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n");
    free(text);
}

static void assert_number(struct mr_json *o, const char *path, double want)
{
    const struct mr_json *v = mr_json_at(o, path);
    if (!v || mr_json_number(v) < want - 1e-6 || mr_json_number(v) > want + 1e-6)
        fail_msg("%s: %f, not %f", path, v ? mr_json_number(v) : -1, want);
}

static void json_fields_are_these(void **state)
{
    static const struct {
        const char *path;
        double value;
    } want[] = {
        {"read.kbytes_per_s", 2000},
        {"read.merged_per_s", 10},
        {"read.ios_per_s", 50},
        {"read.size_kb", 40},
        {"read.wait_ms", 7},
        {"read.qlen", 0.35},
        {"write.kbytes_per_s", 40},
        {"write.merged_per_s", 1.5},
        {"write.ios_per_s", 5},
        {"write.size_kb", 8},
        {"write.wait_ms", 90},
        {"write.qlen", 0.45},
        {"qlen", 0.8},
        {"svctim_ms", 500.0 / 110},
        {"util_pct", 25},
    };
    (void)state;
    struct mr_system_sample s = sample();
    struct mr_sample_series *series = mr_sample_series_new(NULL, 0);
    struct mr_json *o = mr_json_object();
    char path[128];
    assert_true(series && o);
    mr_sample_series_add(series, &s);
    mr_sample_series_json(series, &s, o);
    for (unsigned i = 0; i < ARRAY_LEN(want); i++) {
        snprintf(path, sizeof path, "devices.0.%s", want[i].path);
        assert_number(o, path, want[i].value);
        snprintf(path, sizeof path, "series.devices.vdx.%s.0", want[i].path);
        assert_number(o, path, want[i].value);
    }
    assert_number(o, "series.system.cpu_user_pct.0", 12);
    assert_number(o, "series.system.cpu_idle_pct.0", 80);
    assert_number(o, "series.system.dirty_bytes.0", 15 * KB);
    mr_json_free(o);
    mr_sample_series_free(series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_rows_are_these),
        cmocka_unit_test(json_fields_are_these),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
