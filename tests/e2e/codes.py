#!/usr/bin/env python3
"""What workers that send their gradients in few bits are to get, by the formulas alone: for each
step the mean of all workers' codes, and what they have lost so far, from the gradients that the
workers had. Of some kinds the mean is coded, too, by who adds its part of it.
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


def main():
    once = sys.argv[1] == "once"
    kind, bits, argument, group, name = sys.argv[1 + once:6 + once]
    code, bits, group = globals()[kind], int(bits), int(group)
    workers = [[json.loads(line) for line in open(path)] for path in sys.argv[6 + once:]]
    n, residuals, of_mean = len(workers), [0] * len(workers), 0
    shared_out = kind in ("one_bit", "uniform") and not once
    total, sent = 0, 0
    for k, step in enumerate(zip(*workers)):
        mean = 0
        for i, worker in enumerate(step):
            gradient = np.array(worker[name + "/gradient"], F)
            v = gradient.reshape(-1, group) + residuals[i]
            value = code(v, bits, float(argument))
            residuals[i] = v - value
            mean = mean + value
            total = total + gradient.astype(np.float64).reshape(-1, group)
        mean = mean / F(n)
        if shared_out:
            v = mean + of_mean
            mean = code(v, bits, float(argument))
            of_mean = v - mean
        got = np.array(step[0][name + "/gradient/mean"], F).reshape(-1, group)
        error = np.abs(got - mean).max() / np.abs(mean).max()
        if not error <= 1e-6:
            sys.exit(f"{name}, step {k + 1}: the mean is off by {error}")
        for worker in step[1:]:
            if worker[name + "/gradient/mean"] != step[0][name + "/gradient/mean"]:
                sys.exit(f"{name}, step {k + 1}: the workers have other means")
        sent = sent + got.astype(np.float64)
    # nothing is lost: what counted, and what waits, are all gradients
    rest = sum(r.astype(np.float64) for r in residuals) + n * np.float64(of_mean)
    if np.abs(n * sent + rest - total).max() > 1e-4:
        sys.exit(f"{name}: gradients were lost")


main()
