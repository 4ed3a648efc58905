#!/usr/bin/env python3
"""What tf-replicate chooses for each layer, against a count of who sends what to whom. For random
nets and clusters with slow adapters every choice of shards, all-reduce, or shards that only add,
and in each of gradient or factors for each layer, is enumerated: a step takes as long as what the
busiest adapter sends, or gets, one phase after the other, and 1.3 times as long where several flows
come to it, but for pushes to a host without workers. What goes by shards that only add comes back
in the same phase. Where such hosts are the busiest of both phases, workers push while others read:
the first is done with its reads, which each worker has of a layer, in the middle between when it
would be if it were served alone and when all are; as long as the last one reads, pushes of the
others cost nothing. Where each host has a worker, and a shard, the bytes are compared with the
formulas that are published of them (Zhang et al., Poseidon, USENIX ATC 2017, Table 1).
usage: hybrid.py SEED CASES (the tools are on PATH); exit 1 says what is not the cheapest"""
import itertools
import random
import re
import subprocess
import sys

BANDWIDTH = 10240  # bytes a second of an adapter
LATENCY = 50e-6
MEETING_LOSS = 1.3
FLOAT = 4
SERVED = "sync,update=worker"
SMALL = 65536  # bytes of what goes from worker to worker in any case
MODES = ("sync", SERVED, "allreduce")


def among(workers, floats):
    """Each worker sends so many to each other one."""
    return [(a, b, floats) for a in workers for b in workers if a is not b]


def between(senders, takers, floats):
    return [(a, b, floats) for a in senders for b in takers]


def by_servers(case, floats, back):
    """Each worker sends so many, and gets so many times as many back."""
    workers, shards = case["workers"], case["shards"]
    each = floats / len(shards)
    return [between(workers, shards, each) + between(shards, workers, back * each)]


def served(case, way, layer):
    (m, n), k, workers = layer, case["batch"], case["workers"]
    if way == "gradient":
        return by_servers(case, m * n, 1)
    each = []
    for floats in (k * m, k * n):
        is_served = len(workers) > 2 and floats * FLOAT > SMALL
        each += (by_servers(case, floats, len(workers) - 1) if is_served else
                 [among(workers, floats)])
    return each


def phases(case, mode, way, layer):
    """Who sends how many floats to whom, by phases; a task is [its host]."""
    (m, n), k = layer, case["batch"]
    workers, shards = case["workers"], case["shards"]
    if mode == SERVED and (way == "factors" or m * n * FLOAT > SMALL):
        return served(case, way, layer)
    if mode == "allreduce" and way == "factors":
        return [among(workers, k * (m + n))]
    if mode != "sync" and m * n * FLOAT <= SMALL:
        return [among(workers, m * n)]
    if mode != "sync":
        return [among(workers, m * n / len(workers))] * 2
    pushed = k * (m + n) if way == "factors" else m * n
    return [between(shards, workers, m * n / len(shards)),
            between(workers, shards, pushed / len(shards))]


def busiest(flows, lossless=()):
    """Floats that would take the busiest adapter as long without loss, and whether some host whose
    adapter loses nothing is as busy as any."""
    sent, got = {}, {}
    for (a,), (b,), floats in flows:
        if a != b:
            sent.setdefault(a, []).append(floats)
            got.setdefault(b, []).append(floats)
    of = {h: max(sum(sent.get(h, [])),
                 sum(got.get(h, [])) *
                 (MEETING_LOSS if len(got.get(h, [])) > 1 and h not in lossless else 1))
          for h in {*sent, *got}}
    most = max(of.values())
    return most, any(of[h] >= most * (1 - 1e-9) for h in lossless if h in of)


def crossing(case, mode, way, layer):
    """Floats, as of the busiest adapter, of all phases."""
    if mode != "sync":
        return sum(busiest(flows)[0] for flows in phases(case, mode, way, layer))
    of_workers = {h for (h,) in case["workers"]}
    apart = {h for (h,) in case["shards"]} - of_workers
    (reads, from_shards), (pushes, to_shards) = (
        busiest(flows, apart) for flows in phases(case, mode, way, layer))
    if not (from_shards and to_shards):
        return reads + pushes
    n = len(case["workers"])
    first = (reads / n + reads) / 2
    return max(first + pushes, reads + pushes / n)


def products(case, mode, way):
    """Products of a layer's factors that are made one after the other."""
    if way == "gradient":
        return 1
    n = len(case["workers"])
    return n / len(case["shards"]) if mode == "sync" else n


def seconds(case, mode, way, layer):
    floats = crossing(case, mode, way, layer)
    return floats * FLOAT / BANDWIDTH + products(case, mode, way) * case["product"]


def exchange(case, mode, ways):
    return (sum(seconds(case, mode, *each) for each in zip(ways, case["layers"])) +
            LATENCY * (3 if mode == "sync" else 2))


def of_each(case):
    return itertools.product(("gradient", "factors"), repeat=len(case["layers"]))


