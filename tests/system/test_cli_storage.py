"""test_cli_storage.py - bench --storage as its users meet it: labels, bad profiles, Ctrl-C."""
import json
import signal

from system_kit import OnTerminal, TempDirCase, engines, main, make_files, results, run

GOOD = "name = mine\nread_mb_per_s = 200\nwrite_mb_per_s = 100\n"


class StorageCase(TempDirCase):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.n_bytes = make_files(self.data, 64)

    def profile(self, text, name="device.profile"):
        path = self.dir / name
        path.write_text(text)
        return path

    def bench(self, *more):
        return run("bench", "--data", self.data, "--batch", 16, "--runs", 1, *more)


class Results(StorageCase):
    def test_json_says_emulated_and_what_it_was_calibrated_to(self):
        for name in ("ssd", "optane", "lustre", "hdd"):
            r, = results("bench", "--data", self.data, "--batch", 16, "--batches", 1, "--runs", 1,
                         "--storage", name)
            self.assertEqual((r["storage"], r["emulated"]), (name, True))
            self.assertIn("Table I", r["calibrated"])
            self.assertIsNone(r["warning"])  # a warm cache makes no difference

    def test_without_storage_nothing_is_emulated(self):
        r, = results("bench", "--data", self.data, "--batch", 16, "--runs", 1)
        self.assertEqual((r["storage"], r["emulated"], r["calibrated"]), (None, False, None))

    def test_table_says_emulated(self):
        done = self.bench("--storage", "optane")
        self.assert_status(done, 0)
        self.assertIn("EMULATED storage 'optane'", done.out)
        self.assertIn("calibrated to: Chien", done.out)
        self.assertNotIn("EMULATED", self.bench().out)

    def test_own_profile_is_charged_and_changes_no_batch(self):
        path = self.profile(GOOD + "read_latency_us = 3000\n")
        for engine in engines():
            common = ("bench", "--data", self.data, "--batch", 16, "--runs", 1, "--hash",
                      "--engine", engine)
            real, = results(*common)
            emulated, = results(*common, "--storage", path)
            self.assertEqual(emulated["storage"], "mine")
            self.assertEqual(emulated["calibrated"], "")
            self.assertEqual(emulated["batch_hash"], real["batch_hash"])
            self.assertEqual(emulated["delivered_bytes"], self.n_bytes)
            self.assertGreaterEqual(emulated["read_latency_us"]["p50"], 0.95 * 3000)
            self.assertLessEqual(emulated["mb_per_s"], 200)


class BadProfiles(StorageCase):
    def assert_refused(self, storage, *words):
        done = self.bench("--storage", storage)
        self.assert_status(done, 2)
        self.assertEqual(done.out, "")
        self.assertEqual(done.err.count("\n"), 1)
        for word in ("--storage", *words):
            self.assertIn(word, done.err)

    def test_names_that_are_neither_built_in_nor_a_file(self):
        self.assert_refused("floppy", "floppy", "hdd, ssd, optane, lustre")

    def test_folder_and_empty_file(self):
        self.assert_refused(self.dir, str(self.dir), "directory")
        self.assert_refused(self.profile(""), "empty")

    def test_lines_and_keys_are_named(self):
        self.assert_refused(self.profile(GOOD + "sek_us = 3\n"), "device.profile, line 4",
                            "no key 'sek_us'")
        self.assert_refused(self.profile(GOOD + "seek_us = fast\n"), "line 4: seek_us is 'fast'")
        self.assert_refused(self.profile("name = x\nread_mb_per_s = 3\n"), "write_mb_per_s")

    def test_a_picture_is_no_profile(self):
        path = self.dir / "picture.jpg"
        path.write_bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 8)
        self.assert_refused(path, "picture.jpg, line 1")

    def test_an_empty_argument(self):
        done = self.bench("--storage", "")
        self.assert_status(done, 2)
        self.assertIn("--storage", done.err)


class Interrupted(StorageCase):
    def test_ctrl_c_does_not_wait_for_a_slow_device(self):
        slow = self.profile(GOOD + "read_latency_us = 3600000000\n")
        for engine in engines():
            out = self.dir / f"{engine}.json"
            child = OnTerminal("bench", "--data", self.data, "--batch", 16, "--storage", slow,
                               "--engine", engine, "--json", out)
            self.addCleanup(child.close)
            child.read_until(b"run 1/6, running")
            child.child.send_signal(signal.SIGINT)
            self.assertEqual(child.finish(), 130)
            r, = json.loads(out.read_bytes())["results"]
            self.assertEqual((r["storage"], r["emulated"], r["partial"]), ("mine", True, True))


if __name__ == "__main__":
    main()
