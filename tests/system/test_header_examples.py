#!/usr/bin/env python3
"""test_header_examples.py - the examples in public headers, and README's, compile and run, and the
formatter leaves them alone.  What docs/extending.md shows is what the tests compile.

An example is a comment of its own that begins with "Example:".  It is the body of a main() with all
public headers, in a folder that has photos/CLASS/*.jpg and photo.jpg.

The build's folder, compiler and sanitizer come in BUILD, COMPILER and SANITIZER."""
import ast
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from system_kit import STRACE_ENV, TIMEOUT_S, TempDirCase, main, needs, run

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
MODULES = SOURCE / "src" / "meson.build"
HEADERS = sorted((SOURCE / "include" / "millrace").glob("*.h"))
MAIN = "".join(f"#include <millrace/{h.name}>\n" for h in HEADERS) + """\

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
%s
    return 0;
}
"""


# What a binding in C++ does: options from zero, callbacks without a cast, a field set by name.
CPP = """\
#include <millrace/pipeline.h>
#include <millrace/checkpoint.h>
#include <millrace/trace.h>
static int make(void *, const mr_map_input *in, void *slot)
{
    *static_cast<uint64_t *>(slot) = in->index;
    return 0;
}
int run(mr_dataset *data, mr_pipeline **out, mr_error *err)
{
    mr_decoder_opts decode{};
    decode.dtype = MR_DT_U8;
    mr_pipeline_opts opts{};
    opts.map = make;
    opts.map_bytes = mr_dtype_size(MR_DT_U64);
    opts.decode = &decode;
    return mr_pipeline_open(data, &opts, out, err);
}
"""


def comments(text):
    return re.findall(r"/\*(.*?)\*/", text, re.S)


def example_in(header):
    """The code of a header's example, None when it has none."""
    found = [c for c in comments(header.read_text()) if c.startswith(" Example:\n")]
    assert len(found) <= 1, header
    if not found:
        return None
    return "\n".join(line.removeprefix(" *") for line in found[0].splitlines()[1:])


