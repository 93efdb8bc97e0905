"""test_study.py - `millrace study` on small data: what it writes, what it does not run again, what it
says when something is missing, and that it leaves nothing behind.

Only experiments that take seconds run here; no figure is judged."""
import html
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import seccomp_filter
import study_fixture
import system_kit
from system_kit import MILLRACE, TempDirCase, is_root, run

EXPERIMENTS = ["baseline", "read", "decode", "overlap", "batch", "activity", "checkpoint", "phases",
               "files", "verdict"]
LONG_S = 4 * system_kit.TIMEOUT_S  # several experiments, on a machine with other work to do
_photos = None


def setUpModule():
    global _photos
    _photos = pathlib.Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, _photos)
    _photos.chmod(0o755)
    done = run("generate", "--count", 96, "--classes", 4, "--out", _photos / "set")
    assert done.status == 0, done


def scratch_folders(*places):
    return [p for place in places for p in pathlib.Path(place).rglob(".millrace-scratch-*")]


def children_of(pid):
    """Processes that this one has started and that are not through."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if fields[0] != "Z" and int(fields[1]) == pid:
            found.append(stat.parent.name)
    return found


class StudyCase(TempDirCase):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "out"
        self.data = _photos / "set"
        self.names = sorted(p.name for p in self.data.iterdir())
        self.addCleanup(self.check_nothing_is_left)

    def check_commands(self, folder):
        """What is said to do the same by hand is taken by the program: nothing is refused before an
        option that does not exist."""
        path = folder / "results.json"
        for result in json.loads(path.read_text())["results"] if path.exists() else []:
            for command in result.get("commands", []):
                words = shlex.split(command)
                parts = [words]
                if "--" in words:
                    at = words.index("--")
                    parts = [words[:at], words[at + 1:]]
                for part in parts:
                    self.assertEqual(part[0], "millrace", command)
                    done = run(*part[1:], "--no-such-option")
                    self.assert_status(done, 2)
                    self.assertIn("--no-such-option", done.err.splitlines()[0], command)
                    for option in ("--data", "--list"):
                        if option in part:
                            self.assertTrue(os.path.exists(part[part.index(option) + 1]), command)
                self.assertNotIn(".millrace-scratch", command)

    def check_nothing_is_left(self):
        self.assertEqual(scratch_folders(self.dir, _photos), [])
        self.assertEqual(list(self.dir.rglob("*.part")), [])

    def study(self, *more, data=None, out=None, status=0, **kwargs):
        done = run("study", "--data", data or self.data, "--out", out or self.out, *more, **kwargs)
        self.assert_status(done, status)
        self.check_commands(pathlib.Path(out or self.out))
        return done

    def three(self, name):
        """A folder of three images."""
        folder = self.dir / name
        folder.mkdir()
        for path in sorted(self.data.rglob("*.jpg"))[:3]:
            shutil.copy(path, folder)
        return folder

    def result(self, name):
        return json.loads((self.out / f"{name}.json").read_text())

    def marks(self, name="t.json"):
        """Of a study's trace."""
        inspected, = system_kit.results("inspect", self.dir / name)
        self.assertIn("hdd", inspected["traces"][0]["storage"])
        self.assertFalse(inspected["traces"][0]["cut"])
        return [m["name"] for m in inspected["marks"]]

    def page(self):
        return (self.out / "report.html").read_text()

    def section(self, name):
        return re.search(rf'<section id="{name}">.*?</section>', self.page(), re.S).group()


