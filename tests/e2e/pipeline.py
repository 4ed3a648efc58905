#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a pipeline did, read from a trace; and random nets for pipelines.

pipeline.py trace GRAPH TRACE ORDER  each stage did its items in the schedule's order, worked out
                                     here apart; GRAPH as tf-show --text has it, TRACE as --json
pipeline.py net SEED STAGES          a random net, as a script; each node asks for its stage
pipeline.py close TOLERANCE A B      two results (tf-show --json) agree, relative to their sizes
"""
import collections
import json
import random
import re
import sys


def schedule(order, stages, stage, batches):
    """Items of a stage: ("forward", k) and ("backward", k)."""
    name, _, limit = order.partition(",flight=")
    flight = batches if name == "gpipe" else min(stages - stage, int(limit or stages), batches)
    items = [("forward", k) for k in range(flight - 1)]
    for k in range(batches):
        items += [("forward", k + flight - 1)] if k + flight - 1 < batches else []
        items += [("backward", k)]
    return items


def read_items(graph):
    """Node -> (stage, phase, micro-batch), of the text of a graph."""
    devices, items = [], {}
    for line in open(graph, encoding="utf-8"):
        found = re.match(r"(tower_(\d+)/(\S+)) = .*? @\??(\S+) ", line)
        if not found or re.match("gradients/while(_count)?/", found[3]):  # saves what loops make
            continue
        name, k, rest, device = found.groups()
        if "gradient" in rest:
            items[name] = [device, "backward", int(k)]
        elif rest != "accuracy" and not rest.startswith("accuracy/"):
            items[name] = [device, "forward", int(k)]
        if items.get(name) and device not in devices:
            devices.append(device)
    for item in items.values():
        item[0] = sorted(devices).index(item[0])
    return items, len(devices)


def check_trace(graph, trace, order):
    items, stages = read_items(graph)
    spans = collections.defaultdict(dict)  # (step, stage) -> (phase, k) -> [start, end]
    for line in open(trace, encoding="utf-8"):
        event = json.loads(line)
        if event.get("node") not in items:
            continue
        stage, phase, k = items[event["node"]]
        start, end = event["start"], event["start"] + event["ns"]
        span = spans[event["step"], stage].setdefault((phase, k), [start, end])
        span[:] = [min(span[0], start), max(span[1], end)]
    assert spans, "the trace has nothing of the towers"
    for (step, stage), done in sorted(spans.items()):
        batches = max(k for _, k in done) + 1
        expected = [i for i in schedule(order, stages, stage, batches) if i in done]
        actual = sorted(done, key=done.get)
        assert actual == expected, f"step {step}, stage {stage}: {actual}, not {expected}"
        for one, other in zip(actual, actual[1:]):
            assert done[one][1] <= done[other][0], f"{other} began within {one}"
        flight = most = 0
        for phase, _ in actual:
            flight += 1 if phase == "forward" else -1
            most = max(most, flight)
        print(f"step {step} stage {stage}: {len(actual)} items, {most} in flight")
        if stage == 0 and order == "1f1b" and batches >= stages:
            # the last stage has micro-batch 0 while this one goes forward with later ones
            assert done["forward", stages - 1][0] < done["backward", 0][0]
    assert len({stage for _, stage in spans}) == stages


def random_net(seed, stages):
    random.seed(seed)
    optimizer = random.choice(
        ["sgd{rate = 0.1}", "momentum{rate = 0.05}", "adam{rate = 0.01}"])
    rows = ["x = Placeholder{dtype = float64, shape = {-1, 8}}",
            "y = Placeholder{dtype = int32, shape = {-1}}",
            "local h = {}"]
    values, stage = ["x"], 0  # those that later nodes may take, all of 8 columns
    for i in range(stages * 3 + random.randrange(4)):
        stage = max(stage, i * stages // (stages * 3)) if i < stages * 3 else stages - 1
        a, b = values[-1], random.choice(values)
        made = random.choice([
            f'nn.dense({a}, 8, {{name = "d{i}", activation = Tanh}})',
            f'nn.dense({a} * {b}, 8, {{name = "d{i}", activation = Sigmoid}})',
            f"Tanh({a}) + 0.5 * {b}",
            f'nn.dense(Concat(1, {{{a}, {b}}}), 8, {{name = "d{i}"}})',
            f'{a} + nn.embedding(y, 10, 8, {{name = "e{i}", dtype = float64}})',
        ]) if i % 3 else f'nn.dense({a}, 8, {{name = "d{i}", activation = Tanh}})'
        rows.append(f'device("/device:CPU:{stage}", function() h[{i}] = {made} end)')
        values.append(f"h[{i}]")
    rows += ["local out",
             f'device("/device:CPU:{stages - 1}", function()',
             f'  out = nn.dense({values[-1]}, 10, {{name = "out"}})',
             "  loss = nn.cross_entropy(out, y)",
             "end)",
             "accuracy = nn.accuracy(out, y)", "entry.eval = accuracy",
             f"entry.train = minimize(loss, optim.{optimizer})"]
    print("\n".join(rows))


def flatten(value):
    return [x for v in value for x in flatten(v)] if isinstance(value, list) else [value]


def check_close(tolerance, one, other):
    a = [json.loads(line) for line in open(one, encoding="utf-8")]
    b = [json.loads(line) for line in open(other, encoding="utf-8")]
    assert len(a) == len(b) > 0, f"{len(a)} and {len(b)} records"
    most = 0
    for left, right in zip(a, b):
        assert left.keys() == right.keys()
        for key in left:
            for x, y in zip(flatten(left[key]), flatten(right[key]), strict=True):
                if isinstance(x, (int, float)):
                    most = max(most, abs(x - y) / max(1, abs(x)))
    print(f"differ by {most:g} at most")
    assert most <= float(tolerance)


if __name__ == "__main__":
    if sys.argv[1] == "trace":
        check_trace(*sys.argv[2:5])
    elif sys.argv[1] == "net":
        random_net(int(sys.argv[2]), int(sys.argv[3]))
    else:
        check_close(*sys.argv[2:5])