class Examples(TempDirCase):
    @classmethod
    def setUpClass(cls):
        cls.photos = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.photos)
        done = run("generate", "--preset", "caltech101", "--out", cls.photos, "--count", 64,
                   "--classes", 2)
        assert done.status == 0, done

    def setUp(self):
        super().setUp()
        (self.dir / "photos").symlink_to(self.photos)
        shutil.copy(next(self.photos.rglob("*.jpg")), self.dir / "photo.jpg")

    def output_of(self, code):
        """Compile and run the body of a main()."""
        (self.dir / "example.c").write_text(MAIN % code)
        sanitizer = os.environ["SANITIZER"]
        library = pathlib.Path(os.environ["BUILD"], "src")
        done = subprocess.run(
            [*shlex.split(os.environ["COMPILER"]), "-std=gnu11", "-Wall", "-Wextra", "-Werror",
             *([] if sanitizer == "none" else [f"-fsanitize={sanitizer}"]),
             "-I", SOURCE / "include", "-o", "example", "example.c", f"-L{library}", "-lmillrace",
             f"-Wl,-rpath,{library}"],
            cwd=self.dir, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run([self.dir / "example"], cwd=self.dir, capture_output=True, text=True,
                              env=STRACE_ENV, timeout=TIMEOUT_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def of(self, name):
        code = example_in(SOURCE / "include" / "millrace" / name)
        self.assertIsNotNone(code, name)
        return self.output_of(code)

    def test_checkpoint(self):
        self.assertEqual(self.of("checkpoint.h"), "w[0][0] = 100\n")
        listed = run("checkpoint", "ls", self.dir / "ckpt", "--json", "-").json["results"]
        self.assertEqual([r["step"] for r in listed], [100, 80, 60, 40, 20])

    def test_every_header_has_one(self):
        self.assertEqual([h.name for h in HEADERS if not example_in(h)], [])

    def test_api(self):
        self.assertRegex(self.of("api.h"), r"\Amillrace \d+\.\d+\.\d+: error 20: photo.jpg/nowhere: .+\n\Z")

    def test_dataset(self):
        names = self.of("dataset.h").splitlines()
        self.assertEqual(len(names), 64)
        self.assertEqual(sorted(set(names)), sorted(p.name for p in self.photos.iterdir()
                                                    if p.is_dir()))

    def test_store(self):
        self.assertRegex(self.of("store.h"), r"\A-?\d+ bytes cached, then -?\d+: (cold|unproven)\n\Z")

    def test_dtype(self):
        self.assertEqual(self.of("dtype.h"), "3 x float64: 24 bytes\n")

    def test_image(self):
        self.assertEqual(self.of("image.h"), "")
        (self.dir / "photo.jpg").write_bytes(b"no photo")
        self.assertNotEqual(self.of("image.h"), "")

    def test_pipeline(self):
        self.assertRegex(self.of("pipeline.h"), r"\A(\d+ bytes, label [01]\n){64}\Z")

    def test_trace(self):
        self.assertEqual(self.of("trace.h"), "")
        self.assertIn('"name":"Train"', (self.dir / "run.json").read_text())

    def test_readme(self):
        code, = re.findall(r"```c\n(.*?)```", (SOURCE / "README.md").read_text(), re.S)
        self.assertEqual(self.output_of(code), "")


class Extending(TempDirCase):
    def test_the_checkpoint_format_shown_is_the_one_that_is_compiled(self):
        text = (SOURCE / "docs" / "extending.md").read_text()
        section, = re.findall(r"^## A checkpoint format\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        code, = re.findall(r"```c\n(.*?)```", section, re.S)
        self.assertIn(code, (SOURCE / "tests" / "kit" / "ckpt_template.c").read_text())


class Alone(TempDirCase):
    """Each header needs no other before it, in C and in C++, and gives no warning."""

    def compile(self, compiler, language, standard, text):
        warnings = ["-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Werror"]
        done = subprocess.run(
            [*compiler, "-x", language, f"-std={standard}", *warnings, "-fsyntax-only",
             "-I", SOURCE / "include", "-"],
            input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), (standard, text))

    def compile_all(self, compiler, language, standard):
        # Twice: the second time it is empty.
        texts = [f"#include <millrace/{h.name}>\n" * 2 for h in HEADERS]
        for text in [*texts, "".join(texts), "".join(reversed(texts))]:
            self.compile(compiler, language, standard, text)

    def test_c11(self):
        self.compile_all(shlex.split(os.environ["COMPILER"]), "c", "c11")

    @needs("g++")
    def test_cpp17_by_gcc(self):
        self.compile_all(["g++"], "c++", "c++17")

    @needs("clang++")
    def test_cpp17_by_clang(self):
        self.compile_all(["clang++"], "c++", "c++17")

    @needs("g++")
    def test_a_program_in_cpp(self):
        self.compile(["g++"], "c++", "c++17", CPP)


class Form(TempDirCase):
    def test_no_other_comment_of_a_header_holds_code(self):
        for header in HEADERS:
            for comment in comments(header.read_text()):
                if not comment.startswith(" Example:\n"):
                    self.assertNotRegex(comment, r"(?m)^ \*\s+[^`\n]*\bmr_\w+\(.*\);", header)

    def test_texts_of_the_library_name_no_option_of_the_program(self):
        modules = ast.literal_eval(re.search(r"^in_library = (\[.*?\])", MODULES.read_text(),
                                             re.M | re.S)[1])
        for source in (s for m in modules for s in sorted((MODULES.parent / m).glob("*.[ch]"))):
            for literal in re.findall(r'"(?:[^"\\\n]|\\.)*"', source.read_text()):
                self.assertNotRegex(literal, r"(^|[ (\"])--[a-z]", source)

    def test_examples_keep_to_the_columns(self):
        for header in HEADERS:
            for line in (example_in(header) or "").splitlines():
                self.assertLessEqual(len(line), 98, header)

    @needs("clang-format")
    def test_the_formatter_does_not_touch_examples(self):
        long = "    f(" + ", ".join(["argument"] * 20) + ");"
        text = f"/* Example:\n *\n * {long}\n *     second(line);\n */\nint x;\n"
        for content in (text, *(h.read_text() for h in HEADERS if example_in(h))):
            made = subprocess.run(["clang-format", f"--assume-filename={HEADERS[0]}"],
                                  input=content, text=True, stdout=subprocess.PIPE, check=True).stdout
            self.assertIn(re.search(r"/\* Example:.*?\*/", content, re.S)[0], made)


if __name__ == "__main__":
    main()