def check_formulas(case):
    """Floats that a host with a worker and a shard sends and gets."""
    p, s, k = len(case["workers"]), len(case["shards"]), case["batch"]
    if case["hosts"] != "both" or s > p:
        return
    for layer in case["layers"]:
        m, n = layer
        published = {("sync", "gradient"): 2 * m * n * (p + s - 2) / s,
                     ("allreduce", "factors"): 2 * k * (p - 1) * (m + n)}
        if m * n * FLOAT > SMALL:
            published["allreduce", "gradient"] = 2 * m * n * (p + p - 2) / p
        if s == 1:
            published["sync", "factors"] = (p - 1) * (m * n + k * m + k * n)
        for (mode, way), floats in published.items():
            flows = sum(phases(case, mode, way, layer), [])
            both = sum(f * ((a == [0]) + (b == [0])) for a, b, f in flows if a != b)
            assert abs(both - floats) < 1e-6 * floats, (case, mode, way, both, floats)


def draw(rng):
    """A task is a list, so that two on one host are not the same."""
    hosts = rng.choice(("both", "own", "any"))
    p, s = rng.randint(2, 6), rng.randint(1, 6)
    if hosts == "any":
        places = [[0], [1]] + [[rng.randrange(4)] for _ in range(p + s - 2)]
    else:
        shards_from = 0 if hosts == "both" else p
        places = [[i] for i in range(p)] + [[shards_from + i] for i in range(s)]
    widths = [int(2**rng.uniform(2, 9)) for _ in range(rng.randint(2, 6))]
    return {"hosts": hosts, "workers": places[:p], "shards": places[p:],
            "batch": int(2**rng.uniform(0, 8)), "layers": list(zip(widths, widths[1:])),
            "product": rng.choice((0, 0.01, 1))}


def write(case):
    with open("hybrid.c", "w") as out:
        for job, tasks in (("worker", case["workers"]), ("ps", case["shards"])):
            for i, (host,) in enumerate(tasks):
                print(f"task {job}:{i} h{host}:{len(job)}{i}", file=out)
        for host in sorted({t[0] for t in case["workers"] + case["shards"]}):
            print(f"host h{host} bandwidth={BANDWIDTH // 1024}k", file=out)
    with open("hybrid.costs", "w") as out:
        print(f"op MatMul {case['product'] * 1e9:.0f}", file=out)
    with open("hybrid.lua", "w") as out:
        print(f"local h = Placeholder{{dtype = float32, shape = {{-1, {case['layers'][0][0]}}}}}",
              file=out)
        for i, (m, n) in enumerate(case["layers"]):
            print(f"h = MatMul(h, variable{{name = 'w{i}', shape = {{{m}, {n}}}, init = 0}})",
                  file=out)
        print("entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 1})", file=out)


def explained(case):
    """By mode what is sent of each layer, and seconds; and the mode that is taken."""
    write(case)
    text = subprocess.run(
        "tf-graph hybrid.lua | tf-opt | tf-replicate --mode auto -c hybrid.c --explain"
        f" --costs hybrid.costs --assume {case['batch']} 2>&1 >hybrid.tfg",
        shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout
    ways, times, taken = {}, {}, None
    for line in text.splitlines():
        if re.match(r"\S+,factors=auto:$", line):
            mode = line[:-len(",factors=auto:")]
            ways[mode] = {}
        elif re.match(r"w\d ", line):
            ways[mode][int(line.split()[0][1:])] = line.split()[-1]
        elif re.match(r"\S+,factors=auto .* ms", line):
            named = line.split()[0][:-len(",factors=auto")]
            times[named] = float(line.split()[1]) / 1e3
            taken = named if line.endswith("taken") else taken
    return {m: [w[i] for i in range(len(case["layers"]))] for m, w in ways.items()}, times, taken


def near(a, b):
    return abs(a - b) <= 1e-6 * b + 1e-6  # what is printed has microseconds


def check(case):
    check_formulas(case)
    ways, times, taken = explained(case)
    least = {mode: min(exchange(case, mode, each) for each in of_each(case))
             for mode in MODES}
    for mode, chosen in ways.items():
        chosen_takes = exchange(case, mode, chosen)
        assert near(chosen_takes, least[mode]), (case, mode, chosen, chosen_takes, least[mode])
        assert near(times[mode], least[mode]), (case, mode, times[mode], least[mode])
    assert near(least[taken], min(least.values())), (case, taken, least)
    return taken, ways


def main():
    rng, seen, chosen = random.Random(int(sys.argv[1])), {}, set()
    for _ in range(int(sys.argv[2])):
        taken, ways = check(draw(rng))
        chosen |= {(mode, way) for mode, each in ways.items() for way in each}
        for way in ways[taken]:
            seen[taken, way] = seen.get((taken, way), 0) + 1
    print("layers of", dict(sorted(seen.items())))
    assert {mode for mode, _ in seen} == set(MODES), "a mode was never the cheapest"
    assert len(chosen) == 2 * len(MODES), "of a mode a way was never the cheapest"


try:
    main()
except AssertionError as wrong:
    sys.exit(f"not the cheapest: {wrong}")
