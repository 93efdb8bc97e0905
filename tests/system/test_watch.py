#!/usr/bin/env python3
"""test_watch.py - `millrace watch`: the command is left in peace, its status and output are its
own, and samples survive signals, full disks and devices that go away."""
import csv
import fcntl
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import unittest

from system_kit import (MILLRACE, TIMEOUT_S, OnTerminal, TempDirCase, is_root, main, needs, run,
                        text)

LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81
HEADING = ("Time Interval Kind Name Direction KBytes Merged IOs Size Wait QLen SvcTim Util "
           "CpuUser").split()


def python(code, *args):
    return ["--", sys.executable, "-c", code, *args]


class WatchCase(TempDirCase):
    def watch(self, *args, **more):
        return run("watch", *args, **more)

    def start(self, *args, **more):
        """A watch that runs; ended and reaped whatever happens."""
        child = subprocess.Popen([MILLRACE, "watch", *map(str, args)], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.kill()
        child.communicate()

    def result(self):
        root = json.loads((self.dir / "out.json").read_text())
        self.assertEqual(root["command"], "watch")
        result, = root["results"]
        return result

    def rows(self, path):
        with open(path, newline="", encoding="utf-8") as f:
            lines = list(csv.DictReader(f))
        for line in lines:
            self.assertNotIn(None, line)           # not more fields than the heading
            self.assertNotIn(None, line.values())  # nor fewer
        return lines


class Command(WatchCase):
    def test_status_is_the_commands(self):
        for status in (0, 1, 2, 3, 255):
            self.assert_status(self.watch("--", "sh", "-c", f"exit {status}"), status)

    def test_signal_that_ends_the_command_is_in_the_status(self):
        done = self.watch("--json", self.dir / "out.json", "--", "sh", "-c", "kill -KILL $$")
        self.assert_status(done, 128 + signal.SIGKILL)
        r = self.result()
        self.assertEqual((r["signal"], r["exit_status"]), (9, 137))

    def test_output_of_the_command_is_untouched(self):
        done = self.watch("--", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(done.out, "out\n")
        self.assertTrue(done.err.startswith("err\n"), done)
        self.assertIn("In all", done.err)
        self.assertRegex(done.err, r"\nThe command and its descendants: .* devices: [^\\]*\.\n\Z")

    def test_input_of_the_command_is_ours(self):
        done = self.watch("--", "cat", stdin=None, input=b"hello\n")
        self.assertEqual(done.out, "hello\n")

    def test_options_behind_the_command_belong_to_it(self):
        self.assertEqual(self.watch("echo", "--interval", "-x").out, "--interval -x\n")
        self.assertEqual(self.watch("--", "--help").status, 127)

    def test_command_that_is_not_there(self):
        for args in (["--"], []):
            done = self.watch(*args, "no-such-command-here", "x")
            self.assert_status(done, 127)
            self.assertIn("no-such-command-here: No such file", done.err)
            self.assertEqual(done.out, "")

    def test_command_that_is_nowhere_in_a_path_with_closed_folders(self):
        closed, here = self.dir / "closed", self.dir / "here"
        closed.mkdir()
        (here / "folder").mkdir(parents=True)
        (here / "not-executable").touch(mode=0o644)
        closed.chmod(0)
        self.addCleanup(closed.chmod, 0o700)
        env = {**os.environ, "PATH": f"{closed}:{here}:/usr/bin:/bin"}
        for command, status, why in (("no-such-command-here", 127, "No such file"),
                                     ("folder", 127, "No such file"),
                                     ("not-executable", 126, "Permission denied"),
                                     (f"{closed}/x", 126, "Permission denied"),
                                     ("true", 0, "")):
            done = self.watch("--", command, env=env, stranger=is_root())
            self.assert_status(done, status)
            self.assertIn(why, done.err)

    def test_command_that_cannot_be_run(self):
        for path in ("/etc/passwd", "/"):
            done = self.watch("--json", self.dir / "out.json", "--", path)
            self.assert_status(done, 126)
            self.assertIn("Permission denied", done.err)
            self.assertEqual(self.result()["exit_status"], 126)

    def test_command_has_default_signals_and_no_stray_descriptors(self):
        code = ("import os, signal\n"
                "assert all(signal.getsignal(s) in (signal.SIG_DFL, signal.default_int_handler)\n"
                "           for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD))\n"
                "assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])\n"
                "print(len([f for f in os.listdir('/proc/self/fd')]))\n")
        bare = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL,
                              capture_output=True, check=True)
        done = self.watch("--csv", self.dir / "a.csv", "--json", self.dir / "out.json",
                          *python(code))
        self.assert_status(done, 0)
        self.assertEqual(done.out, text(bare.stdout))
        ignored = ["grep", "SigIgn", "/proc/self/status"]
        bare = subprocess.run(ignored, capture_output=True, check=True)
        self.assertEqual(self.watch("--", *ignored).out, text(bare.stdout))

    def test_a_reader_that_goes_away_ends_the_command_as_usual(self):
        code = ("import signal, sys\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
                "while True: print('x' * 1000)\n")
        child = self.start(*python(code))
        child.stdout.close()
        child.stdout = None
        self.assertEqual(child.wait(TIMEOUT_S), 128 + signal.SIGPIPE)

    def test_no_process_is_left(self):
        for args in (["--", "true"], ["--", "no-such-command-here"], ["--duration", "10ms"]):
            done = subprocess.run(
                [sys.executable, "-c",
                 "import ctypes, os, subprocess, sys\n"
                 "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  # orphans come to us
                 "subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)\n"
                 "try:\n    os.waitpid(-1, 0)\n    print('left')\n"
                 "except ChildProcessError:\n    print('none')\n", MILLRACE, "watch", *args],
                capture_output=True, check=True, timeout=TIMEOUT_S)
            self.assertEqual(text(done.stdout).split()[-1], "none")


class Signals(WatchCase):
    def ready(self, child):
        self.assertEqual(child.stdout.readline(), b"ready\n")

    def test_term_is_passed_on_and_the_command_decides(self):
        code = ("import signal, sys\n"
                "signal.signal(signal.SIGTERM, lambda *a: sys.exit(7))\n"
                "print('ready', flush=True)\nwhile True: signal.pause()\n")
        child = self.start("--json", self.dir / "out.json", *python(code))
        self.ready(child)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=TIMEOUT_S)
        self.assertEqual(child.returncode, 7)
        self.assertEqual(self.result()["exit_status"], 7)

    def test_interrupt_sent_to_watch_alone_ends_the_command(self):
        for sig in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            code = ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                    "print('ready', flush=True)\nwhile True: signal.pause()\n")
            child = self.start("--csv", self.dir / "a.csv", *python(code),
                               preexec_fn=no_core_files)
            self.ready(child)
            child.send_signal(sig)
            child.communicate(timeout=TIMEOUT_S)
            self.assertEqual(child.returncode, 128 + sig)
            self.assertTrue(self.rows(self.dir / "a.csv"))

    def test_ctrl_c_on_the_terminal_reaches_the_command_once(self):
        code = ("import signal, sys\nseen = []\n"
                "signal.signal(signal.SIGINT, lambda *a: seen.append(1))\n"
                "print('ready', flush=True)\nwhile not seen: signal.pause()\n"
                "print('first', flush=True)\nsys.stdin.readline()\n"
                "print('interrupts:', len(seen), flush=True)\nsys.exit(5)\n")
        pid, master = pty.fork()
        if pid == 0:
            os.execv(MILLRACE, [MILLRACE, "watch", *python(code)])
        self.addCleanup(os.close, master)
        seen = read_until(master, b"ready")
        os.write(master, b"\x03")
        read_until(master, b"first")
        os.write(master, b"\n")
        seen = read_until(master, b"interrupts:", rest=True)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 5)
        self.assertIn(b"interrupts: 1", seen)

    def test_without_a_command_a_signal_is_the_end(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            child = self.start("--interval", "10ms", "--csv", self.dir / "a.csv", "--json",
                               self.dir / "out.json")
            self.assertIn(b"KBytes", child.stdout.readline())  # the first sample
            child.send_signal(sig)
            out, err = child.communicate(timeout=TIMEOUT_S)
            self.assertEqual((child.returncode, err), (130, b""))
            self.assertIn(b"In all", out)
            r = self.result()
            self.assertEqual((r["command"], r["exit_status"], r["signal"]), (None, None, int(sig)))
            system = [x for x in self.rows(self.dir / "a.csv") if x["Kind"] == "system"]
            self.assertEqual(len(system), r["samples"])


def no_core_files():
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read_until(fd, wanted, rest=False):
    seen = b""
    while rest or wanted not in seen:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the other side is closed
            data = b""
        if not data:
            break
        seen += data
    assert wanted in seen, seen
    return seen


class Usage(WatchCase):
    def test_wrong_usage(self):
        for args, words in ((["--interval", "5ms"], "from 10ms"), (["--interval", "1"], "a time"),
                            (["--interval", "2h"], "1h"), (["--interval", "-1s"], "a time"),
                            (["--interval", "0x10s"], "a time"), (["--interval", "1e3s"], "a time"),
                            (["--interval", "1.2.3s"], "a time"), (["--duration", "0s"], "a time"),
                            (["--interval", ".s"], "a time"),
                            (["--duration", "1s", "--", "true"], "without a command"),
                            (["--json", "-", "--csv", "-"], "standard output"),
                            (["--intervall", "1s"], "--interval?")):
            done = self.watch(*args)
            self.assert_status(done, 2)
            self.assertEqual(done.out, "")
            self.assertIn(words, done.err)

    def test_durations_as_people_type_them(self):
        for value in ("20ms", "0.02s", "20000us", ".0005m"):
            done = self.watch("--duration", value, "--interval", "10ms")
            self.assert_status(done, 0)
            self.assertEqual(done.err, "")
            self.assertIn("In all", done.out)


class Outputs(WatchCase):
    def test_files_that_cannot_be_made_are_known_before_the_command_runs(self):
        for option in ("--csv", "--json"):
            for path in (self.dir / "no" / "file", self.dir):
                done = self.watch(option, path, "--", "touch", self.dir / "ran")
                self.assert_status(done, 1)
                self.assertIn(f"{option} {path}: ", done.err)
                self.assertFalse((self.dir / "ran").exists())

    def test_full_disk(self):
        done = self.watch("--csv", "/dev/full", "--", "true")
        self.assert_status(done, 1)
        self.assertIn("--csv /dev/full: No space left", done.err)
        done = self.watch("--json", "/dev/full", "--", "echo", "ran")
        self.assert_status(done, 1)
        self.assertEqual(done.out, "ran\n")
        self.assertIn("--json /dev/full: No space left", done.err)
        self.assert_status(self.watch("--json", "/dev/full", "--", "sh", "-c", "exit 4"), 4)
        with open("/dev/full", "wb") as full:
            done = self.watch("--duration", "10ms", stdout=full)
        self.assert_status(done, 1)

    def test_csv_that_fails_on_the_way_does_not_stop_the_command(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        code = "import sys\nsys.stdout.write('ready\\n')\nsys.stdout.flush()\nsys.stdin.read()\n"
        child = subprocess.Popen([MILLRACE, "watch", "--interval", "10ms", "--csv", fifo,
                                  *python(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(self.end, child)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        os.close(reader)
        self.assertIn(b"Broken pipe; the samples from here on are lost", child.stderr.readline())
        _, err = child.communicate(timeout=TIMEOUT_S)  # closes its input, and it ends by itself
        self.assertEqual(child.returncode, 1)
        self.assertNotIn(b"Broken pipe", err)  # said once
        self.assertIn(b"In all", err)

    def test_json_counts_what_the_command_did(self):
        code = ("import subprocess, sys\n"
                "with open(sys.argv[1], 'wb', buffering=0) as f: f.write(b'x' * 300000)\n"
                "subprocess.run([sys.executable, '-c', 'import sys; "
                "f = open(sys.argv[1], \"ab\", buffering=0); f.write(b\"y\" * 50000)', "
                "sys.argv[1]], check=True)\n")
        done = self.watch("--json", self.dir / "out.json", *python(code, self.dir / "data"))
        self.assert_status(done, 0)
        self.assertEqual((self.dir / "data").stat().st_size, 350000)
        r = self.result()
        self.assertEqual(r["command"][1], "-c")
        self.assertEqual((r["exit_status"], r["signal"], r["interval_s"]), (0, None, 1))
        if r["process"] is not None:
            self.assertGreaterEqual(r["process"]["wchar"], 350000)
            self.assertLess(r["process"]["wchar"], 400000)
        self.assertEqual(len(r["series"]["time_s"]), r["samples"])
        self.assertAlmostEqual(sum(r["series"]["interval_s"]), r["seconds"], delta=1e-5)
        for column in r["series"]["system"].values():
            self.assertEqual(len(column), r["samples"])
        shares = [r["system"][f"cpu_{k}_pct"] for k in ("user", "system", "iowait", "steal",
                                                        "idle")]
        self.assertTrue(sum(shares) == 0 or abs(sum(shares) - 100) < 0.01, shares)

    def test_the_table_says_what_the_json_says(self):
        code = "import os; f = open('x', 'wb', 0); f.write(bytes(1 << 22)); os.fsync(f)"
        done = self.watch("--json", self.dir / "out.json", *python(code), cwd=self.dir)
        self.assert_status(done, 0)
        lines = [line.split() for line in (done.out + done.err).splitlines()]
        (heading,) = [line for line in lines if line[:2] == ["Time", "Name"]]
        self.assertEqual(heading[2:], ["KBytes", "Merged", "IOs", "Size", "Wait", "QLen", "SvcTim",
                                       "Util"])
        (result,) = json.loads((self.dir / "out.json").read_text())["results"]
        moved = [(d, side) for d in result["devices"] for side in ("read", "write")
                 if d[side]["ios"]]
        if not moved:
            self.skipTest("no block device moved")
        for device, side in moved:
            (row,) = [line for line in lines if line[:3] == ["all", device["name"], side]]
            want = [device[side][key] for key in ("kbytes_per_s", "merged_per_s", "ios_per_s",
                                                  "size_kb", "wait_ms", "qlen")]
            want += [device["svctim_ms"], device["util_pct"]]
            for name, cell, value in zip(heading[2:], row[3:], want, strict=True):
                self.assertAlmostEqual(float(cell.rstrip("%")), value, msg=name,
                                       delta=max(0.051 if name == "Util" else 0.006, value / 150))

    def test_json_on_standard_output_is_alone_there(self):
        done = self.watch("--json", "-", "--", "echo", "hello")
        self.assert_status(done, 0)
        self.assertEqual(done.json["results"][0]["exit_status"], 0)
        self.assertIn("hello\n", done.err)

    def test_csv_on_standard_output_is_alone_there(self):
        done = self.watch("--csv", "-", "--", "echo", "hello")
        self.assert_status(done, 0)
        lines = list(csv.reader(done.out.splitlines()))
        self.assertEqual(lines[0][:len(HEADING)], HEADING)
        self.assertEqual(lines[-1][2] if len(lines) == 2 else lines[1][2], "system")
        self.assertIn("hello\n", done.err)

    def test_table_is_live_on_a_terminal_only(self):
        go = self.dir / "go"
        os.mkfifo(go)
        on = OnTerminal("watch", "--interval", "10ms", "--", "cat", go)
        self.addCleanup(on.close)
        on.read_until(b"SvcTim")
        on.read_until(b"system")
        with open(go, "wb"):
            pass
        self.assertEqual(on.finish(), 0)
        self.assertIn(b"In all", on.seen)
        done = self.watch("--interval", "10ms", "--", "true")
        self.assertTrue(done.err.startswith("In all"), done)

    def test_a_device_that_was_asked_for_is_shown_idle_too(self):
        names = [line.split()[2] for line in
                 pathlib.Path("/proc/diskstats").read_text().splitlines()]
        if not names:
            self.skipTest("no block device")
        done = self.watch("--json", "-", "--device", f"/dev/{names[0]},no-such-device",
                          "--duration", "10ms")
        devices = done.json["results"][0]["devices"]
        self.assertEqual([d["name"] for d in devices], names[:1])
        self.assertIn("--device no-such-device: there was no such block device", done.err)
        self.assertNotIn(f"--device /dev/{names[0]}: there", done.err)


@needs("losetup", "dd")
class DeviceThatGoes(WatchCase):
    def add_loop_device(self):
        if not is_root():
            self.skipTest("needs root")
        try:
            control = os.open("/dev/loop-control", os.O_RDWR)
            self.addCleanup(os.close, control)
            number = fcntl.ioctl(control, LOOP_CTL_ADD, 200 + os.getpid() % 10000)
        except OSError as e:
            self.skipTest(f"no loop device: {e}")
        self.addCleanup(self.remove, control, number)
        if not os.path.exists(f"/dev/loop{number}"):
            self.skipTest("no node for a new loop device")
        return number

    @staticmethod
    def remove(control, number):
        subprocess.run(["losetup", "-d", f"/dev/loop{number}"], capture_output=True, check=False)
        try:
            fcntl.ioctl(control, LOOP_CTL_REMOVE, number)
        except OSError:
            pass  # the test has done it

    def test_loop_device_is_detached_and_removed_while_it_is_sampled(self):
        number = self.add_loop_device()
        image = self.dir / "image"
        image.touch()
        os.truncate(image, 8 << 20)
        code = ("import fcntl, os, subprocess, sys, time\n"
                "number, image, rows = int(sys.argv[1]), sys.argv[2], sys.argv[3]\n"
                "device = '/dev/loop%d' % number\n"
                "def samples(): return open(rows).read().count(',system,')\n"
                "def wait_for_two():\n"
                "    n = samples() + 2\n"
                "    while samples() < n: time.sleep(0.005)\n"
                "subprocess.run(['losetup', device, image], check=True)\n"
                "subprocess.run(['dd', 'if=/dev/zero', 'of=' + device, 'bs=1M', 'count=3',\n"
                "                'oflag=direct', 'status=none'], check=True)\n"
                "wait_for_two()\n"
                "subprocess.run(['losetup', '-d', device], check=True)\n"
                "wait_for_two()\n"
                "control = os.open('/dev/loop-control', os.O_RDWR)\n"
                "for i in range(1000):\n"
                "    try:\n        fcntl.ioctl(control, 0x4C81, number)\n        break\n"
                "    except OSError:\n        time.sleep(0.01)\n"  # EBUSY: udev looks at it
                "wait_for_two()\n")
        done = self.watch("--interval", "10ms", "--csv", self.dir / "a.csv", "--json",
                          self.dir / "out.json", "--device", f"loop{number}",
                          *python(code, str(number), image, self.dir / "a.csv"))
        if done.status and "losetup" in done.err:
            self.skipTest(done.err)
        self.assert_status(done, 0)
        d, = self.result()["devices"]
        self.assertTrue(d["vanished"])
        self.assertEqual(d["write"]["bytes"], 3 << 20)
        self.assertIn("vanished", done.err)
        rows = [r for r in self.rows(self.dir / "a.csv") if r["Kind"] == "disk"]
        self.assertEqual({r["Name"] for r in rows}, {f"loop{number}"})
        written = sum(float(r["KBytes"]) * float(r["Interval"]) for r in rows
                      if r["Direction"] == "write")
        self.assertAlmostEqual(written, 3 << 10, delta=300)  # Interval is rounded to a ms


if __name__ == "__main__":
    main()
