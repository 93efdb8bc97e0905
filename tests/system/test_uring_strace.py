#!/usr/bin/env python3
"""test_uring_strace.py - in the uring engine io_uring alone reads the samples, and opens what it
takes I/O to open.

The program runs under strace; calls that name a file of the data set are counted.  The threads
engine on the same data is the control: there the same count must find every sample."""
import collections
import os
import re
import unittest

from system_kit import STRACE_ENV, TempDirCase, main, make_files, needs, run, uring_missing

READS = ["read", "pread64", "readv", "preadv", "preadv2", "sendfile", "splice", "copy_file_range",
         "mmap"]
OPENS = ["open", "openat"]
AHEAD = ["openat2"]  # of files that are in memory, with RESOLVE_CACHED
COUNT = 48


@needs("strace")
class UnderStrace(TempDirCase):
    @classmethod
    def setUpClass(cls):
        why = uring_missing()
        if why:
            raise unittest.SkipTest(why)

    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        make_files(self.data, COUNT, size=20000)
        probe = run("--version", prefix=["strace", "-o", "/dev/null"], env=STRACE_ENV)
        if probe.status:
            self.skipTest(f"strace does not work here: {probe.err.strip()}")

    def calls(self, engine, *more):
        """{(call, in the main thread?): how often a file of the data set was named}, images."""
        log = self.dir / "log"
        trace = "trace=" + ",".join(["?" + name for name in (*READS, *OPENS, *AHEAD)])
        done = run("bench", "--data", self.data, "--engine", engine, "--threads", 2, "--batch", 8,
                   "--runs", 1, "--json", "-", *more, env=STRACE_ENV,
                   prefix=["strace", "-f", "-y", "-s", "4096", "-e", trace, "-o", log])
        self.assert_status(done, 0)
        counts, main_thread = collections.Counter(), None
        for line in log.read_text(errors="surrogateescape").splitlines():
            entry = re.match(r"(\d+) +(\w+)\((.*)", line)
            if not entry:
                continue
            thread, call, rest = entry.groups()
            main_thread = main_thread or thread
            if "O_PATH" in rest:  # the folder of the files, from which they are opened
                continue
            # A mapping by the main thread is how residency is asked where cachestat is missing.
            if f"{self.data}/class" in rest:
                if call in AHEAD:
                    self.assertIn("RESOLVE_CACHED", rest)
                counts[call, thread == main_thread] += 1
        return counts, done.json["results"][0]["images"]

    @staticmethod
    def total(counts, names, where=(True, False)):
        return sum(counts[name, w] for name in names for w in where)

    def test_control_threads_read_every_sample(self):
        counts, images = self.calls("threads")
        self.assertEqual(images, COUNT)
        self.assertGreaterEqual(self.total(counts, READS, [False]), COUNT)
        self.assertEqual(self.total(counts, OPENS, [False]), COUNT)

    def test_no_read_call_names_a_sample(self):
        counts, images = self.calls("uring")
        self.assertEqual(images, COUNT)
        self.assertEqual(self.total(counts, [c for c in READS if c != "mmap"]), 0, counts)
        self.assertEqual(self.total(counts, ["mmap"], [False]), 0, counts)

    def test_opens_are_for_the_cache_question_alone(self):
        threads, images = self.calls("threads")
        uring, _ = self.calls("uring")
        self.assertEqual(self.total(uring, OPENS, [False]), 0, uring)
        # What the main thread opens to ask about the cache is the same in both.
        self.assertEqual(self.total(uring, OPENS, [True]), self.total(threads, OPENS, [True]))
        self.assertEqual(self.total(threads, OPENS) - self.total(uring, OPENS), images)
        # A file is opened ahead at most once.
        self.assertLessEqual(self.total(uring, AHEAD), images)
        self.assertEqual(self.total(threads, AHEAD), 0)

    def test_large_and_bad_samples_are_no_exception(self):
        folder = self.data / "class0"
        for i in range(3):
            (folder / f"large{i}").write_bytes(b"x" * (1 << 20))
        (folder / "empty").touch()
        (folder / "gone").symlink_to("nowhere")
        os.chmod(folder / "0000.bin", 0)
        os.truncate(folder / "0001.bin", 1)
        for more in ([], ["--cold"], ["--hash"], ["--io-depth", 1], ["--prefetch", 0]):
            counts, images = self.calls("uring", "--keep-last", "--max-errors", 20, *more)
            self.assertEqual(images, COUNT + 5)
            self.assertEqual(self.total(counts, [c for c in READS if c != "mmap"]), 0, counts)
            self.assertEqual(self.total(counts, [*OPENS, "mmap"], [False]), 0, counts)


if __name__ == "__main__":
    main()
