#!/usr/bin/env python3
"""test_packages.py - a package that is missing stops nothing that does not need it: the script that
installs packages, and the build."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = SOURCE / "tools" / "install-deps"
TIMEOUT_S = 120

# A Debian of three folders: installed/ and known/ have a file a package, depends/ what one needs.
# broken/ are known, and cannot be installed.  `calls` has the calls of apt-get.
FAKES = {
    "dpkg-query": """\
for p; do :; done
[ -e installed/$p ] && printf installed""",
    "apt-cache": """\
case $1 in
policy) [ -e known/$2 ] && printf '%s:\\n  Installed: (none)\\n  Candidate: 1.0\\n' $2 || true ;;
depends) [ -e known/$2 ] && cat depends/$2 ;;
esac""",
    "apt-get": """\
echo "$@" >>calls
[ ! -e offline ] || exit 100
what= packages=
for a; do
    case $a in
    update) [ ! -e lists ] || mv lists/* known/; exit 0 ;;
    install) what=install ;;
    -*|*=*) ;;
    *) packages="$packages $a" ;;
    esac
done
for p in $packages; do
    if [ ! -e known/$p ] || [ -e broken/$p ]; then
        echo "E: Unable to locate package $p" >&2
        exit 100
    fi
done
for p in $packages; do touch installed/$p; done""",
    "id": "cat uid",
    "clang": "[ -e clang_version ] && cat clang_version",
}


class Script(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        for name in ("bin", "installed", "known", "broken", "depends"):
            (self.dir / name).mkdir()
        (self.dir / "uid").write_text("0\n")
        for name, body in FAKES.items():
            self.program(name, f"#!/bin/sh\ncd {self.dir}\n{body}\n")
        for tool in ("sh", "cat", "env", "grep", "head", "mv", "sed", "touch", "tr", "true"):
            (self.dir / "bin" / tool).symlink_to(shutil.which(tool))

    def program(self, name, text):
        path = self.dir / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def call(self, *args):
        return subprocess.run([SCRIPT, *args], env={"PATH": str(self.dir / "bin")}, text=True,
                              capture_output=True, timeout=TIMEOUT_S, check=False)

    def listed(self, *args):
        return self.call("--list", *args).stdout.split()

    def have(self, folder, *packages):
        for p in packages:
            (self.dir / folder / p).touch()

    def calls(self):
        path = self.dir / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def installed(self):
        return {p.name for p in (self.dir / "installed").iterdir()}

    def test_nothing_is_touched_or_said_when_nothing_is_missing(self):
        self.have("installed", *self.listed())
        done = self.call()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.calls(), [])

    def test_groups_are_apart(self):
        build, test = set(self.listed("build")), set(self.listed("test"))
        self.assertEqual(set(self.listed()), build | test)
        for package in ("libcmocka-dev", "valgrind", "strace", "bindfs", "mandoc"):
            self.assertIn(package, test - build)
        for package in ("clang", "llvm", "fio", "sysstat", "chromium"):
            self.assertNotIn(package, build | test)
        self.assertEqual(self.listed("browser"), ["chromium"])
        self.have("installed", *build)
        self.assertEqual(self.call("build").stdout, "")

    def test_what_apt_does_not_know_is_said_and_the_rest_installed(self):
        wanted = self.listed()
        self.have("known", *(p for p in wanted if p not in ("valgrind", "libdnnl-dev")))
        done = self.call()
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.installed(), set(wanted) - {"valgrind", "libdnnl-dev"})
        self.assertEqual(len(self.calls()), 2)  # update, and all at once
        said = [line for line in done.stdout.splitlines() if "missing" in line]
        self.assertEqual(said, ["install-deps: missing, so what needs it is left out or skipped: "
                                "libdnnl-dev valgrind"])

    def test_one_that_cannot_be_installed_stops_no_other(self):
        wanted = self.listed()
        self.have("known", *wanted)
        self.have("broken", "strace")
        done = self.call()
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.installed(), set(wanted) - {"strace"})
        self.assertIn("left out or skipped: strace\n", done.stdout)

    def test_a_package_that_the_build_needs_is_named_as_such(self):
        self.have("known", *(p for p in self.listed() if p != "libspng-dev"))
        done = self.call()
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("millrace cannot be built: libspng-dev\n", done.stdout)
        self.assertNotIn("skipped", done.stdout)

    def test_without_a_network(self):
        self.have("installed", *self.listed("build"))
        self.have("known", *self.listed("test"))
        (self.dir / "offline").touch()
        done = self.call()
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("skipped: " + " ".join(self.listed("test")), done.stdout)

    def test_fresh_lists_are_fetched_first(self):
        wanted = self.listed()
        (self.dir / "lists").mkdir()
        self.have("lists", *wanted)
        self.assertNotIn("missing", self.call().stdout)
        self.assertEqual(self.installed(), set(wanted))

    def test_neither_root_nor_sudo(self):
        (self.dir / "uid").write_text("1000\n")
        self.have("installed", *self.listed("build"))
        self.have("known", *self.listed("test"))
        done = self.call()
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.calls(), [])
        self.assertIn("(to install it: root or sudo): ", done.stdout)
        # sudo that refuses is asked once; one that agrees installs
        self.program("sudo", f"#!/bin/sh\necho sudo >>{self.dir}/calls\nexit 1\n")
        self.call()
        self.assertEqual(self.calls(), ["sudo"])
        self.program("sudo", '#!/bin/sh\nexec "$@"\n')
        self.assertNotIn("missing", self.call().stdout)

    def test_a_name_that_differs_between_releases(self):
        wanted = self.listed()
        self.assertIn("libjpeg62-turbo-dev", wanted)
        self.have("known", "libjpeg-turbo8-dev", *(p for p in wanted if "libjpeg" not in p))
        self.assertNotIn("missing", self.call().stdout)
        self.assertIn("libjpeg-turbo8-dev", self.installed())
        self.assertEqual(len(self.calls()), 2)
        self.call()
        self.assertEqual(len(self.calls()), 2)

    def test_the_sanitizers_are_those_of_the_release_s_clang(self):
        (self.dir / "depends" / "clang").write_text("clang\n  Depends: clang-19\n  Breaks: x\n")
        (self.dir / "lists").mkdir()
        self.have("lists", "clang", "clang-format", "llvm", "libclang-rt-19-dev")
        self.assertNotIn("missing", self.call("clang").stdout)
        self.assertEqual(self.installed(), {"clang", "clang-format", "llvm", "libclang-rt-19-dev"})
        (self.dir / "clang_version").write_text("16.0.6\n")
        self.assertEqual(self.listed("clang")[-1], "libclang-rt-16-dev")

    def test_another_system(self):
        (self.dir / "bin" / "dpkg-query").unlink()
        done = self.call()
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("not a Debian system", done.stdout)
        self.assertIn("libjansson-dev", done.stdout)

    def test_wrong_usage(self):
        done = self.call("everything")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("install-deps [GROUP...]", done.stderr)


@unittest.skipUnless(shutil.which("make"), "no make")
class Front(unittest.TestCase):
    def would(self, goal):
        return subprocess.run(["make", "-n", "-C", SOURCE, goal], text=True, check=True,
                              stdout=subprocess.PIPE, timeout=TIMEOUT_S).stdout

    def test_a_study_wants_no_package_of_the_tests(self):
        self.assertIn("tools/install-deps build\n", self.would("study"))
        self.assertIn("tools/install-deps build test\n", self.would("test"))


@unittest.skipUnless(shutil.which("meson") and shutil.which("pkg-config"), "no meson, no pkg-config")
class Configured(unittest.TestCase):
    """The build's configuration where a library or a tool of the tests is missing."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)

    def all_but(self, name, folders, *hidden):
        """A folder with links to whatever is in these, but for some."""
        new = self.dir / name
        new.mkdir()
        for folder in folders:
            for path in pathlib.Path(folder).glob("*"):
                if path.name not in hidden and not (new / path.name).is_symlink():
                    (new / path.name).symlink_to(path)
        return str(new)

    def configured_without(self, libraries=(), tools=()):
        """The names of the tests of such a build, whose folder is self.dir / "build"."""
        where = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], text=True,
                               stdout=subprocess.PIPE, check=True).stdout.strip()
        env = {**os.environ,
               "PATH": self.all_but("tools", os.environ["PATH"].split(":"), "cmake", *tools),
               "PKG_CONFIG_LIBDIR": self.all_but("libraries", where.split(":"),
                                                 *(f"{x}.pc" for x in libraries))}
        done = subprocess.run(["meson", "setup", self.dir / "build", SOURCE], env=env, text=True,
                              capture_output=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        listed = subprocess.run(["meson", "test", "-C", self.dir / "build", "--no-rebuild", "--list"],
                                text=True, stdout=subprocess.PIPE, check=True).stdout
        return {line.split(" / ")[1] for line in listed.splitlines() if " / " in line}

    def assert_skips(self, test, reason):
        done = subprocess.run(["meson", "test", "-C", self.dir / "build", "--no-rebuild", "-v", test],
                              text=True, stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"Skipped: +1\b")
        self.assertIn(f"SKIP: {reason}", done.stdout)

    def test_without_the_libraries_of_the_tests(self):
        tests = self.configured_without(libraries=("cmocka", "libturbojpeg"))
        self.assertTrue({"check_layers", "test_cli", "corpus_png", "crash_replay"} <= tests, tests)
        self.assertFalse({"test_buffer", "test_checkpoint", "test_photo_maker"} & tests, tests)
        self.assert_skips("unit_tests_without_cmocka", "cmocka (Debian: libcmocka-dev)")
        self.assert_skips("test_photo_maker_without_turbojpeg", "TurboJPEG (Debian:")

    def test_without_the_tools_of_the_tests(self):
        tests = self.configured_without(tools=("valgrind",))
        self.assertIn("test_photo_maker", tests)
        self.assertFalse([t for t in tests if "without" in t], tests)
        self.assert_skips("valgrind_image_hostile", "no valgrind")


if __name__ == "__main__":
    unittest.main()
