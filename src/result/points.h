/* points.h - what results hold, field by field.  docs/json.md says what each field means.
 *
 *     study_results        results.json
 *       result             of one experiment
 *         NAME_point       one point of experiment NAME
 *           ...            parts of points
 *
 * `bench` and `baseline` print bench_point and baseline_point, too.  A field that several
 * experiments have is spelled once, in a list of its own (MR_ON_STORAGE), so that any_point can
 * read it from the points of all of them. */
#ifndef MR_POINTS_H
#define MR_POINTS_H

#include "experiments.h"
#include "fields.h"

/* ---- fields of several experiments ---- */

#define MR_ON_STORAGE(F) F(TEXT, storage) F(FLAG, emulated) /* "disk" or a profile's name */
#define MR_COLD(F)       F(TEXT, cold)
#define MR_LATE(F)       F(REAL, late_share)
#define MR_DEVICE(F)     F(TEXT, device) /* the accelerator */
#define MR_STEPS(F)      F(COUNT, steps)
#define MR_IMAGES(F)     F(COUNT, images)
#define MR_FILE_BYTES(F) F(REAL, file_bytes)

/* Of any experiment's points: how they were measured. */
#define MR_FIELDS_any_point(F)                                                                     \
    MR_ON_STORAGE(F)                                                                               \
    MR_COLD(F)                                                                                     \
    MR_DEVICE(F)                                                                                   \
    MR_STEPS(F)                                                                                    \
    MR_IMAGES(F)                                                                                   \
    MR_FILE_BYTES(F)

/* ---- baseline: a storage and a pattern ---- */

#define MR_FIELDS_latency_us(F) F(REAL, p50) F(REAL, p99) F(REAL, p999) F(REAL, max)

#define MR_FIELDS_ordinary_pages(F) F(REAL, read_mb_per_s) F(REAL, iops) F(LIST, runs)

#define MR_FIELDS_baseline_point(F)                                                                \
    F(TEXT, pattern)                                                                               \
    F(TEXT, engine)                                                                                \
    F(FLAG, direct)                                                                                \
    F(COUNT, depth)                                                                                \
    F(COUNT, block_bytes)                                                                          \
    F(TEXT, split)                                                                                 \
    F(COUNT, file_bytes)                                                                           \
    MR_ON_STORAGE(F)                                                                               \
    F(TEXT, calibrated)                                                                            \
    MR_COLD(F)                                                                                     \
    F(REAL, read_mb_per_s)                                                                         \
    F(REAL, write_mb_per_s)                                                                        \
    F(REAL, iops)                                                                                  \
    F(REAL, created_per_s)                                                                         \
    F(PART, latency_us)                                                                            \
    F(LIST, runs)                                                                                  \
    F(LIST, write_runs)                                                                            \
    F(PART, ordinary_pages)                                                                        \
    F(REAL, spread)                                                                                \
    F(FLAG, cut)                                                                                   \
    MR_LATE(F)                                                                                     \
    F(FLAG, partial)                                                                               \
    F(TEXT, warning)

/* ---- read, decode: a storage, an engine and a number of threads ---- */

#define MR_FIELDS_decoded_image(F)                                                                 \
    F(COUNT, width)                                                                                \
    F(COUNT, height)                                                                               \
    F(TEXT, resize)                                                                                \
    F(TEXT, dtype)                                                                                 \
    F(TEXT, layout)                                                                                \
    F(TEXT, augment)                                                                               \
    F(LIST, mean)                                                                                  \
    F(LIST, std)                                                                                   \
    F(FLAG, exact)                                                                                 \
    F(TEXT, decoder)

