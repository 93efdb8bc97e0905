#!/usr/bin/env python3
"""test_trace.py - bench --trace and inspect: what is in the file, and what happens when things go
wrong while it is written."""
import collections
import contextlib
import csv
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

import chromium
from system_kit import (MILLRACE, TIMEOUT_S, TempDirCase, engines, main, make_files, needs, results,
                        run)

COLUMNS = ["Epoch", "Rank", "Action Name", "Action Description", "Start Time", "End Time",
           "Time Taken", "Process ID", "Current Thread"]


# JavaScript: what Chromium's own parser makes of the file, and the spans of a line that cross.
JUDGE = """
(() => {
    const events = JSON.parse(document.body.innerText).traceEvents;
    const lines = {}, kinds = {}, crossing = [];
    for (const e of events) {
        kinds[e.ph] = (kinds[e.ph] || 0) + 1;
        if (e.ph === 'X')
            (lines[e.pid + '/' + e.tid] ||= []).push(e);
    }
    const ns = us => Math.round(us * 1000);
    for (const line of Object.values(lines)) {
        const all = line.map(e => [ns(e.ts), ns(e.ts) + ns(e.dur), e.name]);
        all.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
        const open = [];
        for (const span of all) {
            while (open.length && open[open.length - 1][1] <= span[0])
                open.pop();
            if (open.length && open[open.length - 1][1] < span[1])
                crossing.push([open[open.length - 1], span]);
            open.push(span);
        }
    }
    const counters = events.filter(e => e.ph === 'C');
    return {kinds, crossing, lines: Object.keys(lines).length,
            tracks: [...new Set(counters.map(e => e.name))],
            values: counters.every(e => Object.values(e.args).every(Number.isFinite))};
})()
"""


def disk_of(path):
    """The name of the whole block device that holds a path; None: there is none, or no way to
    tell."""
    dev = os.stat(path).st_dev
    link = pathlib.Path(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}")
    if not link.exists():
        return None
    place = link.resolve()
    return place.parent.name if (place / "partition").exists() else place.name


@contextlib.contextmanager
def writes_to(path):
    """Keeps the device below busy."""
    done = threading.Event()

    def write():
        with open(path, "wb") as f:
            while not done.is_set():
                f.write(bytes(4096))
                f.flush()
                os.fsync(f.fileno())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()


