#!/usr/bin/env python3
"""test_baseline.py - `millrace baseline` as its users meet it: what it reports, what it refuses,
and that it leaves nothing behind."""
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import unittest

from system_kit import (MILLRACE, STRACE_ENV, TIMEOUT_S, OnTerminal, TempDirCase, is_root, main,
                        mount_small_disk, needs, run, text, uring_missing)

PATTERNS = ["seq", "random-imagenet", "random-16k", "random-4k", "small-files", "fsync"]
FIELDS = {"pattern", "engine", "direct", "depth", "block_bytes", "split", "file_bytes", "storage",
          "emulated", "calibrated", "cold", "read_mb_per_s", "write_mb_per_s", "iops",
          "created_per_s", "latency_us", "runs", "write_runs", "ordinary_pages", "spread",
          "cut", "late_share", "partial", "warning"}
SMALL = ["--size", "16M", "--runs", 2]
TINY = ["--size", "1M", "--runs", 1]


class Baseline(TempDirCase):
    def setUp(self):
        super().setUp()
        self.where = self.dir / "where"
        self.where.mkdir()

    def assert_nothing_left(self, where=None):
        self.assertEqual(os.listdir(where or self.where), [])

    def measure(self, *args, where=None, **more):
        done = run("baseline", where or self.where, *args, "--json", "-", **more)
        self.assert_status(done, 0)
        self.assert_nothing_left(where)
        results = done.json["results"]
        self.assertEqual([r["pattern"] for r in results], PATTERNS)
        for r in results:
            self.assertEqual(set(r), FIELDS)
        return {r["pattern"]: r for r in results}

    def refused(self, *args, status=1, **more):
        done = run("baseline", *args, **more)
        self.assert_status(done, status)
        self.assertEqual(done.out, "")
        return done.err


