"""test_terminal_text.py - names and texts of other people never act on the terminal: no control
character of theirs and no line of theirs comes out of any command."""
import json
import os
import pathlib
import re
import struct
import unittest

import study_fixture
import system_kit
from system_kit import TempDirCase, run

# An escape sequence, a forged line, DEL, C1 in UTF-8 and as a byte, and letters that have to stay.
EVIL = os.fsdecode("Grüße\x1b[31m\nFORGED: all is well\r\x7f\u009b2J".encode() + b"\x9b" + "日本".encode())
SHOWN = r"Grüße\x1b[31m\x0aFORGED: all is well\x0d\x7f\xc2\x9b2J\x9b日本"
TEXT = EVIL.replace("\udc9b", "")  # as far as it is UTF-8
SHOWN_TEXT = r"Grüße\x1b[31m\x0aFORGED: all is well\x0d\x7f\xc2\x9b2J日本"
SOURCES = pathlib.Path(__file__).parent.parent.parent / "cli"


def control_characters(text):
    return sorted({c for c in text if c != "\n" and (ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0
                                                     or 0xdc80 <= ord(c) < 0xdd00)})


class Case(TempDirCase):
    def check(self, done, shown=None):
        for text in (done.out, done.err):
            self.assertEqual(control_characters(text), [], done)
            self.assertNotRegex(text, r"(?m)^FORGED")
        if shown:
            self.assertIn(shown, done.out + done.err)
        return done

    def evil(self, *args, shown=SHOWN, **more):
        return self.check(run(*args, **more), shown)


class Arguments(Case):
    """What is typed, in messages about it."""

    def test_usage(self):
        self.evil(EVIL)
        self.evil("bench", f"--{EVIL}")
        self.evil("bench", f"-{EVIL}")
        self.evil("bench", EVIL)
        self.evil("checkpoint", EVIL, ".")
        for option in ("map", "threads", "shuffle", "shard", "max-errors", "image-size", "mean"):
            self.evil("bench", f"--{option}", EVIL)
        self.evil("train", "--device", EVIL, "--synthetic")
        self.evil("study", "--only", EVIL)

    def test_paths_that_are_not_there(self):
        gone = self.dir / EVIL
        for args in (["bench", "--data", gone], ["bench", "--list", gone], ["inspect", gone],
                     ["inspect", gone, gone], ["evict", gone], ["baseline", gone], ["report", gone],
                     ["report", gone, gone], ["train", "--data", gone], ["study", "--data", gone,
                                                                        "--out", self.dir / "out"],
                     ["generate", "--out", gone / "x"], ["checkpoint", "ls", gone],
                     ["checkpoint", "verify", gone], ["checkpoint", "restore", gone, "--to", self.dir],
                     ["checkpoint", "convert", gone, "--to", self.dir], ["watch", "--", gone],
                     ["bench", "--data", self.dir, "--storage", gone]):
            with self.subTest(args[:2]):
                self.assertNotEqual(self.evil(*args).status, 0)

    def test_files_that_cannot_be_written(self):
        (self.dir / "a").touch()
        gone = self.dir / EVIL / "x"
        for args in (["bench", "--data", self.dir, "--json", gone],
                     ["bench", "--data", self.dir, "--ledger", gone],
                     ["bench", "--data", self.dir, "--trace", gone, "--batch", 1],
                     ["baseline", self.dir, "--save-profile", gone],
                     ["watch", "--duration", "10ms", "--csv", gone],
                     ["study", "--data", self.dir, "--out", gone]):
            with self.subTest(args[-2]):
                self.assertNotEqual(self.evil(*args).status, 0)

    def test_devices(self):
        self.evil("watch", "--duration", "20ms", "--interval", "10ms", "--device", EVIL)


class Files(Case):
    """Names of files, folders and classes."""

    def setUp(self):
        super().setUp()
        self.set = self.dir / EVIL / "set"
        for i in range(4):
            name = self.set / f"{EVIL}{i}" / f"{EVIL}.jpg"
            name.parent.mkdir(parents=True)
            name.write_bytes(b"\xff\xd8 no image")
        (self.set / f"{EVIL}0" / "gone").symlink_to("nowhere")

    def test_bench_and_its_ledger(self):
        ledger = self.dir / EVIL / "ledger.csv"
        self.evil("bench", "--data", self.set, "--batch", 1, "--runs", 1, "--max-errors", "100%",
                  "--ledger", ledger)
        self.assertIn("FORGED", ledger.read_text(errors="replace"))  # a file has names as they are
        self.evil("bench", "--data", self.set, "--batch", 1, "--runs", 1, "--on-error", "fail",
                  "--map", "decode")
        self.evil("bench", "--data", self.set, "--batch", 1, "--runs", 1, "--cold", "--max-errors", "100%")

    def test_inspect(self):
        for more in ([], ["--check"]):
            done = self.evil("inspect", self.set, *more)
            self.assertIn("(0 = " + SHOWN + "0)", done.out)
            self.assertIn(SHOWN + "0/gone: ", done.out)

    def test_evict_and_baseline(self):
        self.evil("evict", self.set)
        self.evil("baseline", self.set, "--size", "1M", "--runs", 1)

    def test_train(self):
        self.evil("train", "--data", self.set, "--device", "emulated:0.001", "--batch", 1)

    def test_generate(self):
        self.evil("generate", "--count", 1, "--out", self.dir / EVIL / "new")

    def test_json_on_standard_output(self):
        """A terminal may show it; a reader of JSON gets the name back."""
        done = self.check(run("inspect", self.set, "--json", "-"))
        reason = json.loads(done.out)["results"][0]["broken_files"][0]["path"]
        self.assertIn(TEXT.partition("\x9b")[0], reason)
        self.assertIn("\x7f", reason)


