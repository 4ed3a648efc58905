#!/usr/bin/env python3
"""What workers that push known numbers are to read: sums of series, as MXNet's store of values is
tested by. Worker k of n pushes (k + 1) r in round r; or, in 2 bits, a number of its own each time,
of which a scalar model says what crosses: the threshold, its negative or nothing, by what has
waited. All numbers are dyadic, so that float32 has them exactly.
usage: series.py feed N ROUNDS WORKER KIND        what it pushes, CSV
       series.py read KIND N ROUNDS FETCHED.txt...
KIND is mean or sum, of all workers' in each round, last, only what it is in the end, or
bits2:THRESHOLD or bits1:THRESHOLD; exit 1 says what was read instead"""
import json
import sys
from fractions import Fraction

WIDTH = 1024


def pushed(n, worker, r, kind):
    """Of each element; constant in time for codes, and at most the threshold of 1/2."""
    if kind.startswith("bits"):
        return [Fraction((worker + 1) * (i - WIDTH // 2), n * WIDTH) for i in range(WIDTH)]
    return [Fraction((worker + 1) * r * (i % 7 + 1)) for i in range(WIDTH)]


def coded(v, threshold, bits):
    if bits == 1:
        return 1 if v > threshold else -1
    return threshold if v >= threshold else -threshold if v <= -threshold else 0


def codes(n, rounds, kind):
    """By round, the mean of what all workers' codes say; one element after the other."""
    bits, threshold = 1 if kind.startswith("bits1") else 2, Fraction(kind.split(":")[1])
    means = [[Fraction(0)] * WIDTH for _ in range(rounds)]
    for worker in range(n):
        for i, g in enumerate(pushed(n, worker, 1, kind)):
            residual = emitted = Fraction(0)
            for r in range(rounds):
                out = coded(residual + g, threshold, bits)
                residual += g - out
                emitted += out
                means[r][i] += Fraction(out) / n
                if bits == 2:  # in closed form: so many whole thresholds
                    assert emitted == threshold * int((r + 1) * g / threshold)
    return means


def read(kind, n, rounds):
    """What the variable is before each round, and after the last; updates are subtracted."""
    if kind.startswith("bits"):
        steps = codes(n, rounds, kind)
    else:  # the sum of (k + 1) r over workers, or their mean
        of = Fraction(n * (n + 1), 2) / (n if kind == "mean" else 1)
        steps = [[of * r * (i % 7 + 1) for i in range(WIDTH)] for r in range(1, rounds + 1)]
    values = [[Fraction(0)] * WIDTH]
    for step in steps:
        values.append([a - b for a, b in zip(values[-1], step)])
    return values


def check(kind, n, rounds, paths):
    values = read(kind, n, rounds)
    values = values[-1:] if kind == "last" else values[:-1]
    for path in paths:
        got = [json.loads(line)["w"] for line in open(path)]
        if len(got) != len(values):
            sys.exit(f"{path}: {len(got)} values, not {len(values)}")
        for r, (mine, theirs) in enumerate(zip(values, got)):
            for i in range(WIDTH):
                if mine[i] != Fraction(theirs[i]):
                    sys.exit(f"{path}: round {r}, element {i}: {theirs[i]}, not {float(mine[i])}")


def main():
    if sys.argv[1] == "feed":
        n, rounds, worker, kind = *map(int, sys.argv[2:5]), sys.argv[5]
        for r in range(1, rounds + 1):
            print(*(float(g) for g in pushed(n, worker, r, kind)), sep=",")
    else:
        check(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])


main()
