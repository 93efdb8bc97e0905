"""test_report.py - `millrace report`: from results.json to one page that needs nothing else."""
import csv
import html
import html.parser
import json
import math
import os
import pathlib
import re
import unittest
import xml.etree.ElementTree

import study_fixture
import system_kit
from system_kit import TempDirCase, is_root, run

SVG = "http://www.w3.org/2000/svg"
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(html.parser.HTMLParser):
    """Elements must nest; ids, links and figures are gathered."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.hrefs, self.sections = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "section":
            self.sections.append(attrs.get("id"))
        if tag == "a":
            self.hrefs.append(attrs["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        attrs = dict(attrs)
        if "id" in attrs:
            self.ids.append(attrs["id"])

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


def figures(text):
    return re.findall(r"<figure class=\"plot\".*?</figure>", text, re.S)


def section(text, name):
    return re.search(rf"<section id=\"{name}\">.*?</section>", text, re.S).group()


class ReportCase(TempDirCase):
    def render(self, results, *more):
        study_fixture.write(self.dir / "s", results)
        done = run("report", self.dir / "s", *more)
        self.assert_status(done, 0)
        self.assertEqual(done.err, "")
        return (self.dir / "s/report.html").read_text()

    def check_page(self, text):
        page = Page(text)
        self.assertEqual(len(page.ids), len(set(page.ids)), "ids are unique")
        for href in page.hrefs:
            self.assertTrue(href.startswith("#") and href[1:] in page.ids, href)
        rest = text.replace(SVG, "")
        self.assertNotRegex(rest, r"https?://|//[a-z]+\.[a-z]+/|@import|url\(|<script src|<iframe")
        self.assertNotRegex(rest, r"(?i)[^a-z]-?(nan|inf)[^a-z]")
        self.assertLess(len(text.encode()), 2 << 20)
        return page

    def check_figure(self, text):
        root = xml.etree.ElementTree.fromstring(text)
        kinds = [e for e in root.iter() if e.get("data-tip") or e.get("class") == "curve"]
        self.assertTrue(kinds, f"{root.get('id')} has no marks")
        for tip in (e.get("data-tip") for e in kinds if e.get("data-tip")):
            self.assertRegex(tip, r": .*[0-9-] \S", "a value and its unit")
        labels = [e.text for e in root.iter("text") if e.get("class") == "label"]
        ticks = [e.text for e in root.iter("text") if e.get("class") == "tick"]
        self.assertTrue(labels and all(labels), f"{root.get('id')} has unlabelled axes")
        self.assertGreater(len(ticks), 2)
        self.assertFalse([t for t in ticks if t.endswith("…")], "names are cut")
        words = [t for t in ticks if re.search("[a-z]", t)]
        self.assertEqual(len(words), len(set(words)), f"{root.get('id')}: {words}")
        self.check_turned_names(root)
        keys = [e for e in root.iter("button") if e.get("class") == "key"]
        series = {e.get("data-s") for e in root.iter("g") if "series" in e.get("class", "")}
        self.assertEqual({k.get("data-s") for k in keys}, series)
        self.assertTrue(next(root.iter("title")).text and next(root.iter("desc")).text)
        details = next(e for e in root.iter("details"))
        self.assertTrue(list(details.iter("td")) or "csv" in "".join(details.itertext()))
        return root.get("id").removeprefix("plot-")


    def check_turned_names(self, root):
        """Names that stand aslant are further apart than a line is high."""
        place = r"translate\(([0-9.]+) [0-9.]+\) rotate\(-([0-9]+)\)"
        turned = [re.match(place, e.get("transform"))
                  for e in root.iter("text") if e.get("class") == "tick" and e.get("transform")]
        places = [float(m[1]) * math.sin(math.radians(int(m[2]))) for m in turned]
        for a, b in zip(places, places[1:]):
            self.assertGreaterEqual(b - a, 12, root.get("id"))


class OneStudy(ReportCase):
    def test_page_is_whole_and_needs_nothing_else(self):
        text = self.render(study_fixture.study())
        page = self.check_page(text)
        for name in study_fixture.EXPERIMENTS:
            self.assertIn(name, page.sections)
            self.assertGreaterEqual(len(figures(section(text, name))), 1, name)
            self.assertNotIn("chip missing", section(text, name))
            self.assertIn(f"millrace study --only {name}", section(text, name))

    def test_the_studies_are_cited_with_a_row_for_each_experiment(self):
        text = self.render(study_fixture.study())
        cited = section(text, "studies")
        for words in ("Characterizing Deep-Learning I/O Workloads in TensorFlow", "Erwin Laure",
                      "DOI 10.1109/PDSW-DISCS.2018.00011", "Fahim Chowdhury", "Mark Nelson",
                      "Storage &amp; Data"):
            self.assertIn(words, cited)
        for name in set(study_fixture.EXPERIMENTS) - {"verdict"}:
            row = re.search(rf'<tr><td>([^<:]*): [^<]*</td><td><a href="#{name}">', cited)
            self.assertIsNotNone(row, name)
            self.assertIn(f"<h3>{row[1]}</h3>", section(text, name))
            self.assertIn(f"<code>millrace study --only {name}</code>", cited)

    def test_each_plot_has_marks_axes_legend_table_and_csv(self):
        text = self.render(study_fixture.study())
        for figure in figures(text):
            name = self.check_figure(figure)
            with open(self.dir / "s" / f"{name}.csv") as f:
                rows = list(csv.reader(f))
            self.assertEqual(rows[0][0], "series")
            self.assertGreater(len(rows), 1, name)
            self.assertEqual({len(r) for r in rows}, {5}, name)

    def test_long_series_are_summed_up_in_words_and_spans_have_a_length(self):
        text = self.render(study_fixture.study(["activity", "phases"]))
        part = re.search(r'id="plot-activity-3".*?</figure>', text, re.S)[0]
        rows = re.findall(r"<tr><td>(\w+)</td><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td>"
                          r"<td>([^<]*)</td></tr>", part)
        self.assertEqual(rows[0], ("read", "20", "20", "0", "598"))
        self.assertEqual([r[2] for r in rows], ["20", "130"])
        self.assertIn("in all, MB/s × seconds", part)
        self.assertIn('data-tip="1 seconds: read 20 MB/s, written 130 MB/s"', part)
        with open(self.dir / "s/phases-1.csv") as f:
            rows = list(csv.reader(f))
        self.assertEqual(rows[0], ["series", "row", "seconds of the span", "begin", "end"])
        for row in rows[1:]:
            self.assertAlmostEqual(float(row[2]), float(row[4]) - float(row[3]), 6)

    def test_headline_and_tiles_come_first(self):
        text = self.render(study_fixture.study())
        self.assertIn("Decoding limits training here", text[:text.index("<section id=\"baseline\"")])
        self.assertIn('class="verdict high"', text)
        self.assertIn("2,500 MB/s", text)
        top = text[:text.index('class="tiles"')]
        self.assertIn("Quick study of 2,048 images in millrace-study/data (generated)", top)
        self.assertIn("host example, made up, 2 processors, ext4 on vda, 2026-01-02T03:04:05Z", top)
        self.assertIn('<td>storage, device</td><td class="text">vda</td>', section(text, "machine"))
        self.assertNotIn("{", section(text, "machine"))

    def test_advice_stands_with_its_proof(self):
        text = section(self.render(study_fixture.study()), "verdict")
        self.assertIn("Now: 1210 images/s measured, 1220 by the model.", text)
        self.assertIn("Predicted for --engine uring: 1270 images/s, measured 1240: the prediction "
                      "was off by 2.4%", text)
        self.assertIn("<td>all images, cached, decoded</td><td>1,250</td>", text)
        self.assertEqual(text.count(">this machine<"), 2)
        self.assertEqual(text.count('class="mark"'), 2)
        self.assertIn("Store the images smaller (shorter side 256 instead of 375)", text)
        self.assertIn("Predicted for smaller images: 2400 images/s, measured 2350: the prediction "
                      "was off by 2.1%", text)
        with open(self.dir / "s" / "verdict-gains.csv") as f:
            rows = list(csv.reader(f))
        self.assertEqual([r[:2] for r in rows[1:] if r[2]], [
            ["predicted", "configuration"], ["predicted", "and smaller images"],
            ["measured", "as it is"], ["measured", "configuration"],
            ["measured", "and smaller images"]])

    def test_advice_that_was_withdrawn_is_nowhere_called_recommended(self):
        results = study_fixture.study()
        text = "No change is recommended: --engine uring was tried and measured 900 images/s."
        results["results"][0]["points"][0]["recommendation"].update(
            status="withdrawn", change=None, measured_images_per_s=900.0, measured_per_s=900.0,
            text=text)
        page = self.render(results)
        self.assertIn(text, section(page, "verdict"))
        self.assertIn("What was tried, predicted and then measured", page)
        self.assertNotRegex(page.replace(text, ""), "Use --engine|(?i:was recommended)")
        self.assertIn(text, run("report", self.dir / "s").out)

    def test_what_an_unreliable_model_predicted_is_not_shown(self):
        results = study_fixture.study()
        point = results["results"][0]["points"][0]
        words = "No configuration is recommended: its predictions are not reliable."
        point["recommendation"].update(status="no model", change=None, text=words)
        page = self.render(results)
        self.assertIn(words, section(page, "verdict"))
        self.assertNotIn("measured 1240", page)
        text = run("report", self.dir / "s").out
        self.assertIn(f"{words}\nStore the images smaller", text)
        self.assertNotIn("1240", text)
        point["text"] += f" {words}"
        study_fixture.write(self.dir / "s", results)
        self.assertIn(f"{words}\nStore the images smaller", run("report", self.dir / "s").out)

    def test_advice_by_older_rules_is_not_shown(self):
        results = study_fixture.study()
        point = results["results"][0]["points"][0]
        del point["recommendation"]["status"]
        point["text"] += " " + point["recommendation"]["text"]
        page = self.render(results)
        self.check_page(page)
        other = study_fixture.write(self.dir / "t", study_fixture.study())
        self.assert_status(run("report", other, self.dir / "s"), 0)
        both = section((self.dir / "s/compare.html").read_text(), "verdict")
        for text, n in ((page, 0), (run("report", self.dir / "s").out, 0), (both, 1)):
            self.assertIn("Decoding limits training here", text)
            self.assertIn("rules that no longer hold", text)
            self.assertNotIn("Predicted for", text)
            self.assertEqual(text.count("Use --engine"), n)
            self.assertEqual(text.count("Store the images"), n)

    def test_advice_that_was_not_tried_says_why(self):
        results = study_fixture.study()
        results["results"][0]["points"][0]["smaller_images"] = {
            "tried": False, "text": "Smaller stored images were not tried: no room."}
        text = section(self.render(results), "verdict")
        self.assertIn("were not tried: no room", text)
        with open(self.dir / "s" / "verdict-gains.csv") as f:
            self.assertNotIn("and smaller images", f.read())

    def test_rendering_again_gives_the_same_bytes(self):
        first = self.render(study_fixture.study())
        self.assertEqual(self.render(study_fixture.study()), first)
        self.assertEqual([p.name for p in (self.dir / "s").glob("*.part")], [])

    def test_missing_experiments_are_said_to_be_missing(self):
        for names in (["baseline"], ["read", "files"], []):
            text = self.render(study_fixture.study(names))
            page = self.check_page(text)
            for name in study_fixture.EXPERIMENTS:
                self.assertIn(name, page.sections)
                said = "This experiment was not run" in section(text, name)
                self.assertEqual(said, name not in names)
        self.assertIn("No verdict", text)

    def test_a_failed_experiment_gives_its_reason(self):
        results = study_fixture.study()
        results["results"][3].update(finished=False, missing="<no> room & no \"time\"", points=[])
        text = self.render(results)
        self.check_page(text)
        self.assertIn("&lt;no&gt; room &amp; no &quot;time&quot;", section(text, "decode"))
        self.assertEqual(figures(section(text, "decode")), [])

    def test_warnings_are_shown(self):
        results = study_fixture.study(["read"])
        results["results"][0]["warnings"] = ["the cache <could> not be emptied"]
        self.assertIn("the cache &lt;could&gt; not be emptied", self.render(results))

    def test_origin_of_figures_is_labelled(self):
        text = self.render(study_fixture.study())
        self.assertIn("chip calibrated", section(text, "baseline"))
        self.assertIn("chip predicted", section(text, "overlap"))
        for name in ("baseline", "read", "overlap", "checkpoint", "phases"):
            part = re.sub(r"<(desc|pre|div class=\"beside\").*?</\\1>", "", section(text, name))
            for profile in ("hdd", "ssd", "optane", "lustre"):
                for label in re.findall(rf"[>\"][^<>\"]*\b{profile}\b[^<>\"]*[<\"]", part):
                    label = label.replace("optane →", "optane (emulated) →")  # → hdd (emulated)
                    self.assertIn(f"{profile} (emulated)", label, name)
        self.assertIn("hdd (emulated)", section(text, "baseline"))
        self.assertNotIn("chip predicted", section(text, "files"))

    def test_chips_say_what_the_points_are(self):
        chips = {"real": "measured here", "predicted": "predicted under", "calibrated": "calibrated to"}

        def of(text, name):
            return {c for c in chips if f"chip {c}" in section(text, name)}

        text = self.render(study_fixture.study())
        self.assertEqual(of(text, "baseline"), {"real", "calibrated"})
        self.assertEqual(of(text, "phases"), {"predicted"})
        self.assertEqual(of(text, "activity"), {"real", "predicted"})
        self.assertEqual(of(text, "files"), {"real"})
        results = study_fixture.study()
        for e in results["results"]:
            e["points"] = [p for p in e["points"] if p.get("emulated")]
        text = self.render(results)
        self.assertEqual(of(text, "baseline"), {"calibrated"})
        self.assertEqual(of(text, "checkpoint"), {"predicted"})

    def test_points_without_figures_do_no_harm(self):
        results = study_fixture.study()
        for e in results["results"]:
            e["points"] = [{k: None for k in p} for p in e["points"]]
        self.check_page(self.render(results))

    def test_hostile_values_do_no_harm(self):
        for value in ("<script>alert(1)</script>", -1, 0, 1e300, -1e300, [], {}, True, [[]], "\x01é"):
            results = study_fixture.study()
            for e in results["results"]:
                e["points"] = [{k: value for k in p} for p in e["points"]]
            text = self.render(results)
            self.check_page(text)
            self.assertNotIn("<script>alert", text)

    def test_results_of_odd_shape_do_no_harm(self):
        for results in ([], [1, "x", None], [{"experiment": 3}], [{"experiment": "read"}],
                        [{"experiment": "read", "points": 5}],
                        [{"experiment": "verdict", "points": [None, 1, []]}]):
            self.check_page(self.render({**study_fixture.study(), "results": results}))

    def test_json_names_the_page(self):
        study_fixture.write(self.dir / "s", study_fixture.study())
        done = run("report", self.dir / "s", "--json", "-")
        self.assert_status(done, 0)
        self.assertEqual(done.json["command"], "report")
        self.assertEqual(done.json["results"], [{"page": str(self.dir / "s/report.html")}])

    def method(self, text, name):
        return re.search(r"How it was measured</summary>(.*?)</details>", section(text, name), re.S)[1]

    def test_cache_proof_and_spread_are_told(self):
        results = study_fixture.study()
        text = self.render(results)
        said = self.method(text, "read")
        self.assertIn("8 points read cold, and proven so", said)
        self.assertIn("32 points on emulated devices", said)
        self.assertIn("40 points of 3 runs each", said)
        self.assertIn("at most 5.0% of", said)
        self.assertIn("21 points of 2 steps each; between the slowest and the fastest step of a "
                      "point lie at most 2.0% of", self.method(text, "overlap"))
        self.assertIn("2 points of 10 steps each; the middle half of a point's steps lies within "
                      "at most 10.1%", self.method(text, "phases"))
        self.assertIn("5 points of 2 checkpoints each", self.method(text, "checkpoint"))
        self.assertIn("3 points of one checkpoint: no spread is known",
                      self.method(text, "checkpoint"))
        self.assertIn("1 point of one run: no spread is known", self.method(text, "files"))
        self.assertIn("7 points of 3 steps each", self.method(text, "batch"))
        self.assertIn("ms an image, median of the steps", section(text, "batch"))
        self.assertIn("files read, cold</span>", text)
        self.assertIn("one run", section(text, "baseline"))
        self.assertIn("3, ±2.0%", section(text, "baseline"))
        self.assertIn('class="err"', section(text, "baseline"))
        for e in results["results"]:
            for p in e["points"]:
                if p.get("cold"):
                    p["cold"] = "unproven"
        text = self.render(results)
        self.assertIn("8 points read after eviction, but", self.method(text, "read"))
        self.assertNotIn("proven so", self.method(text, "read"))
        self.assertIn("files read, cold unproven</span>", text)
        self.assertIn("files read, cold unproven", run("report", self.dir / "s").out)

    def test_the_verdict_rests_on_medians(self):
        results = study_fixture.study(["verdict"])
        self.assertIn("Spread: the pipeline's rates are medians of several runs; how far these lie "
                      "apart was not kept.", self.method(self.render(results), "verdict"))
        for name in ("rounds", "runs"):
            results = study_fixture.study(["verdict"])
            results["results"][0]["points"][0][name] = 5
            self.assertIn("medians of 5 runs each;", self.method(self.render(results), "verdict"))

    def test_waiting_is_a_part_of_decoding(self):
        self.render(study_fixture.study(["decode"]))
        with open(self.dir / "s/decode-cpu.csv") as f:
            waits = [r for r in csv.reader(f) if r[0] == "waiting for storage or a core"]
        self.assertEqual(len(waits), 8)
        # 8 workers at 1,200 images/s hold an image for 6.67 ms, and 1.75 of these are CPU time
        self.assertTrue(any(abs(float(r[2]) - (8000 / 1200 - 1.75)) < 0.01 for r in waits), waits)

    def test_bars_of_the_workers_time_are_as_high_as_an_image_is_held(self):
        results = study_fixture.study(["decode"])
        held = {}
        for p in results["results"][0]["points"]:
            if p["threads"] > 2:  # workers that wait for a core: the clock counts that as decoding
                p["decode_s_per_image"] *= p["threads"] / 2
            if p["threads"] == 1:  # more CPU time than one worker has: the ring's
                p["cpu_s_per_image"] = 2 / p["images_per_s"]
            if p["storage"] == "disk":
                name = f"{p['engine']}, {p['threads']} thread{'s' if p['threads'] > 1 else ''}"
                held[name] = 1e3 * p["threads"] / p["images_per_s"]
        self.render(results)
        sums = dict.fromkeys(held, 0.0)
        with open(self.dir / "s/decode-cpu.csv") as f:
            for row in list(csv.reader(f))[1:]:
                sums[row[1]] += float(row[2])
                self.assertGreaterEqual(float(row[2]), 0)
        self.assertEqual(set(sums), set(held))
        for name in held:
            self.assertAlmostEqual(sums[name], held[name], 6, name)

    def test_a_stall_is_that_of_one_checkpoint(self):
        results = study_fixture.study(["checkpoint"])
        for p in results["results"][0]["points"]:
            if p["mode"] != "none":
                stall = p["stall_s"] / p["checkpoints"]
                p.update(checkpoints=5, stall_s=5 * stall, seconds=150 + 5 * stall)
        part = section(self.render(results), "checkpoint")
        self.assertIn("<td>sync</td><td class=\"text\">hdd (emulated)</td>"
                      "<td class=\"text\">-</td><td>5.40</td>", part)
        self.assertIn("stops training for 5.40 s, through a burst buffer for 1.41 s", part)
        self.assertIn("it stops training for 5.00 ms", part)
        study_fixture.write(self.dir / "b", study_fixture.study(["checkpoint"]))
        self.assert_status(run("report", self.dir / "s", self.dir / "b"), 0)
        self.assertIn("sync, hdd (emulated)</td><td class=\"\">+0.0%</td><td>5.40</td>"
                      "<td>5.40</td>",
                      section((self.dir / "b/compare.html").read_text(), "checkpoint"))

    def test_what_checkpoints_cost_says_on_which_storage(self):
        results = study_fixture.study(["checkpoint"])
        text = self.render(results)
        self.assertIn("<b>0 %</b><span>of a run lost to lazy checkpoints, this disk</span>", text)
        out = run("report", self.dir / "s").out
        self.assertRegex(out, r"checkpoints, sync +2\.0 %  \(this disk\)")
        self.assertRegex(out, r"checkpoints, lazy +0\.0 %  \(this disk\)")
        results["results"][0]["points"] = [p for p in results["results"][0]["points"]
                                           if p["storage"] != "disk"]
        text = self.render(results)
        self.assertIn("lazy checkpoints, optane (emulated)</span>", text)
        self.assertRegex(run("report", self.dir / "s").out,
                         r"checkpoints, sync +15\.3 %  \(hdd \(emulated\)\)")

    def test_activity_names_the_device_and_its_bursts(self):
        results = study_fixture.study(["activity"])
        part = section(self.render(results), "activity")
        self.assertIn("<figcaption>Activity of vda: prefetch 1</figcaption>", part)
        self.assertIn("prefetch 1 the device read in 100% of the samples, at most 30 MB/s", part)
        self.assertIn("prefetch 0 the device read in 20% of the samples, at most 60 MB/s", part)
        self.assertIn("read back", part)
        ticks = [[e.text for e in xml.etree.ElementTree.fromstring(f).iter("text")
                  if e.get("text-anchor") == "end"] for f in figures(part)]
        self.assertEqual(ticks[0], ticks[1])
        self.assertNotEqual(ticks[0], ticks[2])
        for p in results["results"][0]["points"]:
            p["block_device"] = None
        self.assertIn("Activity of all disks (which one holds the data is not known): prefetch 1",
                      section(self.render(results), "activity"))

    def test_numbers_and_words_read_as_people_write_them(self):
        results = study_fixture.study()
        for e in results["results"]:
            for p in e["points"]:
                if p.get("mode") == "lazy":
                    p.update(stall_s=5e-5, share=1.7e-6)
        text = self.render(results)
        self.assertNotRegex(text, r">[0-9.]+e-?[0-9]+<")
        self.assertIn("<td>&lt;0.001</td><td>&lt;0.001</td>", section(text, "checkpoint"))
        self.assertIn("latency, median µs", section(text, "baseline"))
        self.assertIn('"text">random, ImageNet&#39;s sizes</td>', section(text, "baseline"))
        self.assertNotIn("random-imagenet", section(text, "baseline"))
        self.assertIn("file size up to, KiB", section(text, "files"))
        self.assertIn(">128</text>", section(text, "files"))

    def test_no_verdict_is_not_a_good_one(self):
        css = (pathlib.Path(__file__).parent.parent.parent / "src/report/page.css").read_text()
        self.assertIn(".verdict{border-left:5px solid var(--line)}", css)
        self.assertIn(".verdict.fine{border-left-color:var(--good)}", css)
        self.assertIn('class="verdict "', self.render(study_fixture.study([])))

    def here(self, text, name):
        return re.search(r"<h3>Here</h3>(.*?)</div></div>", section(text, name), re.S)[1]

    def test_each_finding_of_the_studies_has_one_beside_it(self):
        text = self.render(study_fixture.study())
        self.assertNotIn("See the figures above", text)
        self.assertIn("(4 of 4) come within 0.0%", self.here(text, "baseline"))
        self.assertIn("2,500 / 1,750 MB/s (read / write) in order, 2,600",
                      self.here(text, "baseline"))
        self.assertIn("lustre (emulated) 7.80", self.here(text, "read"))
        self.assertIn("reaches", self.here(text, "decode"))
        self.assertIn("more than 0.3% longer", self.here(text, "overlap"))
        self.assertIn("Without prefetch a step is up to 33.3% longer (hdd (emulated), 1 thread)",
                      self.here(text, "overlap"))
        self.assertIn("2.20 times as long", self.here(text, "phases"))
        self.assertIn("requests of 113 KB, 31 under way on average, and was busy 98%",
                      self.here(text, "files"))
        self.assertRegex(self.here(text, "files"),
                         "[0-9]+% of the files have more than 32 and at most 128 KiB")

    def test_input_that_costs_nothing_is_not_called_negative(self):
        results = study_fixture.study(["overlap"])
        for p in results["results"][0]["points"]:
            p["step_s"] = 1.5 if p["synthetic"] else 1.4999
        said = self.here(self.render(results), "overlap")
        self.assertIn("no step is longer than without any input", said)
        self.assertIn("up to 0.0% longer", said)
        self.assertNotIn("-0", said)

    def test_threads_of_the_ring_and_short_runs_are_explained(self):
        results = study_fixture.study()
        for e in results["results"]:
            for p in e["points"]:
                if e["experiment"] == "checkpoint":
                    p["steps"] = 3
        self.assertIn("computed from runs of 2 to 3 steps",
                      section(self.render(study_fixture.study()), "checkpoint"))
        text = self.render(results)
        for name in ("read", "decode"):
            self.assertIn("threads (uring: 4 reads under way for each)", section(text, name))
            self.assertIn("Images drawn in a run: 1,600.", self.method(text, name))
        self.assertIn("one checkpoint, computed from runs of 3 steps", section(text, "checkpoint"))
        self.assertIn("Steps of a run: 3.", self.method(text, "checkpoint"))

    def test_the_table_of_checkpoints_compares_runs_of_any_length(self):
        """One of two steps and two checkpoints takes less time than one of three steps and none."""
        part = section(self.render(study_fixture.study()), "checkpoint")
        self.assertIn("<th>20 steps and one checkpoint, s</th>", part)
        self.assertNotIn("whole run", part)
        rows = re.findall(r"<tr><td>(\w+)</td><td class=\"text\">([^<]*)</td>.*?<td>([^<]*)</td></tr>",
                          part[:part.index("</table>")])
        took = {(mode, to): float(s) for mode, to, s in rows}
        self.assertEqual(took["none", "-"], 30)
        self.assertEqual(took["sync", "hdd (emulated)"], 35.4)
        self.assertEqual(min(took.values()), took["none", "-"])

    def test_share_of_the_baseline_is_told_for_each_storage(self):
        results = study_fixture.study(["read"])
        for p in results["results"][0]["points"]:
            if p["storage"] == "lustre":
                p["baseline_share"] = None
        part = section(self.render(results), "read")
        rows = re.findall(r"<tr><td>([^<]*)</td><td[^>]*>([^<]*)</td><td>([^<]*)</td>"
                          r"<td>([^<]*)</td></tr>",
                          part[part.index("of the baseline reached"):])
        self.assertEqual([r[0] for r in rows], ["this disk", "hdd (emulated)", "ssd (emulated)",
                                                "optane (emulated)", "lustre (emulated)"])
        self.assertEqual(rows[1], ("hdd (emulated)", "uring, 8 threads", "32.4", "20"))
        self.assertEqual(rows[4][3], "no baseline")

    def test_a_baseline_that_is_exceeded_is_not_called_a_limit(self):
        results = study_fixture.study(["read"])
        for p in results["results"][0]["points"]:
            if p["storage"] == "disk":
                p["baseline_share"] = p["mb_per_s"] / 1000
        text = self.render(results)
        part = section(text, "read")
        self.assertIn("<td>2,988</td><td>more than the baseline</td>", part)
        self.assertNotRegex(part, r"<td>29[0-9]</td>|29[0-9]%")
        self.assertIn("reads 2,988 MB/s, more than the 1,000 of the baseline at random with "
                      "ImageNet&#39;s sizes: that was not the device&#39;s limit",
                      self.here(text, "read"))

    def test_the_rates_behind_the_sizing_are_told(self):
        self.assertIn("The storage delivered 23,000 files/s (2,400 MB/s) without decoding; 2 cores "
                      "decode 1,210 images/s.",
                      section(self.render(study_fixture.study()), "verdict"))

    def test_summary_is_printed(self):
        study_fixture.write(self.dir / "s", study_fixture.study())
        done = run("report", self.dir / "s")
        self.assertIn("Decoding limits", done.out)
        self.assertIn("sequential read", done.out)
        self.assertIn("Use --engine uring: 5% more images/s are predicted. Predicted for --engine "
                      "uring: 1270 images/s, measured: 1240.\n", done.out)
        self.assertIn("of 375) Predicted for smaller images: 2400 images/s, measured: 2350.\n", done.out)
        self.assertRegex(done.out, r"Report: .*/s/report\.html\n$")


def record_fields():
    """Fields of each record of src/result/points.h: {"overlap_point": {"storage", ...}, ...}."""
    text = (pathlib.Path(__file__).parent.parent.parent / "src/result/points.h").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", " ")
    macros = dict(re.findall(r"#define (MR_\w+)\(F\)(.*)", text))

    def expand(body):
        inner = (expand(macros[m]) for m in re.findall(r"(MR_\w+)\(F\)", body))
        return set(re.findall(r"F\(\w+, (\w+)\)", body)).union(*inner)
    return {name[len("MR_FIELDS_"):]: expand(body) for name, body in macros.items()
            if name.startswith("MR_FIELDS_")}


class MadeUp(unittest.TestCase):
    def test_points_have_fields_that_a_study_writes(self):
        """test_study_few compares them with measured ones, but for checkpoints, which would write
        gigabytes."""
        fields = record_fields()
        for name, make in study_fixture.MAKERS.items():
            for p in make(1):
                self.assertLessEqual(set(p), fields[f"{name}_point"])
        for p in study_fixture.checkpoint(1):
            self.assertEqual(set(p), fields["checkpoint_point"])

    def test_the_documentation_names_every_field(self):
        page = (pathlib.Path(__file__).parent.parent.parent / "docs/json.md").read_text()
        fields = record_fields()
        self.assertGreater(len(fields), 20)
        for record in set(fields) - {"medians"}:  # read where it is there, never written
            missing = {f for f in fields[record] if not re.search(rf"\b{f}\b", page)}
            self.assertEqual(missing, set(), record)


class TwoStudies(ReportCase):
    def setUp(self):
        super().setUp()
        self.a = study_fixture.write(self.dir / "a", study_fixture.study())
        self.b = study_fixture.write(self.dir / "b", study_fixture.study(speed=1.5))

    def compare(self):
        done = run("report", self.a, self.b)
        self.assert_status(done, 0)
        self.assertIn("Comparison: ", done.out)
        return (self.b / "compare.html").read_text()

    def test_differences_are_marked_and_noise_is_not(self):
        text = self.compare()
        self.check_page(text)
        for figure in figures(text):
            self.check_figure(figure)
        self.assertIn("this disk, threads engine, 8 threads</td>"
                      '<td class="better">+50.0% ▲ better</td>', section(text, "read"))
        self.assertIn('class="better">-33.3% ▼ better<', section(text, "batch"))
        self.assertIn("<td>5.0%, 5.0%</td>", section(text, "read"))
        self.assertNotRegex(section(text, "overlap"), "better|worse")

    def test_points_of_one_run_are_not_marked(self):
        results = study_fixture.study(speed=1.5)
        for e in results["results"]:
            for p in e["points"]:
                for name in ("runs", "each_s_per_image"):
                    if name in p:
                        p[name] = p[name][:1]
        study_fixture.write(self.b, results)
        text = self.compare()
        self.assertIn("this disk, threads engine, 8 threads</td><td class=\"\">+50.0%</td>",
                      section(text, "read"))
        self.assertIn("<td>one run</td>", section(text, "read"))
        for name in ("read", "decode", "batch", "verdict", "files"):
            self.assertNotRegex(section(text, name), 'class="[^"]*(better|worse|differs)')

    def test_what_was_nothing_and_is_something_is_marked(self):
        def lazy(study, stall):
            for e in study["results"]:
                for p in e["points"]:
                    if p.get("mode") == "lazy":
                        p["stall_s"] = stall
            return study

        row = r'lazy, this disk</td><td class="(\w*)">([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td>'
        for a, b, said in ((0, 3.0, ("worse", "from 0 ▲ worse", "0", "3")),
                           (3.0, 0, ("better", "-100.0% ▼ better", "3", "0")),
                           (0, 0.004, ("", "from 0", "0", "0.00400"))):
            study_fixture.write(self.a, lazy(study_fixture.study(), a))
            study_fixture.write(self.b, lazy(study_fixture.study(), b))
            text = self.compare()
            self.assertEqual(re.search(row, section(text, "checkpoint")).groups(), said)

    def marks(self, change):
        """The words that mark each row, by section, after `change` of every point of B."""
        results = study_fixture.study()
        for e in results["results"]:
            for p in e["points"]:
                change(e["experiment"], p)
        study_fixture.write(self.a, study_fixture.study())
        study_fixture.write(self.b, results)
        text = self.compare()
        row = r"<tr><td>([^<]*)</td><td class=\"(|better|worse|differs)\">"
        return {name: dict(re.findall(row, section(text, name)))
                for name in ("verdict", "overlap", "activity", "checkpoint", "phases")}

    def test_what_is_many_times_worse_is_marked_in_every_experiment(self):
        times = {"overlap": ("step_s", 4), "checkpoint": ("stall_s", 10),
                 "phases": ("read_share_of_train", 8), "activity": ("read_mb_per_s", 4),
                 "verdict": ("fetch_s", 4)}

        def change(experiment, p):
            field, by = times.get(experiment, (None, 1))
            for name in (field, f"each_{field}", "each_read_share"):
                if isinstance(p.get(name), list):
                    p[name] = [by * x for x in p[name]]
                elif name in p:
                    p[name] *= by

        marks = self.marks(change)
        self.assertEqual(set(marks["overlap"].values()), {"worse"})
        self.assertEqual(set(marks["phases"].values()), {"worse"})
        self.assertEqual(set(marks["activity"].values()), {"differs"})
        self.assertEqual({way for way, mark in marks["checkpoint"].items() if mark != "worse"},
                         {"lazy, optane (emulated), then hdd (emulated)", "lazy, this disk"},
                         "50 ms in 20 steps are nothing")
        self.assertEqual({what for what, mark in marks["verdict"].items() if mark},
                         {"fetch, s a step"})
        self.assertIn("<th>spread of steps</th>", section(self.compare(), "overlap"))
        self.assertIn("<th>spread of checkpoints</th>", section(self.compare(), "checkpoint"))

    def test_what_lies_within_the_spread_is_not_marked(self):
        def change(experiment, p):
            if experiment == "overlap":
                p["each_step_s"] = [x * p["step_s"] for x in (0.8, 1.2)]
                p["step_s"] *= 1.3
            elif experiment == "checkpoint":
                p["each_stall_s"] = [x * y for x, y in zip((0.6, 1.4), p["each_stall_s"])]
                p["stall_s"] *= 1.7
            elif experiment == "phases":
                p["read_share_of_train"] *= 1.08
            elif experiment == "activity":
                p["read_mb_per_s"] = [1.4 * x for x in p["read_mb_per_s"]]
            elif experiment == "verdict":
                p["rates"]["cold"] *= 1.049
                p["control"], p["decode_s"] = 0.7, p["decode_s"] * 1.2

        for name, rows in self.marks(change).items():
            self.assertTrue(rows, name)
            self.assertEqual(set(rows.values()), {""}, (name, rows))

    def test_one_checkpoint_has_no_spread_and_what_has_none_must_be_three_times(self):
        for by, mark in ((2.9, ""), (3.1, "worse"), (1 / 2.9, ""), (1 / 3.1, "better")):
            def change(experiment, p):
                if p.get("mode") == "burst":
                    p["stall_s"] *= by
            rows = self.marks(change)["checkpoint"]
            self.assertEqual(rows["burst, optane (emulated), then hdd (emulated)"], mark, by)
        self.assertIn("<td>one checkpoint</td>", section(self.compare(), "checkpoint"))

    def test_a_study_that_did_not_keep_its_steps_has_no_spread(self):
        rows = self.marks(lambda experiment, p: p.pop("each_step_s", None))["overlap"]
        self.assertEqual(set(rows.values()), {""})
        self.assertIn("<td>not known</td>", section(self.compare(), "overlap"))

    def test_everything_is_compared(self):
        text = self.compare()
        self.assertIn("delivers 1210 images/s", section(text, "verdict"))
        self.assertIn("delivers 1815 images/s", section(text, "verdict"))
        self.assertIn("fetch, s a step", section(text, "verdict"))
        self.assertIn("images/s delivered, cold</td><td class=\"better\">+50.0% ▲ better</td>"
                      "<td>1,210</td><td>1,815</td><td>5.0%, 5.0%</td>", section(text, "verdict"))
        self.assertIn("fetch, s a step</td><td class=\"\">+0.0%</td><td>0.020</td><td>0.020</td>"
                      "<td>medians of several runs</td>", section(text, "verdict"))
        self.assertIn("resnet50-v100 fed</td><td class=\"\">+66.7%</td><td>3</td><td>5</td>"
                      "<td>medians of several runs</td>", section(text, "verdict"))
        self.assertIn("hdd (emulated), in order</td><td class=\"\">+0.0%</td><td>133</td>",
                      section(text, "baseline-written"))
        self.assertIn("median file, KiB at most</td><td class=\"\">+0.0%</td><td>128</td>",
                      section(text, "files"))
        self.assertIn("KB a request</td>", section(text, "files"))
        self.assertEqual(section(text, "verdict").count("Store the images smaller"), 2)
        self.assertIn("hdd (emulated), shuffle global", section(text, "phases"))
        self.assertIn("prefetch 1, this disk", section(text, "activity"))
        self.assertIn("checkpoints to a burst buffer", section(text, "activity-written"))
        machine = section(text, "machine")
        self.assertIn('<td>cpu</td><td class="text">made up</td><td class="text">made up</td>', machine)
        self.assertIn('<td>memory bytes</td><td class="text differs">8,000,000,000</td>'
                      '<td class="text differs">12,000,000,000</td>', machine)

    def test_each_plot_has_its_csv(self):
        (self.b / "read.csv").write_text("mine")
        for figure in figures(self.compare()):
            name = self.check_figure(figure)
            self.assertTrue(name.startswith("compare-"))
            with open(self.b / f"{name}.csv") as f:
                rows = list(csv.reader(f))
            self.assertGreater(len(rows), 1, name)
        self.assertEqual((self.b / "read.csv").read_text(), "mine")

    def test_points_of_one_study_are_listed(self):
        results = study_fixture.study(speed=1.5)
        for e in results["results"]:
            if e["experiment"] == "read":
                e["points"] = [p for p in e["points"] if p["storage"] != "lustre"]
                e["points"].append({**e["points"][0], "threads": 16})
        results["environment"] = {"cpu": "another", "gpu": {"n": 2}}
        study_fixture.write(self.b, results)
        text = self.compare()
        self.check_page(text)
        said = re.findall(r'<p class="only">(.*?)</p>', section(text, "read"))
        self.assertEqual(len(said), 2)
        self.assertIn(f"Only in {self.a}: lustre (emulated), threads engine, 1 thread; ", said[0])
        self.assertEqual(said[1], f"Only in {self.b}: this disk, threads engine, 16 threads.")
        self.assertEqual(re.findall(r'<p class="only">', section(text, "decode")), [])
        self.assertIn('<td>gpu, n</td><td class="text differs">-</td><td class="text differs">2</td>',
                      section(text, "machine"))

    def test_emulated_storages_are_called_so(self):
        text = self.compare()
        self.assertIn("hdd (emulated), in order", section(text, "baseline"))
        self.assertIn(f'<h3 class="name">{self.a}</h3>', section(text, "verdict"))
        self.assertIn("burst, optane (emulated), then hdd (emulated)", section(text, "checkpoint"))

    def test_a_study_beside_itself_has_no_differences(self):
        study_fixture.write(self.b, study_fixture.study())
        self.assertNotRegex(self.compare(), 'class="[^"]*(better|worse|differs)')

    def test_what_only_one_has_is_missing(self):
        study_fixture.write(self.b, study_fixture.study(["baseline"]))
        text = self.compare()
        self.check_page(text)
        self.assertIn("chip missing", section(text, "read"))
        self.assertNotIn("chip missing", section(text, "baseline"))

    def of_other_data(self, **change):
        """What is said about two studies, the second of which is of such data: the warning."""
        results = study_fixture.study()
        results["data"].update(change)
        results["data"] = {k: v for k, v in results["data"].items() if v != "absent"}
        study_fixture.write(self.b, results)
        done = run("report", self.a, self.b, "--json", self.dir / "json")
        self.assert_status(done, 0)
        page = (self.b / "compare.html").read_text()
        self.check_page(page)
        said, = json.loads((self.dir / "json").read_text())["results"]
        text = said.get("warning", "")
        self.assertEqual(done.err, f"warning: {text}\n" if text else "")
        self.assertEqual("different data sets" in page, bool(text))
        self.assertIn(f'<p class="warn">{html.escape(text, quote=False)}' if text else "", page)
        return text

    def test_different_data_sets_are_warned_of(self):
        self.assertEqual(self.of_other_data(), "")
        self.assertEqual(self.of_other_data(path="elsewhere/data", generated=False), "")
        self.assertEqual(
            self.of_other_data(images=96, path="my <photos>", file_bytes=13000),
            "The studies are of different data sets: 2,048 images of 110 KB in "
            "millrace-study/data, and 96 images of 13 KB in my <photos>. What differs may be the "
            "data, not the machine or its storage.")
        self.assertIn("different", self.of_other_data(classes=3))
        self.assertIn("different", self.of_other_data(file_bytes=110001.5))
        many = study_fixture.study()
        many["data"]["images"] = 1281167
        study_fixture.write(self.a, many)
        self.assertEqual(self.of_other_data(images=1281167, file_bytes=111000.0), "")
        self.assertIn("different", self.of_other_data(images=1281167, file_bytes=114000.0))

    def test_data_of_which_only_the_place_is_known(self):
        known = study_fixture.study()
        del known["data"]["file_bytes"]
        study_fixture.write(self.a, known)
        self.assertEqual(self.of_other_data(path="elsewhere"), "")  # made by the same program
        self.assertIn("2,048 images in elsewhere. What",
                      self.of_other_data(path="elsewhere", generated=False, file_bytes="absent"))
        study_fixture.write(self.a, {**known, "data": {}})
        self.assertEqual(self.of_other_data(path="elsewhere"), "")

    def test_names_of_folders_are_escaped(self):
        odd = study_fixture.write(self.dir / "<b>&'\"", study_fixture.study())
        self.assert_status(run("report", odd, self.b), 0)
        text = (self.b / "compare.html").read_text()
        self.check_page(text)
        self.assertIn("&lt;b&gt;&amp;&#39;&quot;", text)

    def test_json_names_the_page(self):
        done = run("report", self.a, self.b, "--json", "-")
        self.assert_status(done, 0)
        self.assertEqual(done.json["results"], [{"page": str(self.b / "compare.html")}])


class Errors(TempDirCase):
    def refused(self, *args, status=1, **more):
        done = run("report", *args, **more)
        self.assert_status(done, status)
        self.assertNotIn("Report:", done.out)
        self.assertEqual(list(self.dir.rglob("*.part")), [])
        return done.err

    def test_folder_without_a_study(self):
        self.assertIn("No such file", self.refused(self.dir / "none"))
        said = self.refused(self.dir)
        self.assertIn("results.json", said)
        self.assertIn("millrace study", said)

    def test_not_json(self):
        for text in ("", "garbage", "5", "{\"command\": \"study\"", "\x00\xff"):
            (self.dir / "results.json").write_bytes(text.encode("latin-1"))
            self.assertIn("results.json is not JSON", self.refused(self.dir))

    def test_json_of_something_else(self):
        for value in ([], {}, {"command": "bench", "results": []}, {"command": "study"},
                      {"command": "study", "results": 7}, {"command": "study", "results": {}}):
            (self.dir / "results.json").write_text(json.dumps(value))
            self.assertIn("not the results of a study", self.refused(self.dir))
            self.assertFalse((self.dir / "report.html").exists())

    def test_the_second_study_is_bad(self):
        study_fixture.write(self.dir / "a", study_fixture.study())
        (self.dir / "b").mkdir()
        self.assertIn("b/results.json", self.refused(self.dir / "a", self.dir / "b"))
        (self.dir / "b/results.json").write_text("[]")
        self.assertIn("not the results", self.refused(self.dir / "a", self.dir / "b"))

    def test_results_that_are_a_folder(self):
        (self.dir / "results.json").mkdir()
        self.assertIn("results.json", self.refused(self.dir))

    @unittest.skipUnless(is_root(), "needs root to become somebody else")
    def test_folder_that_cannot_be_written(self):
        study_fixture.write(self.dir / "s", study_fixture.study())
        os.chmod(self.dir / "s", 0o555)
        said = self.refused(self.dir / "s", stranger=True)
        self.assertIn("Permission denied", said)
        self.assertIn(str(self.dir / "s"), said)

    def test_number_of_folders(self):
        for args in ([], ["a", "b", "c"]):
            self.assertNotEqual(self.refused(*args, status=2), "")

    def test_page_appears_whole_or_not_at_all(self):
        study_fixture.write(self.dir / "s", study_fixture.study())
        pathlib.Path(self.dir / "s/report.html").mkdir()
        self.assertIn("report.html", self.refused(self.dir / "s"))


if __name__ == "__main__":
    system_kit.main()