class Contents(Case):
    """The contents of traces, results, lists and checkpoints."""

    def test_trace(self):
        trace = self.dir / "t.json"
        events = [{"name": TEXT, "ph": "X", "ts": 10 * i, "dur": 5 + i, "pid": 1, "tid": 1} for i in range(3)]
        events += [{"name": "Read", "ph": "X", "ts": 5, "dur": 9, "pid": 1, "tid": 2,
                    "args": {"file": TEXT, "bytes": 7}},
                   {"name": TEXT + "mark", "ph": "i", "ts": 6, "pid": 1, "tid": 1, "s": "g"}]
        trace.write_text(json.dumps({"traceEvents": events, "otherData": {"storage": TEXT}}))
        self.assertEqual(self.evil("inspect", trace, shown=r"Grüße\x1b[31m").status, 0)
        self.assertEqual(self.evil("inspect", trace, trace, shown=r"Grüße\x1b[31m").status, 0)

    def test_trace_as_csv(self):
        (self.dir / "a").touch()
        trace = self.dir / "t.csv"
        self.check(run("bench", "--data", self.dir, "--batch", 1, "--runs", 1, "--trace", trace))
        trace.write_text(trace.read_text().replace("run begins", "a\x1b[31mb"))
        self.evil("inspect", trace, shown=r"a\x1b[31mb")

    def poison(self, value):
        """All texts of a study's results become evil."""
        if isinstance(value, dict):
            return {k: v if k in ("experiment", "command", "version") else self.poison(v)
                    for k, v in value.items()}
        if isinstance(value, list):
            return [self.poison(v) for v in value]
        return TEXT if isinstance(value, str) else value

    def test_results_of_a_study(self):
        study_fixture.write(self.dir / "s", self.poison(study_fixture.study()))
        self.evil("report", self.dir / "s", shown=SHOWN_TEXT)
        self.check(run("report", self.dir / "s", self.dir / "s"))

    def test_results_in_parts(self):
        """One text at a time: elsewhere the figures are found that go with it."""
        texts = ("headline", "text", "where", "storage", "mode", "path", "missing", "unit")
        for key in texts:
            study = study_fixture.study()

            def change(value, wanted=key):
                if isinstance(value, dict):
                    return {k: TEXT if k == wanted and isinstance(v, str) else change(v)
                            for k, v in value.items()}
                return [change(v) for v in value] if isinstance(value, list) else value

            study_fixture.write(self.dir / key, change(study))
            with self.subTest(key):
                self.check(run("report", self.dir / key))

    def test_list(self):
        (self.dir / "list.csv").write_text(f'path,label\n"{TEXT}",0\n')
        self.evil("inspect", self.dir / "list.csv", shown=SHOWN_TEXT)

    def test_checkpoint(self):
        head = json.dumps({TEXT: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        folder = self.dir / "c"
        folder.mkdir()
        (folder / "model-1.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * 4)
        (folder / f"{TEXT}-2.safetensors").write_bytes(b"broken")
        self.evil("checkpoint", "ls", folder / "model-1.safetensors", shown=SHOWN_TEXT)
        self.check(run("checkpoint", "ls", folder))
        self.check(run("checkpoint", "verify", folder))
        self.check(run("checkpoint", "restore", folder, "--to", self.dir / "to"))
        (folder / "model-1.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + b"\0" * 3)
        self.check(run("checkpoint", "verify", folder))


class Sources(unittest.TestCase):
    def test_only_say_prints(self):
        """Nothing else in cli/ writes formatted text to a stream that may be a terminal; help.c has
        nothing but our own constants."""
        wrong = re.compile(r"\b(printf|vprintf|puts|perror|psignal)\(|"
                           r"\b(fprintf|vfprintf|fputs)\(\s*(stderr|stdout|to\b)")
        for path in SOURCES.glob("*.c"):
            if path.name not in ("say.c", "help.c"):
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    self.assertIsNone(wrong.search(line), f"{path.name}:{number}: {line}")


if __name__ == "__main__":
    system_kit.main()
