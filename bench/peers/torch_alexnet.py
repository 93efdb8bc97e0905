#!/usr/bin/python3
"""One training step of the study's AlexNet in PyTorch, as often as asked.

    torch_alexnet.py [--channels-last] [--no-lrn] [--batch 64] [--threads 2]

Builds the network and says "ready"; then, for each line on standard input, does one step (forward,
backward, Adam) and prints how many seconds it took.  The network is the one of src/nn/alexnet.c: no
groups, LRN, dropout; padding of the first layer is 4 on all sides instead of 3 and 4, which gives
the same output size and saves PyTorch a copy.

Debian: python3-torch, and libopenblas0: with the plain libblas3 that it brings, PyTorch's dense
layers are several times slower, which would be no fair comparison, so that is refused.
"""
import argparse
import sys
import time

import torch
from torch import nn


def alexnet(with_lrn, n_classes=102):
    def lrn():
        return [nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1.0)] if with_lrn else []

    def relu():
        return nn.ReLU(inplace=True)

    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4, padding=4), relu(), *lrn(), nn.MaxPool2d(3, 2),
        nn.Conv2d(96, 256, 5, padding=2), relu(), *lrn(), nn.MaxPool2d(3, 2),
        nn.Conv2d(256, 384, 3, padding=1), relu(),
        nn.Conv2d(384, 384, 3, padding=1), relu(),
        nn.Conv2d(384, 256, 3, padding=1), relu(), nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Linear(9216, 4096), relu(), nn.Dropout(0.5),
        nn.Linear(4096, 4096), relu(), nn.Dropout(0.5),
        nn.Linear(4096, n_classes))


def has_fast_blas():
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any(name in line for line in maps for name in ("openblas", "libblis", "libmkl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--no-lrn", action="store_true")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if not has_fast_blas():
        sys.exit("PyTorch runs on the reference BLAS: apt-get install libopenblas0")
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = alexnet(not args.no_lrn)
    images = torch.rand(args.batch, 3, 224, 224)
    labels = torch.randint(0, 102, (args.batch,))
    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    loss_of = nn.CrossEntropyLoss()
    n_parameters = sum(p.numel() for p in model.parameters())
    print("ready", n_parameters, torch.__version__, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(images), labels).backward()
        optimizer.step()
        print("%.6f" % (time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
