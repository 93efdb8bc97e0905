"""study_fixture.py - results of a study that never ran: made-up figures in the form of docs/json.md.

They are plausible, smooth and the same every time; `speed` makes another machine of it.  Run as a
program it prints them: test_study_few.c compares their fields with those of a study that did run."""
import json
import math
import pathlib

READ_MB = {"disk": 2500.0, "hdd": 163.0, "ssd": 281.0, "optane": 1603.0, "lustre": 1969.0}
WRITE_MB = {"disk": 1750.0, "hdd": 133.0, "ssd": 195.0, "optane": 512.0, "lustre": 992.0}
FILES_AT_1 = {"disk": 6000.0, "hdd": 80.0, "ssd": 1200.0, "optane": 3000.0, "lustre": 300.0}
GAIN = {"disk": (1, 1.41, 2, 2.83), "hdd": (1, 1.65, 1.95, 2.3), "ssd": (1, 1.95, 2.6, 2.83),
        "optane": (1, 1.95, 2.9, 3.48), "lustre": (1, 1.99, 3.95, 7.8)}
ACCELERATORS = {"resnet50-v100": 328.0, "resnet50-a100": 920.0, "resnet50-h100": 1786.0}


def on(storage):
    return {"storage": storage, "emulated": storage != "disk"}


def baseline(speed):
    points = []
    for storage, rate in READ_MB.items():
        more = speed if storage == "disk" else 1
        rate *= more
        points.append({**on(storage), "pattern": "seq", "read_mb_per_s": rate,
                       "write_mb_per_s": WRITE_MB[storage] * more, "iops": None, "latency_us": None,
                       "calibrated": None if storage == "disk" else "Table I",
                       "cold": "data" if storage == "disk" else None,
                       "runs": [0.98 * rate, rate, 1.02 * rate],
                       "write_runs": [WRITE_MB[storage] * more * x for x in (0.9, 1, 1.1)]})
    points.append({**on("disk"), "pattern": "random-imagenet", "read_mb_per_s": 2600 * speed,
                   "write_mb_per_s": None, "iops": 52000, "calibrated": None, "runs": [2600 * speed],
                   "latency_us": {"p50": 2000, "p99": 5000, "p999": 9000}})
    return points


def read(speed, decode=False):
    points = []
    for storage, rate in FILES_AT_1.items():
        for engine, more in (("threads", 1.0), ("uring", 1.6)):
            for threads, gain in zip((1, 2, 4, 8), GAIN[storage]):
                x = rate * more * gain * (speed if storage == "disk" else 1)
                x = min(x, 600 * min(threads, 2) * speed) if decode else x
                points.append({**on(storage), "engine": engine, "threads": threads, "images": 1600,
                               "io_depth": 4 * threads if engine == "uring" else None,
                               "images_per_s": x, "runs": [0.97 * x, x, 1.02 * x],
                               "mb_per_s": 0.11 * x, "baseline_share": 0.11 * x / READ_MB[storage],
                               "cold": "data" if storage == "disk" else None,
                               "cpu_s_per_image": 1.75e-3 if decode else 1e-4,
                               "decode_s_per_image": 1.5e-3 if decode else None,
                               "resize_s_per_image": 2e-4 if decode else None})
    return points


def overlap(_speed):
    def point(storage, prefetch, threads, step_s, synthetic=False):
        return {**on(storage), "prefetch": prefetch, "threads": threads, "synthetic": synthetic,
                "device": "emulated:1.5", "steps": 2, "step_s": step_s, "seconds": 2 * step_s,
                "each_step_s": [0.99 * step_s, 1.01 * step_s],
                "first_fill_s": 0.4, "wait_share": 1 - 1.5 / step_s}
    points = [point("disk", 1, 1, 1.5, synthetic=True)]
    for storage in READ_MB:
        for threads in (1, 8):
            points.append(point(storage, 1, threads, 1.504))
            cost = 0.5 if storage == "hdd" else 0.1
            points.append(point(storage, 0, threads, 1.5 + cost / threads ** 0.4))
    return points


