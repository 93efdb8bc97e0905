#!/usr/bin/env python3
"""torch_save.py - seconds that torch.save and fsync of about 704 MB of float32 take.

    torch_save.py FILE BYTES

One tensor of 151 MB and smaller ones, as AlexNet has; touched before the clock starts.  The file is
new and is removed."""
import os
import sys
import time

import torch


def main():
    path, total = sys.argv[1], int(sys.argv[2])
    state, left, i = {}, total // 4, 0
    while left:
        n = min(left, 37_748_736 if i % 8 == 0 else 4_194_304)
        state[f"w{i}"] = torch.ones(n)
        left, i = left - n, i + 1
    if os.path.exists(path):
        os.unlink(path)
    begin = time.monotonic()
    with open(path, "wb") as f:
        torch.save(state, f)
        f.flush()
        os.fsync(f.fileno())
    print(time.monotonic() - begin)
    os.unlink(path)


main()
