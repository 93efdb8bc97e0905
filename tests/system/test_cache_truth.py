#!/usr/bin/env python3
"""test_cache_truth.py - never trust a warm cache, never overstate a cold one.

What `evict` and `bench` say about the page cache on ext4, overlay, tmpfs and FUSE, to root, to the
owner of the files and to somebody else.  Needs root: the file systems are made here, in a mount
namespace of our own, so that they vanish with this process whatever happens."""
import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import seccomp_filter
from system_kit import (STRACE_ENV, STRANGER, TIMEOUT_S, engines, is_root, main, make_files, needs,
                        results, run, text)

CLONE_NEWNS, MS_REC, MS_PRIVATE, PR_SET_PDEATHSIG = 0x20000, 0x4000, 1 << 18, 1
COUNT, SIZE = 24, 150000
BENCH = ["--batch", 8, "--threads", 2, "--runs", 2]
CACHESTAT = 451  # Linux 6.5
libc = ctypes.CDLL(None, use_errno=True)


def sh(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, timeout=TIMEOUT_S,
                          check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise unittest.SkipTest(f"{args[0]} does not work here: {text(done.stderr).strip()}")
    return text(done.stdout).strip()


def setUpModule():
    if not is_root():
        raise unittest.SkipTest("mounting file systems needs root")
    if not (shutil.which("mount") and shutil.which("umount")):
        raise unittest.SkipTest("not installed: mount")
    # One at a time on a machine: dropping its caches would spoil another one's warm runs.
    lock = os.open(tempfile.gettempdir(), os.O_RDONLY)
    unittest.addModuleCleanup(os.close, lock)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise unittest.SkipTest("no mount namespace: " + os.strerror(ctypes.get_errno()))


class MountCase(unittest.TestCase):
    """A folder for mounts; what is mounted is unmounted and removed in the reverse order."""

    @classmethod
    def setUpClass(cls):
        # /tmp need not be on a disk; the build usually is.
        parent = next((p for p in (tempfile.gettempdir(), os.getcwd()) if on_a_disk(p)), None)
        if parent is None:
            raise unittest.SkipTest("no folder on a block device for the images")
        cls.base = pathlib.Path(tempfile.mkdtemp(dir=parent))
        cls.addClassCleanup(shutil.rmtree, cls.base)
        # The way here may be closed to strangers: this one is not.
        cls.dir = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
        cls.addClassCleanup(os.rmdir, cls.dir)
        sh("mount", "-t", "tmpfs", "none", cls.dir)
        cls.addClassCleanup(sh, "umount", cls.dir)
        cls.dir.chmod(0o755)

    @classmethod
    def mount(cls, name, *args):
        where = cls.dir / name
        where.mkdir()
        sh("mount", *args, where)
        cls.addClassCleanup(sh, "umount", where)
        where.chmod(0o755)
        return where

    @classmethod
    def loop_device(cls, name, *flags):
        image = cls.base / name
        image.touch()
        os.truncate(image, 64 << 20)
        device = sh("losetup", "--find", "--show", *flags, image)
        # Ends with its last user, so after the unmount; here in case nothing gets mounted.
        cls.addClassCleanup(subprocess.run, ["losetup", "-d", device], capture_output=True)
        return device

    @classmethod
    def ext4(cls, name, direct, block=4096):
        """An ext4 file system on a loop device of its own."""
        device = cls.loop_device(name + ".img", f"--direct-io={'on' if direct else 'off'}")
        dio = pathlib.Path("/sys/block", os.path.basename(device), "loop/dio").read_text().strip()
        if dio != str(int(direct)):
            raise unittest.SkipTest("this loop device has no direct I/O" if direct else
                                    "this loop device has direct I/O always")
        sh("mkfs.ext4", "-q", "-F", "-b", block, "-E", "lazy_itable_init=0,lazy_journal_init=0",
           device)
        where = cls.mount(name, "-t", "ext4", device)
        sh("losetup", "-d", device)  # goes when it is unmounted
        return where

    @classmethod
    def data(cls, where, name="data", owner=0, mode=0o644):
        """A data set on some file system: its folder.  cls.n_bytes is its size."""
        folder = where / name
        cls.n_bytes = make_files(folder, COUNT, SIZE)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, owner, owner)
            path.chmod(0o755 if path.is_dir() else mode)
        os.sync()
        return folder

    def evict(self, *paths, status=0, **more):
        done = run("evict", *paths, "--json", "-", **more)
        self.assertEqual(done.status, status, done)
        r = done.json["results"]
        return r[0] if len(paths) == 1 else r

    def bench(self, data, *args, **more):
        done = run("bench", "--data", data, *BENCH, *args, "--json", "-", **more)
        self.assertEqual(done.status, 0, done)
        r, = done.json["results"]
        self.assertEqual(r["delivered_bytes"] % self.n_bytes, 0)
        return r

    def assert_known(self, data, **who):
        """Owner, root, or somebody who may write, on a disk: everything is known and proven."""
        self.bench(data, "--runs", 1)  # now it is cached
        r = self.evict(data, **who)
        self.assertEqual((r["cached_before"], r["cached_after"]), (self.n_bytes, 0))
        self.assertEqual((r["cold"], r["unproven_files"], r["failed_files"]), ("data", 0, 0))
        self.assertEqual((r["files"], r["bytes"]), (COUNT, self.n_bytes))
        for engine in engines():
            r = self.bench(data, "--cold", "--engine", engine, **who)
            self.assertEqual((r["cold"], r["cache_bytes"]), ("data", 0))
            self.assert_fetched(r)
            self.assertIsNone(r["warning"])
            r = self.bench(data, "--warm", "--engine", engine, **who)
            self.assertEqual((r["cold"], r["cache_bytes"], r["device_bytes"]),
                             (None, self.n_bytes, 0))

    def assert_unknown(self, data, device):
        """To a stranger nothing is known; what the device delivered is, where it is counted."""
        r = self.evict(data, stranger=True)
        self.assertEqual((r["cached_before"], r["cached_after"]), (None, None))
        self.assertEqual((r["cold"], r["unproven_files"]), ("unproven", COUNT))
        for cold in ([], ["--cold"]):
            r = self.bench(data, *cold, stranger=True)
            self.assertEqual(r["cold"], "unproven" if cold else None)
            self.assertIsNone(r["cache_bytes"])
            self.assertIn("fit into memory", r["warning"])
            if device:
                self.assertIsInstance(r["device_bytes"], int)
            else:
                self.assertIsNone(r["device_bytes"])

    def assert_fetched(self, r):
        """As much as was delivered, and not much more: whole pages, some metadata."""
        self.assertGreaterEqual(r["device_bytes"], r["delivered_bytes"])
        self.assertLess(r["device_bytes"], r["delivered_bytes"] + COUNT * 65536)


