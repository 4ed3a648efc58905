#!/usr/bin/env python3
"""What workers that send their gradients in few bits are to get, by the formulas alone: for each
step the mean of all workers' codes, and what they have lost so far, from the gradients that the
workers had. Of some kinds the mean is coded, too, by who adds its part of it. What a worker with
fewer steps has lost the first of the others gets, after the first step without it.
usage: codes.py [once] KIND BITS ARGUMENT GROUP VARIABLE WORKER.txt... (lines of tf-show --json with
VARIABLE/gradient and VARIABLE/gradient/mean); exit 1 names what differs; once: no mean is coded"""
import json
import sys

import numpy as np

F = np.float32


def one_bit(v, bits, argument):
    high, wide = v >= 0, v.astype(np.float64)
    low, up = [(np.where(side, wide, 0).sum(1) / np.maximum(side.sum(1), 1)).astype(F)
               for side in (~high, high)]
    return np.where(high, up[:, None], low[:, None])


def uniform(v, bits, argument):
    wide = v.astype(np.float64)
    low = (wide.mean(1) - 4 * wide.std(1)).astype(F)[:, None]
    width = (8 * wide.std(1) / 2**bits).astype(F)[:, None]
    with np.errstate(all="ignore"):
        part = np.nan_to_num(np.floor((v - low) / width))
    return low + (np.clip(part, 0, 2**bits - 1).astype(F) + F(.5)) * width


def threshold(v, bits, argument):
    t = F(argument)
    if bits == 1:
        return np.where(v > t, F(1), F(-1))
    return np.where(v >= t, t, np.where(v <= -t, -t, F(0)))


def top(v, bits, argument):
    kept = np.argsort(-np.abs(v), axis=1, kind="stable")[:, :int(argument)]
    values = np.zeros_like(v)
    np.put_along_axis(values, kept, np.take_along_axis(v, kept, 1), 1)
    return values


def parts(n_rows, members):
    """The rows of a mean that each of the members adds and codes."""
    return zip(members, np.array_split(np.arange(n_rows), len(members)))


def leave(gone, there, residuals, of_means):
    """The first of those who are there gets what the others had lost; of means each its part."""
    residuals[there[0]] = sum(residuals[i] for i in sorted(gone + there[:1]))
    whole = sum(of_means)
    for i in gone:
        residuals[i] = np.zeros_like(residuals[i])
    for of_mean in of_means:
        of_mean[:] = 0
    for i, rows in parts(len(whole), there):
        of_means[i][rows] = whole[rows]


def main():
    once = sys.argv[1] == "once"
    kind, bits, argument, group, name = sys.argv[1 + once:6 + once]
    bits, group = int(bits), int(group)
    workers = [[json.loads(line) for line in open(path)] for path in sys.argv[6 + once:]]
    gradients = [[np.array(step[name + "/gradient"], F).reshape(-1, group) for step in worker]
                 for worker in workers]
    residuals, of_means = [[np.zeros_like(gradients[0][0]) for _ in workers] for _ in range(2)]
    shared_out = kind in ("one_bit", "uniform") and not once
    total, sent, means, coded = 0, 0, 0, 0

    def code(v):
        return globals()[kind](v, bits, float(argument))

    for k in range(max(map(len, workers))):
        there = [i for i, steps in enumerate(workers) if len(steps) > k]
        mean = 0
        for i in there:
            v = gradients[i][k] + residuals[i]
            value = code(v)
            residuals[i] = v - value
            mean = mean + value
            total = total + np.float64(gradients[i][k])
        mean = mean / F(len(there))
        sent, means = sent + len(there) * np.float64(mean), means + np.float64(mean)
        for i, rows in parts(len(mean), there) if shared_out else ():
            v = mean[rows] + of_means[i][rows]
            mean[rows] = code(v)
            of_means[i][rows] = v - mean[rows]
        got = workers[there[0]][k][name + "/gradient/mean"]
        coded = coded + np.array(got, np.float64).reshape(-1, group)
        error = np.abs(np.array(got, F).reshape(-1, group) - mean).max() / np.abs(mean).max()
        if not error <= 1e-6:
            sys.exit(f"{name}, step {k + 1}: the mean is off by {error}")
        if any(workers[i][k][name + "/gradient/mean"] != got for i in there):
            sys.exit(f"{name}, step {k + 1}: the workers have other means")
        gone = [i for i, steps in enumerate(workers) if len(steps) == k]
        if gone:
            leave(gone, there, residuals, of_means)
    # nothing is lost: what counted, and what waits, are all gradients, and all means of codes
    if np.abs(sent + sum(map(np.float64, residuals)) - total).max() > 1e-4:
        sys.exit(f"{name}: gradients were lost")
    if np.abs(coded + sum(map(np.float64, of_means)) - means).max() > 1e-4:
        sys.exit(f"{name}: means were lost")


main()
