"""test_report_noise.py - `millrace report A B` marks what differs, and not what noise makes of it."""
import math
import random
import re
import statistics

import study_fixture
import system_kit
from system_kit import run
from test_report import ReportCase, section


class Noise(ReportCase):
    """Studies of which nothing is known but a few noisy runs a point, drawn by seed."""

    SPREAD = {"disk": 0.06, "hdd": 0.007, "ssd": 0.01, "optane": 0.02, "lustre": 0.02}
    LISTS = {"baseline": [("read_mb_per_s", "runs"), ("write_mb_per_s", "write_runs")],
             "read": [("images_per_s", "runs")], "decode": [("images_per_s", "runs")],
             "overlap": [("step_s", "each_step_s")],
             "batch": [("s_per_image", "each_s_per_image")],
             "activity": [("read_mb_per_s", "each_read_mb_per_s"),
                          ("write_mb_per_s", "each_write_mb_per_s")],
             "checkpoint": [("stall_s", "each_stall_s")],
             "phases": [("read_share_of_train", "each_read_share")]}
    SOMETIMES = {"write_mb_per_s": 6.0, "stall_s": 0.4}  # what else happens in one step of eight

    def draw(self, rng, field, middle, sd, n):
        """What is nothing most of the time is something in some steps."""
        if middle > 0.05 or field not in self.SOMETIMES:
            return [middle * math.exp(rng.gauss(0, sd)) for _ in range(n)]
        return [self.SOMETIMES[field] * rng.random() * (rng.random() < 0.125) for _ in range(n)]

    def noisy(self, rng, spreads, runs, times=1.0):
        """A study whose points stray by their own spread; on this disk it is `times` as fast."""
        results = study_fixture.study(list(self.LISTS))
        for e in results["results"]:
            for i, p in enumerate(e["points"]):
                for field, each in self.LISTS[e["experiment"]]:
                    if p.get(field) is None:
                        continue
                    n = runs or rng.randint(2, 6)
                    storage = p.get("storage") or "disk"
                    sd = self.SPREAD[storage] * spreads[e["experiment"], i]
                    faster = times if storage == "disk" and "runs" in each else 1
                    middle = statistics.mean(p[field]) if isinstance(p[field], list) else p[field]
                    if e["experiment"] == "checkpoint":
                        middle, p["checkpoints"] = middle / max(p["checkpoints"], 1), n
                    p[each] = self.draw(rng, field, faster * middle, sd, n)
                    p[field] = (statistics.median if "runs" in each else statistics.mean)(p[each])
                    if e["experiment"] == "checkpoint":
                        p[field] *= n
        return results

    def marked(self, rng, runs, times=1.0):
        """Marks on the page of two such studies: on this disk, and elsewhere."""
        spreads = {(name, i): math.exp(rng.gauss(0, 0.5)) for name in self.LISTS for i in range(64)}
        for name, by in (("a", 1.0), ("b", times)):
            study_fixture.write(self.dir / name, self.noisy(rng, spreads, runs, by))
        self.assert_status(run("report", self.dir / "a", self.dir / "b"), 0)
        rows = re.findall(r"<tr><td>([^<]*)</td><td class=\"(|better|worse|differs)\">",
                          (self.dir / "b/compare.html").read_text())
        self.assertGreater(len(rows), 100)
        disk = [mark for what, mark in rows if "this disk" in what and
                not re.search("prefetch|sync|lazy|checkpoints", what)]
        return sum(map(bool, disk)), len(disk), sum(bool(mark) for _, mark in rows)

    def test_identical_studies_have_no_mark_in_95_of_100(self):
        rng = random.Random(32)
        pairs = [self.marked(rng, runs)[2] for runs in 20 * (2, 2, 3, 5, None)]
        self.assertLessEqual(sum(map(bool, pairs)), 5, pairs)

    def test_a_step_that_does_something_where_there_was_nothing_is_not_marked(self):
        for a, b, mark in (([0, 0, 0], [0, 6, 0], ""), ([0, 6, 0], [0, 0, 0], ""),
                           ([0, 0, 0.001], [0, 6, 0], ""), ([0] * 20, [0] * 7 + [60] + [0] * 12, ""),
                           ([0, 0, 0], [5, 6, 7], "differs"), ([0, 0], [0, 6], ""),
                           ([0] * 9, [0.9, 7, 7, 8, 6, 7, 8, 7, 6], "differs")):
            for name, each in (("a", a), ("b", b)):
                results = study_fixture.study(["activity"])
                results["results"][0]["points"][0].update(
                    write_mb_per_s=[float(x) for x in each], each_write_mb_per_s=each)
                study_fixture.write(self.dir / name, results)
            self.assert_status(run("report", self.dir / "a", self.dir / "b"), 0)
            page = section((self.dir / "b/compare.html").read_text(), "activity-written")
            self.assertIn(f'<td>prefetch 1, this disk</td><td class="{mark}">', page, (a, b))

    def test_a_storage_that_is_much_faster_is_marked(self):
        rng = random.Random(33)
        for runs, times, least in ((2, 4.0, 0.8), (3, 2.5, 0.8), (5, 2.0, 0.9)):
            found = [self.marked(rng, runs, times)[:2] for _ in range(5)]
            disk, of = (sum(column) for column in zip(*found))
            self.assertGreater(disk, least * of, (runs, times, found))


if __name__ == "__main__":
    system_kit.main()
