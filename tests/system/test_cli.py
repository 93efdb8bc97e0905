#!/usr/bin/env python3
"""test_cli.py - the command line's contract: names, exit statuses, JSON, ledger, interruption."""
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from system_kit import (MILLRACE, TIMEOUT_S, OnTerminal, TempDirCase, engines, is_root, main,
                        make_files, needs, results, run, text)

COMMANDS = ["baseline", "bench", "checkpoint", "evict", "generate", "inspect", "report", "study",
            "train", "watch"]
NUMBER = (int, float)
MAYBE_INT = (int, type(None))
LATENCY = {"p50": NUMBER, "p99": NUMBER, "p999": NUMBER}
BENCH_FIELDS = {
    "threads": int, "engine": str, "map": str, "storage": (str, type(None)), "emulated": bool,
    "cold": (str, type(None)), "images": int, "skipped": int, "errors": dict, "runs": list,
    "images_per_s": NUMBER, "mb_per_s": NUMBER, "cpu_s_per_image": NUMBER,
    "read_latency_us": LATENCY, "batch_latency_us": LATENCY, "device_bytes": MAYBE_INT,
    "cache_bytes": MAYBE_INT, "delivered_bytes": int, "peak_rss_bytes": int,
    "batch_hash": (str, type(None)), "partial": bool, "warning": (str, type(None)),
}
INSPECT_FIELDS = {
    "kind": str, "path": str, "samples": int, "classes": int, "smallest_class": int,
    "largest_class": int, "files": int, "bytes": int,
    "file_bytes": {k: int for k in ("min", "p10", "p25", "p50", "p75", "p90", "max")},
    "size_histogram": list, "cached_bytes": MAYBE_INT, "broken": int, "broken_files": list,
    "checked": bool, "table_bytes": int, "partial": bool,
}
EVICT_FIELDS = {
    "path": str, "files": int, "bytes": int, "cached_before": MAYBE_INT, "cached_after": MAYBE_INT,
    "unproven_files": int, "failed_files": int, "cold": str, "partial": bool,
}


class CliCase(TempDirCase):
    def data(self, count=64, **more):
        folder = self.dir / "data"
        self.n_bytes = make_files(folder, count, **more)
        return folder

    def assert_fields(self, value, fields):
        for name, kind in fields.items():
            self.assertIn(name, value)
            if isinstance(kind, dict):
                self.assert_fields(value[name], kind)
            else:
                self.assertIsInstance(value[name], kind, name)
                if bool not in (kind if isinstance(kind, tuple) else (kind,)):
                    self.assertNotIsInstance(value[name], bool, name)

    def assert_envelope(self, root, command):
        self.assertEqual(root["command"], command)
        self.assertRegex(root["version"], r"^\d+\.\d+\.\d+$")
        self.assertIsInstance(root["environment"], dict)
        self.assertIn("storage", root["environment"])
        self.assertIsInstance(root["results"], list)

    def assert_usage(self, done, *words):
        self.assert_status(done, 2)
        self.assertEqual(done.out, "")
        for word in words:
            self.assertIn(word, done.err)


class Help(CliCase):
    def test_help_of_the_program_names_every_command(self):
        for args in (["--help"], ["-h"], ["help"]):
            done = run(*args)
            self.assert_status(done, 0)
            self.assertEqual(done.err, "")
            for command in COMMANDS:
                self.assertRegex(done.out, rf"(?m)^  {command} ")

    def test_help_of_each_command_names_its_options(self):
        for command in COMMANDS:
            for option in ("--help", "-h"):
                done = run(command, option)
                self.assert_status(done, 0)
                self.assertIn(f"Usage: millrace {command}", done.out)
                self.assertIn("--json FILE", done.out)
                self.assertLessEqual(max(map(len, done.out.splitlines())), 100)

    def test_many_options_stand_in_groups_the_common_ones_first(self):
        page = run("--man-page").out
        for command, wanted in (
                ("bench", {"Data": "--data", "Image": "--image-size", "Order": "--shuffle",
                           "I/O": "--threads", "Errors": "--on-error", "Measuring": "--runs",
                           "General": "--json"}),
                ("train", {"Data": "--data", "Training": "--device", "Checkpoints": "--checkpoint",
                           "Image": "--image-size", "Order": "--shuffle", "I/O": "--threads",
                           "Errors": "--on-error", "Measuring": "--cold", "General": "--json"})):
            help_text = run(command, "--help").out
            first = re.findall(r"(?m)^(\S+):\n  (--[a-z-]+)", help_text)
            self.assertEqual(first, list(wanted.items()))
            options = options_of(command)
            self.assertEqual(len(options), len(set(options)))
            section = page.split(f".SS millrace {command}\n")[1].split(".SS")[0]
            self.assertEqual(re.findall(r"(?m)^\.I (.+)$", section), list(wanted))
            named = re.findall(r"(?m)^\.B (\S+)", section.replace("\\-", "-"))
            self.assertEqual(named, options)  # in the same order
        self.assertEqual(re.findall(r"(?m)^(\S+):$", run("evict", "--help").out),
                         ["Options", "Examples"])

    def test_a_reader_who_has_seen_enough_of_the_help_hears_nothing(self):
        for args in (["--help"], ["help"], ["bench", "--help"]):
            reader, writer = os.pipe()
            os.close(reader)  # as `| head` does, only sooner
            done = run(*args, stdout=writer)
            os.close(writer)
            self.assertEqual(done.err, "")

    def test_bench_has_the_options_of_the_contract(self):
        known = options_of("bench")
        for name in ("list data map shuffle seed epochs shard keep-last engine threads io-depth "
                     "batch batches prefetch on-error max-errors ledger max-file-bytes cold warm "
                     "drop-caches runs hash json help").split():
            self.assertIn("--" + name, known)

    def test_study_says_how_many_photos_and_runs(self):
        said = " ".join(run("study", "--help").out.split())
        page = " ".join(run("--man-page").out.replace("\\-", "-").split())
        for words in ("it makes photos of its own: 2,048, with --full 16,384.",
                      "runs of each point of baseline"):
            self.assertIn(words, said)
            self.assertIn(words, page)

    def test_version_and_no_arguments(self):
        self.assertRegex(run("--version").out, r"^millrace \d+\.\d+\.\d+\n$")
        done = run()
        self.assert_usage(done, "Usage: millrace COMMAND")

    def test_help_wins_over_missing_operands(self):
        self.assert_status(run("evict", "--help"), 0)

    @needs("mandoc")
    def test_manual_page_passes_mandoc(self):
        page = self.dir / "millrace.1"
        page.write_text(run("--man-page").out)
        lint = subprocess.run(["mandoc", "-Tlint", page], capture_output=True, check=False)
        said = [line for line in text(lint.stdout + lint.stderr).splitlines()
                if "missing date" not in line]  # generated: it has none
        self.assertEqual(said, [])

    @needs("man")
    def test_manual_page_passes_man(self):
        page = self.dir / "millrace.1"
        page.write_text(run("--man-page").out)
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, check=False,
                               env={**os.environ, "LC_ALL": "C", "MANPAGER": "cat"})
        self.assertEqual((shown.returncode, text(shown.stderr)), (0, ""))

    def test_manual_page_names_every_option(self):
        page = run("--man-page").out.replace("\\-", "-")
        for command in COMMANDS:
            for option in options_of(command):
                self.assertRegex(page, rf"(?m)^\.B {option}\b")


