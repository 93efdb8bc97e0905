"""test_report_page.py - the report in a browser, as its readers meet it; SKIP without Chromium, but
where .ci/run says that it can be had (MILLRACE_BROWSER=required) its absence is a failure.

MILLRACE_SCREENSHOTS=FOLDER keeps what was seen."""
import os
import pathlib
import shutil
import struct
import tempfile
import unittest

import chromium
import study_fixture
import system_kit
from system_kit import run

WIDTHS = (390, 820, 1280)
PLOTS = """
Array.from(document.querySelectorAll("figure.plot")).map(f => ({
  id: f.id,
  marks: Array.from(f.querySelectorAll(".series rect, .series circle, .series path"))
    .filter(m => m.getBBox().width + m.getBBox().height > 0).length,
  empty: Array.from(f.querySelectorAll(".series")).filter(g => !g.childElementCount).length,
  labels: Array.from(f.querySelectorAll("text.label")).map(t => t.textContent),
  ticks: f.querySelectorAll("text.tick").length,
  keys: f.querySelectorAll(".legend .key").length,
  series: f.querySelectorAll(".series").length,
  rows: f.querySelectorAll("details td").length,
  outside: Array.from(f.querySelectorAll("text")).filter(t => {
    const a = t.getBoundingClientRect(), b = f.querySelector("svg").getBoundingClientRect();
    return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 3;
  }).map(t => t.textContent),
  overlapping: (() => {
    const boxes = Array.from(f.querySelectorAll("text:not([transform])"))
      .map(t => [t.textContent, t.getBoundingClientRect()]);
    return boxes.flatMap(([s, a], i) => boxes.slice(i + 1)
      .filter(([u, b]) => a.left < b.right - 1 && b.left < a.right - 1 &&
              a.top < b.bottom - 3 && b.top < a.bottom - 3).map(([u]) => s + " / " + u));
  })(),
}))"""


may_be_absent = os.environ.get("MILLRACE_BROWSER") != "required"
needs_browser = unittest.skipIf(may_be_absent and not chromium.program(), "chromium is not installed")


def middle_of(selector):
    """Scroll there; once the page has been drawn again, the place on the screen."""
    return f"""(() => {{ const e = document.querySelector('{selector}');
        e.scrollIntoView({{block: "center", behavior: "instant"}});
        const frame = () => new Promise(requestAnimationFrame);
        return frame().then(frame).then(() => {{ const r = e.getBoundingClientRect();
            return [r.left + r.width / 2, r.top + r.height / 2]; }}); }})()"""


