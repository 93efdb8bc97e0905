/* rate_sweep.c - see rate_sweep.h.
 *
 * In a quick study every run is boxed in time: on a slow storage fewer images are drawn, and each
 * point says how many.  The real storage is read cold; on an emulated one every byte is charged
 * whether it is cached or not, so files are read ahead for it: the real storage may be slower. */
#include "rate_sweep.h"

#include "errtext.h"
#include "microbench.h"
#include "read_ahead.h"

#include <errno.h>
#include <math.h>

#define BOX_S          0.8 /* of one of three runs */
#define READS_A_THREAD 4   /* that the ring keeps under way */

static int measure(struct mr_lab *lab, const struct mr_lab_storage *s, enum mr_engine engine,
                   unsigned threads, int decode)
{
    struct mr_error err = {0};
    struct mr_decoder_opts how = {.width = 224, .height = 224};
    struct mr_bench_result result;
    uint64_t n = mr_dataset_size(lab->o->data);
    unsigned batch = n < 64 ? (unsigned)n : 64;
    struct mr_bench_opts b = {
        .data = lab->o->data,
        .pipe = {.engine = engine,
                 .threads = threads,
                 .io_depth = engine == MR_ENGINE_URING ? READS_A_THREAD * threads : 0,
                 .batch = batch,
                 .prefetch = 1,
                 .seed = lab->o->seed,
                 .storage = s->device,
                 .decode = decode ? &how : NULL,
                 .should_stop = lab->o->should_stop,
                 .should_stop_ctx = lab->o->ctx},
        .runs = lab->o->runs,
        .box_s = lab->o->full ? 0 : BOX_S,
        .cold = !s->device,
        .ahead = 1,
    };
    int r = mr_microbench_run(&b, &result, &err);
    if (r == -ENOTSUP && engine == MR_ENGINE_URING) {
        mr_lab_warn(lab, "The io_uring engine is not available here: %s", err.text);
        mr_bench_result_fini(&result);
        return 0;
    }
    if (!r) {
        struct mr_json *p = mr_bench_result_json(&result);
        double mb = result.median.seconds > 0
                        ? (double)result.median.delivered_bytes / result.median.seconds / 1e6
                        : NAN;
        mr_share_of_limit_put(
            p, &(struct mr_share_of_limit){.storage = s->name,
                                           .emulated = s->device != NULL,
                                           .baseline_share = mb / s->random_mb_per_s});
        mr_lab_note_rate(lab, decode, s->device != NULL, result.per_s);
        mr_lab_check_cold(lab, result.cold);
        if (s->device)
            mr_lab_check_late(lab, s->name,
                              mr_late_share(&result.stats, result.median.device_bytes));
        mr_lab_point(lab, p);
    } else {
        mr_fail(lab->err, r, "%s", err.text);
    }
    mr_bench_result_fini(&result);
    return r;
}

static int sweep(struct mr_lab *lab, int decode)
{
    static const enum mr_engine engines[] = {MR_ENGINE_THREADS, MR_ENGINE_URING};
    for (unsigned i = 0; i < MR_LAB_STORAGES; i++)
        for (unsigned e = 0; e < 2; e++) {
            const struct mr_lab_storage *s = &lab->storage[i];
            unsigned threads[4], n = mr_lab_threads(lab, s, threads);
            for (unsigned k = 0; k < n; k++) {
                if (mr_lab_skips(lab, k, n))
                    continue;
                mr_lab_say(lab, "%s, %s engine, %u threads", s->name, e ? "uring" : "threads",
                           threads[k]);
                int r = measure(lab, s, engines[e], threads[k], decode);
                if (r)
                    return r;
            }
        }
    return 0;
}

/* The ring has its own depth for each number of threads, so there is no sweep of it. */
static void tell_commands(struct mr_lab *lab, const char *map)
{
    for (unsigned i = 0; i < MR_LAB_STORAGES; i++) {
        const struct mr_lab_storage *s = &lab->storage[i];
        unsigned threads[4], n = mr_lab_threads(lab, s, threads), most = threads[n - 1];
        const char *storage = s->device ? "--storage " : "--cold", *name = s->device ? s->name : "";
        mr_lab_command(lab, "millrace bench %s --map %s --threads %s --runs %u %s%s", lab->input,
                       map, n == 4 ? "1,2,4,8" : "1,8", lab->o->runs, storage, name);
        mr_lab_command(lab,
                       "millrace bench %s --map %s --engine uring --threads %u --io-depth %u "
                       "--runs %u %s%s",
                       lab->input, map, most, READS_A_THREAD * most, lab->o->runs, storage, name);
    }
}

int mr_rate_sweep(struct mr_lab *lab, int decode)
{
    tell_commands(lab, decode ? "decode" : "read");
    return sweep(lab, decode);
}