class Results(StudyCase):
    def test_one_experiment_gives_its_files_and_a_page(self):
        done = self.study("--only", "files")
        self.assertIn("96 images", done.out)
        self.assertRegex(done.out, r"(?m)^files +[0-9.]+ s$")
        self.assertRegex(done.out, r"Report: .*/out/report\.html\n$")
        result = self.result("files")
        self.assertTrue(result["finished"])
        self.assertIsNone(result["missing"])
        self.assertEqual(sum(b["n"] for b in result["points"][0]["histogram"]), 96)
        self.assertIn("<figure", self.section("files"))
        self.assertIn("This experiment was not run", self.section("read"))
        everything = json.loads((self.out / "results.json").read_text())
        self.assertEqual(everything["command"], "study")
        self.assertEqual(everything["data"]["images"], 96)
        self.assertEqual([e["experiment"] for e in everything["results"]], ["files"])

    def test_of_a_large_data_set_a_part_is_read_and_looked_at(self):
        photos = sorted(self.data.rglob("*.jpg"))
        whole = self.dir / "large.csv"
        whole.write_text("".join(f"{photos[i % len(photos)]},0\n" for i in range(20000)))
        self.assert_status(run("study", "--list", whole, "--out", self.out, "--only", "files"), 0)
        point = self.result("files")["points"][0]
        self.assertEqual(point["samples"], 20000)
        self.assertEqual(point["looked_at"], sum(b["n"] for b in point["histogram"]))
        self.assertTrue(128 <= point["images_read"] <= 16384, point["images_read"])
        self.assertIn("The device was watched while", self.section("files"))

    def test_commands_name_data_in_odd_places(self):
        odd = self.dir / "my 'own' $images"
        shutil.copytree(self.three("few"), odd)
        self.study("--only", "files,read", "--runs", 1, data=odd)
        command = self.result("files")["commands"][0]
        self.assertEqual(shlex.split(command), ["millrace", "inspect", str(odd)])
        self.assertEqual(shlex.split(self.result("read")["commands"][0])[2:4], ["--data", str(odd)])
        listed = self.dir / "few.csv"
        listed.write_text("".join(f"{p},0\n" for p in odd.iterdir()))
        self.assert_status(run("study", "--list", listed, "--out", self.out, "--only", "read",
                               "--runs", 1), 0)
        self.assertIn(f"--list {listed} --map read", self.result("read")["commands"][0])
        self.check_commands(self.out)

    def test_json_goes_to_standard_output_alone(self):
        done = self.study("--only", "files", "--json", "-")
        self.assertEqual(done.json["command"], "study")
        self.assertEqual(done.json["results"][0]["experiment"], "files")

    def test_phases_overlap_and_add_up(self):
        fs = os.statvfs(_photos)
        if fs.f_bavail * fs.f_frsize < 3 << 30:
            self.skipTest("no room for a checkpoint")
        self.study("--only", "phases", timeout=LONG_S)
        points = self.result("phases")["points"]
        self.assertEqual([p["shuffle"] for p in points], ["global", "none"])
        for point in points:
            names = [p["name"] for p in point["phases"]]
            self.assertIn("Read", names)
            self.assertIn("Train", names)
            self.assertIn("Checkpoint", names)
            for phase in point["phases"]:
                self.assertLessEqual(phase["union_s"], phase["sum_s"] * 1.0001)
        self.assertEqual(self.section("phases").count("<figure"), 2)

    def test_three_images_are_enough(self):
        self.study("--only", "files,read,decode,verdict", "--runs", 1, data=self.three("few"),
                   timeout=LONG_S)
        for name in ("files", "read", "decode", "verdict"):
            self.assertTrue(self.result(name)["finished"], self.result(name)["missing"])
        storages = {p["storage"] for p in self.result("read")["points"]}
        self.assertEqual(storages, {"disk", "hdd", "ssd", "optane", "lustre"})

    def smaller(self):
        """What the verdict says about images stored smaller; the page has to say the same."""
        result = self.result("verdict")
        self.assertTrue(result["finished"], result["missing"])
        advice = result["points"][0]["smaller_images"]
        self.assertIn(advice["text"], html.unescape(self.section("verdict")))
        return advice

    def test_smaller_images_are_tried(self):
        done = self.study("--only", "verdict", "--runs", 1, timeout=LONG_S)
        advice = self.smaller()
        self.assertTrue(advice["tried"])
        self.assertIn(advice["text"], done.out)
        self.assertEqual((advice["side"], advice["quality"], advice["broken"]), (256, 90, 0))
        self.assertGreater(advice["shorter_side"], 256)
        self.assertLess(advice["smaller_file_bytes"], advice["file_bytes"] / 2)
        self.assertEqual(advice["files"], 96)
        self.assertGreater(advice["predicted_images_per_s"], 0)
        if advice["measured_images_per_s"] is None:  # whatever else the machine is busy with
            self.assertIn("would not help", advice["text"])
        else:
            self.assertGreater(advice["measured_images_per_s"], 0)
            self.assertIn("Store the images smaller (shorter side 256", advice["text"])
            gains = (self.out / "verdict-gains.csv").read_text()
            self.assertIn("and smaller images", gains)
        self.assertEqual(sorted(p.name for p in self.data.iterdir()), self.names)

    def test_small_images_are_small_enough(self):
        small = self.dir / "caltech"
        self.assert_status(run("generate", "--preset", "caltech101", "--count", 12, "--classes", 2,
                               "--out", small), 0)
        self.study("--only", "verdict", "--runs", 1, data=small, timeout=LONG_S)
        advice = self.smaller()
        self.assertFalse(advice["tried"])
        self.assertIn("no larger than training needs", advice["text"])
        self.assertIsNone(advice["predicted_images_per_s"])


