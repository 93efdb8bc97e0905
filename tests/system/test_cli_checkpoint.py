"""test_cli_checkpoint.py - `millrace checkpoint` as its users meet it.

The checkpoints come from safetensors files that are written here by hand."""
import json
import pathlib
import struct
import tempfile
import unittest

import system_kit
from system_kit import check_formats, results, run


def write_safetensors(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}, in the order of the data."""
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(d for _, _, d in tensors.values()))


SAMPLE = {
    "w": ("F32", [3, 2], struct.pack("<6f", *range(6))),
    "w/Adam": ("F32", [3, 2], struct.pack("<6f", *range(6, 12))),
    "global_step": ("I64", [], struct.pack("<q", 40)),
}


class Checkpoint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        write_safetensors(self.dir / "model-40.safetensors", SAMPLE)

    def convert(self, path, to, *more):
        done = run("checkpoint", "convert", path, "--to", self.dir / to, *more)
        self.assertEqual(done.status, 0, done)
        return done

    def test_a_foreign_file_becomes_a_bundle_that_verifies(self):
        self.convert(self.dir / "model-40.safetensors", "tf")
        names = sorted(p.name for p in (self.dir / "tf").iterdir())
        self.assertEqual(names, ["checkpoint", "model-40.data-00000-of-00001", "model-40.index",
                                 "model-40.meta"])
        self.assertIn('model_checkpoint_path: "model-40"', (self.dir / "tf/checkpoint").read_text())
        r = results("checkpoint", "verify", self.dir / "tf")[0]
        self.assertTrue(r["ok"])
        self.assertEqual(r["tensors"], 4)  # with the note about .meta
        data = (self.dir / "tf/model-40.data-00000-of-00001").read_bytes()
        self.assertIn(SAMPLE["w"][2], data)
        check_formats(self, self.dir)

    def test_packed_and_aligned_differ_in_gaps_only(self):
        self.convert(self.dir / "model-40.safetensors", "a")
        self.convert(self.dir / "model-40.safetensors", "p", "--packed")
        aligned = (self.dir / "a/model-40.data-00000-of-00001").stat().st_size
        packed = (self.dir / "p/model-40.data-00000-of-00001").stat().st_size
        self.assertEqual(packed, 24 + 24 + 8 + 16)
        self.assertGreater(aligned, 3 * 4096)
        for folder in "ap":
            self.assertEqual(run("checkpoint", "verify", self.dir / folder).status, 0)
        self.convert(self.dir / "p", "back", "--format", "safetensors")
        listed = results("checkpoint", "ls", self.dir / "back/model-40.safetensors")[0]
        self.assertEqual({t["name"]: t["shape"] for t in listed["tensors"]},
                         {n: t[1] for n, t in SAMPLE.items()})
        check_formats(self, self.dir)

    def test_ls_shows_newest_first_and_what_is_broken(self):
        self.convert(self.dir / "model-40.safetensors", "run")
        write_safetensors(self.dir / "run/model-60.safetensors", SAMPLE)
        (self.dir / "run/model-80.index").write_bytes(b"x" * 100)
        rows = results("checkpoint", "ls", self.dir / "run")
        self.assertEqual([r["step"] for r in rows], [80, 60, 40])
        self.assertEqual([r["state"] for r in rows], ["broken", "complete", "complete"])
        done = run("checkpoint", "ls", self.dir / "run")
        self.assertEqual(done.status, 0)
        self.assertIn("magic number is missing", done.out)

    def test_verify_names_the_tensor_and_fails(self):
        self.convert(self.dir / "model-40.safetensors", "run", "--format", "safetensors")
        path = self.dir / "run/model-40.safetensors"
        data = bytearray(path.read_bytes())
        data[data.rindex(SAMPLE["w/Adam"][2])] ^= 1
        path.write_bytes(data)
        done = run("checkpoint", "verify", path)
        self.assertEqual(done.status, 1)
        self.assertIn("'w/Adam'", done.err)
        self.assertEqual(results("checkpoint", "verify", path)[0]["bad"], "w/Adam")

    def test_restore_takes_the_newest_that_verifies_on_either_tier(self):
        self.convert(self.dir / "model-40.safetensors", "slow")
        write_safetensors(self.dir / "model-60.safetensors", SAMPLE)
        self.convert(self.dir / "model-60.safetensors", "fast")
        data = self.dir / "fast/model-60.data-00000-of-00001"
        data.write_bytes(b"\xff" + data.read_bytes()[1:])
        done = run("checkpoint", "restore", self.dir / "fast", "--drain", self.dir / "slow", "--to",
                   self.dir / "out")
        self.assertEqual(done.status, 0, done)
        self.assertIn("passed over", done.err)
        self.assertIn("model-60", done.err)
        for name in ("model-40.index", "model-40.meta", "model-40.data-00000-of-00001"):
            self.assertEqual((self.dir / "out" / name).read_bytes(),
                             (self.dir / "slow" / name).read_bytes())

    def test_nothing_is_called_verified_without_checksums(self):
        foreign, said = self.dir / "model-40.safetensors", "readable, no checksums to verify"
        done = run("checkpoint", "verify", foreign)
        self.assertEqual((done.status, done.out), (0, f"{foreign}: 3 tensors, 56 B, {said}\n"))
        for to in ("restored to", "is now also"):
            action = "restore" if to == "restored to" else "convert"
            done = run("checkpoint", action, foreign, "--to", self.dir / action)
            self.assertEqual(done.status, 0, done)
            self.assertTrue(done.out.startswith(f"{foreign} ({said}) {to} "), done)
            made = results("checkpoint", action, foreign, "--to", self.dir / f"{action}-json")[0]
            self.assertEqual(made["unchecked"], 3)
        # ours have them
        self.convert(foreign, "ours", "--format", "safetensors")
        ours = self.dir / "ours" / "model-40.safetensors"
        self.assertIn("every byte as it was written", run("checkpoint", "verify", ours).out)
        done = run("checkpoint", "restore", ours, "--to", self.dir / "again")
        self.assertTrue(done.out.startswith(f"{ours} verified and restored to "), done)
        for action in ("restore", "convert"):
            made = results("checkpoint", action, ours, "--to", self.dir / f"{action}-ours")[0]
            self.assertEqual(made["unchecked"], 0)

    def test_nothing_is_overwritten_and_nothing_is_left_behind(self):
        self.convert(self.dir / "model-40.safetensors", "run")
        before = {p.name: p.read_bytes() for p in (self.dir / "run").iterdir()}
        done = run("checkpoint", "convert", self.dir / "model-40.safetensors", "--to",
                   self.dir / "run")
        self.assertEqual(done.status, 1)
        self.assertIn("is there already", done.err)
        self.assertEqual(before, {p.name: p.read_bytes() for p in (self.dir / "run").iterdir()})

    def test_wrong_calls_say_what_is_right(self):
        self.assertEqual(run("checkpoint", "ls").status, 2)
        self.assertEqual(run("checkpoint", "burn", self.dir).status, 2)
        done = run("checkpoint", "convert", self.dir)
        self.assertEqual(done.status, 2)
        self.assertIn("--to", done.err)
        done = run("checkpoint", "verify", self.dir / "nothing")
        self.assertEqual(done.status, 1)
        self.assertIn("nothing.index", done.err)
        self.assertIn("safetensors", run("checkpoint", "--help").out)


if __name__ == "__main__":
    system_kit.main()
