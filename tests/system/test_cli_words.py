"""test_cli_words.py - what the program says to people: options without an effect, accepted ranges,
singular and plural, what cannot be known."""
import struct
import zlib

import system_kit
from system_kit import TempDirCase, make_files, run


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) +
       chunk(b"IDAT", zlib.compress(b"\0abc")) + chunk(b"IEND", b""))


class Effects(TempDirCase):
    """Options that have no effect beside the others are named, and those that have one are not."""

    def setUp(self):
        super().setUp()
        make_files(self.dir / "set", 4)

    def notes(self, *args):
        done = run(*args)
        return {line[len("note: "):].split(" has no effect ")[0]: line.split(" has no effect ")[1]
                for line in done.err.splitlines() if " has no effect " in line}

    def bench(self, *more):
        return self.notes("bench", "--data", self.dir / "set", "--runs", 1, "--batch", 2, *more)

    def train(self, *more):
        return self.notes("train", "--synthetic", "--device", "emulated:0.001", "--steps", 1,
                          "--batch", 2, *more)

    def test_bench(self):
        self.assertEqual(self.bench(), {})
        self.assertEqual(self.bench("--io-depth", 32), {"--io-depth": "without --engine uring"})
        self.assertEqual(self.bench("--engine", "uring", "--io-depth", 4), {})
        of_images = {"--image-size": 100, "--augment": "none", "--mean": 0, "--std": 1, "--resize": "area",
                     "--dtype": "u8", "--layout": "nchw", "--decoder": "turbo", "--max-pixels": 9}
        args = [word for pair in of_images.items() for word in pair] + ["--exact", "--accept-truncated"]
        wanted = {*of_images, "--exact", "--accept-truncated"}
        self.assertEqual(self.bench(*args), dict.fromkeys(wanted, "without --map decode"))
        self.assertEqual(self.bench("--map", "decode", "--image-size", 32), {})
        self.assertEqual(self.bench("--on-error", "fail", "--max-errors", 3),
                         {"--max-errors": "with --on-error fail"})

    def test_train(self):
        self.assertEqual(self.train("--image-size", 32), {})
        of_checkpoints = {"--every": 1, "--keep": 2, "--mode": "sync", "--if-busy": "skip", "--format": "tf"}
        args = [word for pair in of_checkpoints.items() for word in pair] + ["--packed"]
        self.assertEqual(self.train(*args),
                         dict.fromkeys({*of_checkpoints, "--packed"}, "without --checkpoint"))
        self.assertEqual(self.train("--lr", 0.1, "--compute-threads", 1),
                         dict.fromkeys(["--lr", "--compute-threads"], "with an emulated accelerator"))
        self.assertEqual(self.train("--warm"), {"--warm": "except with 'millrace bench'"})
        self.assertEqual(self.train("--drain-rate", "1M"), {"--drain-rate": "without --drain"})

    def test_checkpoint(self):
        self.assertEqual(self.notes("checkpoint", "ls", self.dir, "--to", self.dir, "--packed"),
                         {"--to": "except with 'convert' and 'restore'", "--packed": "except with 'convert'"})
        self.assertEqual(self.notes("checkpoint", "convert", self.dir, "--to", self.dir, "--format",
                                    "safetensors", "--packed"), {"--packed": "without --format tf"})

    def test_help_says_nothing_of_it(self):
        done = run("bench", "--io-depth", 3, "--help")
        self.assertEqual((done.status, done.err), (0, ""))

    def test_quick_and_full(self):
        done = run("study", "--quick", "--full", "--out", self.dir / "out")
        self.assert_status(done, 2)
        self.assertIn("--quick and --full exclude each other", done.err)
        self.assertFalse((self.dir / "out").exists())


