"""test_check_study.py - bench/check_study.py says yes to a study as it should be, and no as soon as
one figure is not what the profiles predict."""
import contextlib
import copy
import importlib.util
import io
import pathlib
import tempfile
import unittest

import study_fixture

PROGRAM = pathlib.Path(__file__).parent.parent.parent / "bench" / "check_study.py"
_spec = importlib.util.spec_from_file_location("check_study", PROGRAM)
check_study = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_study)


def point(study, experiment, **wanted):
    return check_study.points(study, experiment, **wanted)[0]


class CheckStudy(unittest.TestCase):
    def setUp(self):
        self.study = study_fixture.study()

    def lines(self, study):
        """Words of the lines that do not say ok; the last line is left out."""
        out = io.StringIO()
        right = check_study.run(study, out)
        *lines, last = out.getvalue().splitlines()
        self.assertEqual(len(lines), len(check_study.CHECKS))
        bad = [line for line in lines if not line.startswith("ok ")]
        self.assertEqual(last, f"{len(lines) - len(bad)} of {len(lines)} hold")
        self.assertEqual(right, not bad)
        return bad

    def assert_fails(self, words, study=None, kind="FAILED"):
        bad = self.lines(study or self.study)
        self.assertEqual(len(bad), 1, bad)
        self.assertTrue(bad[0].startswith(kind), bad)
        self.assertIn(words, bad[0])

    def test_a_study_as_it_should_be(self):
        self.assertEqual(self.lines(self.study), [])

    def test_another_machine_is_as_good(self):
        self.assertEqual(self.lines(study_fixture.study(speed=0.3)), [])

    def test_a_storage_that_prefetch_does_not_hide(self):
        point(self.study, "overlap", storage="hdd", prefetch=1, threads=1)["step_s"] = 1.56
        self.assert_fails("hdd, 1 threads")

    def test_a_step_without_prefetch_may_take_any_time(self):
        point(self.study, "overlap", storage="hdd", prefetch=0, threads=1)["step_s"] = 9.0
        self.assertEqual(self.lines(self.study), [])

    def test_a_storage_that_was_left_out(self):
        for e in self.study["results"]:
            if e["experiment"] == "overlap":
                e["points"] = [p for p in e["points"] if p["storage"] != "lustre"]
        self.assert_fails("nothing on lustre", kind="missing")

    def test_checkpoints_that_cost_too_much_or_too_little(self):
        for stall in (3.0, 11.0):
            study = copy.deepcopy(self.study)
            point(study, "checkpoint", mode="sync", storage="hdd")["stall_s"] = 2 * stall
            self.assert_fails("a checkpoint on hdd stalls", study)

    def test_the_stall_is_of_one_checkpoint(self):
        p = point(self.study, "checkpoint", mode="sync", storage="hdd")
        self.assertEqual(p["checkpoints"], 2)
        p["stall_s"], p["checkpoints"] = 2.5 * p["stall_s"], 5
        self.assertEqual(self.lines(self.study), [])

    def test_a_shorter_step_proves_nothing(self):
        point(self.study, "checkpoint", mode="sync", storage="hdd")["step_s"] = 0.5
        self.assert_fails("steps of 0.5 s", kind="missing")

    def test_a_burst_run_that_is_slower_or_quicker_than_its_tier(self):
        for more in (-0.8, 0.8):
            study = copy.deepcopy(self.study)
            point(study, "checkpoint", mode="burst")["seconds"] += more
            self.assert_fails("with a burst buffer", study)

    def test_few_steps_are_judged_as_twenty(self):
        for mode in ("burst", "sync"):
            p = point(self.study, "checkpoint", mode=mode, storage="optane")
            p["steps"], p["seconds"] = p["steps"] + 17, p["seconds"] + 17 * 1.5
        self.assertEqual(self.lines(self.study), [])
        point(self.study, "checkpoint", mode="burst")["seconds"] += 0.8
        self.assert_fails("with a burst buffer")

    def test_shuffling_that_costs_nothing(self):
        phase = point(self.study, "phases", shuffle="global")["phases"][0]
        other = point(self.study, "phases", shuffle="none")["phases"][0]
        phase["sum_s"] = other["sum_s"]
        self.assert_fails("shuffled globally")

    def test_a_device_that_is_not_as_calibrated(self):
        for storage in check_study.TABLE_I:
            for field in ("read_mb_per_s", "write_mb_per_s"):
                study = copy.deepcopy(self.study)
                point(study, "baseline", storage=storage)[field] *= 0.95
                self.assert_fails(f"{storage} reads", study)

    def test_threads_that_gain_nothing_or_too_much(self):
        for storage, gains in check_study.GAINS.items():
            for threads, gain in gains.items():
                for wrong in (1.0, 0.93 * gain, 1.07 * gain, threads * 1.2):
                    study = copy.deepcopy(self.study)
                    one = point(study, "read", storage=storage, engine="threads", threads=1)
                    point(study, "read", storage=storage, engine="threads",
                          threads=threads)["images_per_s"] = wrong * one["images_per_s"]
                    self.assert_fails(f"{wrong:.2f} times with {threads}", study)

    def test_a_hard_disk_that_gains_nothing_at_all(self):
        one = point(self.study, "read", storage="hdd", engine="threads", threads=1)
        for p in check_study.points(self.study, "read", storage="hdd", engine="threads"):
            p["images_per_s"] = one["images_per_s"]
        self.assert_fails("hdd reads files 1.00 times with 2 (-39.4%), 1.00 times with 4 (-48.7%), "
                          "1.00 times with 8 (-56.5%) threads")

    def test_gains_within_what_a_quick_study_strays(self):
        for p in check_study.points(self.study, "read", engine="threads"):
            p["images_per_s"] *= {1: 1.02, 8: 0.98}.get(p["threads"], 1)
        self.assertEqual(self.lines(self.study), [])

    def test_gains_of_files_of_other_sizes_say_nothing(self):
        for p in check_study.points(self.study, "read", storage="hdd"):
            p["mb_per_s"] /= 10
        self.assert_fails("files have 11 KB on average", kind="missing")

    def test_thread_counts_that_were_left_out(self):
        for e in self.study["results"]:
            if e["experiment"] == "read":
                e["points"] = [p for p in e["points"] if p["threads"] != 4]
        self.assert_fails("'threads': 4", kind="missing")

    def test_a_device_that_is_not_labelled(self):
        point(self.study, "baseline", storage="hdd")["calibrated"] = None
        self.assert_fails("not called emulated and calibrated", kind="missing")

    def test_experiments_that_failed_or_were_not_run(self):
        for e in self.study["results"]:
            if e["experiment"] == "phases":
                e.update(finished=False, missing="no room", points=[])
        self.assert_fails("no room", kind="missing")
        self.assertEqual(len(self.lines(study_fixture.study(names=("read",)))),
                         len(check_study.CHECKS) - len(check_study.GAINS))


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def status(self, *args):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return check_study.main([str(a) for a in args])

    def test_exit_status(self):
        self.assertEqual(self.status(), 2)
        self.assertEqual(self.status(self.dir / "nothing"), 2)
        for text in ("{", "[]", "{}", '{"command": "bench", "results": []}'):
            (self.dir / "results.json").write_text(text)
            self.assertEqual(self.status(self.dir), 2, text)
        study_fixture.write(self.dir, study_fixture.study())
        self.assertEqual(self.status(self.dir), 0)
        study_fixture.write(self.dir, study_fixture.study(names=("read",)))
        self.assertEqual(self.status(self.dir), 1)


if __name__ == "__main__":
    unittest.main()