#define MR_FIELDS_bench_point(F)                                                                   \
    F(COUNT, threads)                                                                              \
    F(TEXT, engine)                                                                                \
    F(COUNT, io_depth)                                                                             \
    F(TEXT, map)                                                                                   \
    F(PART, image)                                                                                 \
    F(FLAG, direct)                                                                                \
    F(COUNT, batch)                                                                                \
    F(COUNT, prefetch)                                                                             \
    MR_ON_STORAGE(F)                                                                               \
    F(TEXT, calibrated)                                                                            \
    MR_COLD(F)                                                                                     \
    MR_IMAGES(F)                                                                                   \
    F(LIST, runs)                                                                                  \
    F(COUNT, skipped)                                                                              \
    F(PART, errors)                                                                                \
    F(REAL, images_per_s)                                                                          \
    F(REAL, spread)                                                                                \
    F(REAL, mb_per_s)                                                                              \
    F(REAL, cpu_s_per_image)                                                                       \
    F(REAL, decode_s_per_image)                                                                    \
    F(REAL, resize_s_per_image)                                                                    \
    F(PART, decoded_by)                                                                            \
    F(PART, read_latency_us)                                                                       \
    F(PART, batch_latency_us)                                                                      \
    F(COUNT, device_bytes)                                                                         \
    F(COUNT, cache_bytes)                                                                          \
    F(COUNT, delivered_bytes)                                                                      \
    F(COUNT, buffer_bytes)                                                                         \
    MR_LATE(F)                                                                                     \
    F(COUNT, peak_rss_bytes)                                                                       \
    F(TEXT, batch_hash)                                                                            \
    F(FLAG, partial)                                                                               \
    F(TEXT, warning)

#define MR_SHARE_OF_LIMIT(F)        F(REAL, baseline_share)
#define MR_FIELDS_share_of_limit(F) MR_ON_STORAGE(F) MR_SHARE_OF_LIMIT(F)
#define MR_FIELDS_read_point(F)     MR_FIELDS_bench_point(F) MR_SHARE_OF_LIMIT(F)
#define MR_FIELDS_decode_point(F)   MR_FIELDS_read_point(F)

/* ---- overlap: a storage, a number of threads, prefetch or not ---- */

#define MR_FIELDS_overlap_point(F)                                                                 \
    MR_ON_STORAGE(F)                                                                               \
    F(COUNT, prefetch)                                                                             \
    F(COUNT, threads)                                                                              \
    F(FLAG, synthetic)                                                                             \
    MR_DEVICE(F)                                                                                   \
    MR_STEPS(F)                                                                                    \
    F(REAL, seconds)                                                                               \
    F(REAL, first_fill_s)                                                                          \
    F(REAL, step_s)                                                                                \
    F(LIST, each_step_s)                                                                           \
    F(REAL, wait_share)                                                                            \
    MR_COLD(F)                                                                                     \
    MR_LATE(F)

/* ---- batch: an accelerator and a batch size ---- */

#define MR_FIELDS_batch_point(F)                                                                   \
    MR_DEVICE(F)                                                                                   \
    F(FLAG, emulated)                                                                              \
    F(COUNT, batch)                                                                                \
    F(LIST, each_s_per_image)                                                                      \
    F(REAL, s_per_image)

/* ---- activity: a run while the device is sampled ---- */

#define MR_FIELDS_activity_point(F)                                                                \
    MR_ON_STORAGE(F)                                                                               \
    F(TEXT, block_device)                                                                          \
    F(LIST, time_s)                                                                                \
    F(LIST, read_mb_per_s)                                                                         \
    F(LIST, write_mb_per_s)                                                                        \
    F(REAL, begin_s)                                                                               \
    F(REAL, end_of_run_s)                                                                          \
    F(LIST, each_read_mb_per_s)                                                                    \
    F(LIST, each_write_mb_per_s)                                                                   \
    F(TEXT, variant)                                                                               \
    MR_DEVICE(F)                                                                                   \
    MR_COLD(F)                                                                                     \
    MR_LATE(F)

/* ---- checkpoint: a mode and its storages ---- */

#define MR_FIELDS_checkpoint_point(F)                                                              \
    F(TEXT, mode)                                                                                  \
    MR_ON_STORAGE(F)                                                                               \
    F(TEXT, drain)                                                                                 \
    MR_STEPS(F)                                                                                    \
    F(REAL, step_s)                                                                                \
    F(REAL, seconds)                                                                               \
    F(COUNT, checkpoints)                                                                          \
    F(REAL, stall_s)                                                                               \
    F(LIST, each_stall_s)                                                                          \
    F(REAL, share)                                                                                 \
    F(REAL, durable_fast_s)                                                                        \
    F(REAL, durable_slow_s)                                                                        \
    F(COUNT, bytes)                                                                                \
    MR_LATE(F)

/* ---- phases: a shuffle ---- */

