#!/usr/bin/env python3
"""test_kill_resume.py - a run that is killed between two checkpoints, and resumed, continues bit for
bit: AlexNet on the CPU with one compute thread.

STEPS, EVERY, KILL_AFTER and BATCH say how long; 4 steps with a checkpoint at 2, killed after 3,
batches of 2.  The full length, which takes some minutes, is
    STEPS=40 EVERY=20 KILL_AFTER=30 BATCH=32 meson test -C build test_kill_resume -t 20"""
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

from system_kit import MILLRACE, OnTerminal, TempDirCase, is_sanitized, main, run, text

STEPS = int(os.environ.get("STEPS", "4"))
EVERY = int(os.environ.get("EVERY", "2"))
KILL_AFTER = int(os.environ.get("KILL_AFTER", "3"))
BATCH = int(os.environ.get("BATCH", "2"))
STEP_S = 30  # a step on one busy core, at most
BYTES = 3 << 30  # that the checkpoints take


@unittest.skipIf(is_sanitized(), "59 million parameters take too long under a sanitizer")
class KillAndResume(TempDirCase):
    def setUp(self):
        super().setUp()
        free = os.statvfs(self.dir)
        if free.f_bavail * free.f_frsize < BYTES:
            self.skipTest("no room for the checkpoints")
        self.data = self.dir / "photos"
        done = run("generate", "--preset", "caltech101", "--count", 3 * BATCH + 1, "--classes", 3,
                   "--out", self.data)
        self.assert_status(done, 0)

    def arguments(self, *more):
        return [*map(str, ("train", "--data", self.data, "--batch", BATCH, "--compute-threads", 1,
                           "--threads", 1, "--seed", 5, *more))]

    def train(self, steps, *more):
        """A whole run: its result."""
        done = subprocess.run([MILLRACE, *self.arguments("--steps", steps, "--json", "-", *more)],
                              capture_output=True, check=False, timeout=120 + steps * STEP_S)
        self.assertEqual(done.returncode, 0, text(done.stderr))
        r, = json.loads(done.stdout)["results"]
        return r

    def kill_a_run(self, folder):
        """Of 100 steps, so that the terminal's per cent are steps; killed after some, when there is
        a checkpoint.  The newest step that has one."""
        child = OnTerminal(*self.arguments("--steps", 100, "--checkpoint", folder, "--every", EVERY))
        self.addCleanup(child.close)
        try:
            child.read_until(lambda seen: list(folder.glob("*.index")) and any(
                int(step) >= KILL_AFTER for step in re.findall(rb"\] +(\d+)%", seen)),
                seconds=120 + KILL_AFTER * STEP_S)
        except AssertionError:
            if b"no oneDNN" in child.seen:
                self.skipTest("this build has no oneDNN")
            raise
        child.child.send_signal(signal.SIGKILL)
        self.assertEqual(child.child.wait(60), -signal.SIGKILL)
        return max(int(p.stem.split("-")[1]) for p in folder.glob("*.index"))

    def test_losses_after_a_kill_are_those_of_an_unbroken_run(self):
        folder = self.dir / "run"
        saved = self.kill_a_run(folder)
        steps = max(STEPS, saved + 2)  # a slow machine may have come further before it was killed
        resumed = self.train(steps, "--checkpoint", folder, "--every", EVERY, "--resume")
        unbroken = self.train(steps)
        self.assertEqual(resumed["first_step"], saved + 1)
        self.assertEqual(pathlib.Path(resumed["resumed_from"]).name, f"model.ckpt-{saved}")
        self.assertEqual(len(resumed["loss"]), steps - saved)
        self.assertEqual(resumed["loss"], unbroken["loss"][saved:])
        self.assertEqual(len(set(unbroken["loss"])), steps)
        self.assertEqual([p for p in folder.iterdir() if p.name.endswith(".tmp")], [])

    def test_a_run_that_ended_goes_on_from_its_last_step(self):
        folder = self.dir / "run"
        try:
            first = self.train(2, "--checkpoint", folder)  # too few for a periodic one
        except AssertionError as e:
            if "no oneDNN" in str(e):
                self.skipTest("this build has no oneDNN")
            raise
        resumed = self.train(3, "--checkpoint", folder, "--resume", "--no-final-checkpoint")
        unbroken = self.train(3)
        self.assertEqual(resumed["first_step"], 3)
        self.assertEqual(first["loss"] + resumed["loss"], unbroken["loss"])


if __name__ == "__main__":
    main()
