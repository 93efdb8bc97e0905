#!/usr/bin/env python3
"""test_power_loss.py - real kills and real power cuts: what was reported durable is there.

KILLS and CUTS say how many (12 and 2; the full numbers are 200 and 20).  A cut needs root, a loop
device and ext4: its shutdown ioctl stops all writing at once, and the journal is not flushed."""
import ctypes
import itertools
import os
import pathlib
import random
import select
import subprocess
import time
import unittest

from system_kit import TIMEOUT_S, TempDirCase, is_root, main, needs, text

CHILD = os.path.abspath(os.environ["CKPT_CHILD"])
KILLS = int(os.environ.get("KILLS", "12"))
CUTS = int(os.environ.get("CUTS", "2"))
SETTINGS = list(itertools.product(["lazy", "burst", "sync"], ["tf", "safetensors"], [False, True]))
TEMPORARY = ".tmp"
CLONE_NEWNS = 0x20000


def call(*args):
    return subprocess.run([str(a) for a in args], capture_output=True, check=False,
                          timeout=TIMEOUT_S)


class Victim:
    """A run that goes on until it is stopped; remembers what it promised."""

    def __init__(self, fast, slow, mode, form):
        self.child = subprocess.Popen([CHILD, "run", str(fast), str(slow or "-"), mode, form],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.seen = b""

    def read_for(self, seconds):
        """Gather what it prints, for so long or until it ends."""
        end = time.monotonic() + seconds
        pipe = self.child.stdout.fileno()
        while (left := end - time.monotonic()) > 0:
            if select.select([pipe], [], [], left)[0]:
                data = os.read(pipe, 65536)
                if not data:
                    return
                self.seen += data

    def wait_until(self, wanted):
        end = time.monotonic() + TIMEOUT_S
        while wanted not in self.seen:
            if self.child.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"the run ended: {text(self.child.stderr.read())}")
            self.read_for(0.01)

    def end(self, kill):
        if kill:
            self.child.kill()
        out, err = self.child.communicate(timeout=TIMEOUT_S)
        self.seen += out
        return text(err)

    def promised(self):
        """The last steps that were reported durable, and durable on the slow tier."""
        lines = [line.split() for line in self.seen.split(b"\n")[:-1]]
        return tuple(max([int(line[1]) for line in lines if line[0] == word] + [0])
                     for word in (b"durable", b"below"))


def newest(a, b):
    return tuple(map(max, a, b))


class PowerLoss(TempDirCase):
    def found(self, fast, slow, promised):
        done = call(CHILD, "check", fast, slow or "-")
        self.assertEqual(done.returncode, 0, text(done.stderr))
        found = int(done.stdout.split()[1])
        self.assertGreaterEqual(found, promised, text(done.stderr))
        self.assertNotIn("passed over", text(done.stderr))
        return found

    def judge(self, fast, slow, promised):
        """Restore, and restore from the slow tier alone: not older than what was promised."""
        return (self.found(fast, slow, promised[0]),
                self.found(slow, None, promised[1]) if slow else 0)

    def assert_clean_after_start(self, fast, slow, mode, form):
        """The next start removes all temporaries.  It may make new ones of the same name at once,
        and those are younger."""
        folders = [pathlib.Path(f) for f in (fast, slow) if f]
        left = {p for f in folders for p in f.glob("*" + TEMPORARY)}
        changed = {p: p.stat().st_ctime_ns for p in left}
        victim = Victim(fast, slow, mode, form)
        victim.wait_until(b"opened\n")
        victim.end(kill=True)
        for p, when in changed.items():
            try:
                self.assertGreater(p.stat().st_ctime_ns, when, f"{p} is still there")
            except FileNotFoundError:
                pass

    def test_after_a_kill_what_was_durable_is_there(self):
        rng = random.Random(1)
        promised, reports = {}, 0
        for i in range(KILLS):
            mode, form, two = SETTINGS[i % len(SETTINGS)]
            folder = self.dir / f"{mode}-{form}-{two}"
            fast, slow = folder / "fast", folder / "slow" if two else None
            victim = Victim(fast, slow, mode, form)
            victim.wait_until(b"below " if two and i % 4 == 3 else b"opened\n")
            victim.read_for(rng.uniform(0, 0.15))
            victim.end(kill=True)
            with self.subTest(kill=i, mode=mode, form=form, two=two):
                before = promised.get(folder, (0, 0))
                promised[folder] = self.judge(fast, slow, newest(before, victim.promised()))
                if i % 5 == 0:
                    self.assert_clean_after_start(fast, slow, mode, form)
                    promised[folder] = self.judge(fast, slow, promised[folder])
                reports += victim.promised()[1] > 0
        print(f"{KILLS} kills, {reports} of runs that had reported the slow tier")


@unittest.skipUnless(is_root(), "needs root")
@needs("mkfs.ext4", "mount", "umount", "losetup")
class PowerCut(PowerLoss):
    test_after_a_kill_what_was_durable_is_there = None

    @classmethod
    def setUpClass(cls):
        """Mounts of our own: nobody else's copy of them keeps a dead file system alive."""
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
            raise unittest.SkipTest(f"unshare: {os.strerror(ctypes.get_errno())}")
        done = call("mount", "--make-rprivate", "/")
        if done.returncode:
            raise unittest.SkipTest(f"mount: {text(done.stderr)}")

    def setUp(self):
        super().setUp()
        self.image, self.mount = self.dir / "image", self.dir / "mount"
        self.mount.mkdir()
        with open(self.image, "wb") as f:
            f.truncate(160 << 20)
        done = call("mkfs.ext4", "-q", "-F", self.image)
        if done.returncode:
            self.skipTest(f"mkfs.ext4: {text(done.stderr)}")
        if not self.attach():
            self.skipTest("cannot mount a loop device")
        self.addCleanup(self.detach)

    def attach(self):
        return call("mount", "-o", "loop", self.image, self.mount).returncode == 0

    def detach(self):
        """Unmount; the loop device goes with the mount.  False when something keeps them."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            call("umount", self.mount)
            if not call("losetup", "-j", self.image).stdout.strip():
                return True
            time.sleep(0.05)
        return False

    def test_after_a_power_cut_what_was_durable_is_there(self):
        rng = random.Random(2)
        promised, reports = {}, 0
        for i in range(CUTS):
            mode, form, two = SETTINGS[(5 * i) % len(SETTINGS)]
            folder = self.mount / f"{i % 2}"  # grows over several cuts
            fast, slow = folder / f"{form}-fast", folder / f"{form}-slow" if two else None
            victim = Victim(fast, slow, mode, form)
            victim.wait_until(b"below " if two else b"durable ")
            victim.read_for(rng.uniform(0, 0.2))
            done = call(CHILD, "cut", self.mount)
            if done.returncode and not i:
                victim.end(kill=True)
                self.skipTest(text(done.stderr))
            victim.end(kill=True)
            self.assertTrue(self.detach(), "the file system cannot be unmounted")
            self.assertTrue(self.attach())
            with self.subTest(cut=i, mode=mode, form=form, two=two):
                key = fast
                promised[key] = self.judge(fast, slow, newest(promised.get(key, (0, 0)),
                                                              victim.promised()))
                reports += victim.promised()[1] > 0
        print(f"{CUTS} power cuts, {reports} of runs that had reported the slow tier")


if __name__ == "__main__":
    main()