@needs_browser
class PageOfAStudy(unittest.TestCase):
    """Not made up: measured just before."""

    def test_what_a_study_writes_can_be_read(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        done = run("generate", "--count", 64, "--classes", 4, "--out", folder / "set")
        self.assertEqual(done.status, 0, done)
        for out in ("a", "b"):
            done = run("study", "--data", folder / "set", "--out", folder / out, "--runs", 2,
                       "--only", "read,batch,files" if out == "a" else "batch,files", timeout=240)
            self.assertEqual(done.status, 0, done)
        self.assertEqual(run("report", folder / "a", folder / "b").status, 0)
        browser = chromium.Browser()
        self.addCleanup(browser.close)
        for page, wanted in ((folder / "a/report.html", {"plot-read", "plot-batch", "plot-files"}),
                             (folder / "b/compare.html", {"plot-compare-batch"})):
            for width in WIDTHS:
                browser.open(page, width)
                self.assertEqual(browser.complaints(), [])
                self.assertEqual([u for u in browser.requests() if not u.startswith("data:")],
                                 [f"file://{page}"])
                plots = {p["id"]: p for p in browser.evaluate(PLOTS)}
                self.assertEqual(set(plots), wanted)
                for p in plots.values():
                    self.assertGreater(p["marks"], 0, p)
                    self.assertTrue(p["labels"] and all(p["labels"]), p)
                    self.assertEqual((p["empty"], p["overlapping"], p["outside"]), (0, [], []), p)
                    self.assertEqual(p["keys"], p["series"], p)


@needs_browser
class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        a = study_fixture.write(cls.dir / "a", study_fixture.study())
        b = study_fixture.write(cls.dir / "b", study_fixture.study(speed=1.5))
        for args in ([a], [a, b]):
            done = run("report", *args)
            assert done.status == 0, done
        cls.pages = {"report": a / "report.html", "compare": b / "compare.html"}
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self, page="report", width=1280):
        self.browser.scheme("light")
        self.browser.open(self.pages[page], width)

    def background(self):
        return self.browser.evaluate("getComputedStyle(document.body).backgroundColor")

    def keep(self, name):
        png = self.browser.screenshot()
        folder = os.environ.get("MILLRACE_SCREENSHOTS")
        if folder:
            pathlib.Path(folder, f"{name}.png").write_bytes(png)
        return png

    def test_pages_load_alone_and_without_complaint(self):
        for name, path in self.pages.items():
            self.open(name)
            self.assertEqual(self.browser.complaints(), [])
            self.assertEqual([u for u in self.browser.requests() if not u.startswith("data:")],
                             [f"file://{path}"])
            self.assertEqual(self.browser.evaluate("document.querySelectorAll('h1').length"), 1)

    def test_plots_have_marks_labels_and_legend_and_nothing_overlaps(self):
        for name in self.pages:
            for width in WIDTHS:
                self.open(name, width)
                plots = self.browser.evaluate(PLOTS)
                self.assertGreaterEqual(len(plots), 5)
                for p in plots:
                    with self.subTest(page=name, width=width, plot=p["id"]):
                        self.assertGreater(p["marks"], 0)
                        self.assertEqual(p["empty"], 0)
                        self.assertTrue(p["labels"] and all(p["labels"]))
                        self.assertGreater(p["ticks"], 2)
                        self.assertEqual(p["keys"], p["series"])
                        self.assertEqual(p["overlapping"], [])
                        self.assertEqual(p["outside"], [])

    def test_nothing_is_wider_than_the_window(self):
        for name in self.pages:
            for width in WIDTHS:
                self.open(name, width)
                self.assertLessEqual(
                    self.browser.evaluate("document.documentElement.scrollWidth"), width)
                png = self.keep(f"{name}-{width}")
                self.assertEqual(struct.unpack(">II", png[16:24]), (width, 900))

    def test_the_bar_of_links_fits_on_a_laptop(self):
        for name in self.pages:
            self.open(name, 1280)
            beyond = self.browser.evaluate(
                "(n => n.scrollWidth - n.clientWidth)(document.querySelector('.bar nav'))")
            self.assertEqual(beyond, 0, name)

    def test_the_first_column_stays_when_a_table_is_scrolled_on_a_phone(self):
        self.open("report", 390)
        moved = self.browser.evaluate("""(() => {
            const box = document.querySelector("#baseline .scroll:has(table)");
            const before = box.querySelector("td").getBoundingClientRect().left;
            box.scrollLeft = 80;
            return [box.scrollLeft, box.querySelector("td").getBoundingClientRect().left - before];
            })()""")
        self.assertEqual(moved, [80, 0])

    def test_printing_opens_what_is_folded_and_closes_it_again(self):
        self.open()
        n = self.browser.evaluate("document.querySelectorAll('details:not([open])').length")
        self.assertGreater(n, 10)
        long = self.browser.evaluate("Array.from(document.querySelectorAll('details')).filter("
                                     "d => d.querySelectorAll('tr').length > 60).length")
        self.assertLess(long, 6)
        for event, left in (("beforeprint", long), ("afterprint", n)):
            self.browser.evaluate(f"window.dispatchEvent(new Event('{event}'))")
            self.assertEqual(self.browser.evaluate(
                "document.querySelectorAll('details:not([open])').length"), left, event)

    def test_hovering_shows_the_value(self):
        self.open()
        for selector in (".bars rect", ".line circle", "#plot-activity-1 .hit:nth-of-type(150)",
                         ".spans rect"):
            x, y = self.browser.evaluate(middle_of(selector))
            self.browser.mouse("mouseMoved", x, y)
            tip = self.browser.evaluate("(t => [t.style.display, t.textContent])"
                                        "(document.querySelector('.tip'))")
            self.assertEqual(tip[0], "block", selector)
            self.assertRegex(tip[1], r": .*[0-9] \S", selector)
        self.browser.mouse("mouseMoved", 2, 450)
        self.assertEqual(self.browser.evaluate("document.querySelector('.tip').style.display"),
                         "none")

    def test_a_tap_shows_the_value(self):
        self.open(width=390)
        x, y = self.browser.evaluate(middle_of("#plot-read .line circle"))
        self.browser.call("Input.dispatchTouchEvent", type="touchStart",
                          touchPoints=[{"x": x, "y": y}])
        self.browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        tip = self.browser.evaluate("(t => [t.style.display, t.textContent])"
                                    "(document.querySelector('.tip'))")
        self.assertEqual(tip[0], "block")
        self.assertIn("images/s", tip[1])

    def test_dark_by_preference_and_by_button(self):
        self.open()
        light = self.background()
        self.browser.scheme("dark")
        dark = self.background()
        self.assertNotEqual(light, dark)
        self.keep("report-dark")
        x, y = self.browser.evaluate(middle_of(".theme"))
        self.browser.click(x, y)
        self.assertEqual(self.background(), light)
        self.browser.click(x, y)
        self.assertEqual(self.background(), dark)

    def test_print_is_dark_on_white_whatever_the_screen_is(self):
        colours = """["--bg", "--card", "--ink", "--soft", "--s0", "--s3", "--good"].map(
            c => getComputedStyle(document.documentElement).getPropertyValue(c))"""
        self.open()
        self.browser.scheme("light", "print")
        light = self.browser.evaluate(colours)
        self.assertEqual(self.background(), "rgb(255, 255, 255)")
        for preference, chosen in (("dark", None), ("light", "dark"), ("dark", "dark")):
            self.open()
            if chosen:
                self.browser.evaluate(f"document.documentElement.dataset.theme = '{chosen}'")
            self.browser.scheme(preference)
            self.assertNotEqual(self.background(), "rgb(255, 255, 255)")
            self.browser.scheme(preference, "print")
            self.assertEqual(self.background(), "rgb(255, 255, 255)", (preference, chosen))
            self.assertEqual(self.browser.evaluate(colours), light, (preference, chosen))

    def test_legend_switches_series(self):
        self.open()
        shown = "getComputedStyle(document.querySelector('#plot-read .series')).display"
        x, y = self.browser.evaluate(middle_of("#plot-read .key"))
        self.browser.click(x, y)
        self.assertEqual(self.browser.evaluate(shown), "none")
        self.browser.click(x, y)
        self.assertNotEqual(self.browser.evaluate(shown), "none")

    def test_dragging_looks_closer_and_double_click_goes_back(self):
        self.open()
        view = "document.querySelector('svg.zoom').getAttribute('viewBox')"
        ticks = "document.querySelector('figure:has(svg.zoom) .xticks').textContent"
        before = self.browser.evaluate(view), self.browser.evaluate(ticks)
        x, y = self.browser.evaluate(middle_of("svg.zoom"))
        self.browser.mouse("mousePressed", x - 60, y)
        self.browser.mouse("mouseMoved", x + 60, y)
        self.browser.mouse("mouseReleased", x + 60, y)
        self.assertNotEqual(self.browser.evaluate(view), before[0])
        self.assertNotEqual(self.browser.evaluate(ticks), before[1])
        self.browser.evaluate("document.querySelector('svg.zoom').dispatchEvent("
                              "new MouseEvent('dblclick', {bubbles: true}))")
        after = [float(v) for v in self.browser.evaluate(view).split()]
        self.assertEqual(after, [float(v) for v in before[0].split()])
        self.assertEqual(self.browser.complaints(), [])


if __name__ == "__main__":
    system_kit.main()
