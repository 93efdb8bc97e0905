#!/usr/bin/env python3
"""test_train_checkpoint.py - `train --checkpoint` as its users meet it: each of its options does
what it says.  The accelerator is emulated; the state is AlexNet's, 700 MB a checkpoint, so they go
into memory where there is room."""
import csv
import filecmp
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from system_kit import OnTerminal, TempDirCase, check_formats, is_sanitized, main, results, run

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

    def arguments(self, *more, every=("--every", 1)):
        return ("train", "--data", self.data, "--device", "emulated:0.001", "--batch", 2,
                "--image-size", 32, "--checkpoint", self.fast, *every, *more)

    def result(self, *more, **how):
        r, = results(*self.arguments(*more, **how))
        return r

    def saved(self, *more, **how):
        """The steps that a run saves, and what it says on standard error."""
        shutil.rmtree(self.fast, ignore_errors=True)
        done = run(*self.arguments(*more, "--json", "-", **how))
        self.assert_status(done, 0)
        r, = done.json["results"]
        steps = [c["step"] for c in r["checkpoints"]]
        self.assertEqual(self.names(self.fast, ".index"), [f"model.ckpt-{s}.index" for s in steps])
        return steps, done.err

    def converted(self, step, name):
        """The tensors of a checkpoint without the mark, which no two checkpoints have in common."""
        run("checkpoint", "convert", self.fast / f"model.ckpt-{step}", "--format", "safetensors",
            "--to", self.dir / name)
        return self.dir / name / f"model.ckpt-{step}.safetensors"

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

    def test_checkpoints_that_stop_training_are_named_as_the_limit(self):
        r = self.result("--steps", 2, "--mode", "sync")
        self.assertGreater(r["checkpoint_stall_s"] / r["seconds"], 0.5)
        self.assertEqual(r["limit"], "checkpoints")
        for words in ("The limit is the checkpoints", "--mode lazy", "--every", "--drain"):
            self.assertIn(words, r["verdict"])

    def test_sync_waits_for_both_tiers_and_packed_has_no_gaps(self):
        r = self.result("--steps", 1, "--drain", self.slow, "--mode", "sync", "--packed")
        c, = r["checkpoints"]
        self.assertGreaterEqual(c["stall_s"], c["durable_slow_s"])
        self.assertGreaterEqual(c["durable_slow_s"], c["durable_fast_s"])
        listed, = results("checkpoint", "ls", self.slow / "model.ckpt-1")
        data = (self.slow / "model.ckpt-1.data-00000-of-00001").stat().st_size
        self.assertEqual(data, sum(t["bytes"] for t in listed["tensors"]))
        check_formats(self, self.slow)

    def test_the_last_step_is_saved_once_unless_unwanted(self):
        self.assertEqual(self.saved("--steps", 3, every=()), ([3], ""))
        self.assertEqual(self.saved("--steps", 3, every=("--every", 2)), ([2, 3], ""))
        self.assertEqual(self.saved("--steps", 2, every=("--every", 2)), ([2], ""))
        self.assertEqual(self.saved("--steps", 3, "--no-final-checkpoint", every=("--every", 2)),
                         ([2], ""))
        self.assertEqual(self.saved("--steps", 3, "--if-busy", "skip", every=("--every", 2))[0][-1],
                         3)

    def test_a_new_run_does_not_mix_with_another_ones_checkpoints(self):
        every = ("--every", 3)
        self.assertEqual(self.saved("--steps", 6, every=every), ([3, 6], ""))
        before = {p.name: p.stat().st_mtime_ns for p in self.fast.iterdir()}
        for folders in ((), ("--drain", self.slow)):
            done = run(*self.arguments("--steps", 1, *folders))
            self.assert_status(done, 1)
            for words in (str(self.fast), "earlier run", "step 6", "--resume", "another folder"):
                self.assertIn(words, done.err)
            self.assertEqual({p.name: p.stat().st_mtime_ns for p in self.fast.iterdir()}, before)
        # Also where only the slow tier has some.
        for p in self.fast.iterdir():
            p.rename(self.slow / p.name)
        done = run(*self.arguments("--steps", 1, "--drain", self.slow))
        self.assert_status(done, 1)
        self.assertIn(str(self.slow), done.err)
        self.assertIn("another folder, and --drain DIR with another one", done.err)
        r = self.result("--steps", 7, "--resume", "--drain", self.slow)
        self.assertEqual((r["first_step"], [c["step"] for c in r["checkpoints"]]), (7, [7]))

    def test_checkpoints_of_others_do_not_keep_a_run_from_beginning(self):
        self.saved("--steps", 1)
        theirs = self.dir / "theirs"
        self.assert_status(run("checkpoint", "convert", self.fast / "model.ckpt-1", "--to", theirs),
                           0)  # what convert writes is the user's, not a run's
        shutil.rmtree(self.fast)
        self.fast.mkdir()
        for p in theirs.iterdir():
            p.rename(self.fast / p.name.replace("-1.", "-9."))
        (self.fast / "notes.txt").write_text("mine")
        r = self.result("--steps", 2, every=())
        self.assertEqual([c["step"] for c in r["checkpoints"]], [2])
        self.assertEqual(self.names(self.fast, ".index"), ["model.ckpt-2.index",
                                                           "model.ckpt-9.index"])

    def test_a_run_that_would_save_nothing_says_so(self):
        none, said = self.saved("--steps", 3, "--no-final-checkpoint", every=())
        self.assertEqual(none, [])
        for words in ("saves no checkpoint", "ends at step 3", "every 20", "--no-final-checkpoint",
                      "--every"):
            self.assertIn(words, said)
        self.assertEqual(said.count("\n"), 1)

    def test_ctrl_c_saves_the_last_whole_step_bit_for_bit(self):
        out = self.dir / "out.json"
        # The accelerator is stopped in the middle of a step: batches are drawn, nothing is updated.
        child = OnTerminal(*self.arguments("--steps", 1000, "--device", "emulated:0.5", "--json",
                                           out, every=()))
        self.addCleanup(child.close)
        child.read_until(b"training")
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 130)
        r, = json.loads(out.read_bytes())["results"]
        self.assertTrue(r["partial"])
        self.assertEqual([c["step"] for c in r["checkpoints"]], [r["steps"]])
        self.assertIsNone(r["checkpoints"][0]["error"])
        stopped = self.converted(r["steps"], "stopped")
        for file in self.fast.iterdir():
            file.unlink()
        self.saved("--steps", r["steps"], every=())
        self.assertTrue(filecmp.cmp(stopped, self.converted(r["steps"], "unbroken"), shallow=False))

    def test_a_second_ctrl_c_ends_at_once_and_leaves_no_half_checkpoint(self):
        profile = self.dir / "snail.profile"
        profile.write_text("name = snail\nread_mb_per_s = 10\nwrite_mb_per_s = 1\n")
        child = OnTerminal(*self.arguments("--steps", 1000, "--device", "emulated:0.5",
                                           "--checkpoint-storage", profile, every=()))
        self.addCleanup(child.close)
        child.read_until(b"training")
        child.child.send_signal(signal.SIGINT)
        child.read_until(b"Ctrl-C again ends at once")
        while child.child.poll() is None:  # one that follows too soon counts as the same
            child.child.send_signal(signal.SIGINT)
            try:
                child.child.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        self.assertEqual(child.child.returncode, 130)
        self.assertEqual(self.names(self.fast, ".index"), [])
        r = self.result("--steps", 1)  # nothing that would have to be resumed
        self.assertEqual([c["step"] for c in r["checkpoints"]], [1])

    def test_ctrl_c_says_why_the_last_checkpoint_failed(self):
        child = OnTerminal(*self.arguments("--steps", 1000, "--device", "emulated:0.5", every=()))
        self.addCleanup(child.close)
        child.read_until(b"training")
        lease = self.fast / ".millrace-lease"
        theirs = lease.read_text().replace("token ", "token 1")
        lease.unlink()
        lease.write_text(theirs)
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 1)
        self.assertIn(b"taken this folder over", child.seen)
        self.assertEqual(self.names(self.fast, ".index"), [])

    def test_the_same_batch_again_and_again_ends_with_its_epochs(self):
        self.saved("--epochs", 1, "--synthetic", "--batch", 8, every=())
        done = run(*self.arguments("--epochs", 1, "--synthetic", "--batch", 8, "--resume"))
        self.assert_status(done, 1)
        self.assertIn("nothing is left of 3 steps", done.err)

    def test_other_data_are_refused(self):
        self.saved("--steps", 1)
        files = sorted(self.data.rglob("*.jpg"))[:20]
        (self.dir / "few.csv").write_text("".join(f"{f},{i % 3}\n" for i, f in enumerate(files)))
        done = run(*("--list" if a == "--data" else self.dir / "few.csv" if a == self.data else a
                     for a in self.arguments("--steps", 2, "--resume")))
        self.assert_status(done, 1)
        for words in ("24 images", "20", "same data set"):
            self.assertIn(words, done.err)

    def test_input_that_fails_does_not_cost_the_steps_before_it(self):
        for photo in sorted(self.data.rglob("*.jpg"))[-8:]:
            photo.write_bytes(b"not an image")
        done = run(*self.arguments("--epochs", 1, "--shuffle", "none", "--on-error", "fail",
                                   every=()))
        self.assert_status(done, 1)
        self.assertIn("class_0002", done.err)
        self.assertEqual(self.names(self.fast, ".index"), ["model.ckpt-8.index"])

    def test_a_busy_checkpoint_is_skipped_and_resume_says_what_it_passed_over(self):
        profile = self.dir / "slow.profile"
        profile.write_text(SLOW_DISK)
        # Two buffers, and a disk that takes longer for one than several steps do.
        r = self.result("--steps", 5, "--if-busy", "skip", "--keep", 0, "--checkpoint-storage",
                        profile, "--no-final-checkpoint")
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

    def test_another_batch_goes_on_with_the_sample_that_comes_next(self):
        """Every third photo is none, so the ledgers tell which samples were drawn, and when."""
        for i, photo in enumerate(sorted(self.data.glob("*/*.jpg"))):
            if i % 3 == 0:
                photo.write_text("no photo")
        keys = ("epoch", "path", "attempt", "substitute")

        def drawn(batch, steps, *more):
            ledger = self.dir / "ledger"
            self.assert_status(run("train", "--data", self.data, "--device", "emulated:0.001",
                                   "--image-size", 32, "--batch", batch, "--steps", steps,
                                   "--max-errors", 1000, "--ledger", ledger, *more), 0)
            with open(ledger, newline="", encoding="utf-8") as f:
                return [[row[k] for k in keys] for row in csv.DictReader(f)]

        saving = ("--checkpoint", self.fast, "--every", 1, "--keep", 1)
        unbroken = drawn(2, 12 + 6)
        parts = drawn(2, 5, *saving) + drawn(7, 5 + 2, *saving, "--resume")
        parts += drawn(6, 7 + 2, *saving, "--resume")
        self.assertGreater(len(unbroken), 12)
        self.assertEqual(parts, unbroken)
        for wrong in (("--seed", 3), ("--shuffle", "window:8")):
            done = run("train", "--data", self.data, "--device", "emulated:0.001", "--image-size",
                       32, "--batch", 6, "--steps", 20, *saving, "--resume", *wrong)
            self.assert_status(done, 1)
            self.assertIn("was trained with " + wrong[0], done.err)

    def test_a_window_goes_on_only_with_the_same_batch(self):
        window = ("--shuffle", "window:8", "--keep", 1)
        self.result("--steps", 2, *window)
        self.assertEqual(self.result("--steps", 3, "--resume", *window)["first_step"], 3)
        for wrong in (("--batch", 4), ("--shuffle", "window:9")):
            done = run(*self.arguments("--steps", 9, "--resume", *window, *wrong))
            self.assert_status(done, 1)
            self.assertIn("was trained with --shuffle window:8, --batch 2 and 1 shards", done.err)


if __name__ == "__main__":
    main()
