"""study_kit.py - what the tests of `millrace study` share: a set of small photos, and looks at what a
study wrote and left."""
import json
import os
import pathlib
import re
import shlex
import shutil
import tempfile
import unittest

import system_kit
from system_kit import TempDirCase, run

_LIST = pathlib.Path(__file__).parent.parent.parent / "src/result/experiments.h"
EXPERIMENTS = re.findall(r"^ +ROW\((\w+)\)", _LIST.read_text(), re.M)  # in the order they run
LONG_S = 10 * system_kit.TIMEOUT_S  # several experiments on a busy machine; more is a hang
_photos = None


def setUpModule():
    global _photos
    _photos = pathlib.Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, _photos)
    _photos.chmod(0o755)
    done = run("generate", "--count", 96, "--classes", 4, "--out", _photos / "set")
    assert done.status == 0, done


def scratch_folders(*places):
    return [p for place in places for p in pathlib.Path(place).rglob(".millrace-scratch-*")]


def children_of(pid):
    """Processes that this one has started and that are not through."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if fields[0] != "Z" and int(fields[1]) == pid:
            found.append(stat.parent.name)
    return found


class StudyCase(TempDirCase):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "out"
        self.photos = _photos
        self.data = _photos / "set"
        self.names = sorted(p.name for p in self.data.iterdir())
        self.addCleanup(self.check_nothing_is_left)

    def check_commands(self, folder):
        """What is said to do the same by hand is taken by the program: nothing is refused before an
        option that does not exist."""
        path = folder / "results.json"
        for result in json.loads(path.read_text())["results"] if path.exists() else []:
            for command in result.get("commands", []):
                words = shlex.split(command)
                parts = [words]
                if "--" in words:
                    at = words.index("--")
                    parts = [words[:at], words[at + 1:]]
                for part in parts:
                    self.assertEqual(part[0], "millrace", command)
                    done = run(*part[1:], "--no-such-option")
                    self.assert_status(done, 2)
                    self.assertIn("--no-such-option", done.err.splitlines()[0], command)
                    for option in ("--data", "--list"):
                        if option in part:
                            self.assertTrue(os.path.exists(part[part.index(option) + 1]), command)
                self.assertNotIn(".millrace-scratch", command)

    def check_nothing_is_left(self):
        self.assertEqual(scratch_folders(self.dir, _photos), [])
        self.assertEqual(list(self.dir.rglob("*.part")), [])

    def study(self, *more, data=None, out=None, status=0, **kwargs):
        done = run("study", "--data", data or self.data, "--out", out or self.out, *more, **kwargs)
        self.assert_status(done, status)
        self.check_commands(pathlib.Path(out or self.out))
        return done

    def three(self, name):
        """A folder of three images."""
        folder = self.dir / name
        folder.mkdir()
        for path in sorted(self.data.rglob("*.jpg"))[:3]:
            shutil.copy(path, folder)
        return folder

    def result(self, name):
        return json.loads((self.out / f"{name}.json").read_text())

    def marks(self, name="t.json"):
        """Of a study's trace."""
        inspected, = system_kit.results("inspect", self.dir / name)
        self.assertIn("hdd", inspected["traces"][0]["storage"])
        self.assertFalse(inspected["traces"][0]["cut"])
        return [m["name"] for m in inspected["marks"]]

    def page(self):
        return (self.out / "report.html").read_text()

    def section(self, name):
        return re.search(rf'<section id="{name}">.*?</section>', self.page(), re.S).group()
