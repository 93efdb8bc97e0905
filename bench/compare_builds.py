#!/usr/bin/env python3
"""Compare `millrace bench` of two builds: runs in turns, medians of paired ratios, an A/A control.

    compare_builds.py BEFORE AFTER ROUNDS [options of bench ...]

BEFORE and AFTER are programs.  A round is BEFORE, AFTER, BEFORE, AFTER; every other round the other
way round.  A pair is AFTER against the BEFORE beside it; the control is BEFORE against BEFORE.
Prints medians and quartiles of the rate and of the images per second of CPU time: above 1, AFTER is
faster.  With --hash among the options it fails where the batches differ."""
import json
import statistics
import subprocess
import sys


def bench(program, options):
    done = subprocess.run([program, "bench", "--json", "-", *options], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"{program}: {done.stderr}")
    result, = json.loads(done.stdout)["results"]
    return result["images_per_s"], 1 / result["cpu_s_per_image"], result["batch_hash"]


def show(what, ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"  {what:24} {middle:.3f} ({low:.3f} .. {high:.3f})")


def main():
    if len(sys.argv) < 4 or not sys.argv[3].isdigit() or int(sys.argv[3]) < 2:
        sys.exit(__doc__)
    before, after, rounds, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    pairs, control = [], []
    for i in range(rounds):
        runs = [bench(program, options)
                for program in ((before, after) * 2 if i % 2 == 0 else (after, before) * 2)]
        if i % 2:
            runs = [runs[1], runs[0], runs[3], runs[2]]
        if len({hash_ for _, _, hash_ in runs}) > 1:
            sys.exit("the batches of the two differ")
        pairs += [(runs[1], runs[0]), (runs[3], runs[2])]
        control.append((runs[2], runs[0]))
    rate = statistics.median(b[0] for _, b in pairs)
    print(f"{' '.join(options)}: {rounds} rounds, before {rate:,.0f} images/s")
    for name, at in (("rate", 0), ("images a CPU second", 1)):
        show(name, [a[at] / b[at] for a, b in pairs])
        show(name + ", A/A", [a[at] / b[at] for a, b in control])


if __name__ == "__main__":
    main()
