#!/usr/bin/python3
"""OpenCV's imdecode and resize in as many processes as asked for: decode, resize to 224, batch.

    opencv_loader.py DIR [--workers 1,2] [--crop-flip] [--epochs 3] [--batch 64] [--files N] [--json]

Every file below DIR that OpenCV has a decoder for is a sample, or the first N of them.  A worker makes whole batches, float32 in 0..1
with the colours in planes, in its own memory: what it costs to hand them over is not counted.  The
first epoch warms up and is not counted; one line is printed for each number of workers: the median
of the other epochs, in images/s.
Debian: python3-opencv python3-numpy.
"""
import argparse
import json
import math
import multiprocessing
import os
import random
import statistics
import sys
import time

import cv2
import numpy

SIDE = 224


def load(path):
    data = numpy.fromfile(path, dtype=numpy.uint8)
    return cv2.imdecode(data, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)


def random_crop(image):
    """torchvision's RandomResizedCrop and horizontal flip."""
    height, width = image.shape[:2]
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w = int(round(math.sqrt(area * ratio)))
        h = int(round(math.sqrt(area / ratio)))
        if 0 < w <= width and 0 < h <= height:
            x, y = random.randint(0, width - w), random.randint(0, height - h)
            image = image[y:y + h, x:x + w]
            break
    return cv2.flip(image, 1) if random.random() < 0.5 else image


def make_batch(job):
    paths, crop_flip = job
    batch = numpy.empty((len(paths), 3, SIDE, SIDE), dtype=numpy.float32)
    for i, path in enumerate(paths):
        image = load(path)
        if crop_flip:
            image = random_crop(image)
        image = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        numpy.multiply(image.transpose(2, 0, 1), numpy.float32(1 / 255), out=batch[i])
    return len(paths)


def image_files(root):
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if cv2.haveImageReader(path):
                found.append(path)
    return sorted(found)


def rates(paths, args, workers):
    result = []
    with multiprocessing.Pool(workers, cv2.setNumThreads, (1,)) as pool:
        for epoch in range(args.epochs + 1):
            random.Random(epoch).shuffle(paths)
            jobs = [(paths[i:i + args.batch], args.crop_flip)
                    for i in range(0, len(paths), args.batch)]
            begin = time.monotonic()
            n = sum(pool.imap_unordered(make_batch, jobs))
            result.append(n / (time.monotonic() - begin))
    return result[1:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--workers", default="1,2")
    p.add_argument("--crop-flip", action="store_true")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--files", type=int)
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    cv2.setNumThreads(1)
    paths = image_files(args.dir)[:args.files]
    if not paths:
        sys.exit("no images in " + args.dir)
    for workers in [int(w) for w in args.workers.split(",")]:
        each = rates(paths, args, workers)
        row = {"peer": "opencv", "crop_flip": args.crop_flip, "workers": workers,
               "images": len(paths), "runs": each, "images_per_s": statistics.median(each)}
        if args.json:
            print(json.dumps(row), flush=True)
        else:
            print("opencv %d workers  %7.1f images/s  (%s)" % (
                workers, row["images_per_s"], " ".join("%.1f" % r for r in each)), flush=True)


if __name__ == "__main__":
    main()