class Traced(StudyCase):
    """--trace around a study: a line of time for all its experiments."""

    def test_experiments_are_marked_and_their_reads_named(self):
        trace = self.dir / "t.json"
        self.study("--only", "files", "--trace", trace)
        self.assertIn("files: starting", self.marks())
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertTrue(any(str(self.data) in e["args"].get("file", "") for e in events
                            if e["ph"] == "X" and e["name"] == "Read"))
        everything = json.loads((self.out / "results.json").read_text())
        self.assertEqual(everything["trace"]["file"], str(trace))
        self.assertGreater(everything["trace"]["events"], 0)
        self.study("--only", "files")
        self.assertIsNone(json.loads((self.out / "results.json").read_text())["trace"])

    def test_an_experiment_that_records_for_itself_is_a_gap(self):
        self.study("--only", "phases,files", "--trace", self.dir / "t.csv", timeout=LONG_S)
        marks = self.marks("t.csv")
        self.assertIn("phases: starting", marks)
        self.assertIn("files: starting", marks)
        self.assertNotIn("phases: shuffle global", marks)
        point = self.result("phases")["points"][0]
        self.assertIn("Train", [p["name"] for p in point["phases"]])

    def test_a_path_that_cannot_be_written_is_said_before_the_work(self):
        done = self.study("--trace", self.dir / "no" / "t.json", status=1)
        self.assertIn("--trace", done.err)
        self.assertFalse(self.out.exists())