class WhatItReports(Baseline):
    def test_every_pattern_with_its_figures(self):
        r = self.measure(*SMALL)
        for name in PATTERNS:
            p = r[name]
            self.assertEqual(len(p["runs"]), 1)
            self.assertGreater(p["runs"][0], 0)
            self.assertGreater(p["iops"], 0)
            latency = p["latency_us"]
            self.assertTrue(0 < latency["p50"] <= latency["p99"] <= latency["p999"])
            self.assertEqual((p["emulated"], p["storage"], p["partial"]), (False, None, False))
            self.assertIsNone(p["calibrated"])
            self.assertEqual(p["file_bytes"], 16 << 20)
            self.assertEqual(p["read_mb_per_s"] is None, name == "fsync")
            self.assertEqual(p["write_mb_per_s"] is None, name not in ("seq", "small-files"))
            self.assertEqual(p["created_per_s"] is None, name != "small-files")
        self.assertEqual([r[p]["depth"] for p in PATTERNS], [16, 128, 128, 1, 1, 1])
        self.assertEqual([r[p]["block_bytes"] for p in PATTERNS],
                         [1 << 20, None, 16384, 4096, 4096, 4096])
        self.assertEqual(r["random-imagenet"]["split"],
                         "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1")
        self.assertAlmostEqual(r["seq"]["read_mb_per_s"], r["seq"]["runs"][0], places=3)
        self.assertAlmostEqual(r["seq"]["write_mb_per_s"], r["seq"]["write_runs"][0], places=3)
        self.assertAlmostEqual(r["random-16k"]["iops"], r["random-16k"]["runs"][0], places=3)

    def test_table_and_environment(self):
        out = self.dir / "out.json"
        done = run("baseline", self.where, *TINY, "--json", out)
        self.assert_status(done, 0)
        for name in PATTERNS:
            self.assertRegex(done.out, rf"(?m)^{name} .*\d")
        root = json.loads(out.read_bytes())
        self.assertEqual(root["command"], "baseline")
        storage = root["environment"]["storage"]
        self.assertTrue(storage["file_system"] and storage["mount_options"])
        if "device" in storage:
            for key in ("scheduler", "read_ahead_kb", "max_request_kb", "nr_requests",
                        "logical_block_bytes", "physical_block_bytes"):
                self.assertIn(key, storage)

    def on_ext4(self):
        """The record of the device under an ext4 that no loop device caches, or skip."""
        done = run("baseline", self.where, *TINY, "--json", "-")
        self.assert_status(done, 0)
        storage = done.json["environment"]["storage"]
        device = storage.get("device", "loop")
        if storage["file_system"] != "ext4" or device.startswith(("loop", "dm-", "md")):
            self.skipTest(f"{storage['file_system']} on {device}")
        return storage, {r["pattern"]: r for r in done.json["results"]}

    def test_on_ext4_everything_goes_around_the_cache(self):
        _, r = self.on_ext4()
        for name in PATTERNS[:4]:
            if not uring_missing():
                self.assertEqual(r[name]["engine"], "uring")
            self.assertEqual((r[name]["direct"], r[name]["cold"]), (True, "data"), name)

    def test_direct_reads_of_several_pages_are_measured_with_both_kinds_of_pages(self):
        _, r = self.on_ext4()
        for name in PATTERNS:
            ordinary = r[name]["ordinary_pages"]
            self.assertEqual(ordinary is not None,
                             name in ("seq", "random-imagenet", "random-16k"), name)
            if ordinary:
                self.assertEqual(set(ordinary), {"read_mb_per_s", "iops", "runs"})
                self.assertEqual(len(ordinary["runs"]), len(r[name]["runs"]))
                self.assertGreater(ordinary["iops"], 0)
                key = "iops" if name == "random-16k" else "read_mb_per_s"
                self.assertAlmostEqual(ordinary[key], statistics.median(ordinary["runs"]), places=3)
        table = run("baseline", self.where, *TINY).out
        self.assertEqual(len(re.findall(r"(?m)^  ordinary pages +[\d.]+ +\d+$", table)), 3, table)

    def test_the_device_is_recorded_as_sysfs_has_it(self):
        storage, _ = self.on_ext4()
        (device,) = pathlib.Path("/sys/class/block").glob(storage["device"])
        queue = device.resolve() / "queue"
        if not queue.exists():
            queue = device.resolve().parent / "queue"
        for key, name in (("scheduler", "scheduler"), ("read_ahead_kb", "read_ahead_kb"),
                          ("max_request_kb", "max_sectors_kb"), ("nr_requests", "nr_requests"),
                          ("logical_block_bytes", "logical_block_size"),
                          ("physical_block_bytes", "physical_block_size"),
                          ("write_cache", "write_cache"), ("rotational", "rotational")):
            self.assertEqual(str(storage[key]), (queue / name).read_text().strip(), key)

    def test_the_defaults_are_the_studys(self):
        done = run("baseline", "--help")
        self.assertRegex(done.out, r"--size SIZE [^\[]*\[5G\]")
        self.assertRegex(done.out, r"--runs N [^\[]*\[6\]")

    def test_of_several_runs_the_first_is_left_out_and_the_median_given(self):
        r = self.measure("--size", "1M", "--runs", 4)
        for name in PATTERNS:
            self.assertEqual(len(r[name]["runs"]), 3)
        self.assertAlmostEqual(r["random-16k"]["iops"], statistics.median(r["random-16k"]["runs"]),
                               places=3)

    @needs("strace")
    def test_the_file_is_direct_and_the_sync_is_timed(self):
        self.on_ext4()
        log = self.dir / "log"
        prefix = ["strace", "-f", "-y", "-qq", "-o", log, "--seccomp-bpf", "-e",
                  "trace=fcntl,fsync", "-e", "inject=fsync:delay_exit=300000:when=1"]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            self.skipTest("strace cannot trace here")
        r = self.measure(*TINY, prefix=prefix, env=STRACE_ENV)
        calls = [line for line in log.read_text().splitlines() if "/unnamed" in line]
        direct = [i for i, c in enumerate(calls) if "F_SETFL" in c and "O_DIRECT" in c]
        syncs = [i for i, c in enumerate(calls) if " fsync(" in c]
        self.assertTrue(direct and direct[0] < syncs[0], calls[:20])
        # The first sync, that of the write in order, took 0.3 s longer.
        self.assertLessEqual(r["seq"]["write_mb_per_s"], (1 << 20) / 0.3e6)

    @needs("strace")
    def test_without_io_uring_threads_do_the_work(self):
        # Only the child is traced for this call: everything else goes at full speed.
        prefix = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_setup", "-e",
                  "inject=io_uring_setup:error=ENOSYS", "--seccomp-bpf"]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            self.skipTest("strace cannot trace here")
        r = self.measure(*TINY, prefix=prefix, env=STRACE_ENV)
        self.assertEqual(r["seq"]["engine"], "threads")
        self.assertEqual(r["small-files"]["engine"], "calls")

    def test_memory_is_called_memory(self):
        if not os.path.ismount("/dev/shm") or not os.access("/dev/shm", os.W_OK):
            self.skipTest("no tmpfs at /dev/shm")
        where = pathlib.Path("/dev/shm", f"millrace-test-{os.getpid()}")
        where.mkdir()
        self.addCleanup(shutil.rmtree, where, ignore_errors=True)
        r = self.measure(*TINY, where=where)
        self.assertFalse(r["seq"]["direct"])
        self.assertEqual(r["seq"]["cold"], "unproven")
        self.assertIn("in memory", r["seq"]["warning"])

    @unittest.skipUnless(is_root(), "needs root to become somebody else")
    def test_caches_that_may_not_be_dropped_are_unproven(self):
        self.where.chmod(0o777)
        r = self.measure(*TINY, "--drop-caches", stranger=True)
        for name in PATTERNS[:-1]:
            self.assertEqual(r[name]["cold"], "unproven")
        self.assertIn("could not be dropped", r["seq"]["warning"])


    @needs("unshare", "mount")
    @unittest.skipUnless(is_root(), "mounting needs root")
    def test_root_of_a_container_may_not_drop_caches_either(self):
        # As in a container: root, but /proc/sys is read-only.
        prefix = ["unshare", "--mount", "sh", "-c",
                  'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && '
                  'exec "$@"', "sh"]
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no mounts of its own here")
        r = self.measure(*TINY, "--drop-caches", prefix=prefix)
        for name in PATTERNS[:-1]:
            self.assertEqual(r[name]["cold"], "unproven")
        self.assertIn("could not be dropped", r["seq"]["warning"])