class Studies(CliCase):
    """The studies are cited, and every experiment of theirs has its figure and its command."""
    README = pathlib.Path(__file__).resolve().parent.parent.parent / "README.md"
    TITLES = ("Characterizing Deep-Learning I/O Workloads in TensorFlow",
              "Initial Characterization of I/O in Large-Scale Deep Learning Applications",
              "An Initial Look at Deep Learning IO Performance")

    def rows(self):
        """{experiment: (figure, command)}, as the help has them."""
        found = re.findall(r"(?m)^  (\S.*?) +--only (\S+) +\S.*\n      (millrace .*)$",
                           run("study", "--help").out)
        return {experiment: (figure, command) for figure, experiment, command in found}

    def test_the_papers_are_cited_wherever_they_are_spoken_of(self):
        for text_ in (run("study", "--help").out, self.README.read_text(),
                      run("--man-page").out.replace("\\-", "-")):
            words = " ".join(text_.split())
            for wanted in (*self.TITLES, "Steven W. D. Chien", "Fahim Chowdhury", "Mark Nelson",
                           "10.1109/PDSW-DISCS.2018.00011", "2018", "2022"):
                self.assertIn(wanted, words)

    def test_every_experiment_but_the_verdict_repeats_a_figure(self):
        refused = run("study", "--only", "no-such-experiment", "--out", self.dir / "out").err
        names = set(re.search(r"(baseline.*verdict)", refused)[1].split(", "))
        self.assertEqual(set(self.rows()), names - {"verdict"})

    def test_readme_has_the_same_table(self):
        readme = self.README.read_text()
        for experiment, (figure, command) in self.rows().items():
            where = figure.split(", ", 1)[1]
            self.assertRegex(readme, rf"(?m)^\| \[\d\], {re.escape(where)}: [^|]*\| "
                                     rf"`{experiment}` \| `{re.escape(command)}` \|$")

    def test_the_commands_are_ones_that_the_program_knows(self):
        for _, commands in self.rows().values():
            for command in re.split(r", then | -- | \(and", commands):
                words = command.split()
                if words[0] != "millrace":
                    continue
                known = options_of(words[1])
                for word in words[2:]:
                    if word.startswith("--"):
                        self.assertIn(word, known, command)


def options_of(command):
    return re.findall(r"(?m)^  (--[a-z-]+)", run(command, "--help").out)


