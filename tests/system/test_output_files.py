"""test_output_files.py - every file that the program writes: a link in its place, or in the place of
a name that could be guessed, leads nowhere; what was there stays until there is something better."""
import json
import os
import stat
import subprocess
import unittest

import study_fixture
import system_kit
from system_kit import TempDirCase, make_files, run

PRECIOUS = "precious\n"
GUESSES = [".part", ".new", ".tmp", "~"]


class Links(TempDirCase):
    """Before a command runs, links to a victim stand at the file's name and at guesses of names that
    it may have while it is written."""

    def setUp(self):
        super().setUp()
        self.victim = self.dir / "victim"
        self.victim.write_text(PRECIOUS)
        self.out = self.dir / "out"
        self.out.mkdir()
        make_files(self.dir / "set", 8)

    def plant(self, *paths):
        for path in paths:
            for guess in (path, *(path.with_name(path.name + g) for g in GUESSES),
                          *(path.with_name("." + path.name + g) for g in GUESSES)):
                guess.unlink(missing_ok=True)
                guess.symlink_to(self.victim)

    def check(self, *paths):
        self.assertEqual(self.victim.read_text(), PRECIOUS)
        for path in paths:
            self.assertTrue(stat.S_ISREG(path.lstat().st_mode), path)
            self.assertNotEqual(path.read_text(), PRECIOUS)
        self.assertEqual(list(self.dir.rglob(".millrace-*.part")), [])

    def bench(self, *more, status=0):
        self.assert_status(run("bench", "--data", self.dir / "set", "--runs", 1, "--batch", 2, *more),
                           status)

    def test_json(self):
        commands = {"bench": ["--data", self.dir / "set", "--runs", 1, "--batch", 2],
                    "inspect": [self.dir / "set"], "evict": [self.dir / "set"],
                    "train": ["--synthetic", "--device", "emulated:0.001", "--steps", 1],
                    "watch": ["--duration", "20ms", "--interval", "10ms"],
                    "baseline": [self.dir, "--size", "1M", "--runs", 1],
                    "generate": ["--count", 1, "--out", self.dir / "new"]}
        for command, args in commands.items():
            with self.subTest(command):
                path = self.out / f"{command}.json"
                self.plant(path)
                done = run(command, *args, "--json", path)
                self.assert_status(done, 0)
                self.check(path)
                self.assertEqual(json.loads(path.read_text())["command"], command)

    def test_streams(self):
        """Traces, ledgers and the CSV of watch."""
        trace, text, ledger = self.out / "t.json", self.out / "t.csv", self.out / "l.csv"
        self.plant(trace, text, ledger)
        self.bench("--trace", trace, "--ledger", ledger)
        self.bench("--trace", text)
        self.check(trace, text, ledger)
        rows = self.out / "w.csv"
        self.plant(rows)
        self.assert_status(run("watch", "--duration", "20ms", "--interval", "10ms", "--csv", rows), 0)
        self.check(rows)

    def test_profile(self):
        path = self.out / "disk.profile"
        self.plant(path)
        self.assert_status(run("baseline", self.dir, "--size", "1M", "--runs", 2,
                               "--save-profile", path), 0)
        self.check(path)

    def test_pages_and_their_tables(self):
        for name, speed in (("out", 1), ("other", 2)):
            folder = self.dir / name
            folder.mkdir(exist_ok=True)
            (folder / "results.json").write_text(json.dumps(study_fixture.study(speed=speed)))
        page = self.out / "report.html"
        self.assert_status(run("report", self.out), 0)
        written = [page, *self.out.glob("*.csv")]
        self.assertGreater(len(written), 3)
        self.plant(*written)
        self.assert_status(run("report", self.out), 0)
        self.check(*written)
        page = self.dir / "other/compare.html"
        self.plant(page)
        self.assert_status(run("report", self.out, self.dir / "other"), 0)
        self.check(page)

    def test_study(self):
        written = [self.out / name for name in ("files.json", "results.json", "report.html")]
        self.plant(*written)
        self.assert_status(run("study", "--data", self.dir / "set", "--out", self.out, "--only",
                               "files", timeout=240), 0)
        self.check(*written)