class WhatItRefuses(Baseline):
    def test_wrong_folders(self):
        self.assertIn("No such file", self.refused(self.dir / "none", *TINY))
        file = self.dir / "file"
        file.write_text("x")
        self.assertIn("not a folder", self.refused(file, *TINY))
        self.refused(status=2)
        self.refused(self.where, self.where, status=2)

    def test_wrong_sizes_and_counts(self):
        for args in (["--size", "0"], ["--size", "1K"], ["--size", "5Q"], ["--runs", "0"],
                     ["--runs", "100000"], ["--size", "99999999999T"]):
            self.refused(self.where, *args, status=2)
        self.assert_nothing_left()

    def test_a_size_beyond_the_disk(self):
        err = self.refused(self.where, "--size", "900000T")
        self.assertIn("are needed and", err)
        self.assertIn("--size", err)
        self.assert_nothing_left()

    def test_a_limit_on_file_sizes(self):
        import resource
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        err = self.refused(self.where, "--size", "16M",
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                 (1 << 20, hard)))
        self.assertIn("ulimit -f", err)
        self.assert_nothing_left()

    @unittest.skipUnless(is_root(), "needs root to become somebody else")
    def test_a_folder_of_somebody_else(self):
        err = self.refused(self.where, *TINY, stranger=True)
        self.assertIn("Permission denied", err)
        self.assertIn("may make files", err)

    def test_bad_profiles(self):
        profile = self.dir / "bad.profile"
        profile.write_text("name = bad\nread_mb_per_s = fast\n")
        for name in ("no-such-device", profile):
            self.assertIn(str(name), self.refused(self.where, *TINY, "--storage", name,
                                                 status=2))
        self.refused(self.where, *TINY, "--storage", "hdd", "--save-profile", self.dir / "x",
                     status=2)
        self.assertIn("--save-profile", self.refused(self.where, *TINY, "--save-profile",
                                                     self.dir / "none" / "x"))
        self.assert_nothing_left()

    def test_a_profile_that_cannot_be_saved_takes_no_result(self):
        done = run("baseline", self.where, "--size", "1M", "--runs", 2, "--save-profile", "/dev/full",
                   "--json", "-")
        self.assert_status(done, 1)
        self.assertIn("--save-profile /dev/full: ", done.err)
        self.assertEqual([r["pattern"] for r in done.json["results"]], PATTERNS)


@needs("losetup", "mkfs.ext4", "mount")
@unittest.skipUnless(is_root(), "mounting needs root")
class OnASmallDisk(Baseline):
    """A disk of 48 MiB of its own."""

    def sh(self, *args):
        done = subprocess.run([str(a) for a in args], capture_output=True, timeout=TIMEOUT_S,
                              check=False)
        if done.returncode:
            self.skipTest(f"{args[0]} does not work here: {text(done.stderr).strip()}")
        return text(done.stdout).strip()

    def setUp(self):
        super().setUp()
        mount_small_disk(self, self.dir / "image", self.where, 48)

    def test_a_disk_that_is_too_small_or_full(self):
        err = self.refused(self.where, "--size", "64M")
        self.assertIn("are needed and", err)
        self.assert_nothing_left()
        filler = self.where / "filler"
        with open(filler, "wb") as f:
            try:
                while True:
                    f.write(b"x" * (1 << 20))
                    f.flush()
            except OSError:
                pass
        self.assertIn("are needed and", self.refused(self.where, *TINY))
        self.assertEqual(os.listdir(self.where), ["filler"])
        filler.unlink()
        r = self.measure(*TINY)
        self.assertEqual(r["seq"]["cold"], "unproven")  # the loop device caches below

    def test_a_read_only_disk(self):
        self.sh("mount", "-o", "remount,ro", self.where)
        self.assertIn("Read-only file system", self.refused(self.where, *TINY))

    def test_the_mount_is_found_behind_an_odd_name(self):
        odd = self.dir / "a b"
        odd.mkdir()
        self.sh("mount", "--bind", self.where, odd)
        self.addCleanup(subprocess.run, ["umount", "-l", odd], capture_output=True)
        done = run("baseline", odd, *TINY, "--json", "-")
        self.assert_status(done, 0)
        storage = done.json["environment"]["storage"]
        self.assertEqual(storage["file_system"], "ext4")
        self.assertRegex(storage["device"], "^loop")