@needs("bash")
class Completion(CliCase):
    def complete(self, *words):
        script = self.dir / "completion"
        script.write_text(run("--bash-completion").out)
        code = ('source "$0" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _millrace && '
                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", code, script, *words], capture_output=True,
                              cwd=self.dir, timeout=TIMEOUT_S, check=False)
        self.assertEqual(text(done.stderr), "")
        return [line for line in text(done.stdout).split("\n") if line]

    def test_script_is_valid(self):
        done = subprocess.run(["bash", "-n"], input=run("--bash-completion").out.encode(),
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_commands(self):
        self.assertEqual(self.complete("millrace", "be"), ["bench"])
        self.assertEqual(set(self.complete("millrace", "")), {*COMMANDS, "--help", "--version"})

    def test_options_are_those_of_the_help(self):
        for command in COMMANDS:
            self.assertEqual(set(self.complete("millrace", command, "--")),
                             set(options_of(command)))
        self.assertEqual(self.complete("millrace", "bench", "--eng"), ["--engine"])

    def test_choices(self):
        self.assertEqual(self.complete("millrace", "bench", "--engine", ""), ["threads", "uring"])
        self.assertEqual(self.complete("millrace", "bench", "--engine", "=", "u"), ["uring"])
        self.assertEqual(self.complete("millrace", "bench", "--on-error", "="), ["skip", "fail"])
        self.assertEqual(self.complete("millrace", "bench", "--seed", ""), [])

    def test_files_and_folders(self):
        (self.dir / "two words").mkdir()
        (self.dir / "two.csv").touch()
        self.assertEqual(self.complete("millrace", "study", "--out", "tw"), ["two words"])
        self.assertEqual(set(self.complete("millrace", "bench", "--data", "tw")), {"two words", "two.csv"})
        self.assertEqual(set(self.complete("millrace", "evict", "tw")), {"two words", "two.csv"})


class Usage(CliCase):
    def test_unknown_command(self):
        for wrong, right in (("benhc", "bench"), ("evit", "evict"), ("inspekt", "inspect")):
            self.assert_usage(run(wrong), f"no command '{wrong}'", f"did you mean '{right}'?")
        for wrong in ("x", "", "xyzzy", "b" * 5000):
            done = run(wrong)
            self.assert_usage(done, "no command")
            self.assertNotIn("did you mean", done.err)

    def test_unknown_option(self):
        for wrong, right in (("thread", "threads"), ("bacth", "batch"), ("max-error", "max-errors"),
                             ("preftech", "prefetch"), ("jsno", "json")):
            self.assert_usage(run("bench", f"--{wrong}", "1"), f"--{wrong}",
                              f"did you mean --{right}?")
        for wrong in ("--foo", "--x", "--", "--" + "y" * 5000, "--=1"):
            done = run("bench", wrong, "--data", "x") if wrong != "--" else run("bench", "--", "x")
            self.assert_usage(done, "millrace bench")
            self.assertNotIn("did you mean", done.err)

    def test_option_of_another_command(self):
        self.assert_usage(run("evict", "--threads", "2", "x"), "no option --threads")
        self.assert_usage(run("bench", "--check"), "no option --check")

    def test_one_dash(self):
        self.assert_usage(run("bench", "-threads", "2"), "two dashes: --threads")

    def test_bad_values_of_each_type(self):
        bad = {
            "runs": ["0", "-1", "x", "1.5", "", " 1", "1 ", "99999999999999999999", "1001"],
            "threads": ["0", "1,,2", "1,x", "4097", "", ",", "1,", "-2", "1" + ",1" * 32],
            "shuffle": ["foo", "window", "window:", "window:0", "window:x", "GLOBAL"],
            "seed": ["-1", "x", "1e3", "18446744073709551616"],
            "epochs": ["0", "-1"],
            "shard": ["2/2", "1", "0/0", "a/b", "0/1x", "/", "-1/2"],
            "io-depth": ["0", "4294967295"],
            "batch": ["0", "K"],
            "batches": ["-1", "all"],
            "prefetch": ["x", "-1"],
            "on-error": ["maybe", "", "skip|fail"],
            "max-errors": ["101%", "x", "-1", "5.5", "%", "10%%", "0x5%", "1e1%", "0x0", ""],
            "max-file-bytes": ["0", "5X", "5KB", "K", "99999999999G", "1.5M"],
            "engine": ["foo", "", "Threads"],
            "mean": ["", "x", "1,2", "1,2,3,4", "1,,2", "1e3", "nan", "0.5,", "-"],
            "std": ["", "0", "-1", "0.5,0.5,0", "1 ", "inf", "0x1"],
            "map": ["nonsense"],
            "json": [""], "ledger": [""], "data": [""], "list": [""],
        }
        for option, values in bad.items():
            for value in values:
                with self.subTest(option=option, value=value):
                    self.assert_usage(run("bench", "--data", self.dir, f"--{option}={value}"),
                                      f"--{option}")
                    self.assert_usage(run("bench", "--data", self.dir, f"--{option}", value),
                                      f"--{option}")

    def test_missing_argument(self):
        for option in ("--data", "--threads", "--json", "--runs"):
            self.assert_usage(run("bench", option), f"{option} needs an argument")

    def test_flag_with_a_value(self):
        self.assert_usage(run("bench", "--hash=1"), "--hash takes no argument")

    def test_missing_and_surplus_operands(self):
        self.assert_usage(run("evict"), "PATH")
        self.assert_usage(run("inspect"), "PATH")
        self.assert_usage(run("inspect", "a", "b", "c"), "PATH")
        self.assert_usage(run("bench", "folder"), "'folder' is not expected", "--data")

    def test_options_that_exclude_each_other(self):
        data = self.data(2)
        for cold in ("--cold", "--drop-caches"):
            self.assert_usage(run("bench", "--data", data, cold, "--warm"), cold, "--warm")
        for of_floats in ("--mean", "--std"):
            self.assert_usage(run("bench", "--data", data, "--dtype", "u8", of_floats, "0.5"),
                              of_floats, "--dtype f32")

    def test_a_data_set_is_what_it_holds_whatever_option_names_it(self):
        data = self.data(4)
        a_list = self.dir / "list.csv"
        a_list.write_text("data/class0/0000.bin,0\n")
        for option in ("--data", "--list"):
            for spec, n in ((a_list, 1), (data, 4), (f"file://{data}", 4)):
                r, = results("bench", option, spec, "--batch", 1, "--runs", 1)
                self.assertEqual(r["images"], n)
        self.assert_usage(run("bench"), "--data")
        self.assert_usage(run("bench", "--data", data, "--list", a_list), "not both")

    def test_equals_sign_and_operands_after_two_dashes(self):
        data = self.data(4)
        self.assert_status(run("bench", f"--data={data}", "--batch=4", "--runs=1"), 0)
        odd = self.dir / "--check"
        odd.mkdir()
        (odd / "file").write_bytes(b"x")
        self.assert_status(run("inspect", "--", "--check", cwd=self.dir), 0)


class Failures(CliCase):
    def assert_failed(self, done, *words):
        self.assert_status(done, 1)
        for word in words:
            self.assertIn(word, done.err)

    def test_missing_path_and_empty_folder(self):
        empty = self.dir / "empty"
        empty.mkdir()
        (self.dir / "empty.csv").touch()
        for command in (["bench", "--data"], ["bench", "--list"], ["inspect"], ["evict"]):
            self.assert_failed(run(*command, self.dir / "none"), "none", "No such file")
        self.assert_failed(run("bench", "--data", empty), "no samples")
        self.assert_failed(run("inspect", empty), "no samples")
        self.assert_failed(run("bench", "--list", self.dir / "empty.csv"), "empty")

    def test_fewer_samples_than_a_batch(self):
        self.assert_failed(run("bench", "--data", self.data(3)), "3 samples", "batch of 64")

    def test_a_list_that_is_no_file(self):
        os.mkfifo(self.dir / "pipe")
        for path in ("/dev/zero", self.dir / "pipe"):
            for args in (["bench", "--list", path], ["inspect", path]):
                done = run(*args)
                self.assert_status(done, 1)
                self.assertIn(f"{path}: not a regular file", done.err)

    def test_evict_of_what_is_no_file(self):
        pipe = self.dir / "pipe"
        os.mkfifo(pipe)
        self.assert_failed(run("evict", pipe), "pipe: neither a file nor a folder")
        link = self.dir / "link"
        link.symlink_to("nowhere")
        self.assert_failed(run("evict", link), "link: No such file")

    def test_files_that_cannot_be_written(self):
        data = self.data(4)
        bench = ["bench", "--data", data, "--batch", 4, "--runs", 1]
        for option in ("--json", "--ledger"):
            self.assert_failed(run(*bench, option, self.dir / "none" / "x"), option, "No such file")
            self.assert_failed(run(*bench, option, self.dir), option, "Is a directory")
        for command in (["inspect", data], ["evict", data]):
            done = run(*command, "--json", self.dir / "none" / "x")
            self.assert_failed(done, "--json")
            self.assertEqual(done.out, "")  # known before the work

    def test_full_device(self):
        data = self.data(64)
        (data / "class0" / "empty").touch()
        bench = ["bench", "--data", data, "--batch", 65, "--runs", 1]
        for command in (bench, ["inspect", data], ["evict", data], ["--help"], ["--version"],
                        ["--man-page"], ["--bash-completion"], ["bench", "--help"]):
            with open("/dev/full", "wb") as full:
                self.assert_failed(run(*command, stdout=full),
                                   "standard output could not be written")
        for command in (bench, ["inspect", data], ["evict", data]):
            self.assert_failed(run(*command, "--json", "/dev/full"), "--json /dev/full",
                               "No space left")
            with open("/dev/full", "wb") as full:
                self.assert_failed(run(*command, "--json", "-", stdout=full), "No space left")
        self.assert_failed(run(*bench, "--ledger", "/dev/full"), "--ledger /dev/full")

    def closed(self, fd, *args):
        """Run with a standard stream closed."""
        command = subprocess.Popen([MILLRACE, *map(str, args)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: os.close(fd))
        out, err = command.communicate(timeout=TIMEOUT_S)
        return command.returncode, text(out), text(err)

    def test_closed_standard_streams_do_not_end_in_our_files(self):
        data, out = self.data(8), self.dir / "out.json"
        for command in (["bench", "--data", data, "--batch", 8, "--runs", 1], ["inspect", data],
                        ["evict", data]):
            status, _, err = self.closed(1, *command, "--json", out)
            self.assertEqual(status, 1, err)
            self.assertIn("standard output could not be written", err)
            self.assert_envelope(json.loads(out.read_bytes()), command[0])
        bench = ["bench", "--data", data, "--batch", 8, "--runs", 1, "--json", out]
        self.assertEqual(self.closed(2, *bench)[0], 0)
        self.assert_envelope(json.loads(out.read_bytes()), "bench")
        self.assertEqual(self.closed(0, "inspect", data)[0], 0)

    def test_reader_that_goes_away(self):
        data, out = self.data(8), self.dir / "out.json"
        for command in (["bench", "--data", data, "--batch", 8, "--runs", 1], ["inspect", data],
                        ["evict", data], ["--man-page"]):
            reader, writer = os.pipe()
            os.close(reader)
            json_too = [] if command == ["--man-page"] else ["--json", out]
            done = run(*command, *json_too, stdout=writer)
            os.close(writer)
            self.assert_failed(done, "standard output could not be written")
            if json_too:
                self.assert_envelope(json.loads(out.read_bytes()), command[0])


class Json(CliCase):
    def test_bench(self):
        data = self.data(64)
        done = run("bench", "--data", data, "--batch", 8, "--threads", "1,2", "--json", "-")
        self.assert_status(done, 0)
        root = done.json  # nothing but JSON on standard output
        self.assert_envelope(root, "bench")
        self.assertEqual([r["threads"] for r in root["results"]], [1, 2])
        for r in root["results"]:
            self.assert_fields(r, BENCH_FIELDS)
            self.assertEqual(len(r["runs"]), 5)  # six, the first left out
            for rate in r["runs"]:
                self.assertGreater(rate, 0)
            self.assertEqual(r["images_per_s"], sorted(r["runs"])[2])
            self.assertEqual((r["engine"], r["map"], r["storage"], r["emulated"], r["cold"]),
                             ("threads", "read", None, False, None))
            self.assertEqual((r["images"], r["skipped"], r["errors"]), (64, 0, {}))
            self.assertEqual(r["delivered_bytes"], self.n_bytes)
            self.assertGreater(r["peak_rss_bytes"], 0)
            self.assertGreaterEqual(r["read_latency_us"]["p99"], r["read_latency_us"]["p50"])
            self.assertIsNone(r["batch_hash"])
            self.assertFalse(r["partial"])

    def test_bytes_a_second_belong_to_images_a_second(self):
        data = self.data(64)
        for runs in (1, 3, 4, 5):  # 1, 2, 3, 4 of them are measured
            r, = results("bench", "--data", data, "--batch", 8, "--threads", 1, "--runs", runs)
            self.assertEqual(len(r["runs"]), max(runs - 1, 1))
            expected = r["images_per_s"] * self.n_bytes / 64 / 1e6
            self.assertAlmostEqual(r["mb_per_s"], expected, delta=1e-6 * expected)

    def test_bench_of_one_run_and_with_hash(self):
        r, = results("bench", "--data", self.data(16), "--batch", 8, "--runs", 1, "--threads", 1,
                     "--hash")
        self.assertEqual(len(r["runs"]), 1)
        self.assertRegex(r["batch_hash"], r"^[0-9a-f]{16}$")

    def test_batches_epochs_shards_and_the_last_batch(self):
        bench = ["bench", "--data", self.data(20), "--batch", 8, "--runs", 1, "--threads", 2]
        for more, images in (([], 16), (["--keep-last"], 20), (["--epochs", 3], 48),
                             (["--batches", 1], 8), (["--shard", "0/2"], 8),
                             (["--shuffle", "none"], 16), (["--shuffle", "window:4"], 16)):
            r, = results(*bench, *more)
            self.assertEqual(r["images"], images, more)

    def test_bench_prints_a_row_for_each_thread_count(self):
        out = self.dir / "out.json"
        done = run("bench", "--data", self.data(16), "--batch", 8, "--runs", 2, "--threads",
                   "1,2,4", "--json", out, "--hash")
        self.assert_status(done, 0)
        self.assertEqual(re.findall(r"(?m)^ +(\d+) +\d+ +- +[\d.]+x", done.out),
                         ["1", "2", "4"])
        root = json.loads(out.read_text())
        self.assertIn(root["results"][0]["batch_hash"], done.out)
        self.assertNotIn("nan", done.out)

    def test_speed_up_is_over_one_thread(self):
        bench = ["bench", "--data", self.data(64), "--batch", 8, "--runs", 2]
        row = r"(?m)^ +(\d+) +(\d+) +(?:-|[\d.]+%) +(-|[\d.]+x)"
        for threads, first in (("1,2,4", "1.00x"), ("2,1,4", "-"), ("2,4", "-"), ("1", "1.00x")):
            rows = re.findall(row, run(*bench, "--threads", threads).out)
            self.assertEqual(",".join(r[0] for r in rows), threads)
            self.assertEqual(rows[0][2], first)
            base = None
            for n, rate, speed_up in rows:
                base = int(rate) if n == "1" else base
                if base is None:
                    self.assertEqual(speed_up, "-")
                else:
                    self.assertAlmostEqual(float(speed_up[:-1]), int(rate) / base,
                                           delta=0.006 + (1 + float(speed_up[:-1])) / base)

    def test_what_cannot_be_run_has_no_table(self):
        data = self.data(16)
        (self.dir / "gone.csv").write_text("".join(f"gone{i}.bin,0\n" for i in range(64)))
        for args, word in ((["--data", data, "--batch", 1000], "1000"),
                           (["--list", self.dir / "gone.csv", "--batch", 8], "gone")):
            done = run("bench", *args)
            self.assert_status(done, 1)
            self.assertEqual(done.out, "")
            self.assertIn(word, done.err)

    def test_a_sweep_says_a_warning_once(self):
        done = run("bench", "--data", self.data(16), "--batch", 8, "--runs", 1, "--threads",
                   "1,2,4")
        self.assertEqual(done.err.count("warning:"), 1, done)

    def test_inspect(self):
        data = self.data(30, classes=3)
        (data / "class1" / "empty").touch()
        done = run("inspect", data, "--check", "--json", "-")
        self.assert_status(done, 1)
        self.assert_envelope(done.json, "inspect")
        r, = done.json["results"]
        self.assert_fields(r, INSPECT_FIELDS)
        self.assertEqual((r["samples"], r["files"], r["classes"], r["broken"]), (31, 30, 3, 1))
        self.assertEqual((r["smallest_class"], r["largest_class"]), (10, 11))
        self.assertEqual(r["bytes"], self.n_bytes)
        self.assertEqual(sum(b["files"] for b in r["size_histogram"]), 30)
        self.assertEqual(r["broken_files"][0]["path"], str(data / "class1" / "empty"))
        self.assertIn("empty", r["broken_files"][0]["reason"])
        self.assertIs(r["checked"], True)

    def test_inspect_has_the_percentiles_of_two_files(self):
        data = self.dir / "two" / "a"
        data.mkdir(parents=True)
        for size in (10, 20):
            (data / f"{size}.bin").write_bytes(bytes(size))
        r, = results("inspect", data.parent)
        self.assertEqual(r["file_bytes"], {"min": 10, "p10": 10, "p25": 10, "p50": 10, "p75": 20,
                                           "p90": 20, "max": 20})

    def test_inspect_of_a_large_label_takes_no_memory(self):
        self.data(2)
        a_list = self.dir / "list.csv"
        a_list.write_text("data/class0/0000.bin,2147483647\ndata/class0/0001.bin,7\n")
        r, = results("inspect", a_list)
        self.assertEqual(r["classes"], 2147483648)
        self.assertEqual((r["smallest_class"], r["largest_class"]), (0, 1))

    def test_inspect_for_people(self):
        done = run("inspect", self.data(30, classes=3))
        self.assert_status(done, 0)
        self.assertIn("30 samples, 3 classes of 10 to 10 (0 = class0)", done.out)
        self.assertIn("file sizes", done.out)

    def test_evict(self):
        data = self.data(8)
        one = data / "class0" / "0000.bin"
        done = run("evict", data, one, "--json", "-")
        self.assert_envelope(done.json, "evict")
        whole, single = done.json["results"]
        for r in (whole, single):
            self.assert_fields(r, EVICT_FIELDS)
        self.assertEqual((whole["path"], whole["files"], whole["bytes"]),
                         (str(data), 8, self.n_bytes))
        self.assertEqual((single["files"], single["bytes"]), (1, one.stat().st_size))

    def test_evict_of_an_empty_folder_proves_nothing(self):
        folder = self.dir / "empty"
        folder.mkdir()
        done = run("evict", folder)
        self.assert_status(done, 0)
        self.assertEqual(done.out, f"{folder}: no files\n")
        r, = results("evict", folder)
        self.assertEqual((r["files"], r["cold"], r["cached_before"], r["cached_after"]),
                         (0, None, None, None))

    def test_evict_follows_links_as_a_data_set_does(self):
        data, linked = self.data(8), self.dir / "linked"
        (linked / "class0").mkdir(parents=True)
        (linked / "class0" / "file").symlink_to(data / "class0" / "0001.bin")
        (linked / "class0" / "broken").symlink_to("nowhere")
        (linked / "class0" / "loop").symlink_to("..")
        (linked / "class1").symlink_to(data / "class0")
        r, = results("evict", linked)
        self.assertEqual((r["files"], r["failed_files"]), (9, 0))

    def test_names_that_are_no_text(self):
        data = self.dir / "data"
        make_files(data, 20)
        names = [b"new\nline", b'quo"te', b"com,ma", b"\xff\xfe", "grün".encode(), b"back\\slash"]
        for name in names:
            with open(os.fsencode(data) + b"/class0/" + name, "wb"):
                pass
        ledger = self.dir / "ledger.csv"
        done = run("bench", "--data", data, "--batch", 26, "--runs", 1, "--max-errors", 100,
                   "--ledger", ledger, "--json", "-")
        self.assert_status(done, 0)
        self.assertEqual(done.json["results"][0]["errors"]["empty"], len(read_ledger(ledger)))
        noted = {os.fsencode(row["path"]).rpartition(b"/class0/")[2] for row in read_ledger(ledger)}
        self.assertEqual(noted, set(names))
        broken = results("inspect", data)[0]["broken_files"]
        self.assertEqual(len(broken), len(names))
        self.assertIn(str(data / "class0" / "\ufffd\ufffd"), [b["path"] for b in broken])
        self.assertIn(str(data / "class0" / "new\nline"), [b["path"] for b in broken])
        r, = results("evict", data)
        self.assertEqual(r["files"], 26)
        odd = os.fsencode(self.dir) + b"/\xffdata"
        os.rename(os.fsencode(data), odd)
        self.assertEqual(results("inspect", odd)[0]["samples"], 26)


def read_ledger(path):
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as f:
        return list(csv.DictReader(f))


class BadSamples(CliCase):
    """A list of 200 samples, 12 of which are bad in six ways."""

    REASONS = {"missing": 3, "directory": 2, "empty": 3, "too large": 2, "not a file": 2}

    def setUp(self):
        super().setUp()
        self.data(188, classes=4)
        rows = [f"data/class{i % 4}/{i:04}.bin,{i % 4}" for i in range(188)]
        odd = self.dir / "odd"
        odd.mkdir()
        (odd / "gone").symlink_to("nowhere")
        (odd / "folder1").mkdir()
        (odd / "folder2").mkdir()
        for name in ("empty1", "empty2", "empty3"):
            (odd / name).touch()
        for name in ("large1", "large2"):
            (odd / name).write_bytes(b"x" * 20000)
        os.mkfifo(odd / "pipe1")
        os.mkfifo(odd / "pipe2")
        self.bad = ["gone", "none1", "none2", *(p.name for p in odd.iterdir() if p.name != "gone")]
        self.bad = [f"odd/{name}" for name in self.bad]
        self.assertEqual(len(self.bad), 12)
        for i, name in enumerate(self.bad):
            rows.insert(7 + 15 * i, f"{name},{i % 4}")
        self.list = self.dir / "list.csv"
        self.list.write_text("path,label\n" + "\n".join(rows) + "\n")
        self.bench = ["bench", "--list", self.list, "--batch", 20, "--runs", 1, "--max-file-bytes",
                      "16K"]

    def test_hash_is_the_same_for_any_threads_engine_and_prefetch(self):
        hashes, seen = set(), 0
        for engine in engines():
            for prefetch in (0, 1, 4):
                for r in results(*self.bench, "--hash", "--threads", "1,2,4,8", "--engine", engine,
                                 "--prefetch", prefetch):
                    hashes.add(r["batch_hash"])
                    self.assertEqual((r["engine"], r["prefetch"]), (engine, prefetch))
                    self.assertEqual((r["images"], r["skipped"]), (200, 12))
                    self.assertGreaterEqual(sum(r["errors"].values()), 12)
                    seen += 1
        self.assertEqual(seen, 12 * len(engines()))
        self.assertEqual(len(hashes), 1)
        other, = results(*self.bench, "--hash", "--threads", 2, "--seed", 2)
        self.assertNotIn(other["batch_hash"], hashes)

    def test_hash_depends_on_labels_and_bytes(self):
        bench = [*self.bench, "--hash", "--threads", 2, "--shuffle", "none"]
        first = results(*bench)[0]["batch_hash"]
        good = self.dir / "data" / "class0" / "0000.bin"
        good.write_bytes(b"!" + good.read_bytes()[1:])
        second = results(*bench)[0]["batch_hash"]
        rows = self.list.read_text()
        self.list.write_text(rows.replace("0000.bin,0", "0000.bin,1"))
        third = results(*bench)[0]["batch_hash"]
        self.assertEqual(len({first, second, third}), 3)

    def test_ledger(self):
        ledgers = set()
        for engine in engines():
            for threads in (1, 4):
                ledger = self.dir / "ledger.csv"
                done = run(*self.bench, "--engine", engine, "--threads", threads, "--ledger",
                           ledger)
                self.assert_status(done, 0)
                ledgers.add(ledger.read_bytes())
        self.assertEqual(len(ledgers), 1)
        rows = read_ledger(self.dir / "ledger.csv")
        self.assertEqual(" ".join(rows[0]),
                         "epoch batch slot attempt path stage reason error substitute")
        first = [row for row in rows if row["attempt"] == "0"]
        self.assertEqual({row["path"] for row in first},
                         {str(self.dir / name) for name in self.bad})
        for reason, n in self.REASONS.items():
            self.assertEqual(sum(row["reason"] == reason for row in first), n, reason)
        for row in rows:
            self.assertEqual(row["epoch"], "0")
            self.assertIn("/data/class", row["substitute"])
            self.assertTrue(row["error"])

    def test_runs_and_sweeps_write_the_ledger_once(self):
        ledger = self.dir / "ledger.csv"
        run(*self.bench[:-4], "--max-file-bytes", "16K", "--runs", 3, "--threads", "1,2", "--hash",
            "--ledger", ledger)
        rows = read_ledger(ledger)
        self.assertEqual(len({(r["batch"], r["slot"], r["attempt"]) for r in rows}), len(rows))

    def test_no_permission(self):
        (self.dir / "data" / "class0" / "0000.bin").chmod(0)
        for engine in engines():
            r, = results(*self.bench, "--threads", 2, "--engine", engine, stranger=is_root())
            self.assertEqual(r["errors"]["permission"], 1)

    def test_on_error_fail(self):
        for engine in engines():
            done = run(*self.bench, "--on-error", "fail", "--engine", engine)
            self.assert_status(done, 1)
            self.assertIn("bad sample", done.err)
            self.assertTrue(any(name in done.err for name in self.bad), done)

    def test_max_errors(self):
        for engine in engines():
            for budget, status in (("0", 1), ("0%", 1), ("3", 1), ("1%", 1), ("50%", 0), ("60", 0),
                                   ("100%", 0)):
                done = run(*self.bench, "--max-errors", budget, "--engine", engine)
                self.assertEqual(done.status, status, (budget, done))
                if status:
                    self.assertIn("too many bad samples", done.err)
                    self.assertIn("\n--max-errors says", done.err)
                else:
                    self.assertRegex(done.out, r"\nbad samples: [a-z]+: \d+(, [a-z ]+: \d+)*\n")

    def test_any_number_of_bad_samples_is_100_per_cent(self):
        """One good file among 800, so that there are hundreds of bad ones for each good one."""
        lines = ["".join(f"gone-{i}.jpg,0\n" for i in range(799)), "good.jpg,0\n"]
        (self.dir / "good.jpg").write_bytes(b"good")
        (self.dir / "bad.csv").write_text("".join(lines))
        for engine in engines():
            more = ("--list", self.dir / "bad.csv", "--batch", 16, "--batches", 3, "--runs", 1,
                    "--threads", 2, "--engine", engine, "--max-errors")
            r, = results("bench", *more, "100%")
            self.assertEqual(r["images"], 48)
            self.assertGreater(r["errors"]["missing"], 10 * 48)
            done = run("bench", *more, "99%")
            self.assert_status(done, 1)

    def test_nothing_readable_ends_a_run_with_any_number_of_bad_samples(self):
        (self.dir / "none.csv").write_text("".join(f"gone-{i}.jpg,0\n" for i in range(40)))
        for engine in engines():
            done = run("bench", "--list", self.dir / "none.csv", "--batch", 16, "--runs", 1,
                       "--threads", 2, "--engine", engine, "--max-errors", "100%")
            self.assert_status(done, 1)
            self.assertIn("no readable substitute", done.err)

    def test_failed_run_says_nothing_on_standard_output_in_json(self):
        done = run(*self.bench, "--on-error", "fail", "--json", "-")
        self.assert_status(done, 1)
        self.assertEqual(done.out, "")


class OnATerminal(CliCase):
    def start(self, *args):
        child = OnTerminal(*args)
        self.addCleanup(child.close)
        return child

    def test_progress_is_shown_on_a_terminal_only(self):
        data = self.data(64)
        for args in (["bench", "--data", data, "--batch", 8], ["inspect", data]):
            child = self.start(*args)
            self.assertEqual(child.finish(), 0)
            self.assertRegex(child.seen, rb"\[[#.]+\] +\d+%")
            self.assertIn(b"\r\x1b[K", child.seen)
            done = run(*args)
            self.assertNotIn("\r", done.err + done.out)
            self.assertNotIn("[#", done.err)
        child = self.start("evict", data)
        child.finish()
        self.assertRegex(child.seen, rb"evicting \d")

    def long_bench(self, *more):
        self.out = self.dir / "out"
        self.out.mkdir()
        return self.start("bench", "--data", self.data(512), "--batch", 16, "--threads", 2,
                          "--json", self.out / "out.json", "--ledger", self.out / "ledger.csv",
                          *more)

    def test_interrupt_leaves_the_runs_that_were_through(self):
        child = self.long_bench("--runs", 1000)
        child.read_until(b"run 3/1000")
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 130)
        root = json.loads((self.out / "out.json").read_bytes())
        self.assert_envelope(root, "bench")
        r, = root["results"]
        self.assert_fields(r, BENCH_FIELDS)
        self.assertIs(r["partial"], True)
        self.assertGreaterEqual(len(r["runs"]), 1)
        self.assertLess(len(r["runs"]), 999)
        self.assertEqual(r["images"], 512)
        self.assertIsNone(r["batch_hash"])

    def test_interrupt_of_inspect_leaves_the_part_that_was_seen(self):
        self.data(1)
        (path,) = (self.dir / "data").rglob("*.bin")
        n = 1000000
        (self.dir / "list.csv").write_text(f"{path},0\n" * n)
        child = self.start("inspect", self.dir / "list.csv", "--check", "--json",
                           self.dir / "out.json")
        child.read_until(b" s left")  # how long it will take is said after half a second
        self.assertRegex(child.seen, rb"\[[#.]+\] +\d+%  \d+ s left")
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 130)
        r, = json.loads((self.dir / "out.json").read_bytes())["results"]
        self.assertIs(r["partial"], True)
        self.assertLess(r["files"], n)

    def test_interrupt_of_evict_leaves_the_part_that_was_done(self):
        data = self.data(64)
        n = 5000
        child = self.start("evict", *[data] * n, "--json", self.dir / "out.json")
        child.read_until(b"evicting ")
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 130)
        results = json.loads((self.dir / "out.json").read_bytes())["results"]
        self.assertLess(len(results), n)
        self.assertEqual([r["partial"] for r in results], [False] * (len(results) - 1) + [True])

    def test_interrupt_of_the_first_run(self):
        for number, cold in ((signal.SIGINT, []), (signal.SIGTERM, ["--cold"])):
            child = self.long_bench("--epochs", 1000000, *cold)
            child.read_until(b"run 1/6, running")
            child.child.send_signal(number)
            self.assertEqual(child.finish(), 130)
            r, = json.loads((self.out / "out.json").read_bytes())["results"]
            self.assertLessEqual(BENCH_FIELDS.keys(), r.keys())
            self.assertIs(r["partial"], True)
            self.assertEqual((r["runs"], r["images"]), ([], 0))
            for name in ("images_per_s", "spread", "mb_per_s", "cpu_s_per_image", "skipped",
                         "errors", "read_latency_us", "batch_latency_us", "device_bytes",
                         "cache_bytes", "delivered_bytes", "buffer_bytes", "decode_s_per_image"):
                self.assertIsNone(r[name], name)  # a zero would look like a result
            self.assertEqual(r["cold"], "unproven" if cold else None)
            shutil.rmtree(self.out)

    def test_interrupt_of_a_sweep_keeps_what_came_before(self):
        child = self.long_bench("--runs", 150, "--threads", "1,2,3")
        child.read_until(b"2 threads, run 2/150")
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 130)
        first, second = json.loads((self.out / "out.json").read_bytes())["results"]
        self.assertEqual((first["threads"], first["partial"], len(first["runs"])), (1, False, 149))
        self.assertEqual((second["threads"], second["partial"]), (2, True))

    def test_kill_leaves_nothing_but_what_was_asked_for(self):
        child = self.long_bench("--epochs", 1000000)
        child.read_until(b"run 1/6, running")
        child.child.send_signal(signal.SIGKILL)
        self.assertEqual(child.child.wait(TIMEOUT_S), -signal.SIGKILL)
        self.assertEqual({p.name for p in self.out.iterdir()}, {"ledger.csv"})
        self.assertEqual({p.name for p in self.dir.iterdir()}, {"out", "data"})


if __name__ == "__main__":
    main()
