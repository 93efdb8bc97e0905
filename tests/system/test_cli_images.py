#!/usr/bin/env python3
"""test_cli_images.py - `generate`, `bench --map decode` and what `inspect` says of images."""
import csv
import hashlib
import shutil
import struct
import zlib

from system_kit import TempDirCase, engines, main, results, run


def tree_digest(folder):
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def read_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def png_chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))


def png(width=40, height=30, *extra):
    """A grey ramp, with chunks of one's own after the header."""
    rows = b"".join(b"\0" + bytes((x * 5 + y) % 256 for x in range(width)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" +
            png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            b"".join(extra) + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b""))


def changed(data, at, new):
    return data[:at] + new + data[at + len(new):]


class Images(TempDirCase):
    maxDiff = None

    def generate(self, name="photos", *more):
        folder = self.dir / name
        done = run("generate", "--preset", "caltech101", "--count", 48, "--classes", 4, "--out",
                   folder, *more)
        self.assertEqual(done.status, 0, done.err)
        return folder

    def spoil(self, folder):
        """Damage some images; what each kind of damage is called in the ledger."""
        files = sorted((folder / "class_0000").iterdir())
        whole = files[0].read_bytes()
        files[0].write_bytes(whole[:len(whole) // 2])
        files[1].write_bytes(b"this is not an image at all")
        files[2].write_bytes(b"")
        # SOF0 with 65,500 x 65,500 pixels
        bomb = bytearray(whole)
        at = bomb.index(b"\xff\xc0")
        bomb[at + 5:at + 9] = (65500).to_bytes(2, "big") * 2
        files[3].write_bytes(bytes(bomb))
        return {str(files[0]): "truncated", str(files[1]): "corrupt", str(files[2]): "empty",
                str(files[3]): "too large"}

    def write_hostile(self, folder):
        """Files that lie, and what each is called in the ledger; None: it is accepted."""
        jpeg = sorted((folder / "class_0001").iterdir())[0].read_bytes()
        frame, huffman = jpeg.index(b"\xff\xc0"), jpeg.index(b"\xff\xc4")
        good_png = png()
        kinds = {
            "png.jpg": (good_png, None),
            "jpeg.png": (jpeg, None),
            "0x0.jpg": (changed(jpeg, frame + 5, bytes(4)), "corrupt"),
            "components.jpg": (changed(jpeg, frame + 9, b"\x05"), "corrupt"),
            "huffman.jpg": (changed(jpeg, huffman + 5, b"\xff" * 16), "corrupt"),
            "12-bits.jpg": (changed(jpeg, frame + 4, b"\x0c"), "unsupported"),
            "cut.jpg": (jpeg[:len(jpeg) * 15 // 16], "truncated"),
            "0x0.png": (png(0, 0), "corrupt"),
            "huge.png": (good_png[:8] + png_chunk(b"IHDR", struct.pack(
                ">IIBBBBB", 1 << 30, 1 << 30, 8, 0, 0, 0, 0)) + good_png[33:], "too large"),
            "chunk.png": (png(40, 30, png_chunk(b"QQQQ", b"x" * 50)), "unsupported"),
            "palette.png": (png(40, 30, png_chunk(b"PLTE", b"x" * 7)), "corrupt"),
            "checksum.png": (changed(good_png, len(good_png) - 16, b"\0\0\0\0"), "corrupt"),
            "cut.png": (good_png[:-30], "truncated"),
            "text.jpg": (b"this is not an image at all", "corrupt"),
        }
        for name, (data, _) in kinds.items():
            (folder / "class_0000" / name).write_bytes(data)
        (folder / "list.csv").unlink()
        return {str(folder / "class_0000" / name): reason for name, (_, reason) in kinds.items()}

    def test_files_that_lie_are_in_the_ledger_and_in_the_report(self):
        folder = self.generate()
        kinds = self.write_hostile(folder)
        want = {path: reason for path, reason in kinds.items() if reason}
        for augment in ("none", "crop-flip"):
            ledger = self.dir / "ledger.csv"
            r, = results("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1,
                         "--max-errors", "50%", "--ledger", ledger, "--augment", augment)
            self.assertEqual({row["path"]: row["reason"] for row in read_csv(ledger)}, want)
            self.assertGreaterEqual(r["decoded_by"]["png"], 1)
        r, = results("inspect", folder, "--check")
        self.assertEqual({b["path"] for b in r["broken_files"]}, set(want))
        self.assertTrue(all(b["reason"] for b in r["broken_files"]))

    def test_image_size_is_width_by_height(self):
        folder = self.generate()
        common = ("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1, "--hash")
        sizes = {}
        for size, width, height in (("40x24", 40, 24), ("24x40", 24, 40), ("24", 24, 24)):
            r, = results(*common, "--image-size", size)
            self.assertEqual((r["image"]["width"], r["image"]["height"]), (width, height))
            sizes[size] = r["batch_hash"]
        self.assertEqual(len(set(sizes.values())), 3)
        for wrong in ("0", "x", "40x", "x24", "40x24x3", "-1", "99999"):
            self.assertEqual(run(*common, "--image-size", wrong).status, 2, wrong)

    def hash_of(self, folder, *more):
        r, = results("bench", "--data", folder, "--map", "decode", "--image-size", 64, "--batch", 8,
                     "--runs", 1, "--hash", *more)
        return r["batch_hash"]

    def test_generate_makes_what_its_list_says_and_the_same_again(self):
        folder = self.generate()
        rows = read_csv(folder / "list.csv")
        self.assertEqual(len(rows), 48)
        for row in rows:
            self.assertTrue((folder / row["path"]).read_bytes().startswith(b"\xff\xd8\xff"))
            self.assertEqual(row["path"].split("/")[0], f"class_{int(row['label']):04d}")
        self.assertEqual(tree_digest(folder), tree_digest(self.generate("again")))
        self.assertNotEqual(tree_digest(folder), tree_digest(self.generate("other", "--seed", 2)))

    def test_generate_tells_what_is_wrong(self):
        self.assertEqual(run("generate").status, 2)
        done = run("generate", "--count", 2, "--out", self.dir / "missing" / "photos")
        self.assertEqual(done.status, 1)
        self.assertIn(str(self.dir / "missing"), done.err)
        done = run("generate", "--count", 2, "--classes", 3, "--out", self.dir / "photos")
        self.assertNotEqual(done.status, 0)
        self.assertEqual(run("generate", "--preset", "mnist", "--out", self.dir / "x").status, 2)

    def test_generate_leaves_the_files_of_others_alone(self):
        folder = self.dir / "mine"
        folder.mkdir()
        (folder / "list.csv").write_text("path,label\nmine.jpg,1\n")
        for more in ([], ["--again"]):
            done = run("generate", "--count", 5, "--classes", 1, "--out", folder, *more)
            self.assert_status(done, 1)
            self.assertIn("not empty (it has list.csv)", done.err)
            self.assertNotIn("--again", done.err)
            self.assertEqual([p.name for p in folder.iterdir()], ["list.csv"])
            self.assertEqual((folder / "list.csv").read_text(), "path,label\nmine.jpg,1\n")

    def test_generate_again(self):
        folder = self.generate()
        before = tree_digest(folder)
        done = run("generate", "--count", 5, "--classes", 1, "--out", folder)
        self.assert_status(done, 1)
        self.assertIn("has a generated set of 48 images already: --again replaces it", done.err)
        self.assertEqual(tree_digest(folder), before)
        self.assert_status(run("generate", "--count", 5, "--classes", 1, "--out", folder, "--again"), 0)
        self.assertEqual(len(list(folder.rglob("*.jpg"))), 5)
        self.assertEqual(len((folder / "list.csv").read_text().splitlines()), 6)
        (folder / "class_0000/mine.jpg").write_bytes(b"precious")
        done = run("generate", "--count", 2, "--classes", 1, "--out", folder, "--again")
        self.assert_status(done, 1)
        self.assertIn("class_0000/mine.jpg: move that away", done.err)
        self.assertEqual(len(list(folder.rglob("*.jpg"))), 6)

    def test_generate_writes_json(self):
        r, = results("generate", "--count", 3, "--classes", 1, "--out", self.dir / "photos")
        self.assertEqual((r["images"], r["partial"], r["preset"]), (3, False, "imagenet"))
        self.assertGreater(r["bytes"], 1000)

    def test_hash_is_the_same_for_threads_engines_and_prefetch(self):
        folder = self.generate()
        self.spoil(folder)
        hashes = {}
        for augment in ("none", "crop-flip"):
            more = ("--augment", augment, "--max-errors", "50%")
            hashes[augment] = self.hash_of(folder, *more)
            for engine in engines():
                for threads, prefetch in ((1, 0), (2, 1), (4, 4), (8, 1)):
                    self.assertEqual(
                        self.hash_of(folder, *more, "--engine", engine, "--threads", threads,
                                     "--prefetch", prefetch), hashes[augment],
                        (augment, engine, threads, prefetch))
        self.assertNotEqual(hashes["none"], hashes["crop-flip"])
        for other in (("--seed", 2), ("--resize", "area"), ("--dtype", "u8"), ("--layout", "nchw"),
                      ("--exact",), ("--mean", "0.5"), ("--std", "0.2,0.3,0.4")):
            self.assertNotEqual(self.hash_of(folder, "--max-errors", "50%", *other), hashes["none"])

    def test_the_decoder_changes_neither_pixels_nor_refusals(self):
        folder = self.generate()
        self.spoil(folder)
        for more in (("--augment", "none"), ("--augment", "crop-flip"), ("--resize", "area"),
                     ("--accept-truncated",)):
            more = (*more, "--max-errors", "50%")
            self.assertEqual(self.hash_of(folder, *more, "--decoder", "turbo"),
                             self.hash_of(folder, *more, "--decoder", "auto", "--threads", 3), more)
        ledgers = []
        for decoder in ("auto", "turbo"):
            ledger = self.dir / decoder
            r, = results("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1,
                         "--max-errors", "50%", "--ledger", ledger, "--decoder", decoder)
            ledgers.append(ledger.read_text())
            self.assertEqual(r["image"]["decoder"], decoder)
            own, turbo = (r["decoded_by"][k] for k in ("own", "turbo"))
            self.assertEqual(own + turbo, r["images"])
            self.assertEqual(own > 0, decoder == "auto")
        self.assertEqual(*ledgers)

    def test_bad_images_are_in_the_ledger_with_the_reason(self):
        folder = self.generate()
        want = self.spoil(folder)
        for engine in engines():
            ledger = self.dir / "ledger.csv"
            r, = results("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1,
                         "--max-errors", "50%", "--ledger", ledger, "--engine", engine)
            self.assertEqual(r["skipped"], 4)
            rows = read_csv(ledger)
            self.assertEqual({row["path"]: row["reason"] for row in rows}, want)
            self.assertTrue(all(row["error"] and row["substitute"] for row in rows))
            self.assertEqual(r["map"], "decode")
            self.assertEqual(r["image"]["width"], 224)
            self.assertGreater(r["decode_s_per_image"], 0)
            self.assertGreater(r["resize_s_per_image"], 0)
            done = run("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1,
                       "--on-error", "fail", "--engine", engine)
            self.assertEqual(done.status, 1)
            self.assertIn("class_0000", done.err)

    def test_accept_truncated_takes_half_an_image(self):
        folder = self.generate()
        image = sorted((folder / "class_0001").iterdir())[0]
        image.write_bytes(image.read_bytes()[:-200])
        common = ("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1)
        r, = results(*common)
        self.assertEqual(r["skipped"], 1)
        r, = results(*common, "--accept-truncated")
        self.assertEqual(r["skipped"], 0)

    def test_max_pixels_refuses_what_is_larger(self):
        folder = self.generate()
        done = run("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1,
                   "--max-pixels", 100)
        self.assertEqual(done.status, 1)
        self.assertIn("pixels", done.err)

    def test_delivered_bytes_are_those_of_the_files(self):
        folder = self.generate()
        size = sum(p.stat().st_size for p in folder.rglob("*.jpg"))
        r, = results("bench", "--data", folder, "--map", "decode", "--batch", 8, "--runs", 1)
        self.assertEqual(r["delivered_bytes"], size)

    def test_inspect_knows_images_and_finds_broken_ones(self):
        folder = self.generate()
        r, = results("inspect", folder)
        images = r["images"]
        self.assertEqual((images["jpeg"], images["png"], images["other"]), (48, 0, 0))
        self.assertEqual(sum(images["sampling"].values()) + images["grey"], 48)
        self.assertLessEqual(images["width"]["min"], images["width"]["p50"])
        self.assertGreater(images["height"]["p50"], 50)
        want = self.spoil(folder)
        r, = results("inspect", folder, "--check")
        self.assertEqual(r["broken"], 4)
        self.assertEqual({b["path"] for b in r["broken_files"]}, set(want))
        self.assertTrue(all(b["reason"] for b in r["broken_files"]))
        self.assertEqual(r["files"], 44)

    def test_stopping_generate_leaves_a_true_list(self):
        done = run("generate", "--count", 100000, "--out", self.dir / "photos",
                   prefix=("timeout", "-s", "INT", "2"))
        self.assertIn(done.status, (124, 130))
        folder = self.dir / "photos"
        listed = {row["path"] for row in read_csv(folder / "list.csv")}
        there = {str(p.relative_to(folder)) for p in folder.rglob("*.jpg")}
        self.assertEqual(listed, there)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