class Emulated(Baseline):
    def test_no_device_is_exceeded_and_everything_is_labelled(self):
        limits = {"hdd": (163, 133.14), "lustre": (1968.618, 991.914)}
        for name, (read, write) in limits.items():
            r = self.measure("--size", "4M", "--runs", 1, "--storage", name)
            for p in PATTERNS:
                self.assertEqual((r[p]["storage"], r[p]["emulated"]), (name, True))
                self.assertIsNone(r[p]["ordinary_pages"])
                self.assertIn("Table I", r[p]["calibrated"])
                self.assertFalse(r[p]["direct"])
                self.assertIsNone(r[p]["cold"])
                self.assertIsNotNone(r[p]["late_share"])
            self.assertLessEqual(r["seq"]["write_mb_per_s"], write * 1.001)
            for p in PATTERNS[:4]:
                self.assertLessEqual(r[p]["read_mb_per_s"], read * 1.001)

    def test_the_table_says_what_is_emulated_and_what_was_cut(self):
        slow = self.dir / "slow.profile"  # 256 reads of 4 KiB take longer than the 3 s there are
        slow.write_text("name = slow\ncalibrated = nothing at all\nread_mb_per_s = 1000\n"
                        "write_mb_per_s = 1000\nread_latency_us = 20000\n")
        done = run("baseline", self.where, *TINY, "--storage", slow, "--json", self.dir / "r.json")
        self.assert_status(done, 0)
        self.assertTrue(done.out.startswith("EMULATED storage 'slow', calibrated to: nothing"))
        cut = {r["pattern"]: r["cut"] for r in
               json.loads((self.dir / "r.json").read_text())["results"]}
        self.assertTrue(cut["random-4k"])
        for name in PATTERNS:
            row, = [line for line in done.out.splitlines() if line.startswith(name + " ")]
            self.assertEqual("(cut)" in row, cut[name], row)
        self.assertIn("10 s (seq) or 3 s", done.out)

    def test_a_saved_profile_can_be_used(self):
        profile = self.dir / "my disk.profile"
        self.measure(*SMALL, "--save-profile", profile)
        content = profile.read_text()
        self.assertIn("name = my-disk", content)
        self.assertIn("measured by millrace baseline", content)
        r = self.measure(*TINY, "--storage", profile)
        self.assertEqual((r["seq"]["storage"], r["seq"]["emulated"]), ("my-disk", True))


class ItLeavesNothingBehind(Baseline):
    def start(self, *args):
        child = OnTerminal("baseline", self.where, "--runs", 1000, "--size", "4M", *args)
        self.addCleanup(child.close)
        return child

    def test_after_an_interrupt(self):
        out = self.dir / "out.json"
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.start("--storage", "hdd", "--json", out)
            child.read_until(b"seq read, run 2/1000, all in about")
            child.child.send_signal(number)
            self.assertEqual(child.finish(), 130)
            self.assert_nothing_left()
            r, = json.loads(out.read_bytes())["results"]
            self.assertEqual((r["pattern"], r["partial"]), ("seq", True))

    def test_a_killed_run_leaves_an_empty_folder_that_the_next_one_removes(self):
        child = self.start("--storage", "hdd")
        child.read_until(b"seq read, run 2/1000")
        child.child.kill()
        child.child.wait(TIMEOUT_S)
        left, = os.listdir(self.where)
        self.assertTrue(left.startswith(".millrace-scratch-"))
        self.assertEqual(os.listdir(self.where / left), [])
        done = run("baseline", self.where, *TINY)
        self.assert_status(done, 0)
        self.assertIn("removed what 1 killed run had left", done.err)
        self.assert_nothing_left()

    def test_two_at_once_do_not_disturb_each_other(self):
        other = subprocess.Popen([MILLRACE, "baseline", self.where, *map(str, SMALL)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        done = run("baseline", self.where, *SMALL)
        self.assertEqual((other.wait(TIMEOUT_S), other.stderr.read()), (0, b""))
        other.stderr.close()
        self.assert_status(done, 0)
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
