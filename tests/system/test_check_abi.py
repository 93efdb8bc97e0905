#!/usr/bin/env python3
"""test_check_abi.py - check_abi passes the library as it is, and names each kind of change.

The library and the compiler come in LIBRARY and COMPILER."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHECK = ROOT / "tests" / "check_abi"


class CheckAbi(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        shutil.copytree(ROOT / "include", self.dir / "include")
        shutil.copy(ROOT / "tests" / "abi" / "libmillrace.abi", self.dir / "list")

    def edit(self, header, old, new):
        path = self.dir / "include" / "millrace" / header
        text = path.read_text()
        self.assertEqual(text.count(old), 1, (header, old))
        path.write_text(text.replace(old, new))

    def check(self, *more):
        done = subprocess.run(
            [sys.executable, CHECK, "--include", self.dir / "include", "--list", self.dir / "list",
             "--compiler", os.environ["COMPILER"], *more, os.environ["LIBRARY"]],
            stdout=subprocess.PIPE, text=True, check=False, timeout=60)
        return done.returncode, done.stdout

    def assert_says(self, *parts):
        status, said = self.check()
        self.assertEqual(status, 1)
        for part in parts:
            self.assertIn(part, said)
        return said

    def test_headers_and_library_as_they_are(self):
        self.assertEqual(self.check(), (0, ""))

    def test_a_struct_that_grows_breaks_nothing_but_is_said(self):
        self.edit("image.h", "struct mr_decoder_stats {", "struct mr_decoder_stats { /* more */")
        self.edit("image.h", "    uint64_t path;      /* enum mr_decoder_path */\n",
                  "    uint64_t path;\n    uint64_t later;\n")
        said = self.assert_says("grew: struct mr_decoder_stats: size 32 -> size 40",
                                "new: struct mr_decoder_stats later = at 32: uint64_t",
                                "check_abi --update")
        self.assertNotIn("breaks programs:", said)
        self.assertEqual(self.check("--update"), (0, ""))
        self.assertEqual(self.check(), (0, ""))

    def test_a_member_that_moves(self):
        self.edit("image.h", "struct mr_decoder_stats {", "struct mr_decoder_stats { uint64_t first;")
        self.assert_says("breaks programs: changed: struct mr_decoder_stats decode_ns: "
                         "at 8: uint64_t -> at 16: uint64_t")

    def test_a_member_of_another_type(self):
        self.edit("image.h", "    uint64_t decode_ns;", "    int64_t decode_ns;")
        self.assert_says("breaks programs: changed: struct mr_decoder_stats decode_ns: ")

    def test_a_sized_struct_that_ends_in_padding(self):
        self.edit("image.h", "    uint64_t path;      /* enum mr_decoder_path */\n",
                  "    uint64_t path;\n    int later;\n")
        self.assert_says("struct mr_decoder_stats travels with its size and ends in padding")
        self.assertEqual(self.check("--update")[0], 1)

    def test_an_enumerator_with_another_value(self):
        self.edit("dtype.h", "MR_DT_F16 = 3", "MR_DT_F16 = 30")
        self.assert_says("breaks programs: changed: enum mr_dtype MR_DT_F16: 3 -> 30")

    def test_another_prototype(self):
        self.edit("dtype.h", "unsigned mr_dtype_bits(", "long mr_dtype_bits(")
        self.assert_says("breaks programs: changed: function mr_dtype_bits: unsigned mr_dtype_bits(")

    def test_a_function_that_no_header_declares(self):
        self.edit("dtype.h", "MR_API unsigned mr_dtype_bits(enum mr_dtype dtype);", "")
        self.assert_says("mr_dtype_bits: the library exports it, and no header declares it",
                         "breaks programs: gone: function mr_dtype_bits")

    def test_a_function_that_the_library_lacks(self):
        self.edit("dtype.h", "MR_API unsigned mr_dtype_bits(enum mr_dtype dtype);",
                  "MR_API unsigned mr_dtype_bits(enum mr_dtype dtype);\nMR_API int mr_more(void);")
        self.assert_says("mr_more: a header declares it, and the library does not export it",
                         "new: function mr_more = int mr_more(void)")


if __name__ == "__main__":
    unittest.main()
