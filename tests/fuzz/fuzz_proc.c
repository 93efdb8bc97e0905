/* fuzz_proc.c - fuzz target: the parsers of /proc's files, and tables over two different texts. */
#include "fuzz_entry.h"

#include "diskstats.h"
#include "net_counters.h"
#include "process_io.h"
#include "system_counters.h"

#include <stdlib.h>
#include <string.h>

static void feed_tables(const char *first, const char *second)
{
    struct mr_nets nets = {0};
    for (unsigned bits = 32; bits <= 64; bits += 32) {
        struct mr_disks disks;
        struct mr_disk_rates rates;
        mr_disks_init(&disks, "/nowhere", bits);
        mr_disks_update(&disks, first);
        mr_disks_update(&disks, second);
        mr_disks_update(&disks, first);
        for (unsigned i = 0; i < disks.n; i++)
            mr_disk_rates_of(&disks.row[i].total, 1.0, &rates);
        mr_disks_fini(&disks);
    }
    mr_nets_update(&nets, first);
    mr_nets_update(&nets, second);
    mr_nets_update(&nets, first);
    mr_nets_fini(&nets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_cpu cpu;
    struct mr_memory memory;
    struct mr_pressure pressure;
    struct mr_process_io io;
    pid_t pid, parent;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    mr_cpu_parse(text, &cpu);
    mr_memory_parse(text, &memory);
    mr_pressure_parse(text, &pressure);
    mr_process_io_parse(text, &io);
    mr_process_stat_parse(text, &pid, &parent);
    /* The halves are two readings. */
    char *half = text + strlen(text) / 2;
    char *second = strdup(half);
    *half = 0;
    if (second)
        feed_tables(text, second);
    free(second);
    free(text);
    return 0;
}
