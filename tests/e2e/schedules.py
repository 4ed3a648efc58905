# SPDX-License-Identifier: Apache-2.0
"""Sums by schedules, of what workers have brought, against what they got, to the last bit.

schedules.py KIND HOSTS FILE...: of each worker by rank what tf-show --json printed, with x, what it
brought, y, the sum, and m, the mean. HOSTS: of each worker, as 0,0,1; of two-level alone.
"""

import json
import sys

import numpy as np


def by_rank(xs):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def ring(xs, piece):
    n = len(xs)
    return by_rank([xs[(piece + k) % n] for k in range(n)])


def tree(xs, first, size):
    total, step = xs[first], 1
    while step < size and first + step < len(xs):
        total = total + tree(xs, first + step, step)
        step *= 2
    return total


def halving(xs, piece):
    power = 1
    while 2 * power <= len(xs):
        power *= 2
    pairs = len(xs) - power
    xs = [xs[2 * k] + xs[2 * k + 1] if k < pairs else xs[k + pairs] for k in range(power)]

    def halves(at, bit):
        return xs[at] if bit == power else halves(at, 2 * bit) + halves(at ^ bit, 2 * bit)

    return halves(piece, 1)


def two_level(xs, hosts, piece):
    order = list(dict.fromkeys(hosts))
    return ring([by_rank([x for x, h in zip(xs, hosts) if h == host]) for host in order], piece)


def parts_of(kind, n, hosts):
    power = 1
    while 2 * power <= n:
        power *= 2
    return {"ring": n, "halving": power, "two-level": len(set(hosts))}.get(kind, 1)


def expected(kind, xs, hosts):
    parts = parts_of(kind, len(xs), hosts)
    pieces = zip(*[np.array_split(x, parts) for x in xs])
    sums = []
    for piece, of_piece in enumerate(pieces):
        of_piece = list(of_piece)
        if kind == "ring":
            sums.append(ring(of_piece, piece))
        elif kind == "tree":
            sums.append(tree(of_piece, 0, 1 << 30))
        elif kind == "halving":
            sums.append(halving(of_piece, piece))
        elif kind == "two-level":
            sums.append(two_level(of_piece, hosts, piece))
        else:
            sums.append(by_rank(of_piece))
    return np.concatenate(sums)


def main():
    kind, hosts = sys.argv[1], [int(h) for h in sys.argv[2].split(",")]
    workers = []
    for path in sys.argv[3:]:
        with open(path, encoding="utf-8") as file:
            workers.append({k: np.array(v, np.float32) for k, v in json.load(file).items()})
    total = expected(kind, [w["x"] for w in workers], hosts)
    mean = total / np.float32(len(workers))
    for rank, worker in enumerate(workers):
        for name, value in (("y", total), ("m", mean)):
            if worker[name].tobytes() != value.tobytes():
                at = int(np.flatnonzero(worker[name] != value)[0])
                sys.exit(f"{kind}: {name}[{at}] of worker {rank}: {worker[name][at]}, {value[at]}")


main()
