#!/usr/bin/env python3
"""test_install.py - `meson install` leaves a program, its manual and completion, and a library that
others find by pkg-config.

The build's folder, compiler and sanitizer come in BUILD, COMPILER and SANITIZER."""
import os
import pathlib
import shlex
import subprocess

from system_kit import STRACE_ENV, TIMEOUT_S, TempDirCase, main, make_files, needs

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SANITIZER = os.environ["SANITIZER"]


def output(*args, **more):
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=TIMEOUT_S, **more).stdout


@needs("meson", "pkg-config")
class Installed(TempDirCase):
    def setUp(self):
        super().setUp()
        self.root = self.dir / "root"
        output("meson", "install", "-C", os.environ["BUILD"], "--no-rebuild", "--quiet",
               "--destdir", self.root)

    def the(self, pattern):
        (path,) = self.root.rglob(pattern)
        return path

    def environment(self):
        # The leak checker cannot run in every surrounding, and examples are checked elsewhere.
        return {**STRACE_ENV, "LD_LIBRARY_PATH": str(self.the("libmillrace.so").parent),
                "PKG_CONFIG_PATH": str(self.the("millrace.pc").parent),
                "PKG_CONFIG_SYSROOT_DIR": str(self.root)}

    def test_the_program_its_manual_and_its_completion(self):
        self.assertIn("millrace", output(self.the("bin/millrace"), "--version",
                                         env=self.environment()))
        manual = self.the("man/man1/millrace.1").read_text()
        self.assertTrue(manual.startswith(".TH"), manual[:80])
        self.assertIn("inspect", manual)
        completion = self.the("bash-completion/completions/millrace")
        output("bash", "-n", completion)
        self.assertIn("complete ", completion.read_text())

    def test_an_example_builds_through_pkg_config_and_runs(self):
        flags = shlex.split(output("pkg-config", "--cflags", "--libs", "millrace",
                                   env=self.environment()))
        self.assertIn("-lmillrace", flags)
        self.assertFalse([f for f in flags if str(SOURCE / "include") in f])
        sanitize = [] if SANITIZER == "none" else [f"-fsanitize={SANITIZER}"]
        program = self.dir / "iterate_folder"
        output(*shlex.split(os.environ["COMPILER"]), *sanitize, "-o", program,
               SOURCE / "examples" / "iterate_folder.c", *flags)
        # It asks for the version of the ABI, not for any library of that name.
        self.assertIn("[libmillrace.so.0]", output("readelf", "-d", program))
        n_bytes = make_files(self.dir / "data", 10, classes=2)
        lines = output(program, self.dir / "data", 4, env=self.environment()).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual(sum(int(line.split()[-2]) for line in lines), n_bytes)


if __name__ == "__main__":
    main()
