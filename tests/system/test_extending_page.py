"""test_extending_page.py - code on docs/extending.md is the code that the suite compiles: a block
below "From [FILE](../FILE):" is in FILE, word for word."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^From \[([^\]]+)\]\(\.\./([^)]+)\):\n```c\n(.*?)^```$", re.M | re.S)


class ExtendingPage(unittest.TestCase):
    def setUp(self):
        self.page = (ROOT / "docs/extending.md").read_text()

    def test_examples_stand_in_their_files(self):
        blocks = BLOCK.findall(self.page)
        self.assertGreaterEqual(len(blocks), 4)
        for name, link, code in blocks:
            self.assertEqual(name, link)
            self.assertIn(code, (ROOT / name).read_text(), name)

    def test_every_example_names_its_file(self):
        self.assertEqual(len(re.findall("^From ", self.page, re.M)), len(BLOCK.findall(self.page)))

    def test_files_and_names_of_the_page_exist(self):
        for path in re.findall(r"`((?:src|tests|docs)/[\w/.]+\.\w+)`", self.page):
            if "NAME" not in path:
                self.assertTrue((ROOT / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
