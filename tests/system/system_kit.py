"""system_kit.py - what the tests of the built program share.

The program's path comes in the environment variable MILLRACE.  A test file ends with
system_kit.main(): exit status 77 (SKIP) when every test in it was skipped."""
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MILLRACE = os.path.abspath(os.environ["MILLRACE"])
TIMEOUT_S = 60
STRANGER = 65534  # a user who owns nothing here


def usual_surroundings():
    """As in a terminal, whoever started this: under nohup or in the background SIGHUP, SIGINT and
    SIGQUIT come ignored, children inherit that, and a test that sends one waits for ever.  Files
    are readable for the stranger unless a test says otherwise."""
    os.umask(0o022)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for sig in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(sig, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


usual_surroundings()

# A leak checker cannot work under strace.
STRACE_ENV = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def is_root():
    return os.geteuid() == 0


def is_sanitized():
    program = pathlib.Path(MILLRACE).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


def needs(*tools):
    """Skip unless these programs are installed."""
    missing = [t for t in tools if not shutil.which(t)]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Run:
    """What one call of the program did."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.out}\nstderr: {self.err}"

    @property
    def json(self):
        return json.loads(self.out)


def text(data):
    return (data or b"").decode("utf-8", "surrogateescape")


def run(*args, stranger=False, prefix=(), **more):
    """Run the program to its end.  stranger: as a user who owns nothing."""
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    more.setdefault("timeout", TIMEOUT_S)
    if stranger:
        more.update(user=STRANGER, group=STRANGER, extra_groups=[])
    program = program_for_strangers() if stranger else MILLRACE
    done = subprocess.run([*prefix, program, *map(as_path, args)], check=False, **more)
    return Run(done.returncode, text(done.stdout), text(done.stderr))


def as_path(arg):
    return arg if isinstance(arg, (bytes, os.PathLike)) else str(arg)


_copy = None


def program_for_strangers():
    """A copy of the program that everyone may run, wherever the build is."""
    global _copy
    if _copy is None:
        folder = tempfile.mkdtemp()
        unittest.addModuleCleanup(forget_copy, folder)
        os.chmod(folder, 0o755)
        _copy = shutil.copy(MILLRACE, folder)
        os.chmod(_copy, 0o755)
    return _copy


def forget_copy(folder):
    global _copy
    _copy = None
    shutil.rmtree(folder)


def results(*args, **more):
    """The results that a command prints with --json -."""
    done = run(*args, "--json", "-", **more)
    assert done.out, done
    return done.json["results"]


def uring_missing():
    """Why the uring engine cannot be used here, or None."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "one").write_bytes(b"x")
        done = run("bench", "--data", folder, "--engine", "uring", "--batch", 1, "--runs", 1)
    return None if done.status == 0 else done.err.strip()


def engines():
    return ["threads"] if uring_missing() else ["threads", "uring"]


def make_files(folder, count, size=3000, classes=1):
    """Files whose sizes differ and whose bytes tell them apart; returns the bytes in all."""
    total = 0
    for i in range(count):
        name = pathlib.Path(folder, f"class{i % classes}", f"{i:04}.bin")
        name.parent.mkdir(parents=True, exist_ok=True)
        length = size + i * 97 % max(size // 4, 1)
        name.write_bytes((f"{i:08}" * (length // 8 + 1)).encode()[:length])
        total += length
    return total


class TempDirCase(unittest.TestCase):
    """A fresh folder for each test, readable by everyone."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)

    def assert_status(self, done, status):
        self.assertEqual(done.status, status, done)


def check_formats(case, folder):
    """Where $MILLRACE_VERIFY_FORMATS names an independent checker (a Python program that takes a
    folder), the checkpoints in this one have to pass it."""
    tool = os.environ.get("MILLRACE_VERIFY_FORMATS")
    if tool:
        done = subprocess.run([sys.executable, tool, str(folder)], capture_output=True, text=True,
                              check=False, timeout=TIMEOUT_S)
        case.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def mount_small_disk(case, image, where, mib):
    """An ext4 file system of that size, of its own, until the test has ended."""
    image.touch()
    os.truncate(image, mib << 20)
    for command in (["mkfs.ext4", "-q", "-F", "-m", "0", image], ["mount", "-o", "loop", image, where]):
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
        if done.returncode:
            case.skipTest(f"{command[0]} does not work here: {text(done.stderr).strip()}")
    case.addCleanup(subprocess.run, ["umount", "-l", where], capture_output=True)
    limit_device(where)
    pathlib.Path(where, "lost+found").rmdir()


def limit_device(where, **limits):
    """Control groups (version 1) limit the block device below a folder: read_bps=4000000.  What is
    not named is unlimited: limits outlive a loop device and the program that set them."""
    device = os.stat(where).st_dev
    for kind in ("read_bps", "write_bps", "read_iops", "write_iops"):
        path = pathlib.Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{kind}_device")
        if os.access(path, os.W_OK):
            path.write_text(f"{os.major(device)}:{os.minor(device)} {limits.get(kind, 0)}")


class OnTerminal:
    """The program with standard error on a terminal; what appears there is gathered."""

    def __init__(self, *args, asks=False, **more):
        """asks: standard input is the terminal too."""
        self.master, slave = pty.openpty()
        self.seen = b""
        try:
            more.setdefault("stdout", subprocess.DEVNULL)
            self.child = subprocess.Popen([MILLRACE, *map(str, args)],
                                          stdin=slave if asks else subprocess.DEVNULL,
                                          stderr=slave, **more)
        finally:
            os.close(slave)

    def read_until(self, wanted=None, seconds=TIMEOUT_S):
        """Read until a text has appeared, or what is there satisfies a function, or, without
        either, until the program has closed the terminal."""
        end = time.monotonic() + seconds
        while not (wanted is not None and
                   (wanted(self.seen) if callable(wanted) else wanted in self.seen)):
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"nothing more after {self.seen[-200:]!r}")
            try:
                data = os.read(self.master, 65536)
            except OSError:  # EIO: the other side is closed
                data = b""
            if not data:
                if wanted is None:
                    return
                raise AssertionError(f"ended without {wanted!r}: {self.seen[-200:]!r}")
            self.seen += data

    def answer(self, line):
        os.write(self.master, line)

    def finish(self):
        self.read_until(None)
        return self.child.wait(TIMEOUT_S)

    def close(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        os.close(self.master)


def main():
    done = unittest.main(exit=False, verbosity=2).result
    if not done.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if done.skipped and len(done.skipped) >= done.testsRun else 0)
