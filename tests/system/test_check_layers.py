#!/usr/bin/env python3
"""test_check_layers.py - check_layers passes a clean tree and catches each kind of violation."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parent.parent / "check_layers"

MESON = """\
libraries = [
  ['jansson',  'jansson.h'],
  ['liburing', 'liburing.h', 'liburing/io_uring.h'],
]

modules = [
  ['base',     [], ['jansson'],
               ['buffer.c', 'json.c']],
  ['store',    ['base'], ['liburing'], ['whole_file.c']],
  ['dataset',  ['base'], [], ['order.c']],
]
sources += files(name / (found ? 'ring.c' : 'no_ring.c'))
"""

CLEAN = {
    "src/meson.build": MESON,
    "include/millrace/api.h": "#include <stdint.h>\n",
    "include/millrace/store.h": "#include <millrace/api.h>\n#  include <stddef.h>\n",
    "include/millrace/dataset.h": "#include <millrace/api.h>\n",
    "src/base/buffer.h": "#include <stddef.h>\n",
    "src/base/buffer.c": '#include "buffer.h"\n#include <millrace/api.h>\n#include <sys/mman.h>\n',
    "src/base/json.c": "#include <jansson.h>\n",
    "src/store/whole_file.h": "struct stat;\n",
    "src/store/whole_file.c":
        '#include "whole_file.h"\n#include "buffer.h"\n#include <millrace/store.h>\n'
        "#include <linux/magic.h>\n",
    "src/store/ring.c": "#include <liburing.h>\n",
    "src/store/no_ring.c": "#include <errno.h>\n",
    "src/dataset/order.h": "#include <stdint.h>\n",
    "src/dataset/order.c": '#include "order.h"\n#include "buffer.h"\n',
    "cli/main.c": '#include "options.h"\n#include "order.h"\n#include <millrace/store.h>\n',
    "cli/options.h": "#include <stdio.h>\n",
    "bench/bare.c": '#include "whole_file.h"\n#include <liburing.h>\n',
    "tests/test_order.c": '#include "order.h"\n#include <cmocka.h>\n#include <setjmp.h>\n',
    "examples/cold.c": "#include <millrace/store.h>\n#include <stdio.h>\n",
    "build-x/generated.c": '#include "../anything.h"\n',
}


class CheckLayers(unittest.TestCase):
    def check(self, changes):
        """The lines that check_layers prints for the clean tree with these changes.  A change
        that begins with '+' is put in front of the file."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {**CLEAN, **changes}.items():
                text = text[1:] + "\n" + CLEAN[name] if text.startswith("+") else text
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, str(CHECK), "--root", root],
                                 stdout=subprocess.PIPE, universal_newlines=True)
            lines = run.stdout.splitlines()
            self.assertEqual(run.returncode, 1 if lines else 0)
            return lines

    def assert_caught(self, name, text, *words):
        lines = self.check({name: text})
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith(name + ":1: "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.check({}), [])

    def test_a_module_that_its_row_does_not_name(self):
        self.assert_caught("src/base/buffer.c", '+#include "whole_file.h"', "'base'", "'store'")
        self.assert_caught("src/dataset/order.c", '+#include "whole_file.h"', "'dataset'", "'store'")
        self.assert_caught("src/dataset/order.h", "+#include <whole_file.h>", "'store'")

    def test_a_public_header_of_a_module_that_its_row_does_not_name(self):
        self.assert_caught("src/base/buffer.c", "+#include <millrace/store.h>", "'store'")
        self.assert_caught("src/dataset/order.c", "+#include <millrace/store.h>", "'store'")
        self.assert_caught("include/millrace/api.h", "+#include <millrace/store.h>", "'store'")
        self.assert_caught("include/millrace/store.h", "+#include <millrace/dataset.h>", "'dataset'")

    def test_a_library_outside_its_module(self):
        self.assert_caught("src/store/whole_file.c", "+#include <jansson.h>", "'jansson'")
        self.assert_caught("src/dataset/order.c", '+#include "liburing.h"', "'liburing'")
        self.assert_caught("src/dataset/order.c", "+#include <liburing/io_uring.h>", "'liburing'")
        self.assert_caught("cli/main.c", "+#include <jansson.h>", "'jansson'")

    def test_a_library_in_a_public_header(self):
        self.assert_caught("include/millrace/store.h", "+#include <liburing.h>", "C11")
        self.assert_caught("include/millrace/store.h", "+#include <sys/stat.h>", "C11")

    def test_a_private_header_in_a_public_one_or_an_example(self):
        self.assert_caught("include/millrace/store.h", '+#include "whole_file.h"', "C11")
        self.assert_caught("examples/cold.c", '+#include "whole_file.h"', "public headers")
        self.assert_caught("examples/cold.c", "+#include <jansson.h>", "public headers")

    def test_a_path(self):
        self.assert_caught("src/store/whole_file.c", '+#include "../base/buffer.h"', "../")
        self.assert_caught("cli/main.c", '+#include "../src/base/buffer.h"', "../")
        self.assert_caught("tests/test_order.c", '+#include "x/../order.h"', "../")
        self.assert_caught("src/store/whole_file.c", '+#include "base/buffer.h"', "folder")

    def test_an_unknown_header(self):
        self.assert_caught("src/store/whole_file.c", "+#include <zlib.h>", "unknown")
        self.assert_caught("src/store/whole_file.c", '+#include "options.h"', "unknown")
        self.assert_caught("src/store/whole_file.c", "+#include <millrace/none.h>", "no such")
        self.assert_caught("bench/bare.c", "+#include <zlib.h>", "unknown")

    def test_an_include_that_is_no_literal(self):
        self.assert_caught("src/store/whole_file.c", "+#include HEADER", "literal")

    def test_an_include_is_found_however_it_is_written(self):
        for line in ('#include"whole_file.h"', '  #  include  "whole_file.h" // why',
                     '#\tinclude "whole_file.h" /* why */'):
            self.assert_caught("src/base/buffer.c", "+" + line, "'store'")

    def test_a_name_that_occurs_twice(self):
        self.assert_caught("tests/buffer.c", "", "taken", "src/base/buffer.c")

    def test_a_source_that_no_row_names(self):
        self.assert_caught("src/base/more.c", "", "does not name")
        self.assert_caught("src/extra/more.c", "", "folder of a module")

    def test_a_source_in_an_unknown_folder(self):
        self.assert_caught("attic/old.c", "#include <stdio.h>\n", "no rule")

    def test_a_table_that_is_not_in_order(self):
        lines = self.check({"src/meson.build": MESON.replace("['base'], ['liburing']",
                                                             "['base', 'dataset'], ['liburing']")})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("'dataset', which is not below it", lines[0])
        lines = self.check({"src/meson.build": MESON.replace("['base'], []", "['base'], ['jansson']")})
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("'jansson' is used by 'base' and by 'dataset'", lines[0])

    def test_it_is_executable(self):
        self.assertTrue(os.access(CHECK, os.X_OK))


if __name__ == "__main__":
    unittest.main()
