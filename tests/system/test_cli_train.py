#!/usr/bin/env python3
"""test_cli_train.py - `train` as its users meet it."""
import csv
import json
import math
import re
import signal
import unittest

from system_kit import OnTerminal, TempDirCase, engines, is_sanitized, main, results, run

NUMBER = (int, float)
MAYBE = (int, float, type(None))
TEXT = (str, type(None))
FIELDS = {  # the contract, and what docs/json.md adds to it
    "steps": int, "seconds": NUMBER, "input_wait_s": NUMBER, "compute_s": NUMBER,
    "checkpoint_stall_s": NUMBER, "images_per_s": NUMBER, "au": MAYBE, "loss": list,
    "step_s": list, "accuracy": MAYBE, "threads": int, "prefetch": int, "device": str,
    "storage": TEXT, "verdict": TEXT, "checkpoints": list,
    "first_fill_s": NUMBER, "images": int, "harness_s_per_step": NUMBER, "wait_s": list,
    "train_accuracy": MAYBE, "eval_s": NUMBER, "reached_s": MAYBE, "compute_threads": int,
    "engine": str, "batch": int, "accelerators": int, "synthetic": bool, "skipped": int,
    "decoded_by": (dict, type(None)),
    "errors": dict, "delivered_bytes": int, "partial": bool, "emulated": bool, "cold": TEXT,
    "limit": TEXT, "input_wait_share": NUMBER, "trace": (dict, type(None)), "checkpoints_skipped": int,
    "checkpoints_waited": int, "checkpoint_wait_s": NUMBER, "drain_s": NUMBER, "state_bytes": int,
    "resumed_from": TEXT, "first_step": int, "calibrated": TEXT,
}
LIMITS = ("none", "device", "read-depth", "decode-cpu", "checkpoints", "hand-over",
          "device-or-read-depth")
EMULATED = ("--device", "emulated:0.01", "--batch", 4, "--image-size", 32)


class TrainCase(TempDirCase):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "photos"
        done = run("generate", "--preset", "caltech101", "--count", 24, "--classes", 3, "--out",
                   self.data)
        self.assertEqual(done.status, 0, done.err)

    def train(self, *more, device=EMULATED):
        return run("train", "--data", self.data, *device, *more)

    def result(self, *more):
        r, = results("train", "--data", self.data, *EMULATED, *more)
        self.check_fields(r)
        return r

    def check_fields(self, r):
        for name, kind in FIELDS.items():
            self.assertIn(name, r)
            self.assertIsInstance(r[name], kind, name)
        self.assertEqual(len(r["step_s"]), r["steps"])
        self.assertEqual(len(r["wait_s"]), r["steps"])
        self.assertAlmostEqual(sum(r["step_s"]), r["seconds"], places=6)
        self.assertAlmostEqual(r["input_wait_s"] + r["compute_s"] + r["checkpoint_stall_s"],
                               r["seconds"], places=6)
        self.assertAlmostEqual(sum(r["wait_s"]), r["input_wait_s"], places=6)
        if r["steps"]:
            self.assertEqual(r["wait_s"][0], 0)  # the first fill stands before the first step
            self.assertAlmostEqual(r["input_wait_share"], r["input_wait_s"] / r["seconds"])
            self.assertAlmostEqual(r["images_per_s"],
                                   r["images"] / (r["first_fill_s"] + r["seconds"]), delta=0.01)
        self.assertIn(r["limit"], (None, *LIMITS))

    def assert_refused(self, *words, args):
        done = run("train", *args)
        self.assert_status(done, 2)
        self.assertEqual(done.out, "")
        for word in words:
            self.assertIn(word, done.err)