#define MR_FIELDS_phase_times(F)                                                                   \
    F(TEXT, name)                                                                                  \
    F(REAL, union_s)                                                                               \
    F(REAL, sum_s)                                                                                 \
    F(COUNT, bytes)                                                                                \
    F(REAL, mb_per_s)                                                                              \
    F(REAL, hidden_share)

#define MR_FIELDS_phases_point(F)                                                                  \
    MR_ON_STORAGE(F)                                                                               \
    F(TEXT, shuffle)                                                                               \
    F(PART, phases) /* [phase_times] */                                                            \
    F(PART, spans)  /* [[name, from s, to s]] */                                                   \
    MR_LATE(F)                                                                                     \
    F(REAL, read_share_of_train)                                                                   \
    F(LIST, each_read_share)

/* ---- files: the data set ---- */

#define MR_FIELDS_size_bin(F) F(COUNT, to_bytes) F(COUNT, n)

#define MR_FIELDS_device_requests(F)                                                               \
    MR_DEVICE(F) /* a block device */                                                              \
    F(REAL, read_kb)                                                                               \
    F(REAL, wait_ms)                                                                               \
    F(REAL, queue)                                                                                 \
    F(REAL, svc_ms)                                                                                \
    F(REAL, util)

#define MR_FIELDS_files_point(F)                                                                   \
    F(COUNT, samples)                                                                              \
    F(COUNT, looked_at)                                                                            \
    F(PART, histogram) /* [size_bin] */                                                            \
    F(PART, requests)  /* [device_requests] */                                                     \
    F(COUNT, images_read)                                                                          \
    MR_COLD(F)

/* ---- verdict: one point ---- */

#define MR_FIELDS_step_rates(F)                                                                    \
    F(REAL, synthetic)                                                                             \
    F(REAL, one_sample_read)                                                                       \
    F(REAL, one_sample_decoded)                                                                    \
    F(REAL, warm)                                                                                  \
    F(REAL, cold_read)                                                                             \
    F(REAL, cold)

/* Of how many runs the rates are medians, where a point says so. */
#define MR_FIELDS_medians(F) F(COUNT, rounds) F(COUNT, runs)

#define MR_ADVICE_TEXT(F) F(TEXT, text)
#define MR_ADVICE_RATES(F)                                                                         \
    F(REAL, predicted_images_per_s)                                                                \
    F(REAL, measured_images_per_s)                                                                 \
    F(REAL, error)

#define MR_FIELDS_recommendation(F)                                                                \
    MR_ADVICE_TEXT(F)                                                                              \
    F(TEXT, status)                                                                                \
    F(TEXT, change)                                                                                \
    F(TEXT, tried)                                                                                 \
    F(REAL, now_per_s)                                                                             \
    F(REAL, predicted_per_s)                                                                       \
    F(REAL, measured_per_s)                                                                        \
    F(REAL, now_images_per_s)                                                                      \
    F(REAL, now_predicted_images_per_s)                                                            \
    MR_ADVICE_RATES(F)                                                                             \
    F(FLAG, emulated)                                                                              \
    MR_COLD(F)                                                                                     \
    MR_LATE(F)

#define MR_FIELDS_attempt(F) F(FLAG, tried) MR_ADVICE_TEXT(F)

#define MR_FIELDS_smaller_images(F)                                                                \
    MR_FIELDS_attempt(F) F(FLAG, recommended) F(COUNT, side) F(COUNT, quality)                     \
        F(COUNT, shorter_side) F(COUNT, looked_at) F(COUNT, broken) F(COUNT, larger) MR_IMAGES(F)  \
            F(COUNT, files) MR_FILE_BYTES(F) F(REAL, smaller_file_bytes)                           \
                F(REAL, smaller_image_cpu_s) MR_ADVICE_RATES(F) F(REAL, base_images_per_s)         \
                    F(REAL, control) MR_COLD(F)

#define MR_ACCELERATOR(F) F(TEXT, accelerator)

#define MR_FIELDS_fed_accelerators(F)                                                              \
    MR_ACCELERATOR(F)                                                                              \
    F(REAL, images_per_s_each)                                                                     \
    F(REAL, by_storage)                                                                            \
    F(REAL, by_cores)                                                                              \
    F(REAL, by_measured)                                                                           \
    F(REAL, feeds)