def batch(speed):
    return [{"device": device, "batch": n, "s_per_image": (fixed / n + each) / speed,
             "emulated": device != "cpu",
             "each_s_per_image": [x * (fixed / n + each) / speed for x in (0.99, 1, 1.02)]}
            for device, fixed, each in (("cpu", 0.2, 0.022), ("emulated:0.1+0.002", 0.1, 0.002))
            for n in (16, 32, 64, 128) if (device, n) != ("cpu", 128)]


def activity(_speed):
    times = [i / 10 for i in range(300)]
    common = {**on("disk"), "device": "emulated:1.5", "block_device": "vda", "time_s": times,
              "begin_s": 0.0, "write_mb_per_s": [0.0] * len(times), "end_of_run_s": None,
              "each_read_mb_per_s": [15.0, 25.0, 20.0], "each_write_mb_per_s": [0.0] * 3}
    return [{**common, "variant": "prefetch 1",
             "read_mb_per_s": [20 + 10 * math.sin(t) for t in times]},
            {**common, "variant": "prefetch 0",
             "read_mb_per_s": [60.0 if i % 15 < 3 else 0.0 for i in range(len(times))]},
            {**common, "variant": "checkpoints to a burst buffer", "end_of_run_s": 24.0,
             "read_mb_per_s": [20.0] * len(times), "each_write_mb_per_s": [50.0, 80.0, 60.0],
             "write_mb_per_s": [130.0 if t % 6 < 3 else 0.0 for t in times]}]


def checkpoint(_speed):
    rows = [("none", None, None, 0.0, None, None), ("sync", "hdd", None, 5.4, 5.4, None),
            ("sync", "ssd", None, 3.7, 3.7, None), ("sync", "optane", None, 1.4, 1.4, None),
            ("sync", "lustre", None, 0.7, 0.7, None),
            ("burst", "optane", "hdd", 1.41, 1.4, 6.5), ("lazy", "optane", "hdd", 0.005, 1.6, 6.9),
            ("sync", "disk", None, 0.6, 0.6, None), ("lazy", "disk", None, 0.004, 0.7, None)]
    points = []
    for mode, storage, drain, stall, fast, slow in rows:
        each = {"none": [], "sync": [0.99 * stall, 1.01 * stall]}.get(mode, [stall])
        steps = 2 if mode == "sync" else 3
        points.append({"mode": mode, "storage": storage, "drain": drain, "steps": steps,
                       "step_s": 1.5, "emulated": storage not in (None, "disk"),
                       "checkpoints": len(each), "seconds": 1.5 * steps + sum(each),
                       "stall_s": sum(each), "each_stall_s": each, "share": stall / (30 + stall),
                       "durable_fast_s": fast, "durable_slow_s": slow,
                       "bytes": 704000000 if each else 0, "late_share": 0.0})
    return points


def phases(_speed):
    points = []
    for shuffle, share in (("global", 0.22), ("none", 0.1)):
        spans = [[name, i + at, i + at + long] for i in range(10)
                 for name, at, long in (("Read", 0.02, 3 * share), ("Load", 0.03, 4 * share),
                                        ("Train", 0.1, 0.9))]
        spans.append(["Checkpoint", 5.0, 5.1])
        points.append({**on("hdd"), "shuffle": shuffle, "read_share_of_train": share,
                       "each_read_share": [share * (0.9 + 0.02 * i) for i in range(10)],
                       "phases": [{"name": name, "union_s": union, "sum_s": 2 * union,
                                   "bytes": 100000000, "mb_per_s": 30.0, "hidden_share": 0.95}
                                  for name, union in (("Read", 30 * share), ("Load", 32 * share),
                                                      ("Train", 9.0), ("Checkpoint", 0.1))],
                       "spans": spans})
    return points