class Results(TrainCase):
    def test_json_has_the_fields_of_the_contract(self):
        for engine in engines():
            r = self.result("--engine", engine, "--threads", 2, "--prefetch", 3)
            self.assertEqual((r["steps"], r["images"], r["batch"]), (6, 24, 4))
            self.assertEqual((r["engine"], r["threads"], r["prefetch"]), (engine, 2, 3))
            self.assertEqual((r["device"], r["accelerators"]), ("emulated:0.01", 1))
            self.assertEqual((r["loss"], r["accuracy"], r["train_accuracy"]), ([], None, None))
            self.assertEqual((r["storage"], r["emulated"], r["cold"]), (None, True, None))
            self.assertEqual((r["synthetic"], r["partial"], r["skipped"]), (False, False, 0))
            self.assertGreaterEqual(r["decoded_by"]["own"], r["images"])
            self.assertIn(r["limit"], LIMITS)
            self.assertTrue(r["verdict"])
            self.assertTrue(0 < r["au"] <= 1)

    def test_files_of_the_data_set_are_delivered_once_an_epoch(self):
        size = sum(p.stat().st_size for p in self.data.rglob("*.jpg"))
        r = self.result("--epochs", 2)
        self.assertEqual((r["steps"], r["images"]), (12, 48))
        self.assertEqual(r["delivered_bytes"], 2 * size)

    def test_steps_and_keep_last(self):
        self.assertEqual(self.result("--steps", 9)["images"], 36)
        r = self.result("--batch", 7, "--keep-last")
        self.assertEqual((r["steps"], r["images"]), (4, 24))

    def test_prefetch_none_is_0(self):
        self.assertEqual(self.result("--prefetch", 0)["prefetch"], 0)

    def test_published_workload_sets_the_batch_unless_one_is_given(self):
        done = run("train", "--data", self.data, "--device", "emulated:resnet50-v100")
        self.assert_status(done, 1)
        self.assertIn("24 images do not fill one batch of 64", done.err)
        r, = results("train", "--data", self.data, "--device", "emulated:resnet50-v100x2",
                     "--batch", 4)
        self.assertEqual((r["steps"], r["images"], r["accelerators"]), (3, 24, 2))

    def test_synthetic_without_data(self):
        done = run("train", "--synthetic", *EMULATED, "--steps", 5, "--json", "-")
        self.assert_status(done, 0)
        r, = done.json["results"]
        self.check_fields(r)
        self.assertEqual((r["steps"], r["images"], r["synthetic"]), (5, 20, True))
        self.assertEqual((r["verdict"], r["limit"]), (None, None))

    def test_synthetic_with_data_reads_one_batch(self):
        r = self.result("--synthetic")
        self.assertEqual((r["steps"], r["images"], r["synthetic"]), (6, 24, True))
        size = sum(p.stat().st_size for p in self.data.rglob("*.jpg"))
        self.assertTrue(0 < r["delivered_bytes"] < size)

    def test_storage_is_labelled_and_slow_storage_is_found(self):
        profile = self.dir / "slow"
        profile.write_text("name = slow\nread_mb_per_s = 0.5\nwrite_mb_per_s = 1\n")
        r = self.result("--storage", profile)
        self.assertEqual((r["storage"], r["emulated"], r["limit"]), ("slow", True, "device"))
        self.assertEqual(r["calibrated"], "")
        self.assertIn("Table I", self.result("--storage", "ssd")["calibrated"])
        self.assertIsNone(self.result()["calibrated"])
        self.assertIn("The limit is the storage", r["verdict"])
        done = self.train("--storage", "ssd")
        self.assert_status(done, 0)
        self.assertIn("EMULATED storage 'ssd'", done.out)

    def test_cold_is_proven_or_said(self):
        self.assertIn(self.result("--cold")["cold"], ("data", "unproven"))

    def test_the_table_says_where_the_time_went(self):
        done = self.train()
        self.assert_status(done, 0)
        for words in ("24 images, 3 classes", "emulated:0.01, batch 4", "6 steps in",
                      "waiting for input", "computing", "checkpoint stall",
                      "accelerator utilization", "raining waits for"):
            self.assertIn(words, done.out)
        self.assertEqual(done.err, "")

    def test_waiting_has_one_definition(self):
        """A first fill of half a second, then an accelerator that is slower than the storage."""
        profile = self.dir / "late"
        profile.write_text("name = late\nread_mb_per_s = 100\nwrite_mb_per_s = 1\n"
                           "read_latency_us = 500000\n")
        out = self.dir / "out.json"
        child = OnTerminal("train", "--data", self.data, *EMULATED, "--device", "emulated:0.8",
                           "--steps", 3, "--storage", profile, "--threads", 4, "--json", out,
                           stdout=open(self.dir / "out", "wb"))
        self.addCleanup(child.close)
        self.assertEqual(child.finish(), 0)
        text = (self.dir / "out").read_text()
        r, = json.loads(out.read_bytes())["results"]
        self.check_fields(r)
        self.assertGreaterEqual(r["first_fill_s"], 0.5)
        share = f"{100 * r['input_wait_share']:.1f}%"
        waits, = re.findall(r"^waiting for input +[0-9.]+ +([0-9.]+%)$", text, re.M)
        said, = re.findall(r"waits for (?:it|input) ([0-9.]+%)", r["verdict"])
        drawn = re.findall(rb"training, waiting for input ([0-9.]+%) \[#+\.*\] 100%", child.seen)
        self.assertEqual((waits, said, [d.decode() for d in drawn]), (share, share, [share]))
        self.assertIn(f"after a first fill of {r['first_fill_s']:.2f} s", text)

    def test_ledger_names_broken_images(self):
        bad = sorted((self.data / "class_0001").iterdir())[0]
        bad.write_bytes(b"not an image")
        ledger = self.dir / "ledger.csv"
        r = self.result("--ledger", ledger, "--max-errors", "50%")
        self.assertGreaterEqual(r["skipped"], 1)
        with open(ledger, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["path"] for row in rows if row["attempt"] == "0"}, {str(bad)})
        done = self.train("--on-error", "fail")
        self.assert_status(done, 1)
        self.assertIn(str(bad), done.err)

    def test_all_images_broken(self):
        for photo in self.data.rglob("*.jpg"):
            photo.write_bytes(b"not an image")
        done = self.train()
        self.assert_status(done, 1)
        self.assertTrue(done.err.startswith("millrace train: "), done)
        self.assertEqual(done.err.count("\n"), 1)