class Continuing(StudyCase):
    def setUp(self):
        super().setUp()
        self.stamps = {}  # of results that were put there

    def test_finished_experiments_are_not_run_again(self):
        self.study("--only", "files")
        stamp = (self.out / "files.json").stat().st_mtime_ns
        self.interrupt_in("baseline")
        self.assertEqual((self.out / "files.json").stat().st_mtime_ns, stamp)
        self.assertIn("<figure", self.section("files"))

    def test_those_asked_for_by_name_are(self):
        self.study("--only", "files")
        stamp = (self.out / "files.json").stat().st_mtime_ns
        self.study("--only", "files")
        self.assertNotEqual((self.out / "files.json").stat().st_mtime_ns, stamp)

    def test_results_of_other_data_are_not_taken_over(self):
        self.study("--only", "files", data=self.three("a"))
        self.study("--only", "read", data=self.three("b"))
        names = [e["experiment"] for e in
                 json.loads((self.out / "results.json").read_text())["results"]]
        self.assertEqual(names, ["read"])

    def test_garbage_in_the_folder_is_not_taken_over(self):
        self.out.mkdir()
        for name, text in (("read", "garbage"), ("decode", "[]"), ("phases", '{"finished": true}'),
                           ("verdict", "")):
            (self.out / f"{name}.json").write_text(text)
        self.study("--only", "files")
        names = [e["experiment"] for e in
                 json.loads((self.out / "results.json").read_text())["results"]]
        self.assertEqual(names, ["files"])

    def test_interrupted_in_every_experiment_and_continued(self):
        """Ctrl-C in each, and the next study goes on there: those before it are not run again."""
        self.out.mkdir()
        for n, name in enumerate(EXPERIMENTS):
            self.interrupt_in(name)
            written = {e: (self.out / f"{e}.json").stat().st_mtime_ns for e in EXPERIMENTS[:n]}
            self.assertEqual(written, {e: self.stamps[e] for e in EXPERIMENTS[:n]})
            if name != "files":  # which may be through before the signal arrives
                self.assertFalse((self.out / f"{name}.json").exists(), name)
                self.assertIn("This experiment was not run", self.section(name))
            results = json.loads((self.out / "results.json").read_text())["results"]
            self.assertEqual([e["experiment"] for e in results][:n], EXPERIMENTS[:n])
            self.assertEqual(scratch_folders(self.dir, _photos), [])
            self.assertEqual(children_of(os.getpid()), [])
            self.put_result(name)
        done = self.study()
        self.assertNotRegex(done.out, r"(?m)^[a-z]+ +[0-9.]+ s$")
        for name in EXPERIMENTS:
            self.assertIn("<figure", self.section(name))

    def test_a_study_that_goes_on_traces_what_it_runs(self):
        self.out.mkdir()
        for name in EXPERIMENTS[:-2]:
            self.put_result(name)
        self.interrupt_in("verdict", "--trace", self.dir / "t.json")
        marks = self.marks()
        self.assertIn("verdict: starting", marks)
        self.assertEqual({m.split(":")[0] for m in marks if ": starting" in m},
                         {"files", "verdict"})
        self.assertTrue(self.result("files")["finished"])

    def test_interrupted_where_something_was_written(self):
        for experiment in ("baseline", "phases"):
            child = subprocess.Popen([MILLRACE, "study", "--data", self.data, "--out", self.out,
                                      "--only", experiment], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
            try:
                self.wait_for_scratch(child)
                child.send_signal(signal.SIGINT)
                self.assertEqual(child.wait(system_kit.TIMEOUT_S), 130)
            finally:
                child.kill()
                child.wait()
            self.assertEqual(scratch_folders(self.dir, _photos), [])
            self.assertFalse((self.out / f"{experiment}.json").exists())

    def test_interrupted_while_smaller_images_are_tried(self):
        child = subprocess.Popen([MILLRACE, "study", "--data", self.data, "--out", self.out,
                                  "--only", "verdict"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL)
        try:
            self.wait_for_scratch(child, ".millrace-scratch-*/.millrace-scratch-*/*.jpg", LONG_S)
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(system_kit.TIMEOUT_S), 130)
        finally:
            child.kill()
            child.wait()
        self.assertFalse((self.out / "verdict.json").exists())
        self.check_nothing_is_left()

    def put_result(self, name):
        """A result as the study would have left it, had it come to its end."""
        path = self.out / f"{name}.json"
        path.write_text(json.dumps(study_fixture.experiment(name, images=96, data=str(self.data))))
        self.stamps[name] = path.stat().st_mtime_ns

    def interrupt_in(self, experiment, *more):
        """Ctrl-C as soon as the progress names the experiment."""
        child = system_kit.OnTerminal("study", "--data", self.data, "--out", self.out, *more)
        try:
            child.read_until(f"{experiment}: ".encode())
            child.child.send_signal(signal.SIGINT)
            self.assertEqual(child.finish(), 130, (experiment, child.seen[-300:]))
        finally:
            child.close()

    def wait_for_scratch(self, child, pattern=".millrace-scratch-*/*",
                         seconds=system_kit.TIMEOUT_S):
        """Until the experiment has something to clean up."""
        end = time.monotonic() + seconds
        while not any(any(place.rglob(pattern)) for place in (self.dir, _photos)):
            self.assertIsNone(child.poll(), "the study ended by itself")
            self.assertLess(time.monotonic(), end, "no scratch folder")


class Asking(StudyCase):
    def ask(self, answer, *args):
        """What appears until the answer is wanted; the answer, and how it ended."""
        child = system_kit.OnTerminal("study", "--full", "--out", self.out, *args, asks=True)
        try:
            child.read_until(b"Go on? [y/N] ")
            said = child.seen.decode()
            made = sorted(self.out.iterdir()) if self.out.exists() else []
            child.answer(answer)
            if answer[:1] == b"y":
                child.read_until(b"making photos")
                child.child.send_signal(signal.SIGINT)
            return said, made, child.finish()
        finally:
            child.close()

    def minutes(self, said):
        n, unit = re.search(r"This will take about ([0-9]+) (minutes|seconds)", said).groups()
        return int(n) / (1 if unit == "minutes" else 60)

    def test_a_full_study_asks_before_it_makes_anything(self):
        said, made, status = self.ask(b"n\n")
        self.assertEqual((made, status), ([], 1))
        self.assertGreater(self.minutes(said), 60)
        self.assertFalse(self.out.exists())

    def test_what_is_agreed_to_is_made(self):
        said, made, status = self.ask(b"y\n", "--only", "files")
        self.assertEqual((made, status), ([], 130))
        own = system_kit.OnTerminal("study", "--full", "--data", self.data, "--out", self.out,
                                    "--only", "files", asks=True)
        try:
            own.read_until(b"Go on? [y/N] ")
            self.assertGreater(self.minutes(said), 2 * self.minutes(own.seen.decode()),
                               "making photos is counted")
            own.answer(b"n\n")
            self.assertEqual(own.finish(), 1)
        finally:
            own.close()


class Trouble(StudyCase):
    def test_unknown_experiment(self):
        done = self.study("--only", "files,nonsense", status=2)
        self.assertIn("'nonsense'", done.err)
        for name in EXPERIMENTS:
            self.assertIn(name, done.err)
        self.assertFalse(self.out.exists())

    def test_out_is_a_file(self):
        self.out.write_text("mine")
        done = self.study("--only", "files", status=1)
        self.assertIn(f"--out {self.out}: Not a directory", done.err)
        self.assertEqual(self.out.read_text(), "mine")

    def test_out_has_no_parent(self):
        done = self.study("--only", "files", out=self.dir / "no/such", status=1)
        self.assertIn("No such file or directory", done.err)

    @unittest.skipUnless(is_root(), "needs root to become somebody else")
    def test_out_cannot_be_written(self):
        self.out.mkdir(mode=0o755)
        done = self.study("--only", "files", status=1, stranger=True)
        self.assertIn(f"--out {self.out}: Permission denied", done.err)

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_out_is_on_a_read_only_disk(self):
        where = self.small_disk(8)
        (where / "there").mkdir()
        subprocess.run(["mount", "-o", "remount,ro", where], check=True)
        for out in (where / "there", where / "to-be-made"):
            done = self.study("--only", "files", out=out, status=1)
            self.assertIn(f"--out {out}: Read-only file system; name a folder that can be written",
                          done.err)

    @unittest.skipUnless(is_root(), "needs root to become somebody else")
    def test_data_that_cannot_be_written_is_studied_all_the_same(self):
        self.out.mkdir()
        self.out.chmod(0o777)
        self.study("--only", "files", stranger=True)
        self.assertTrue(self.result("files")["finished"])

    @unittest.skipUnless(is_root(), "needs root to become somebody else")
    def test_what_may_not_be_seen_in_the_cache_is_called_unproven(self):
        few = self.three("few")
        if system_kit.results("evict", few, stranger=True)[0]["cold"] != "unproven":
            self.skipTest("this file system tells everyone what is cached")
        self.out.mkdir()
        self.out.chmod(0o777)
        done = self.study("--only", "files,read,verdict", data=few, stranger=True)
        self.assertIn("Report: ", done.out)
        for name in ("files", "read", "verdict"):
            result = self.result(name)
            self.assertTrue(result["finished"], result)
            self.assertTrue(any("unproven" in w for w in result["warnings"]), result["warnings"])
            self.assertIn("unproven", self.section(name))
        cold = {p["storage"]: p["cold"] for p in self.result("read")["points"]}
        self.assertEqual(cold, {"disk": "unproven", "hdd": None, "ssd": None, "optane": None,
                                "lustre": None})

    def test_no_images(self):
        (self.dir / "empty").mkdir()
        done = self.study("--only", "files", data=self.dir / "empty", status=1)
        self.assertIn("no samples in this folder", done.err)
        for name in EXPERIMENTS:
            self.assertIn("no samples in this folder", self.section(name))

    def test_no_images_leave_an_earlier_study_alone(self):
        self.study("--only", "files")
        page = self.page()
        (self.dir / "empty").mkdir()
        self.study("--only", "files", data=self.dir / "empty", status=1)
        self.assertEqual(self.page(), page)

    def test_no_data(self):
        done = self.study("--only", "files", data=self.dir / "nowhere", status=1)
        self.assertIn("No such file or directory", done.err)

    def test_only_broken_images(self):
        broken = self.dir / "broken"
        broken.mkdir()
        for i in range(4):
            (broken / f"{i}.jpg").write_bytes(b"\xff\xd8not a photo" * 100)
        done = self.study("--only", "files,decode,overlap,activity,checkpoint,phases,verdict",
                          data=broken, timeout=LONG_S)
        fs = os.statvfs(self.dir)
        room = fs.f_bavail * fs.f_frsize > 3 << 30  # else a checkpoint is refused for that
        for name in ("decode", "overlap", "activity", "phases", "verdict") + ("checkpoint",) * room:
            self.assertRegex(done.err, rf"(?m)^{name} +missing: .*broken/[0-9]\.jpg")
            self.assertIn("chip missing", self.section(name))
            self.assertFalse(self.result(name)["finished"])
        self.assertTrue(self.result("files")["finished"])
        done = self.study("--only", "decode", "--again", data=broken, out=self.dir / "o", status=1)
        self.assertIn("No verdict", done.out)

    def test_experiments_that_failed_are_tried_again(self):
        broken = self.dir / "broken"
        broken.mkdir()
        (broken / "0.jpg").write_bytes(b"nothing")
        self.study("--only", "files,decode", data=broken)
        shutil.copy(next(self.data.rglob("*.jpg")), broken / "0.jpg")
        self.study("--only", "decode", data=broken)
        self.assertTrue(self.result("decode")["finished"])

    @system_kit.needs("strace")
    def test_without_io_uring_the_threads_engine_is_studied(self):
        refuse = ("strace", "-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", "-e",
                  "trace=io_uring_setup", "-e", "inject=io_uring_setup:error=ENOSYS")
        if subprocess.run([*refuse, "true"], check=False, capture_output=True).returncode:
            self.skipTest("strace cannot trace here")
        self.study("--only", "read", data=self.three("few"), prefix=refuse,
                   env=system_kit.STRACE_ENV)
        result = self.result("read")
        self.assertEqual({p["engine"] for p in result["points"]}, {"threads"})
        self.assertEqual(len(result["warnings"]), 1)
        self.assertIn("io_uring", result["warnings"][0])
        self.assertIn("io_uring", self.section("read"))

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(seccomp_filter.is_known(), "filters of another architecture")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_where_a_filter_refuses_io_uring(self):
        where = self.small_disk(32)  # where raw limits are measured quickly
        shutil.copytree(self.three("few"), where / "few")
        refused = seccomp_filter.refuse(*seccomp_filter.IO_URING)
        done = self.study("--only", "baseline,read,decode,verdict", "--runs", 1,
                          data=where / "few", preexec_fn=refused, timeout=LONG_S)
        self.assertIn("Report: ", done.out)
        verdict = self.result("verdict")
        self.assertTrue(verdict["finished"], verdict["missing"])
        self.assertNotIn("uring", verdict["points"][0]["recommendation"]["change"])
        for name in ("read", "decode"):
            result = self.result(name)
            self.assertTrue(result["finished"], result["missing"])
            self.assertEqual({p["engine"] for p in result["points"]}, {"threads"})
            self.assertTrue(any("io_uring" in w for w in result["warnings"]), result["warnings"])
            self.assertIn("io_uring", self.section(name))
        result = self.result("baseline")
        self.assertTrue(result["finished"], result["missing"])
        self.assertNotIn("uring", {p["engine"] for p in result["points"]})
        self.assertIn("threads", {p["engine"] for p in result["points"]})
        self.assertEqual(scratch_folders(where), [])

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_a_disk_of_200_mb(self):
        where = self.small_disk(200)
        shutil.copytree(self.three("few"), where / "few")
        done = self.study("--only", "baseline,checkpoint,phases,verdict", "--runs", 1,
                          data=where / "few", timeout=LONG_S)
        self.assertRegex(done.err, r"(?m)^checkpoint missing: .* MB free, and .* need [0-9]+ MB")
        self.assertIn("MB free", self.section("checkpoint"))
        for name, words in (("baseline", "MB instead of"), ("phases", "Without a checkpoint: "),
                            ("verdict", "unproven")):
            result = self.result(name)
            self.assertTrue(result["finished"], result["missing"])
            self.assertTrue(any(words in w for w in result["warnings"]), result["warnings"])
            self.assertIn(words, self.section(name))
        self.assertTrue(self.result("verdict")["points"][0]["smaller_images"]["tried"])
        self.assertGreater(self.free_mib(where), 100)
        self.assertEqual(scratch_folders(where), [])

    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_no_room_for_checkpoints(self):
        small = self.dir / "small"
        small.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", small], check=False,
                          capture_output=True).returncode:
            self.skipTest("cannot mount here")
        self.addCleanup(subprocess.run, ["umount", small], check=True)
        shutil.copytree(self.three("few"), small / "few")
        done = self.study("--only", "checkpoint,files", data=small / "few")
        self.assertRegex(done.err, r"(?m)^checkpoint missing: .* MB free, and .* need [0-9]+ MB")
        self.assertIn("MB free", self.section("checkpoint"))
        self.assertTrue(self.result("files")["finished"])
        self.assertEqual(scratch_folders(small), [])

    def small_disk(self, mib):
        where = self.dir / "small"
        where.mkdir()
        system_kit.mount_small_disk(self, self.dir / "image", where, mib)
        self.out = where / "study"
        return where

    def free_mib(self, where):
        fs = os.statvfs(where)
        return fs.f_bavail * fs.f_frsize >> 20

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_a_disk_with_little_room_gets_fewer_photos(self):
        where = self.small_disk(32)
        done = run("study", "--out", self.out, "--runs", 1, "--only",
                   "baseline,read,decode,checkpoint,files", timeout=LONG_S)
        self.assert_status(done, 0)
        said = re.search(r"([0-9]+) photos instead of 2048: .* has no room for more", done.err)
        n = int(said.group(1))
        self.assertTrue(64 <= n < 200, n)
        self.assertEqual(len(list((self.out / "data").rglob("*.jpg"))), n)
        self.assertIn("2,048 were to be made", self.page())
        results = json.loads((self.out / "results.json").read_text())
        device = results["environment"]["storage"]["device"]
        self.assertTrue(device.startswith("loop"), device)  # and not the disk below it
        self.assertLessEqual({r["device"] for r in self.result("files")["points"][0]["requests"]},
                             {device})
        data = results["data"]
        self.assertEqual((data["images"], data["wanted"], data["generated"]), (n, 2048, True))
        self.assertRegex(done.err, r"(?m)^checkpoint missing: .* MB free, and .* need [0-9]+ MB")
        for name in ("baseline", "read", "decode", "files"):
            self.assertTrue(self.result(name)["finished"], self.result(name)["missing"])
            self.assertIn("<figure", self.section(name))
        limits = {p["storage"] for p in self.result("baseline")["points"]
                  if p["pattern"] == "random-imagenet" and p["read_mb_per_s"] > 0}
        self.assertEqual(limits, {"disk", "hdd", "ssd", "optane", "lustre"})
        for point in self.result("read")["points"]:
            self.assertGreater(point["baseline_share"], 0, point["storage"])
        for name in ("read", "files"):  # the loop device has a cache, which is not ours to see
            said = [w for w in self.result(name)["warnings"] if "unproven" in w]
            self.assertRegex(said[0], "a loop device.* may have a cache of its own")
            self.assertNotIn("root", said[0])
        self.assertGreater(self.free_mib(where), 8)
        self.assertEqual(scratch_folders(where), [])
        again = run("study", "--out", self.out, "--only", "files")  # and they stay what they are
        self.assert_status(again, 0)
        self.assertIn(f"{n} images", again.out)

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_no_room_for_smaller_images(self):
        where = self.small_disk(32)
        photos = sorted(self.data.rglob("*.jpg"))
        few = where / "few"
        few.mkdir()
        for i in range(64):
            shutil.copy(photos[i], few)
        room = os.statvfs(where)
        (where / "ballast").write_bytes(bytes(max(room.f_bavail * room.f_frsize - (3 << 20), 0)))
        self.study("--only", "verdict", "--runs", 1, data=few, out=self.dir / "out",
                   timeout=LONG_S)
        self.out = self.dir / "out"
        result = self.result("verdict")
        self.assertTrue(result["finished"], result["missing"])
        advice = result["points"][0]["smaller_images"]
        self.assertFalse(advice["tried"])
        self.assertRegex(advice["text"], r"were not tried: .* MB free, and trying them needs [0-9]+ MB")
        self.assertIn("were not tried", self.section("verdict"))
        self.assertEqual(scratch_folders(where), [])

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_images_that_cannot_be_written_beside(self):
        where = self.small_disk(32)
        shutil.copytree(self.three("few"), where / "few")
        subprocess.run(["mount", "-o", "remount,ro", where], check=True)
        self.out = self.dir / "out"
        self.study("--only", "verdict", "--runs", 1, data=where / "few", timeout=LONG_S)
        advice = self.result("verdict")["points"][0]["smaller_images"]
        self.assertFalse(advice["tried"])
        self.assertIn("nothing can be written where the images are", advice["text"])

    @system_kit.needs("losetup", "mkfs.ext4", "mount")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_a_disk_without_room_gives_a_page_that_says_so(self):
        where = self.small_disk(12)
        done = run("study", "--out", self.out, "--only", "files")
        self.assert_status(done, 1)
        self.assertRegex(done.err, r"study has [0-9]+ MB free, and 64 photos need 16 MB; name another")
        for name in EXPERIMENTS:
            self.assertIn("64 photos need 16 MB", self.section(name))
        self.assertFalse((self.out / "data").exists())
        self.assertGreater(self.free_mib(where), 8)

    def test_photos_that_could_not_be_finished_are_removed(self):
        child = system_kit.OnTerminal("study", "--out", self.out, "--only", "files")
        try:
            child.read_until(b"making photos")
            child.child.send_signal(signal.SIGINT)
            self.assertEqual(child.finish(), 130)
        finally:
            child.close()
        self.assertFalse(self.out.exists())

    def test_scratch_is_not_made_among_the_samples(self):
        mine = self.dir / "mine"
        shutil.copytree(self.data, mine)
        before = sorted(os.walk(mine))
        for data in (mine, f"{mine}/", f"{mine}/."):
            self.study("--only", "files", data=data)
        self.assertEqual(sorted(os.walk(mine)), before)


if __name__ == "__main__":
    system_kit.main()