class Ranges(TempDirCase):
    def test_a_refused_value_names_what_is_taken(self):
        for command, option, value, said in (
                ("bench", "threads", "0", "from 1 to 4096"), ("bench", "threads", "5000", "from 1 to 4096"),
                ("bench", "batch", "0", "from 1 to 16777216"), ("bench", "seed", "-1", "from 0 to 18446744073709551615"),
                ("bench", "prefetch", "x", "from 0 to 65536"), ("bench", "shuffle", "window:0", "window:N with N from 1"),
                ("bench", "batch", "16777217", "from 1 to 16777216"), ("train", "prefetch", "65537", "from 0 to 65536"),
                ("bench", "io-depth", "4097", "from 1 to 4096"), ("bench", "io-depth", "0", "from 1 to 4096"),
                ("bench", "runs", "1001", "from 1 to 1000"), ("baseline", "runs", "0", "from 1 to 1000"),
                ("study", "runs", "1001", "from 1 to 1000"), ("bench", "epochs", "0", "from 1 to 4294967294"),
                ("generate", "count", "0", "from 1 to 18446744073709551615"), ("bench", "batches", "0", "from 1 to"),
                ("train", "steps", "0", "from 1 to 18446744073709551615"),
                ("bench", "shard", "2/2", "R from 0 to W - 1"), ("bench", "max-errors", "101%", "from 0% to 100%"),
                ("bench", "image-size", "0", "from 1 to 16384"), ("bench", "image-size", "20000", "from 1 to 16384"),
                ("bench", "mean", "a", "from -1000000 to 1000000"), ("bench", "std", "0", "from 0.000001 to 1000000"),
                ("bench", "max-file-bytes", "0", "at least 1"), ("bench", "map", "x", "one of read|decode"),
                ("watch", "interval", "1ms", "from 10ms to 1h"), ("watch", "duration", "3", "with its unit"),
                ("train", "lr", "0", "above 0"), ("bench", "ledger", "", "at least one character")):
            with self.subTest(option=option, value=value):
                done = run(command, f"--{option}={value}", "--help")  # taken, it would not run
                self.assert_status(done, 2)
                self.assertRegex(done.err, rf"^millrace: --{option}: '{value}' is not ")
                self.assertIn(said, done.err.splitlines()[0])

    def test_the_largest_values_are_taken(self):
        for args in (["--batch", 1 << 24], ["--io-depth", 4096], ["--prefetch", 65536], ["--runs", 1000]):
            self.assert_status(run("bench", *args, "--help"), 0)

    def test_only_options_of_the_command_are_named(self):
        done = run("generate", "photos")
        self.assert_status(done, 2)
        self.assertNotIn("--data", done.err)
        self.assertIn("a data set is named by --data", run("bench", "photos").err)