def files(_speed):
    return [{"samples": 2048, "looked_at": 2048, "images_read": 2048,
             "histogram": [{"to_bytes": 2 ** i, "n": int(4000 * math.exp(-(i - 17) ** 2 / 2))}
                           for i in range(11, 22)],
             "requests": [{"device": "vda", "read_kb": 113.0, "wait_ms": 3.2, "queue": 31.0,
                           "svc_ms": 0.1, "util": 98.0}]}]


def verdict(speed):
    rate = 1210 * speed
    return [{"device": "emulated:resnet50-h100", "limit": "decode-cpu", "rating": "high",
             "text": f"Decoding limits training here: the pipeline delivers {rate:.0f} images/s.",
             "step_s": 0.3, "fetch_s": 0.02, "decode_s": 0.12, "hand_over_s": 0.002,
             "compute_s": 0.1, "image_cpu_s": 1.65e-3,
             "recommendation": {"text": "Use --engine uring: 5% more images/s are predicted.",
                                "change": "--engine uring", "tried": "--engine uring",
                                "status": "recommended", "error": 0.024, "now_per_s": rate,
                                "predicted_per_s": 1270.0, "measured_per_s": 1240.0,
                                "now_images_per_s": rate, "now_predicted_images_per_s": 1220.0,
                                "predicted_images_per_s": 1270.0, "measured_images_per_s": 1240.0},
             "rates": {"synthetic": 1786.0, "one_sample_read": 190000.0,
                       "one_sample_decoded": 1300.0, "warm": 1250.0, "cold_read": 23000.0,
                       "cold": rate},
             "cores": 2, "storage_mb_per_s": 2400.0, "control": 1.01,
             "cores_images_per_s": rate, "storage_files_per_s": 23000.0,
             "smaller_images": {"tried": True, "side": 256, "quality": 90, "shorter_side": 375,
                                "text": "Store the images smaller (shorter side 256 instead of 375)",
                                "file_bytes": 110000.0, "smaller_file_bytes": 28000.0,
                                "predicted_images_per_s": 2400.0, "error": 0.02,
                                "recommended": True, "base_images_per_s": 1240.0,
                                "measured_images_per_s": 2350.0},
             "sizing": [{"accelerator": name, "images_per_s_each": each, "by_storage": 23000 / each,
                         "by_cores": rate / each, "by_measured": rate / each,
                         "feeds": rate // each}
                        for name, each in ACCELERATORS.items()],
             "by_bandwidth": [{"accelerator": name, "curve": [[mb, min(mb * 8.7, rate) / each]
                                                              for mb in range(0, 2001, 200)]}
                              for name, each in ACCELERATORS.items()],
             "by_cores": [{"accelerator": name, "curve": [[n, n * rate / 2 / each]
                                                          for n in range(0, 65, 4)]}
                          for name, each in ACCELERATORS.items()]}]


MAKERS = {"verdict": verdict, "baseline": baseline, "read": read,
          "decode": lambda speed: read(speed, decode=True), "overlap": overlap, "batch": batch,
          "activity": activity, "checkpoint": checkpoint, "phases": phases, "files": files}
EXPERIMENTS = list(MAKERS)


def experiment(name, speed=1.0, **more):
    return {"experiment": name, "finished": True, "missing": None, "seconds": 12.3, "warnings": [],
            "commands": [f"millrace study --only {name}"], "mode": "quick", "images": 2048,
            "points": MAKERS[name](speed), **more}


def study(names=tuple(EXPERIMENTS), speed=1.0):
    return {"command": "study", "schema": 1, "version": "0.1.0", "mode": "quick",
            "environment": {"time": "2026-01-02T03:04:05Z", "host": "example", "cpu": "made up",
                            "cpus": 2, "kernel": "none", "memory_bytes": int(8e9 * speed),
                            "storage": {"file_system": "ext4", "device": "vda"}},
            "data": {"path": "millrace-study/data", "images": 2048, "classes": 1000,
                     "file_bytes": 110000.5, "generated": True},
            "results": [experiment(name, speed) for name in names]}


def write(folder, results):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results))
    return folder


if __name__ == "__main__":
    print(json.dumps(study()))