def on_a_disk(path):
    dev = os.stat(path).st_dev
    return os.path.exists(f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}")


@needs("losetup", "mkfs.ext4")
class OnDisk(MountCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.disk = cls.ext4("disk", direct=True)
        cls.roots = cls.data(cls.disk, "roots")

    def test_root(self):
        self.assert_known(self.roots)

    @unittest.skipUnless(seccomp_filter.is_known(), "filters of another architecture")
    def test_root_on_a_kernel_without_cachestat(self):
        refuse = seccomp_filter.refuse(CACHESTAT, error=errno.ENOSYS)
        code = (f"import ctypes; r = ctypes.CDLL(None, use_errno=True).syscall({CACHESTAT}, -1, 0, "
                "0, 0); print(r, ctypes.get_errno())")
        try:
            told = subprocess.run([sys.executable, "-c", code], preexec_fn=refuse,
                                  capture_output=True, check=True)
        except subprocess.SubprocessError as e:
            self.skipTest(f"no filters here: {e}")
        self.assertEqual(told.stdout.split(), [b"-1", str(errno.ENOSYS).encode()])
        self.assert_known(self.roots, preexec_fn=refuse)

    def test_root_and_files_of_another_owner(self):
        self.assert_known(self.data(self.disk, "others", owner=STRANGER))

    def test_owner_who_is_not_root(self):
        self.assert_known(self.data(self.disk, "own", owner=STRANGER, mode=0o444), stranger=True)

    def test_somebody_who_may_write(self):
        self.assert_known(self.data(self.disk, "public", mode=0o666), stranger=True)

    def test_stranger(self):
        self.assert_unknown(self.roots, device=True)

    def test_one_foreign_file_makes_the_whole_unknown(self):
        data = self.data(self.disk, "mixed", owner=STRANGER)
        os.chown(data / "class0" / "0003.bin", 0, 0)
        r = self.evict(data, stranger=True)
        self.assertEqual((r["cached_before"], r["unproven_files"]), (None, 1))
        self.assertEqual(r["cold"], "unproven")
        r = self.bench(data, "--cold", stranger=True)
        self.assertEqual((r["cold"], r["cache_bytes"]), ("unproven", None))

    def test_files_just_written_are_written_back_and_evicted(self):
        for engine in engines():
            data = self.disk / f"dirty-{engine}"
            make_files(data, COUNT, SIZE)
            r = self.evict(data)
            self.assertEqual((r["cached_before"], r["cached_after"], r["cold"]),
                             (self.n_bytes, 0, "data"))
            make_files(data, COUNT, SIZE)
            r = self.bench(data, "--cold", "--runs", 1, "--engine", engine)
            self.assertEqual((r["cold"], r["cache_bytes"]), ("data", 0))
            self.assert_fetched(r)
            self.assertEqual((data / "class0" / "0001.bin").read_bytes()[:16], b"00000001" * 2)

    def test_part_of_a_file_is_counted_in_pages(self):
        data = self.data(self.disk, "part")
        one = data / "class0" / "0000.bin"
        self.evict(data)
        fd = os.open(one, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(fd, 1, 0)
        os.close(fd)
        r = self.evict(one)
        self.assertGreaterEqual(r["cached_before"], os.sysconf("SC_PAGESIZE"))
        self.assertLess(r["cached_before"], SIZE)
        self.assertEqual(r["cached_after"], 0)

    @contextlib.contextmanager
    def held(self, path):
        """Another process maps the file and locks it into memory."""
        code = ("import ctypes, mmap, sys\n"
                "f = open(sys.argv[1], 'r+b')\n"
                "m = mmap.mmap(f.fileno(), 0)\n"
                "at = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
                "if ctypes.CDLL(None).mlock(ctypes.c_void_p(at), ctypes.c_size_t(len(m))):\n"
                "    sys.exit(1)\n"
                "print('held', flush=True)\n"
                "sys.stdin.read()\n")
        with subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as child:
            try:
                if child.stdout.readline() != b"held\n":
                    self.skipTest("memory cannot be locked here")
                yield
            finally:
                child.kill()

    def test_file_that_somebody_holds_is_said_to_be_cached(self):
        data = self.data(self.disk, "held")
        one = data / "class0" / "0005.bin"
        length = one.stat().st_size
        with self.held(one):
            r = self.evict(data, status=1)
            self.assertEqual((r["cached_before"], r["cached_after"]), (self.n_bytes, length))
            self.assertEqual((r["cold"], r["unproven_files"]), ("incomplete", 1))
            done = run("evict", data)
            self.assertEqual(done.status, 1)
            self.assertIn("incomplete", done.out)
            r = self.bench(data, "--cold")
            self.assertEqual((r["cold"], r["cache_bytes"]), ("unproven", length))
            self.assertLess(r["device_bytes"], self.n_bytes)
        r = self.evict(data)
        self.assertEqual((r["cached_after"], r["cold"]), (0, "data"))

    def test_drop_caches_is_for_root(self):
        done = run("bench", "--data", self.roots, *BENCH, "--drop-caches", "--json", "-",
                   stranger=True)
        self.assertEqual((done.status, done.out), (1, ""), done)
        self.assertIn("--drop-caches needs root", done.err)

    @needs("strace")
    def test_drop_caches_is_the_last_thing_before_the_run(self):
        """Looking at a file brings its inode back: nobody may do that after the drop."""
        log = self.base / "log"
        r = self.bench(self.roots, "--drop-caches", "--runs", 1, env=STRACE_ENV,
                       prefix=["strace", "-f", "-s", "4096", "-e", "trace=%file,write", "-o", log])
        self.assertEqual((r["cold"], r["cache_bytes"]), ("data+metadata", 0))
        # The program's own pages were dropped too and are fetched again: no upper bound.
        self.assertGreaterEqual(r["device_bytes"], r["delivered_bytes"])
        before, _, after = log.read_text(errors="replace").rpartition('"3\\n"')
        self.assertIn(str(self.roots), before)
        self.assertEqual(len(re.findall(r'"[^"]*\d{4}\.bin"', after)), COUNT)

    def test_warning_for_data_that_fit_into_memory(self):
        done = run("bench", "--data", self.roots, *BENCH)
        self.assertRegex(done.err, r"warning: the data read \(3\.\d MB\) fit into memory .*--cold")
        done = run("bench", "--data", self.roots, *BENCH, "--cold")
        self.assertEqual((done.status, done.err), (0, ""))
        self.assertIn("cold: data\n", done.out)
        r = self.bench(self.roots, "--cold", "--epochs", 2)
        self.assertIn("only the first epoch", r["warning"])
        self.assertEqual(r["delivered_bytes"], 2 * self.n_bytes)
        self.assertLess(r["device_bytes"], 2 * self.n_bytes)

    def test_inspect_tells_the_cached_share(self):
        data = self.data(self.disk, "inspect")
        self.evict(data)
        self.assertEqual(results("inspect", data)[0]["cached_bytes"], 0)
        self.assertIn("cached: 0 B (0%)", run("inspect", data).out)
        self.assertEqual(results("inspect", data, "--check")[0]["cached_bytes"], 0)
        self.assertEqual(results("inspect", data)[0]["cached_bytes"], 0)  # a look does not warm
        results("bench", "--data", data, "--batch", 1, "--runs", 1)
        self.assertEqual(results("inspect", data, "--check")[0]["cached_bytes"], self.n_bytes)
        self.assertEqual(results("inspect", data)[0]["cached_bytes"], self.n_bytes)
        self.assertIsNone(results("inspect", data, stranger=True)[0]["cached_bytes"])
        self.assertIn("cannot be known", run("inspect", data, stranger=True).out)


@needs("losetup", "mkfs.ext4")
class OnCachedLoop(MountCase):
    """A loop device without direct I/O reads through the cache below it."""

    def assert_unproven(self, data):
        self.bench(data, "--runs", 1)
        r = self.evict(data)
        self.assertEqual((r["cached_before"], r["cached_after"]), (self.n_bytes, 0))
        self.assertEqual((r["cold"], r["unproven_files"]), ("unproven", COUNT))
        r = self.bench(data, "--cold")
        self.assertEqual((r["cold"], r["cache_bytes"]), ("unproven", 0))
        self.assertIn("unproven", r["warning"])
        self.assert_fetched(r)  # the block layer counts all the same

    def test_eviction_is_unproven(self):
        self.assert_unproven(self.data(self.ext4("loop", direct=False)))

    @needs("addpart")
    def test_partition_of_such_a_device(self):
        device = self.loop_device("partitions.img", "--partscan", "--direct-io=off")
        sh("addpart", device, 1, 2048, (64 << 11) - 2048)
        part = device + "p1"
        if not os.path.exists(part):
            self.skipTest("partitions of loop devices have no names in /dev here")
        sh("mkfs.ext4", "-q", "-F", part)
        where = self.mount("partition", "-t", "ext4", part)
        sh("losetup", "-d", device)
        self.assert_unproven(self.data(where))

    def test_root_knows_other_peoples_files_on_a_read_only_mount(self):
        where = self.ext4("readonly", direct=False)
        data = self.data(where, owner=STRANGER)
        self.evict(data)
        self.bench(data, "--runs", 1)
        sh("mount", "-o", "remount,ro", where)
        r = self.evict(data)
        self.assertEqual((r["cached_before"], r["cached_after"]), (self.n_bytes, 0))


class InMemory(MountCase):
    def test_tmpfs_cannot_be_evicted(self):
        data = self.data(self.dir)
        r = self.evict(data, status=1)
        self.assertEqual((r["cached_before"], r["cached_after"]), (self.n_bytes, self.n_bytes))
        self.assertEqual((r["cold"], r["unproven_files"]), ("incomplete", COUNT))
        for engine in engines():
            for cold in ([], ["--cold"]):
                r = self.bench(data, *cold, "--engine", engine)
                self.assertEqual(r["cold"], "unproven" if cold else None)
                self.assertEqual((r["cache_bytes"], r["device_bytes"]), (self.n_bytes, None))
                self.assertIn("fit into memory", r["warning"])

    def test_stranger(self):
        self.assert_unknown(self.data(self.dir, "roots"), device=False)


@needs("losetup", "mkfs.ext4")
class OnOverlay(MountCase):
    def overlay(self, name, lower, upper):
        for part in ("upper", "work"):
            (upper / f"{name}-{part}").mkdir()
        return self.mount(name, "-t", "overlay", "overlay", "-o",
                          f"lowerdir={lower},upperdir={upper}/{name}-upper,"
                          f"workdir={upper}/{name}-work")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.disk = cls.ext4("disk", direct=True)
        cls.lower = cls.disk / "lower"

    def test_over_a_disk(self):
        self.data(self.lower)
        self.data(self.lower, "own", owner=STRANGER)
        where = self.overlay("overlay", self.lower, self.disk)
        self.assert_known(where / "data")
        self.assert_known(where / "own", stranger=True)
        self.assert_unknown(where / "data", device=True)
        self.assert_known(self.data(where, "in-upper"))

    def test_over_a_disk_with_blocks_smaller_than_a_page(self):
        """There mincore does not see the last page of a file that was just written."""
        disk = self.ext4("small-blocks", direct=True, block=1024)
        (disk / "lower").mkdir()
        where = self.overlay("on-small-blocks", disk / "lower", disk)
        make_files(where / "data", 40, 500)
        below = disk / "on-small-blocks-upper" / "data"
        self.assertGreater(results("inspect", below)[0]["cached_bytes"], 0)
        r = self.evict(where / "data")
        self.assertEqual((r["cached_after"], r["cold"]), (0, "data"))
        self.assertEqual(results("inspect", below)[0]["cached_bytes"], 0)

    def test_over_memory(self):
        memory = self.dir / "memory"
        self.data(memory)
        data = self.overlay("on-memory", memory, self.disk) / "data"
        r = self.evict(data, status=1)
        self.assertEqual((r["cached_before"], r["cached_after"]), (self.n_bytes, self.n_bytes))
        r = self.bench(data, "--cold")
        self.assertEqual((r["cold"], r["cache_bytes"], r["device_bytes"]),
                         ("unproven", self.n_bytes, None))

    @needs("bindfs")
    def test_over_fuse(self):
        self.data(self.disk / "below")
        data = self.overlay("on-fuse", bindfs(self, self.disk / "below"), self.disk) / "data"
        r = self.evict(data)
        self.assertEqual((r["cold"], r["unproven_files"]), ("unproven", COUNT))
        r = self.bench(data, "--cold")
        self.assertEqual((r["cold"], r["device_bytes"]), ("unproven", None))


def bindfs(case, source):
    """Mount a folder once more through a user-space server, which ends with the test."""
    where = case.dir / f"fuse-{source.name}"
    where.mkdir()
    server = subprocess.Popen(["bindfs", "-f", source, where], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    case.addClassCleanup(server.stderr.close)
    case.addClassCleanup(server.wait)
    case.addClassCleanup(server.kill)
    case.addClassCleanup(subprocess.run, ["umount", "-l", where], capture_output=True)
    end = time.monotonic() + TIMEOUT_S
    with open("/proc/self/mounts", "rb") as mounts:  # tells of changes: poll waits for them
        change = select.poll()
        change.register(mounts, select.POLLERR | select.POLLPRI)
        while not os.path.ismount(where):
            if server.poll() is not None:
                raise unittest.SkipTest("bindfs: " + text(server.stderr.read()).strip())
            if time.monotonic() > end:
                raise AssertionError("bindfs did not mount")
            change.poll(100)
    return where


@needs("bindfs", "losetup", "mkfs.ext4")
class OnFuse(MountCase):
    """The server may hold a cache of its own: nothing is proven, nothing is counted."""

    def test_root_and_stranger(self):
        disk = self.ext4("disk", direct=True)
        self.data(disk)
        data = bindfs(self, disk) / "data"
        r = self.evict(data)
        self.assertIsInstance(r["cached_before"], int)
        self.assertEqual((r["cached_after"], r["unproven_files"]), (0, COUNT))
        self.assertEqual(r["cold"], "unproven")
        for engine in engines():
            for cold in ([], ["--cold"]):
                r = self.bench(data, *cold, "--engine", engine)
                self.assertEqual(r["cold"], "unproven" if cold else None)
                self.assertIsInstance(r["cache_bytes"], int)
                self.assertIsNone(r["device_bytes"])
                self.assertIn("fit into memory", r["warning"])
        self.assert_unknown(data, device=False)


if __name__ == "__main__":
    main()