class Earlier(TempDirCase):
    """What was there before."""

    def setUp(self):
        super().setUp()
        make_files(self.dir / "set", 8)
        self.json = self.dir / "r.json"

    def bench(self, *more):
        return run("bench", "--data", self.dir / "set", "--runs", 1, "--batch", 2, *more)

    def test_stays_when_the_command_fails(self):
        self.json.write_text(PRECIOUS)
        for args in (["bench", "--data", self.dir / "gone"],
                     ["bench", "--data", self.dir / "set", "--batch", 99, "--runs", 1],
                     ["inspect", self.dir / "gone"],
                     ["train", "--data", self.dir / "set", "--device", "emulated:0.001"],
                     ["baseline", self.dir / "gone"],
                     ["generate", "--out", self.dir / "no/where"],
                     ["checkpoint", "ls", self.dir / "gone"],
                     ["report", self.dir / "gone"],
                     ["study", "--data", self.dir / "gone", "--out", self.dir / "out"]):
            with self.subTest(args[0]):
                self.assertNotEqual(run(*args, "--json", self.json).status, 0)
                self.assertEqual(self.json.read_text(), PRECIOUS)

    def test_bad_news_replace_it(self):
        for args in (["watch", "--", self.dir / "gone"], ["evict", self.dir / "gone"]):
            self.json.write_text(PRECIOUS)
            self.assertNotEqual(run(args[0], "--json", self.json, *args[1:]).status, 0)
            self.assertEqual(json.loads(self.json.read_text())["command"], args[0])

    @unittest.skipUnless(system_kit.is_root(), "needs root")
    def test_a_folder_that_may_not_be_written(self):
        self.dir.chmod(0o755)
        self.json.write_text(PRECIOUS)
        self.json.chmod(0o666)
        done = run("evict", self.dir / "set", "--json", self.json, stranger=True)
        self.assert_status(done, 1)
        self.assertIn(f"--json {self.json}: Permission denied", done.err)
        self.assertEqual(self.json.read_text(), PRECIOUS)

    def test_no_file_appears_when_the_command_fails(self):
        run("bench", "--data", self.dir / "gone", "--json", self.json)
        run("bench", "--data", self.dir / "set", "--batch", 99, "--runs", 1, "--json", self.json)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["set"])

    def test_permissions(self):
        for before, umask, after in ((0o640, 0o022, 0o640), (None, 0o027, 0o640), (0o666, 0o077, 0o666)):
            self.json.unlink(missing_ok=True)
            if before is not None:
                self.json.touch()
                self.json.chmod(before)
            self.assert_status(run("bench", "--data", self.dir / "set", "--runs", 1, "--batch", 2, "--json",
                                   self.json, umask=umask), 0)
            self.assertEqual(stat.S_IMODE(self.json.stat().st_mode), after)

    @unittest.skipUnless(system_kit.is_root(), "needs root")
    def test_the_owner_stays(self):
        self.json.touch()
        os.chown(self.json, system_kit.STRANGER, system_kit.STRANGER)
        self.assert_status(self.bench("--json", self.json), 0)
        self.assertEqual((self.json.stat().st_uid, self.json.stat().st_gid),
                         (system_kit.STRANGER, system_kit.STRANGER))

    @unittest.skipUnless(system_kit.is_root(), "needs root")
    def test_a_sticky_folder(self):
        """What only others may replace there is refused before the work, not after it."""
        self.dir.chmod(0o1777)
        bench = ["bench", "--data", self.dir / "set", "--runs", 1, "--batch", 2, "--json", self.json]
        self.json.write_text(PRECIOUS)
        self.json.chmod(0o666)
        done = run(*bench, stranger=True)
        self.assert_status(done, 1)
        self.assertIn(f"--json {self.json}: Operation not permitted", done.err)
        self.assertEqual(done.out, "")
        self.assertEqual(self.json.read_text(), PRECIOUS)
        for own in (self.json, self.dir):  # the entry's owner, then the folder's
            os.chown(own, system_kit.STRANGER, system_kit.STRANGER)
            self.assert_status(run(*bench, stranger=True), 0)
            self.assertEqual(json.loads(self.json.read_text())["command"], "bench")
            os.chown(self.json, 0, 0)
            self.json.chmod(0o666)
        self.assert_status(run(*bench), 0)

    def test_what_is_no_file_is_written_to(self):
        self.assert_status(self.bench("--json", "/dev/null"), 0)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        done = self.bench("--json", "/dev/full")
        self.assert_status(done, 1)
        self.assertIn("--json /dev/full: No space", done.err)
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            self.assert_status(self.bench("--json", pipe), 0)
            self.assertEqual(json.loads(reader.communicate(timeout=system_kit.TIMEOUT_S)[0])["command"],
                             "bench")

    def test_standard_output_by_its_name(self):
        """In a pipe, and in a file: the table first, then the JSON, nothing overwritten."""
        done = self.bench("--json", "/dev/stdout")
        self.assert_status(done, 0)
        both = self.dir / "both"
        with open(both, "wb") as out:
            self.assert_status(run("bench", "--data", self.dir / "set", "--runs", 1, "--batch", 2,
                                   "--json", "/dev/stdout", stdout=out), 0)
        for text in (done.out, both.read_text()):
            table, brace, rest = text.partition("{")
            self.assertIn("images/s", table)
            self.assertEqual(json.loads(brace + rest)["command"], "bench")
        self.assertTrue(os.path.islink("/dev/stdout"))


if __name__ == "__main__":
    system_kit.main()
