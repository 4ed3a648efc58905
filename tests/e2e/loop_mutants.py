#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs whose loops were damaged in their text: refused with 65 and one line, or run to an end.

loop_mutants.py TEXT FIRST COUNT ENTRY [FEED]...   TEXT as tf-show --text prints it

Prints what each mutant that fails did, and at the end how many were refused and run. One that
computes on is an endless loop, which a graph may ask for; one that waits fails.
"""
import os
import random
import re
import subprocess
import sys
import time

ENDLESS = 1.5  # seconds of computing, of a graph that needs a hundredth
PATIENCE = 60  # seconds of waiting


def read_graph(path):
    """Lines that are no nodes; and [name, op, inputs, attributes] of each node."""
    head, nodes = [], []
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            found = re.match(r"(\S+) = (\w+)\((.*?)\)( \{.*?\})?( : .*)?( at \S+)?$", line)
            if found:
                name, op, inputs, attrs = found.groups()[:4]
                nodes.append([name, op, [i for i in inputs.split(", ") if i], attrs or ""])
            else:
                head.append(line)
    return head, nodes


def swap(draw, nodes, a, b):
    if a[2] and b[2]:
        i, j = draw.randrange(len(a[2])), draw.randrange(len(b[2]))
        a[2][i], b[2][j] = b[2][j], a[2][i]


def drop(draw, nodes, a, b):
    if a[2]:
        del a[2][draw.randrange(len(a[2]))]


def repeat(draw, nodes, a, b):
    if a[2]:
        a[2].append(draw.choice(a[2]))


def rewire(draw, nodes, a, b):
    if a[2]:
        a[2][draw.randrange(len(a[2]))] = draw.choice(nodes)[0]


def other_slot(draw, nodes, a, b):
    if a[2]:
        i = draw.randrange(len(a[2]))
        a[2][i] = a[2][i][:-2] if a[2][i].endswith(":1") else a[2][i] + ":1"


def control(draw, nodes, a, b):
    a[2].append("^" + b[0])


def turn(draw, nodes, a, b):
    a[2].reverse()


def other_constant(draw, nodes, a, b):
    enter = draw.choice([n for n in nodes if n[1] == "Enter"])
    was = "is_constant=true" in enter[3]
    enter[3] = re.sub("is_constant=[a-z]*", "is_constant=" + ("false" if was else "true"), enter[3])


def other_frame(draw, nodes, a, b):
    enters = [n for n in nodes if n[1] == "Enter"]
    draw.choice(enters)[3] = draw.choice(enters)[3]


def other_op(draw, nodes, a, b):
    steering = [n for n in nodes if n[1] in ("Enter", "Exit", "NextIteration", "LoopCond")]
    to, like = draw.choice(steering), draw.choice(steering)
    to[1], to[3] = like[1], like[3]


KINDS = [swap, drop, repeat, rewire, other_slot, control, turn]
KINDS += [other_constant, other_frame, other_op]


def mutant(head, nodes, seed):
    draw = random.Random(seed)
    nodes = [[name, op, list(inputs), attrs] for name, op, inputs, attrs in nodes]
    inside = [n for n in nodes if "while" in n[0] or n[1] == "Exit"]
    for _ in range(draw.choice([1, 1, 2])):
        draw.choice(KINDS)(draw, nodes, draw.choice(inside), draw.choice(inside))
    lines = [f"{name} = {op}({', '.join(inputs)}){attrs}" for name, op, inputs, attrs in nodes]
    return "\n".join(head + lines) + "\n"


def computed(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        times = file.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def run(command, source, out):
    """Exit status and stderr; status None: it computes without an end."""
    with open(out, "wb") as stdout, open(out + ".err", "wb") as stderr, open(source, "rb") as stdin:
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            process.wait(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            if computed(process) > ENDLESS:
                break
    endless = process.poll() is None and time.monotonic() < until
    process.kill()
    process.wait()
    with open(out + ".err", encoding="utf-8", errors="replace") as file:
        return None if endless else process.returncode, file.read()


def main():
    head, nodes = read_graph(sys.argv[1])
    first, count, entry = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    feeds = [word for feed in sys.argv[5:] for word in ("--feed", feed)]
    refused = ran = endless = failed = 0
    for seed in range(first, first + count):
        with open("mutant.txt", "w", encoding="utf-8") as file:
            file.write(mutant(head, nodes, seed))
        step, (status, said) = "tf-graph", run(["tf-graph", "--text"], "mutant.txt", "mutant.tfg")
        clear = status == 65 and said.count("\n") == 1
        refused += clear
        if status == 0:
            command = ["tf-exec", "-q", "--run", entry] + feeds
            step, (status, said) = "tf-exec", run(command, "mutant.tfg", "mutant.out")
            clear = status in (None, 0) or (status == 65 and said.count("\n") == 1)
            ran += status == 0
            endless += status is None
        if not clear:
            failed += 1
            os.rename("mutant.txt", f"mutant-{seed}.txt")
            print(f"{seed}: {step} ends with {status}: {said}")
    print(f"{refused} refused, {ran} ran, {endless} endless, {failed} failed")
    sys.exit(failed > 0)


main()
