#!/usr/bin/env python3
"""test_train_checkpoint.py - `train --checkpoint` as its users meet it: each of its options does
what it says.  The accelerator is emulated; the state is AlexNet's, 700 MB a checkpoint, so they go
into memory where there is room."""
import os
import pathlib
import shutil
import tempfile
import unittest

from system_kit import TempDirCase, check_formats, is_sanitized, main, results, run

BYTES = 6 << 30  # that the folders take at most
STATE = 690_000_000  # less than a checkpoint has
RATE = 350 << 20
CHUNK = 4 << 20
SLOW_DISK = "name = slow\nread_mb_per_s = 2000\nwrite_mb_per_s = 300\n"


def has_room(folder, wanted):
    free = os.statvfs(folder)
    memory = {k: int(v.split()[0]) << 10 for k, v in
              (line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())}
    return free.f_bavail * free.f_frsize >= wanted and memory["MemAvailable"] >= wanted


@unittest.skipIf(is_sanitized(), "700 MB a checkpoint take too long under a sanitizer")
class TrainWithCheckpoints(TempDirCase):
    def setUp(self):
        super().setUp()
        self.dir = self.roomy_folder()
        self.data, self.fast, self.slow = (self.dir / n for n in ("photos", "fast", "slow"))
        done = run("generate", "--preset", "caltech101", "--count", 24, "--classes", 3, "--out",
                   self.data)
        self.assert_status(done, 0)

    def roomy_folder(self):
        """A folder in memory, if as much again stays free; else on the disk."""
        for parent, wanted in (("/dev/shm", 2 * BYTES), (tempfile.gettempdir(), BYTES)):
            if os.path.isdir(parent) and has_room(parent, wanted):
                folder = pathlib.Path(tempfile.mkdtemp(dir=parent))
                self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
                return folder
        raise unittest.SkipTest("no room for the checkpoints")

    def arguments(self, *more):
        return ("train", "--data", self.data, "--device", "emulated:0.001", "--batch", 2,
                "--image-size", 32, "--checkpoint", self.fast, "--every", 1, *more)

    def result(self, *more):
        r, = results(*self.arguments(*more))
        return r

    def names(self, folder, ending):
        return sorted(p.name for p in folder.glob("*" + ending))

    def test_burst_drains_within_its_rate_and_keeps_so_many(self):
        r = self.result("--steps", 2, "--drain", self.slow, "--mode", "burst", "--format",
                        "safetensors", "--keep", 1, "--drain-rate", RATE)
        for folder in (self.fast, self.slow):
            self.assertEqual(self.names(folder, ".safetensors"), ["model.ckpt-2.safetensors"])
        self.assertEqual(self.names(self.fast, ".index") + self.names(self.slow, ".index"), [])
        self.assertEqual([c["step"] for c in r["checkpoints"]], [1, 2])
        for c in r["checkpoints"]:
            self.assertGreater(c["bytes"], STATE)
            self.assertIsNone(c["error"])
            # The call waits for the fast tier, and the drain cannot be faster than allowed.
            self.assertGreaterEqual(c["stall_s"], c["durable_fast_s"])
            self.assertGreaterEqual(c["durable_slow_s"],
                                    c["durable_fast_s"] + (c["bytes"] - CHUNK) / RATE)
        self.assertEqual((r["checkpoints_skipped"], r["checkpoints_waited"]), (0, 0))
        check_formats(self, self.slow)

    def test_sync_waits_for_both_tiers_and_packed_has_no_gaps(self):
        r = self.result("--steps", 1, "--drain", self.slow, "--mode", "sync", "--packed")
        c, = r["checkpoints"]
        self.assertGreaterEqual(c["stall_s"], c["durable_slow_s"])
        self.assertGreaterEqual(c["durable_slow_s"], c["durable_fast_s"])
        listed, = results("checkpoint", "ls", self.slow / "model.ckpt-1")
        data = (self.slow / "model.ckpt-1.data-00000-of-00001").stat().st_size
        self.assertEqual(data, sum(t["bytes"] for t in listed["tensors"]))
        check_formats(self, self.slow)

    def test_a_busy_checkpoint_is_skipped_and_resume_says_what_it_passed_over(self):
        profile = self.dir / "slow.profile"
        profile.write_text(SLOW_DISK)
        # Two buffers, and a disk that takes longer for one than several steps do.
        r = self.result("--steps", 5, "--if-busy", "skip", "--keep", 0, "--checkpoint-storage",
                        profile)
        saved = [c["step"] for c in r["checkpoints"]]
        self.assertEqual(len(saved) + r["checkpoints_skipped"], 5)
        self.assertEqual(r["checkpoints_waited"], 0)
        self.assertEqual(saved[:2], [1, 2])
        self.assertEqual(len(self.names(self.fast, ".index")), len(saved))
        newest = self.fast / f"model.ckpt-{saved[-1]}"
        with open(f"{newest}.data-00000-of-00001", "r+b") as f:
            f.seek(5_000_000)
            byte = f.read(1)
            f.seek(5_000_000)
            f.write(bytes([byte[0] ^ 1]))
        done = run(*self.arguments("--steps", saved[-2] + 1, "--resume", "--mode", "burst", "--keep",
                                   0))
        self.assert_status(done, 0)
        self.assertIn(f"passed over {newest}: ", done.err)
        self.assertIn("checksum", done.err)
        self.assertIn(f"resumed from {self.fast}/model.ckpt-{saved[-2]}, step {saved[-2]}", done.out)


if __name__ == "__main__":
    main()