class Words(TempDirCase):
    def test_one_is_singular(self):
        make_files(self.dir / "set", 1)
        for args in (["inspect", self.dir / "set"], ["evict", self.dir / "set"],
                     ["bench", "--data", self.dir / "set", "--batch", 1, "--runs", 1],
                     ["generate", "--count", 1, "--out", self.dir / "one"],
                     ["train", "--data", self.dir / "one", "--device", "emulated:0.001", "--batch", 1],
                     ["watch", "--duration", "10ms"]):
            with self.subTest(args[0]):
                done = run(*args)
                self.assertNotRegex(done.out + done.err, r"(?<![\w.,-])1 (usable )?\w+(?<!clas)s\b(?! left| a)", done)

    def test_one_run_has_no_spread(self):
        make_files(self.dir / "set", 4)
        for runs, spread in ((1, r"-"), (2, r"-"), (3, r"\d+\.\d%")):
            done = run("bench", "--data", self.dir / "set", "--batch", 2, "--runs", runs, "--threads", 1)
            self.assertRegex(done.out, rf"(?m)^ +1 +\d+ +{spread} +1.00x")
        done = run("baseline", self.dir, "--size", "1M", "--runs", 1)
        self.assertRegex(done.out, r"(?m)^seq +\S+ +\d+ +\S+ +\S+ +\d+ +-  ")

    def test_synthetic_passes_no_benchmark(self):
        done = run("train", "--synthetic", "--device", "emulated:resnet50-a100", "--steps", 3, "--batch", 8)
        self.assert_status(done, 0)
        self.assertIn("accelerator utilization", done.out)
        self.assertNotIn("benchmark", done.out)

    def test_a_device_that_is_not_there(self):
        done = run("watch", "--device", "sdz9", "--duration", "10ms")
        self.assert_status(done, 1)
        self.assertIn("--device sdz9: there was no such block device", done.err)
        self.assert_status(run("watch", "--device", "sdz9", "--", "false"), 1)
        self.assert_status(run("watch", "--device", "sdz9", "--", "sh", "-c", "exit 3"), 3)

    def test_a_study_of_nothing_leaves_nothing(self):
        for option in ("--data", "--list"):
            done = run("study", option, self.dir / "nowhere", "--out", self.dir / "out")
            self.assert_status(done, 1)
            self.assertIn("nowhere: No such file or directory", done.err)
            self.assertEqual(done.out, "")
            self.assertEqual(list(self.dir.iterdir()), [])

    def test_lists_with_class_names_and_without_labels(self):
        make_files(self.dir / "set", 4)
        names = [f"set/class0/{i:04}.bin" for i in range(4)]
        path = self.dir / "list.csv"
        path.write_text("image;class\n" + "".join(f"{n};{c}\n" for n, c in zip(names, ("dog", "cat") * 2)))
        done = run("inspect", path)
        self.assert_status(done, 0)
        self.assertIn("4 samples, 2 classes of 2 to 2 (0 = cat)", done.out)
        self.assertEqual(done.err, "")
        path.write_text("\n".join(names))
        for args in (["inspect", path], ["bench", "--list", path, "--batch", 2, "--runs", 1]):
            self.assertIn("list.csv has no labels ('path,label' a line): all samples are of class 0",
                          run(*args).err)


class Images(TempDirCase):
    def setUp(self):
        super().setUp()
        self.assert_status(run("generate", "--preset", "caltech101", "--count", 2, "--classes", 1, "--out",
                               self.dir / "set"), 0)
        self.image = self.dir / "set/class_0000/00000000.jpg"

    def test_broken_files_fail_a_check(self):
        self.assert_status(run("inspect", self.dir / "set", "--check"), 0)
        whole = self.image.read_bytes()
        self.image.write_bytes(whole[:len(whole) // 2])
        done = run("inspect", self.dir / "set", "--check")
        self.assert_status(done, 1)
        self.assertIn("broken: 1", done.out)
        self.assert_status(run("inspect", self.dir / "set"), 0)

    def test_a_jpeg_is_described(self):
        r, = system_kit.results("inspect", self.image)
        self.assertEqual((r["format"], r["decoded_by"], r["progressive"], r["bits"], r["error"]),
                         ("jpeg", "own", False, 8, None))
        done = run("inspect", self.image)
        self.assert_status(done, 0)
        self.assertIn(f"JPEG image, {r['width']} x {r['height']}, colour {r['sampling']}, 8 bits", done.out)
        self.assertIn("baseline", done.out)
        self.assertIn("decoded by our own decoder", done.out)
        self.assertEqual(r["bytes"], self.image.stat().st_size)

    def test_a_broken_jpeg_and_a_png(self):
        whole = self.image.read_bytes()
        self.image.write_bytes(whole[:len(whole) // 2])
        done = run("inspect", self.image)
        self.assert_status(done, 0)
        self.assertIn("broken: ", done.out)
        self.assert_status(run("inspect", self.image, "--check"), 1)
        png = self.dir / "x.png"
        png.write_bytes(PNG)
        r, = system_kit.results("inspect", png)
        self.assertEqual((r["format"], r["width"], r["height"], r["decoded_by"]), ("png", 1, 1, "png"))
        self.assertIn("PNG image, 1 x 1, ", run("inspect", png).out)


if __name__ == "__main__":
    system_kit.main()