class Usage(TrainCase):
    def test_wrong_devices_get_the_list_of_names(self):
        for name in ("gpu", "emulated", "emulated:-1", "emulated:0x10", "emulated:resnet50",
                     "emulated:resnet50-a100x0", "x" * 2000, "%s%n"):
            self.assert_refused("--device", "cpu", "emulated:SECONDS", "resnet50-v100",
                                "resnet50-a100", "resnet50-h100",
                                args=("--data", self.data, "--device", name))
        self.assert_refused("--device", "emulated:SECONDS",
                            args=("--data", self.data, "--device", ""))

    def test_until_needs_eval_and_a_share(self):
        base = ("--data", self.data)
        self.assert_refused("--until", "--eval", args=(*base, "--until", "accuracy=0.5"))
        for bad in ("0.5", "accuracy=", "accuracy=2", "accuracy=0", "accuracy=nan", "accuracy=0.5x",
                    "loss=1"):
            self.assert_refused("--until", "accuracy=X",
                                args=(*base, "--eval", "10%", "--until", bad))

    def test_eval_shares_and_lists(self):
        base = ("--data", self.data)
        for bad in ("0%", "100%", "-5%", "nan%", "1000%"):
            self.assert_refused("--eval", args=(*base, "--eval", bad))
        done = run("train", *base, "--eval", self.dir / "missing.csv")
        self.assert_status(done, 1)
        self.assertIn("missing.csv", done.err)

    def test_an_emulated_accelerator_has_nothing_to_evaluate(self):
        self.assert_refused("learns nothing",
                            args=("--data", self.data, *EMULATED, "--eval", "10%"))

    def test_data_is_needed_unless_synthetic(self):
        self.assert_refused("--data", args=EMULATED)
        self.assert_refused("--eval", args=("--synthetic", "--eval", "10%"))

    def test_the_network_takes_224_and_f32(self):
        self.assert_refused("224", args=("--data", self.data, "--image-size", 100))
        self.assert_refused("f32", args=("--data", self.data, "--dtype", "u8"))
        self.assert_refused("--threads", args=("--data", self.data, *EMULATED, "--threads", "1,2"))

    def test_labels_of_an_evaluation_list_beyond_the_classes(self):
        held = self.dir / "held.csv"
        photo = next(self.data.rglob("*.jpg"))
        held.write_text(f"{photo},7\n")
        done = self.train("--batch", 2, "--eval", held, device=())
        self.assert_status(done, 1)
        self.assertIn("label 7 of sample 0 is beyond the 3 classes", done.err)

    def test_one_class(self):
        done = run("train", "--data", self.data / "class_0000", "--batch", 2)
        self.assert_status(done, 1)
        self.assertIn("one class", done.err)

    def test_help_explains_devices(self):
        done = run("train", "--help")
        self.assert_status(done, 0)
        for word in ("--device", "emulated:SECONDS", "resnet50-v100", "--synthetic", "--until",
                     "--eval", "--compute-threads", "--prefetch", "--storage", "--ledger"):
            self.assertIn(word, done.out)


