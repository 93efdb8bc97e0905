#!/usr/bin/python3
"""PyTorch's DataLoader on the work that millrace's decoder does: decode, resize to 224, batch.

    torch_loader.py DIR [--workers 0,1,2,4] [--decoder pil|torchvision] [--crop-flip]
                        [--epochs 3] [--batch 64] [--files N] [--json]

Every file below DIR that is an image is a sample, or the first N of them.  The first epoch warms up and is not counted; one
line is printed for each number of workers: the median of the other epochs, in images/s.
Debian: python3-torch python3-torchvision python3-pil.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
import torchvision
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

SIDE = 224


def image_files(root):
    found = []
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                with Image.open(path):
                    found.append(path)
            except OSError:
                pass
    return sorted(found)


class Images(torch.utils.data.Dataset):
    def __init__(self, paths, decoder, crop_flip):
        self.paths = paths
        self.decoder = decoder
        mode = InterpolationMode.BILINEAR
        if crop_flip:
            steps = [transforms.RandomResizedCrop(SIDE, interpolation=mode),
                     transforms.RandomHorizontalFlip()]
        else:
            steps = [transforms.Resize((SIDE, SIDE), interpolation=mode)]
        if decoder == "pil":
            steps.append(transforms.ToTensor())
        else:
            steps.append(transforms.ConvertImageDtype(torch.float32))
        self.transform = transforms.Compose(steps)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.decoder == "pil":
            with Image.open(self.paths[index]) as image:
                return self.transform(image.convert("RGB"))
        data = torchvision.io.read_file(self.paths[index])
        image = torchvision.io.decode_image(data, torchvision.io.ImageReadMode.RGB)
        return self.transform(image)


def rates(paths, args, workers):
    loader = torch.utils.data.DataLoader(
        Images(paths, args.decoder, args.crop_flip), batch_size=args.batch, shuffle=True,
        num_workers=workers, persistent_workers=workers > 0, drop_last=False)
    result = []
    for _ in range(args.epochs + 1):
        begin = time.monotonic()
        n = sum(len(batch) for batch in loader)
        result.append(n / (time.monotonic() - begin))
    return result[1:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--workers", default="0,1,2,4")
    p.add_argument("--decoder", choices=["pil", "torchvision"], default="pil")
    p.add_argument("--crop-flip", action="store_true")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--files", type=int)
    p.add_argument("--json", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(1)  # as DataLoader's workers have it
    paths = image_files(args.dir)[:args.files]
    if not paths:
        sys.exit("no images in " + args.dir)
    for workers in [int(w) for w in args.workers.split(",")]:
        each = rates(paths, args, workers)
        row = {"peer": "torch", "decoder": args.decoder, "crop_flip": args.crop_flip,
               "workers": workers, "images": len(paths), "runs": each,
               "images_per_s": statistics.median(each)}
        if args.json:
            print(json.dumps(row), flush=True)
        else:
            print("torch %-11s %d workers  %7.1f images/s  (%s)" % (
                args.decoder, workers, row["images_per_s"],
                " ".join("%.1f" % r for r in each)), flush=True)


if __name__ == "__main__":
    main()
