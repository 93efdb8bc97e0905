"""test_study.py - `millrace study` on small data: what it writes, what it does not run again,
and that it leaves nothing behind.

Only experiments that take seconds run here; no figure is judged."""
import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import study_fixture
import system_kit
from study_kit import EXPERIMENTS, LONG_S, StudyCase, children_of, scratch_folders, setUpModule
from system_kit import MILLRACE, run


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
        self.assertIn(result["points"][0]["cold"], ("data", "unproven"))
        self.assertIn("Cache: 1 point read", self.section("files"))
        self.assertIn("<figure", self.section("files"))
        self.assertEqual(result["commands"][1:],
                         [f"millrace watch -- millrace bench --data {self.data} --map read "
                          "--threads 8 --batch 64 --keep-last --runs 1 --cold"])
        self.assertIn("This experiment was not run", self.section("read"))
        everything = json.loads((self.out / "results.json").read_text())
        self.assertEqual(everything["command"], "study")
        self.assertEqual(everything["data"]["images"], 96)
        made_up = study_fixture.study()  # what the tests of the report rest on
        for real, made in ((everything, made_up), (result, made_up["results"][0]),
                           (everything["data"], made_up["data"]),
                           (everything["environment"], made_up["environment"])):
            self.assertEqual(set(made) - set(real), set())
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
        batches = f" --batches {point['images_read'] // 64}"
        self.assertTrue(self.result("files")["commands"][1].endswith(batches))
        self.check_commands(self.out)

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
        self.assertIn(f"--data {listed} --map read", self.result("read")["commands"][0])
        self.check_commands(self.out)

    def test_json_goes_to_standard_output_alone(self):
        done = self.study("--only", "files", "--json", "-")
        self.assertEqual(done.json["command"], "study")
        self.assertEqual(done.json["results"][0]["experiment"], "files")

    def test_phases_overlap_and_add_up(self):
        fs = os.statvfs(self.photos)
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
            self.assertTrue(point["each_read_share"])
            self.assertGreater(min(point["each_read_share"]), 0)
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
            better = advice["measured_images_per_s"] > 1.03 * advice["base_images_per_s"]
            self.assertEqual(advice["recommended"], better)
            self.assertIn("Store the images smaller (shorter side 256" if better else
                          "are not recommended", advice["text"])
            gains = (self.out / "verdict-gains.csv").read_text()
            self.assertIn("and smaller images", gains)
        self.assertEqual(sorted(p.name for p in self.data.iterdir()), self.names)
        self.check_advice(done.out)

    def check_advice(self, out):
        """Whatever was measured: what is not better, or rests on a model that is off, is nowhere
        recommended."""
        point, = self.result("verdict")["points"]
        advice = point["recommendation"]
        everything = json.loads((self.out / "results.json").read_text())
        self.assertEqual(everything["recommendation"], advice)
        self.assertEqual(everything["schema"], 1)
        self.assertEqual(advice["now_per_s"], point["rates"]["cold"])
        off = abs(advice["now_predicted_images_per_s"] / advice["now_per_s"] - 1)
        better = advice["measured_per_s"] > 1.03 * advice["now_per_s"]
        if advice["change"] is not None:
            self.assertEqual((advice["status"], advice["change"]), ("recommended", advice["tried"]))
            self.assertTrue(off <= 0.1 and better, advice)
        self.assertEqual(advice["status"] == "no model", off > 0.1)
        # smaller images are held against what was measured right before them
        base = point["smaller_images"]["base_images_per_s"]
        if advice["change"] is None:
            self.assertNotIn(base, (advice["now_per_s"], advice["measured_per_s"]))
        else:
            self.assertEqual(base, advice["measured_per_s"])
        self.assertIn(advice["text"], out)
        self.assertIn(advice["text"], html.unescape(self.section("verdict")))
        for text in (out, point["text"], html.unescape(self.page())):
            self.assertEqual("Use --" in text, advice["change"] is not None and
                             (text is out or advice["text"] in text), advice)

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
        self.basis = None  # what a result rests on that is measured here and now

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

    def test_results_of_another_machine_are_not_taken_over(self):
        """Nor those of another disk, seed or number of runs, nor any that do not say."""
        few = self.three("few")
        for path, value, words in (
                ("measured_on.host", "elsewhere", 'not "elsewhere"'),
                ("measured_on.cpu", "abacus", 'not "abacus"'),
                ("measured_on.data_storage.file_system", "punched cards", 'not "punched cards"'),
                ("measured_on.data_storage.source", "server:/data", 'not "server:/data"'),
                ("measured_on.scratch_storage.source", "/dev/floppy", 'not "/dev/floppy"'),
                ("measured_on.seed", 77, "the seed is 1, not 77"),
                ("measured_on.runs", 99, "runs: 1, not 99"),
                ("mode", "full", 'the study is "quick", not "full"'),
                ("measured_at", None, "not said when"), ("measured_on", None, "not said when")):
            with self.subTest(path=path):
                self.study("--only", "files", "--runs", 1, data=few)
                self.change("files", path, value)
                done = self.study("--only", "read", "--runs", 1, data=few)
                self.assertEqual(self.in_results(), ["read"])
                self.assertIn("are not taken over (files): ", done.err)
                self.assertIn(words, done.err)

    def test_advice_by_older_rules_is_not_taken_over(self):
        self.out.mkdir()
        self.put_result("verdict")
        self.study("--only", "files")
        self.assertEqual(self.in_results(), ["files", "verdict"])
        self.change("verdict", "points.0.recommendation.status", None)
        done = self.study("--only", "files")
        self.assertEqual(self.in_results(), ["files"])
        self.assertIn("are not taken over (verdict): the advice in it was made by rules that no longer "
                      "hold.", done.err)

    def test_what_it_was_asked_with_is_compared(self):
        few = self.three("few")
        for more in (("--seed", 2), ("--runs", 2)):
            self.study("--only", "files", "--runs", 1, "--again", data=few)
            self.study("--only", "read", "--runs", 1, *more, data=few)
            self.assertEqual(self.in_results(), ["read"], more)

    def test_those_taken_over_are_named_with_their_time(self):
        few = self.three("few")
        then = "2001-02-03T04:05:06Z"
        done = self.study("--only", "files,decode", "--runs", 1, data=few)
        self.assertNotIn("Not measured again", done.err)
        self.assertNotIn("Measured before", self.page())
        self.change("files", "measured_at", then)
        done = self.study("--only", "read", "--runs", 1, data=few)
        self.assertRegex(done.err, rf"Not measured again: decode, files\. .* of {then} to 2[0-9T:-]+Z; "
                                   r"--again measures them anew\.")
        everything = json.loads((self.out / "results.json").read_text())
        times = {e["experiment"]: e["measured_at"] for e in everything["results"]}
        self.assertEqual(times["files"], then)
        self.assertGreaterEqual(times["read"], everything["started_at"])
        self.assertIn(then, self.section("files"))
        self.assertIn(f"measured earlier, from {then} on", self.page())
        self.assertNotIn("Measured before", self.section("read"))
        done = self.study("--only", "read", "--again", "--runs", 1, data=few)
        self.assertNotIn("Not measured again", done.err)

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
            self.assertEqual(scratch_folders(self.dir, self.photos), [])
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
            self.assertEqual(scratch_folders(self.dir, self.photos), [])
            self.assertFalse((self.out / f"{experiment}.json").exists())

    def start(self, experiment, **more):
        return subprocess.Popen([MILLRACE, "study", "--data", self.data, "--out", self.out,
                                 "--only", experiment], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)

    def test_what_a_killed_study_left_is_removed_by_the_next(self):
        child = self.start("baseline")
        try:
            self.wait_for_scratch(child, ".millrace-scratch-*/.millrace-scratch-*")
            self.assertNotIn("note: removed", self.study("--only", "files").err)
            self.assertTrue(scratch_folders(self.photos), "taken from a study that lives")
            self.assertIsNone(child.poll())
        finally:
            child.kill()
            child.wait()
        self.assertTrue(scratch_folders(self.photos))
        done = self.study("--only", "files")
        self.assertIn(f"note: removed what 1 killed run had left in {self.photos}\n", done.err)
        self.assertEqual(scratch_folders(self.dir, self.photos), [])

    def test_a_terminal_that_goes_away_ends_it_as_ctrl_c_does(self):
        child = self.start("baseline")
        try:
            self.wait_for_scratch(child)
            child.send_signal(signal.SIGHUP)
            self.assertEqual(child.wait(system_kit.TIMEOUT_S), 130)
        finally:
            child.kill()
            child.wait()
        self.assertEqual(scratch_folders(self.dir, self.photos), [])
        self.assertTrue((self.out / "report.html").exists())

    def test_but_not_under_nohup(self):
        child = self.start("files", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        try:
            while child.poll() is None:
                child.send_signal(signal.SIGHUP)
            self.assertEqual(child.wait(), 0)
        finally:
            child.kill()
            child.wait()

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
        if not self.basis:
            self.study("--only", "files", out=self.dir / "basis")
            real = json.loads((self.dir / "basis/files.json").read_text())
            self.basis = {key: real[key]
                          for key in ("mode", "data", "images", "measured_at", "measured_on")}
        path = self.out / f"{name}.json"
        path.write_text(json.dumps(study_fixture.experiment(name, **self.basis)))
        self.stamps[name] = path.stat().st_mtime_ns

    def change(self, name, path, value):
        """Another value in a result that is there; None: it goes."""
        result = self.result(name)
        *above, last = path.split(".")
        where = result
        for key in above:
            where = where[int(key) if key.isdigit() else key]
        self.assertIn(last, where)
        if value is None:
            del where[last]
        else:
            where[last] = value
        (self.out / f"{name}.json").write_text(json.dumps(result))

    def in_results(self):
        everything = json.loads((self.out / "results.json").read_text())
        return [e["experiment"] for e in everything["results"]]

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
        while not any(any(place.rglob(pattern)) for place in (self.dir, self.photos)):
            self.assertIsNone(child.poll(), "the study ended by itself")
            self.assertLess(time.monotonic(), end, "no scratch folder")


class TimeLeft(StudyCase):
    def test_it_is_reckoned_from_the_start_of_the_study(self):
        """When the second experiment begins, so much time is left as the first one's makes of it:
        decode is foreseen to take longer than read."""
        child = system_kit.OnTerminal("study", "--data", self.data, "--out", self.out, "--only",
                                      "read,decode", "--runs", 1)
        began = time.monotonic()
        try:
            child.read_until(lambda seen: re.search(rb"decode: starting [^\r]*\r", seen), LONG_S)
            most = 2 * (time.monotonic() - began) + 1
            child.child.send_signal(signal.SIGINT)
            self.assertEqual(child.finish(), 130)
        finally:
            child.close()
        line = re.search(rb"decode: starting [^\r]*", child.seen).group().decode()
        left = re.search(r"([0-9]+) s left", line)
        self.assertTrue(left, line)
        self.assertGreaterEqual(int(left.group(1)) + 1, self.result("read")["seconds"])
        self.assertLess(int(left.group(1)), most)


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


if __name__ == "__main__":
    system_kit.main()