class Interrupted(TrainCase):
    def interrupted(self, when, *more):
        """Ctrl-C as soon as these words are on the terminal; the result that is left."""
        out = self.dir / "out.json"
        child = OnTerminal("train", "--data", self.data, "--batch", 4, "--image-size", 32, "--json",
                           out, *more)
        self.addCleanup(child.close)
        child.read_until(when)
        child.child.send_signal(signal.SIGINT)
        self.assertEqual(child.finish(), 130)
        r, = json.loads(out.read_bytes())["results"]
        self.check_fields(r)
        self.assertTrue(r["partial"])
        return r

    def test_ctrl_c_leaves_the_steps_that_were_done(self):
        r = self.interrupted(b"training", "--device", "emulated:0.05", "--steps", 1000000)
        self.assertTrue(1 <= r["steps"] < 1000000)

    def test_ctrl_c_ends_a_step_of_an_hour(self):
        r = self.interrupted(b"filling", "--device", "emulated:3600")
        self.assertEqual((r["steps"], r["au"]), (0, None))


class OnCpu(TrainCase):
    def test_it_trains_and_evaluates_or_says_what_is_missing(self):
        done = self.train("--batch", 4, "--steps", 2, "--eval", "25%", "--compute-threads", 1,
                          "--threads", 1, "--json", "-", device=())
        if "no oneDNN" in done.err:
            self.assert_status(done, 1)
            self.assertIn("--device emulated:SECONDS", done.err)
            return
        self.assert_status(done, 0)
        r, = done.json["results"]
        self.check_fields(r)
        self.assertEqual((r["device"], r["steps"], len(r["loss"])), ("cpu", 2, 2))
        self.assertEqual((r["compute_threads"], r["threads"], r["emulated"]), (1, 1, False))
        self.assertTrue(0 <= r["accuracy"] <= 1)
        self.evaluation_is_not_in_the_trace()

    def evaluation_is_not_in_the_trace(self):
        """More images are held out than trained on: none of them has a name among those."""
        trace = self.dir / "t.json"
        done = self.train("--batch", 4, "--epochs", 1, "--eval", "75%", "--compute-threads", 1,
                          "--threads", 1, "--trace", trace, "--json", "-", device=())
        self.assert_status(done, 0)
        r, = done.json["results"]
        reads = [e for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "Read"]
        self.assertEqual(len(reads), r["steps"] * 4)
        self.assertTrue(all(loss > 0 for loss in r["loss"]))

    @unittest.skipIf(is_sanitized(), "59 million parameters take too long under a sanitizer")
    def test_the_defaults_learn(self):
        """Seven photos in eight are of one class of ten, which is soon found out."""
        photos = sorted(self.data.rglob("*.jpg"))[:8]
        rows = [f"{p},{9 if i == 3 else 0}\n" for i, p in enumerate(photos)]
        (self.dir / "list.csv").write_text("".join(rows))
        done = run("train", "--list", self.dir / "list.csv", "--batch", 8, "--steps", 4,
                   "--compute-threads", 1, "--threads", 1, "--json", "-", timeout=200)
        if "no oneDNN" in done.err:
            self.skipTest("this build has no oneDNN")
        self.assert_status(done, 0)
        r, = done.json["results"]
        first, *later = r["loss"]
        self.assertAlmostEqual(first, math.log(10), delta=0.5)
        self.assertLess(max(later), first)

    def test_the_defaults_are_said(self):
        said = " ".join(run("train", "--help").out.split())
        for default in ("[0.0001]", "[0.485,0.456,0.406]", "[0.00392]"):
            self.assertIn(default, said)
        said = " ".join(run("bench", "--help").out.split())  # which delivers pixels as they are
        self.assertNotIn("0.485", said)


if __name__ == "__main__":
    main()