def spans_of(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


class TraceCase(TempDirCase):
    def data(self, count=64, **more):
        folder = self.dir / "data"
        self.n_bytes = make_files(folder, count, **more)
        return folder

    def bench(self, *args, trace="t.json", status=0):
        done = run("bench", "--data", self.dir / "data", "--batch", 16, "--runs", 1, "--trace",
                   self.dir / trace, *args)
        self.assert_status(done, status)
        return done

    def train(self, *more):
        """A short training with a long wait in each step: counters come ten times a second."""
        done = run("generate", "--count", 24, "--classes", 2, "--preset", "caltech101", "--out",
                   self.dir / "data")
        self.assert_status(done, 0)
        done = run("train", "--data", self.dir / "data", "--device", "emulated:0.1", "--batch", 4,
                   "--image-size", 32, "--trace", self.dir / "t.json", *more)
        self.assert_status(done, 0)
        return self.load()["traceEvents"]

    def load(self, name="t.json"):
        return json.loads((self.dir / name).read_text())

    def assert_nested(self, spans):
        """On every line of the picture, two spans are apart or one contains the other."""
        lines = collections.defaultdict(list)
        for e in spans:
            begin = round(e["ts"] * 1000)
            lines[e["pid"], e["tid"]].append((begin, -(begin + round(e["dur"] * 1000)), e["name"]))
        for line in lines.values():
            open_ends = []
            for begin, end, name in sorted(line):
                while open_ends and open_ends[-1] <= begin:
                    open_ends.pop()
                if open_ends:
                    self.assertLessEqual(-end, open_ends[-1], (name, begin))
                open_ends.append(-end)


class ChromeTraces(TraceCase):
    def test_what_the_consumer_reads_itself_lies_within_its_waiting(self):
        self.data()
        self.bench("--threads", 2, "--epochs", 200)
        spans = spans_of(self.load())
        names = collections.Counter(e["name"] for e in spans)
        self.assertEqual(names["Read"], 12800)
        self.assertEqual(names["Wait"], 800)
        self.assert_nested(spans)

    def test_spans_are_whole_named_and_nested_in_both_engines(self):
        self.data()
        for engine in engines():
            self.bench("--engine", engine, "--threads", 2, "--epochs", 2)
            trace = self.load()
            spans = spans_of(trace)
            names = collections.Counter(e["name"] for e in spans)
            self.assertEqual(names["Read"], 128)
            self.assertEqual(names["Wait"], 8)
            self.assertLessEqual(set(names), {"Read", "Wait", "Idle"})
            self.assert_nested(spans)
            reads = [e for e in spans if e["name"] == "Read"]
            self.assertEqual(sum(e["args"]["bytes"] for e in reads), 2 * self.n_bytes)
            steps = collections.Counter((e["args"]["epoch"], e["args"]["step"]) for e in reads)
            self.assertEqual(steps, {(e, s): 16 for e in range(2) for s in range(4)})
            for e in reads:  # few enough that all are named, and rightly
                self.assertEqual(os.path.getsize(e["args"]["file"]), e["args"]["bytes"])
            lines = {(e["pid"], e["tid"]) for e in spans}
            named = {(e["pid"], e.get("tid")) for e in trace["traceEvents"]
                     if e["name"] == "thread_name"}
            self.assertLessEqual(lines, named)
            marks = [e["name"] for e in trace["traceEvents"] if e["ph"] == "i"]
            self.assertEqual(marks, ["run begins", "end of run"])

    def test_decoding_is_part_of_loading(self):
        run("generate", "--count", 32, "--classes", 2, "--out", self.dir / "data")
        for engine in engines():
            self.bench("--map", "decode", "--engine", engine, "--threads", 2)
            spans = spans_of(self.load())
            names = collections.Counter(e["name"] for e in spans)
            for name in ("Load", "Read", "Decode", "Resize"):
                self.assertEqual(names[name], 32, name)
            self.assertEqual(names["Queue wait"], 32 if engine == "uring" else 0)
            self.assert_nested(spans)

    def test_the_result_says_what_was_traced(self):
        folder = self.data()
        rows = results("bench", "--data", folder, "--batch", 16, "--runs", 1, "--threads", "1,2",
                       "--trace", self.dir / "t.json")
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual(row["trace"]["file"], str(self.dir / "t.json"))
            self.assertGreaterEqual(row["trace"]["events"], 2 * (64 + 4))
            self.assertEqual((row["trace"]["dropped"], row["trace"]["lost"]), (0, 0))
        rows = results("bench", "--data", folder, "--batch", 16, "--runs", 1)
        self.assertIsNone(rows[0]["trace"])

    def test_batches_are_the_same_with_and_without(self):
        folder = self.data()
        args = ["bench", "--data", folder, "--batch", 16, "--runs", 1, "--hash"]
        plain, traced = results(*args), results(*args, "--trace", self.dir / "t.json")
        self.assertEqual(plain[0]["batch_hash"], traced[0]["batch_hash"])


class TrainTraces(TraceCase):
    def test_the_system_is_drawn_beside_the_spans(self):
        with writes_to(self.dir / "written"):
            events = self.train()
        counters = collections.defaultdict(list)
        for e in events:
            if e["ph"] == "C":
                (value,) = e["args"].values()
                counters[e["name"]].append(value)
        if os.path.exists("/proc/stat"):
            self.assertTrue(counters["CPU busy %"])
            self.assertTrue(all(-1 <= v <= 101 for v in counters["CPU busy %"]), counters)
        disk = disk_of(self.dir)
        if disk and os.path.exists("/proc/diskstats"):
            reads = counters[f"{disk} read MB/s"]
            self.assertTrue(reads, sorted(counters))
            self.assertEqual(len(counters[f"{disk} queue"]), len(reads))
            self.assertEqual(len(counters[f"{disk} write MB/s"]), len(reads))
            self.assertGreater(max(counters[f"{disk} write MB/s"]), 0)

    def test_draining_goes_on_after_the_end_of_the_run(self):
        if shutil.disk_usage(self.dir).free < 4e9:
            self.skipTest("less than 4 GB free")
        # One checkpoint, after the last step: hundreds of megabytes are yet to be copied.
        events = self.train("--checkpoint", self.dir / "fast", "--mode", "burst", "--every", 6,
                            "--drain", self.dir / "far")
        (end,) = [e["ts"] for e in events if e["ph"] == "i" and e["name"] == "end of run"]
        drains = [e for e in events if e["ph"] == "X" and e["name"] == "Drain"]
        self.assertTrue(drains)
        last = max(e["ts"] + e["dur"] for e in drains)
        self.assertGreater(last, end)
        (r,) = results("inspect", self.dir / "t.json")
        self.assertGreater(r["after_end_s"], 0)
        self.assertGreaterEqual(r["after_end_s"], (last - end) / 1e6 - 1e-6)


@unittest.skipUnless(chromium.program(), "chromium is not installed")
class InChromium(TraceCase):
    """What a browser's own parser makes of the files."""

    def judge(self):
        browser = chromium.Browser()
        self.addCleanup(browser.close)
        (self.dir / "t.txt").write_bytes((self.dir / "t.json").read_bytes())
        browser.open(self.dir / "t.txt")
        found = browser.evaluate(JUDGE)
        self.assertEqual(found["crossing"], [])
        self.assertTrue(found["values"])
        spans = spans_of(self.load())
        self.assertEqual(found["kinds"]["X"], len(spans))
        self.assertEqual(found["lines"], len({(e["pid"], e["tid"]) for e in spans}))
        return found

    def test_a_trace_of_bench_is_read_and_nested(self):
        self.data()
        self.bench("--threads", 2, "--epochs", 2)
        self.assertGreaterEqual(self.judge()["kinds"]["X"], 128)

    def test_a_trace_of_train_is_read_with_its_curves(self):
        self.train()
        found = self.judge()
        self.assertGreaterEqual(found["kinds"]["C"], 1)
        self.assertIn("CPU busy %", found["tracks"])


class TimeLoggerTraces(TraceCase):
    def test_the_columns_are_timeloggers(self):
        self.data()
        start = time.time()
        self.bench("--threads", 2, "--shard", "1/2", trace="t.csv")
        with open(self.dir / "t.csv", newline="") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual(list(rows[0]), COLUMNS)
        reads = [r for r in rows if r["Action Name"] == "Read"]
        self.assertEqual(len(reads), 32)
        for r in reads:
            self.assertEqual(r["Rank"], "1")
            begin, end = float(r["Start Time"]), float(r["End Time"])
            self.assertAlmostEqual(end - begin, float(r["Time Taken"]), places=5)
            self.assertTrue(start - 1 <= begin <= end <= time.time() + 1)
            size, path = r["Action Description"].split(" ", 3)[2:]
            self.assertEqual(size, f"bytes={os.path.getsize(path.removeprefix('file='))}")


class Inspect(TraceCase):
    def test_both_forms_tell_the_same_phases(self):
        self.data()
        for name in ("t.json", "t.csv"):
            self.bench("--threads", 2, trace=name)
            done = run("inspect", self.dir / name)
            self.assert_status(done, 0)
            for word in ("Read", "Wait", "slowest reads", "end of run"):
                self.assertIn(word, done.out)
            self.assertNotIn("warning", done.out)
            (r,) = results("inspect", self.dir / name)
            self.assertEqual(r["kind"], "trace")
            phases = {p["name"]: p for p in r["phases"]}
            read = phases["Read"]
            self.assertEqual((read["count"], read["bytes"]), (64, self.n_bytes))
            self.assertLessEqual(read["union_s"], read["sum_s"] + 1e-9)
            self.assertAlmostEqual(read["mb_per_s"] / (read["bytes"] / read["union_s"] / 1e6), 1,
                                   places=5)
            self.assertEqual(len(r["steps"]), 4)
            self.assertTrue(r["slowest_files"][0]["file"].startswith(str(self.dir)))
            self.assertEqual(len(r["slowest_files"]), 10)

    def test_union_and_overlap_match_a_recount(self):
        self.data(256)
        self.bench("--threads", 2)
        moments = collections.defaultdict(set)  # in microseconds: coarse, but independent
        for e in spans_of(self.load()):
            moments[e["name"]].update(range(int(e["ts"]), int(e["ts"] + e["dur"]) + 1))
        (r,) = results("inspect", self.dir / "t.json")
        n = len(spans_of(self.load()))
        for p in r["phases"]:
            self.assertAlmostEqual(p["union_s"] * 1e6, len(moments[p["name"]]), delta=2 * n)
        for o in r["overlap"]:
            both = len(moments[o["a"]] & moments[o["b"]])
            self.assertAlmostEqual(o["overlap_s"] * 1e6, both, delta=4 * n)

    def test_two_traces_are_joined(self):
        self.data()
        self.bench()
        foreign = {"traceEvents": [{"ph": "X", "name": "ProfilerStep#0", "pid": 1, "tid": 1,
                                    "ts": 0, "dur": 1e6, "args": {}}]}
        for base, clock in ((self.load()["baseTimeNanoseconds"], "wall clock"),
                            (None, "starts aligned")):
            if base:
                foreign["baseTimeNanoseconds"] = base
            else:
                del foreign["baseTimeNanoseconds"]
            (self.dir / "p.json").write_text(json.dumps(foreign))
            (r,) = results("inspect", self.dir / "t.json", self.dir / "p.json")
            self.assertEqual(r["clock"], clock)
            self.assertEqual(r["compute"], "ProfilerStep")
            self.assertGreater(r["read_s"], 0)
            if base:  # the long step covers the whole run
                self.assertAlmostEqual(r["read_hidden_s"], r["read_s"], places=6)
        done = run("inspect", self.dir / "t.json", self.dir / "p.json")
        self.assertIn("joined by an assumption", done.out)

    def test_emulated_storage_is_said_wherever_the_trace_is_read(self):
        self.data()
        for name in ("t.json", "t.csv"):
            self.bench("--storage", "ssd", trace=name)
            self.assertIn("ssd", (self.dir / name).read_text().splitlines()[name == "t.csv"])
            done = run("inspect", self.dir / name)
            self.assertIn("EMULATED storage: ssd", done.out)
            (r,) = results("inspect", self.dir / name)
            trace = r["traces"][0]
            self.assertEqual((trace["emulated"], trace["storage"]), (True, "ssd"))
            self.bench(trace=name)
            self.assertNotIn("EMULATED", run("inspect", self.dir / name).out)
            (r,) = results("inspect", self.dir / name)
            trace = r["traces"][0]
            self.assertEqual(trace["storage"], None)
            self.assertEqual(trace["emulated"], False if name == "t.json" else None)

    def test_a_training_names_all_that_is_emulated(self):
        self.train("--storage", "optane", "--checkpoint", self.dir / "c", "--checkpoint-storage",
                   "ssd", "--every", 2, "--steps", 2)
        (r,) = results("inspect", self.dir / "t.json")
        self.assertEqual(r["traces"][0]["storage"], "optane; checkpoints: ssd")
        self.assertIn("emulated accelerator: emulated:0.1", [m["name"] for m in r["marks"]])

    def test_bench_and_inspect_tell_the_same_of_a_run(self):
        data = self.dir / "data"
        self.assert_status(run("generate", "--preset", "caltech101", "--count", 48, "--out", data), 0)
        for engine in engines():
            (told,) = results("bench", "--data", data, "--batch", 8, "--runs", 4, "--map", "decode",
                              "--image-size", 32, "--engine", engine, "--threads", 2, "--hash",
                              "--trace", self.dir / "t.json")
            (r,) = results("inspect", self.dir / "t.json")
            self.assertEqual(len(r["runs"]), 4)
            self.assertEqual(len(r["steps"]), 4 * 6)  # the pass that hashes is no run
            self.assertEqual(r["unused_batches"], 0)
            for run_, per_s in zip(r["runs"][1:], told["runs"]):  # bench leaves the first one out
                self.assertEqual((run_["reads"], run_["bytes"]), (48, told["delivered_bytes"]))
                self.assertAlmostEqual(run_["reads_per_s"] / per_s, 1, places=6)
            self.assertAlmostEqual(sum(x["seconds"] for x in r["runs"]), r["run_s"], places=6)
            (told,) = results("bench", "--data", data, "--batch", 8, "--runs", 1, "--engine", engine,
                              "--trace", self.dir / "t.json")
            (r,) = results("inspect", self.dir / "t.json")
            self.assertAlmostEqual(r["runs"][0]["mb_per_s"] / told["mb_per_s"], 1, places=6)
            phases = {p["name"]: p for p in r["phases"]}
            for name, latency in (("Read", "read_latency_us"), ("Wait", "batch_latency_us")):
                for which in ("p50", "p99", "max"):  # upper edges of bins: up to 1/128 more
                    low = phases[name][f"{which}_us"]
                    self.assertLessEqual(low * (1 - 1e-6), told[latency][which])
                    self.assertLessEqual(told[latency][which], low * (1 + 1 / 128) + 0.001)

    def test_a_training_has_as_many_steps_as_it_made(self):
        self.train("--steps", 3, "--prefetch", 2)  # of 6 batches, some of which are read ahead
        (r,) = results("inspect", self.dir / "t.json")
        self.assertEqual([s["step"] for s in r["steps"]], [0, 1, 2])
        done = run("inspect", self.dir / "t.json")
        self.assertIn("\n3 steps", done.out)
        self.assertLess(r["run_s"], r["seconds"])  # start-up is no part of the run
        (train,) = [p for p in r["phases"] if p["name"] == "Train"]
        self.assertAlmostEqual(train["run_share"], train["union_s"] / r["run_s"], places=6)

    def test_a_lazy_checkpoint_has_no_rate_and_its_writing_has(self):
        if shutil.disk_usage(self.dir).free < 2e9:
            self.skipTest("less than 2 GB free")
        self.train("--steps", 1, "--checkpoint", self.dir / "c")
        (r,) = results("inspect", self.dir / "t.json")
        phases = {p["name"]: p for p in r["phases"]}
        self.assertEqual(phases["Checkpoint"]["count"], 1)
        self.assertIsNone(phases["Checkpoint"]["mb_per_s"])
        self.assertGreater(phases["Write"]["bytes"], 690_000_000)

    def test_times_beyond_any_clock_are_no_negative_ones(self):
        (self.dir / "t.json").write_text(
            '[{"ph":"X","name":"Read","ts":-9.2e15,"dur":1},'
            '{"ph":"X","name":"Read","ts":9.2e15,"dur":1},{"ph":"i","name":"m","ts":9.2e15}]')
        done = run("inspect", self.dir / "t.json")
        self.assert_status(done, 0)
        self.assertIn("18400000000.000 s from the first to the last event", done.out)
        self.assertNotIn("-", re.findall(r"^ *(\S+) s  m$", done.out, re.M)[0])

    def test_packed_traces_are_read_as_they_are(self):
        self.data()
        self.bench()
        plain = (self.dir / "t.json").read_bytes()
        half = len(plain) // 2
        packed = gzip.compress(plain)
        (told,) = results("inspect", self.dir / "t.json")
        for data in (packed, gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
                     packed + b"not gzip"):
            (self.dir / "t.json.gz").write_bytes(data)
            (r,) = results("inspect", self.dir / "t.json.gz")
            self.assertEqual((r["phases"], r["steps"]), (told["phases"], told["steps"]))
        (self.dir / "t.json.gz").write_bytes(packed[:len(packed) // 2])
        done = run("inspect", self.dir / "t.json.gz")
        self.assert_status(done, 0)
        self.assertIn("warning", done.out + done.err)
        for data in (gzip.compress(packed), gzip.compress(b"hello"), packed[:3]):
            (self.dir / "t.json.gz").write_bytes(data)
            done = run("inspect", self.dir / "t.json.gz")
            self.assert_status(done, 1)
            self.assertIn("not a trace", done.err)

    def test_what_is_no_trace_is_said(self):
        for text, word in (("{}", "without traceEvents"), ("[{]", "makes no sense")):
            (self.dir / "x.json").write_text(text)
            done = run("inspect", self.dir / "x.json")
            self.assert_status(done, 1)
            self.assertIn(word, done.err)
            self.assertEqual(done.out, "")
        self.data()
        for pair in (("data", "data"), ("data", "nope"), ("x.json", "data")):
            done = run("inspect", *(self.dir / name for name in pair))
            self.assert_status(done, 1)
            self.assertIn(f"{self.dir}/data: Is a directory; two paths are two traces", done.err)
        os.mkfifo(self.dir / "pipe")
        for pair in ((self.dir / "pipe", "/dev/null"), ("/dev/null", self.dir / "x.json")):
            done = run("inspect", *pair)
            self.assert_status(done, 1)
            self.assertIn(f"{pair[0]}: not a regular file", done.err)


class WhenThingsGoWrong(TraceCase):
    def endless(self, *args, trace="t.json"):
        """A run that is well under way: its trace has reads in it."""
        self.data()
        path = self.dir / trace
        child = subprocess.Popen([MILLRACE, "bench", "--data", self.dir / "data", "--batch", "4",
                                  "--runs", "1", "--epochs", "10000000", "--trace", path, *args],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        end = time.monotonic() + TIMEOUT_S
        while not path.exists() or b"Read" not in path.read_bytes():
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(child.poll())
        return child, path

    def test_after_an_interruption_the_trace_is_whole(self):
        child, path = self.endless()
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=TIMEOUT_S)
        self.assertEqual(child.returncode, 130)
        spans = spans_of(json.loads(path.read_text()))
        self.assertTrue(any(e["name"] == "Read" for e in spans))

    def test_a_killed_program_leaves_what_it_had_written(self):
        for name in ("t.json", "t.csv"):
            child, path = self.endless(trace=name)
            child.kill()
            child.communicate(timeout=TIMEOUT_S)
            done = run("inspect", path)
            self.assert_status(done, 0)
            self.assertIn("Read", done.out)
            (r,) = results("inspect", path)
            self.assertGreater(r["traces"][0]["events"], 0)
            # SIGKILL ends a write in its middle, so a list of lines may stop in a line.  JSON
            # lacks its end in any case.
            whole = name.endswith("csv") and path.read_bytes().endswith(b"\n")
            self.assertEqual(r["traces"][0]["cut"], not whole)
            path.unlink()

    def test_a_full_disk_costs_the_trace_and_not_the_result(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        folder = self.data()
        done = run("bench", "--data", folder, "--batch", 16, "--runs", 1, "--trace", "/dev/full",
                   "--json", self.dir / "r.json")
        self.assert_status(done, 1)
        self.assertIn("/dev/full: No space left on device", done.err)
        self.assertIn("lost", done.err)
        (row,) = json.loads((self.dir / "r.json").read_text())["results"]
        self.assertEqual(row["images"], 64)
        self.assertGreater(row["trace"]["lost"], 0)
        self.assertEqual(row["trace"]["events"], 0)

    @needs("bash")
    def test_a_file_at_its_size_limit_ends_with_a_whole_event(self):
        self.data(256)
        limit = 20000
        command = 'ulimit -f 20; trap "" XFSZ; exec "$@"'
        done = run("bench", "--data", self.dir / "data", "--batch", 16, "--runs", 1, "--trace",
                   self.dir / "t.json", prefix=["bash", "-c", command, "bash"])
        self.assert_status(done, 1)
        self.assertIn("File too large", done.err)
        text = (self.dir / "t.json").read_text()
        self.assertLessEqual(len(text), limit + 1024)
        self.assertTrue(text.endswith("}\n"))
        events = json.loads(text + "]}")["traceEvents"]
        self.assertGreater(len(events), 20)
        (r,) = results("inspect", self.dir / "t.json")
        self.assertEqual(r["traces"][0]["events"],
                         len([e for e in events if e["ph"] in "XiC"]))

    def test_a_path_that_cannot_be_written_is_said_before_the_work(self):
        folder = self.data()
        done = run("bench", "--data", folder, "--trace", self.dir / "no" / "t.json")
        self.assert_status(done, 1)
        self.assertIn("--trace", done.err)
        self.assertIn("No such file or directory", done.err)


if __name__ == "__main__":
    main()