#define MR_FIELDS_fed_curve(F) MR_ACCELERATOR(F) F(PART, curve) /* [[x, accelerators]] */

#define MR_FIELDS_verdict_point(F)                                                                 \
    MR_DEVICE(F)                                                                                   \
    F(TEXT, limit)                                                                                 \
    F(TEXT, rating)                                                                                \
    F(TEXT, text)                                                                                  \
    F(REAL, step_s)                                                                                \
    F(REAL, fetch_s)                                                                               \
    F(REAL, decode_s)                                                                              \
    F(REAL, hand_over_s)                                                                           \
    F(REAL, compute_s)                                                                             \
    F(REAL, image_cpu_s)                                                                           \
    F(REAL, image_cpu_deviation)                                                                   \
    F(REAL, turns_cpu_s)                                                                           \
    F(REAL, ring_cpu_s)                                                                            \
    F(REAL, wake_s)                                                                                \
    F(PART, rates) /* step_rates */                                                                \
    MR_COLD(F)                                                                                     \
    F(TEXT, cold_read)                                                                             \
    F(REAL, control)                                                                               \
    F(PART, recommendation)                                                                        \
    F(PART, smaller_images)                                                                        \
    F(PART, sizing) /* [fed_accelerators] */                                                       \
    F(COUNT, cores)                                                                                \
    F(REAL, cores_images_per_s)                                                                    \
    F(REAL, storage_files_per_s)                                                                   \
    F(REAL, storage_mb_per_s)                                                                      \
    F(TEXT, storage_from)                                                                          \
    F(PART, by_bandwidth) /* [fed_curve] */                                                        \
    F(PART, by_cores)     /* [fed_curve] */

/* ---- results ---- */

#define MR_FIELDS_result(F)                                                                        \
    F(TEXT, experiment)                                                                            \
    F(PART, commands) /* [text] */                                                                 \
    F(PART, warnings) /* [text] */                                                                 \
    F(PART, points)                                                                                \
    F(FLAG, finished)                                                                              \
    F(TEXT, missing)                                                                               \
    F(REAL, seconds)                                                                               \
    F(REAL, foreseen_s)                                                                            \
    F(COUNT, left_out)

/* What the program adds to a result: what it rests on, and when it came to its end. */
#define MR_FIELDS_result_origin(F)                                                                 \
    F(TEXT, mode)                                                                                  \
    F(TEXT, data)                                                                                  \
    MR_IMAGES(F)                                                                                   \
    F(PART, measured_on)                                                                           \
    F(TEXT, measured_at)

#define MR_FIELDS_study_data_set(F)                                                                \
    F(TEXT, path)                                                                                  \
    MR_IMAGES(F)                                                                                   \
    F(COUNT, classes)                                                                              \
    MR_FILE_BYTES(F)                                                                               \
    F(FLAG, generated)                                                                             \
    F(COUNT, wanted)

#define MR_FIELDS_study_results(F)                                                                 \
    F(TEXT, command)                                                                               \
    F(COUNT, schema)                                                                               \
    F(TEXT, version)                                                                               \
    F(PART, environment)                                                                           \
    F(TEXT, started_at)                                                                            \
    F(TEXT, mode)                                                                                  \
    F(PART, data) /* study_data_set */                                                             \
    F(PART, trace)                                                                                 \
    F(PART, recommendation)                                                                        \
    F(PART, results) /* [result] */

MR_RECORD(any_point)
MR_RECORD(latency_us)
MR_RECORD(ordinary_pages)
MR_RECORD(decoded_image)
MR_RECORD(bench_point)
MR_RECORD(share_of_limit)
MR_RECORD(phase_times)
MR_RECORD(size_bin)
MR_RECORD(device_requests)
MR_RECORD(step_rates)
MR_RECORD(medians)
MR_RECORD(recommendation)
MR_RECORD(attempt)
MR_RECORD(smaller_images)
MR_RECORD(fed_accelerators)
MR_RECORD(fed_curve)
MR_RECORD(result)
MR_RECORD(result_origin)
MR_RECORD(study_data_set)
MR_RECORD(study_results)

/* struct mr_overlap_point and so on: the points of each experiment. */
#define MR_POINT_RECORD(name) MR_RECORD(name##_point)
MR_EXPERIMENTS(MR_POINT_RECORD)
#undef MR_POINT_RECORD

#endif
