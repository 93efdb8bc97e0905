"""test_study_trouble.py - `millrace study` where something is missing: what it says, and that it
leaves nothing behind.

Only experiments that take seconds run here; no figure is judged."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import seccomp_filter
import system_kit
from study_kit import EXPERIMENTS, LONG_S, StudyCase, scratch_folders, setUpModule
from system_kit import is_root, run


class Trouble(StudyCase):
    def test_unknown_experiment(self):
        done = self.study("--only", "files,nonsense", status=2)
        self.assertIn("'nonsense'", done.err)
        for name in EXPERIMENTS:
            self.assertIn(name, done.err)
        self.assertFalse(self.out.exists())

    def test_no_experiment(self):
        for nothing in (",", ",,"):
            done = self.study("--only", nothing, status=2)
            self.assertIn(f"'{nothing}' names no experiment; there are baseline, read,", done.err)
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
        self.assertNotIn("uring", verdict["points"][0]["recommendation"]["tried"])
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
    @system_kit.needs("mount")
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

    def slow_disk(self, bytes_per_s):
        """A disk that reads no faster, with the photos in its folder `set`, none of them cached."""
        limit = pathlib.Path("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device")
        if not os.access(limit, os.W_OK) or ":blkio:/\n" not in pathlib.Path("/proc/self/cgroup").read_text():
            self.skipTest("no limits of block devices here (control groups, version 1)")
        where = self.small_disk(32)
        shutil.copytree(self.data, where / "set")
        os.sync()
        self.addCleanup(system_kit.limit_device, where)
        system_kit.limit_device(where, read_bps=bytes_per_s)
        done = run("evict", where / "set")
        self.assertIn("after 0 B", done.out)
        return where

    @system_kit.needs("losetup", "mkfs.ext4", "mount", "findmnt")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_the_limit_is_that_of_the_images_own_storage(self):
        """A list of files on a slow disk; results, and all that the study writes, go elsewhere."""
        where = self.slow_disk(4000000)
        listed = self.dir / "slow.csv"
        listed.write_text("".join(f"{p},0\n" for p in (where / "set").rglob("*.jpg")))
        self.out = self.dir / "out"
        self.assert_status(run("study", "--list", listed, "--out", self.out, "--only", "verdict",
                               "--runs", 1, timeout=LONG_S), 0)
        point, = self.result("verdict")["points"]
        self.assertEqual(point["limit"], "device", point["text"])
        self.assertRegex(point["text"], "The limit is the storage: it delivers [3-6] MB/s, and no "
                                        "number of reads at once")
        trained, = system_kit.results("train", "--list", listed, "--cold", "--device",
                                      "emulated:0.01", "--batch", 16, "--steps", 5)
        self.assertEqual(trained["limit"], "device-or-read-depth", trained["verdict"])
        self.assertIn("either the storage, if", trained["verdict"])

    @system_kit.needs("losetup", "mkfs.ext4", "mount", "findmnt")
    @unittest.skipUnless(is_root(), "needs root to mount")
    def test_an_emulated_disk_is_not_as_slow_as_the_real_one(self):
        """The real one reads 3 MB/s, which is less than the emulated one does."""
        where = self.slow_disk(3000000)
        self.study("--only", "phases", data=where / "set", out=self.dir / "out", timeout=LONG_S)
        result = json.loads((self.dir / "out/phases.json").read_text())
        for point in result["points"]:
            self.assertLess(point["late_share"], 0.5)
        self.assertNotIn("too slow", " ".join(result["warnings"]))

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

    def test_a_folder_of_somebody_s_files_gets_no_photos(self):
        mine = self.out / "data/mine.jpg"
        mine.parent.mkdir(parents=True)
        mine.write_bytes(b"precious")
        done = run("study", "--out", self.out, "--only", "files")
        self.assert_status(done, 1)
        self.assertIn("data is not empty (it has mine.jpg)", done.err)
        self.assertEqual([p.name for p in mine.parent.iterdir()], ["mine.jpg"])

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
