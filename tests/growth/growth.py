#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether what a tool does grows as its input does: graphs of growth.lua, through the tools.

    growth.py count [all]      the pairs below, by instructions (valgrind counts them)
    growth.py time [KIND...]   each kind and tool at 10,000 and 100,000, by CPU time and memory

Seconds tell little of small inputs on a machine that others use, so the short test counts
instructions, of which there are as many in each run: what an element costs from 2 n to 4 n, for
what it costs from n to 2 n. That is 1 of a line, a little more of n log n, 2 of n^2. The long test
measures, and where time grows faster than it may it counts, too: what leaves the caches takes 1.3
times as long an element, of which no instruction tells.
"""
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "growth.lua")
KINDS = re.findall(r"^function kinds\.(\w+)", open(SCRIPT, encoding="utf-8").read(), re.M)
TRAIN = ("train", "adam", "layers", "dense", "readers", "gradloops", "rows", "joined")
CLUSTER = os.path.join(HERE, "../../examples/two.cluster")
PLACE = ["tf-place", "-q", "--devices", "CPU:0,CPU:1"]

# Each tool with what it is given: graph, placed, or text.
TOOLS = {
    "graph": (["tf-graph"], None),
    "opt": (["tf-opt", "-q"], "graph"),
    "show": (["tf-show"], "graph"),
    "print": (["tf-show", "--text"], "graph"),
    "read": (["tf-graph", "--text"], "print"),
    "sync": (["tf-replicate", "-q", "--mode", "sync", "--workers", "2"], "graph"),
    "allreduce": (["tf-replicate", "-q", "--mode", "allreduce", "--workers", "2"], "graph"),
    "place": (PLACE, "graph"),
    "part": (["tf-part", "-q"], "place"),
    "over": (["tf-place", "-q", "-c", CLUSTER], "graph"),
    "plan": (["tf-exec", "-q", "--run", "go", "--dump-plan", "-g", "-"], "graph"),
    "run": (["tf-exec", "-q", "--run", "go", "-g", "-"], "graph"),
    "save": (["tf-exec", "-q", "--run", "go", "-g", "-", "--save", "STORE"], "graph"),
}

PAIRS = [("graph", "entries", 1000), ("graph", "readers", 1000), ("graph", "gradloops", 100),
         ("opt", "train", 200), ("sync", "dense", 50), ("part", "across", 500),
         ("plan", "loops", 50), ("run", "vars", 200), ("save", "vars", 200)]
MORE = [("graph", "aliases", 1000), ("graph", "reads", 1000), ("graph", "starts", 200),
        ("place", "assigns", 200), ("part", "waits", 500), ("allreduce", "dense", 50),
        ("sync", "train", 200), ("plan", "loopvars", 200), ("plan", "fetches", 500),
        ("over", "joined", 2000)]
LIMIT = 1.3
LEAST = 2  # of the elements of a Concat
SIZES, EXPONENT, LEAST_S, LEAST_KB = (10000, 100000), 1.2, 0.3, 100000
# of which a graph holds fewer
HEAVY, HEAVIER = ("adam", "layers", "dense", "updates", "gradloops"), 4
COUNTED, CACHES = (5000, 20000), 1.4  # sizes that are counted, and what caches may explain


def command(tool, kind, n, store):
    argv, given = TOOLS[tool]
    argv = [store if word == "STORE" else word for word in argv]
    if tool == "graph":
        return argv + ["-D", f"k={kind}", "-D", f"n={n}", SCRIPT], None
    return argv, given


class Work:
    """Files of one kind and size, each made when it is first asked for."""

    def __init__(self, folder, kind, n):
        self.folder, self.kind, self.n = folder, kind, n

    def path(self, tool):
        path = os.path.join(self.folder, f"{self.kind}.{self.n}.{tool}")
        if not os.path.exists(path):
            self.run(tool, path)
        return path

    def run(self, tool, out, before=()):
        """Its CPU seconds, its largest memory in kB, what it said. GNU time starts it, since a
        process that Python starts counts Python's memory as its own."""
        store = out + ".store/"
        argv, given = command(tool, self.kind, self.n, store)
        source = self.path(given) if given else os.devnull
        usage = out + ".usage"
        with open(source, "rb") as i, open(out, "wb") as o:
            done = subprocess.run(["time", "-q", "-f", "%U %S %M", "-o", usage, *before, *argv],
                                  stdin=i, stdout=o, stderr=subprocess.PIPE, check=False)
        text = done.stderr.decode(errors="replace")
        if done.returncode:
            sys.exit(f"{tool} of {self.kind}, n = {self.n}: {done.returncode}: {text}")
        with open(usage, encoding="utf-8") as f:
            user, system, memory = f.read().split()
        os.remove(usage)
        shutil.rmtree(store, ignore_errors=True)
        return float(user) + float(system), int(memory), text


def instructions(folder, tool, kind, n):
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    said = Work(folder, kind, n).run(tool, os.path.join(folder, "out"), valgrind)[2]
    return int(re.search(r"Collected : (\d+)", said).group(1))


def count(folder):
    failed = 0
    for tool, kind, n in PAIRS:
        f = [instructions(folder, tool, kind, size) for size in (n, 2 * n, 4 * n)]
        each = (f[1] - f[0]) / n
        ratio = (f[2] - f[1]) / (2 * n) / each
        failed += ratio > LIMIT
        print(f"{tool:10} {kind:12} {each:10.0f} an element, then {ratio:.2f} times as much"
              + ("  TOO MUCH" if ratio > LIMIT else ""), flush=True)
    return failed


def exponent(large, small, least):
    return math.log(large / max(small, least / 10), 10) if large > least else 0.0


def measure(folder, tool, kind):
    """Exponents of time and memory, of what there is beyond a run with the least n."""
    out = os.path.join(folder, "out")
    sizes = (n // HEAVIER if kind in HEAVY else n for n in SIZES)
    none, small, large = (Work(folder, kind, n).run(tool, out) for n in (LEAST, *sizes))
    return (exponent(large[0] - none[0], small[0] - none[0], LEAST_S),
            exponent(large[1] - none[1], small[1] - none[1], LEAST_KB), large)


def counted(folder, tool, kind):
    """The exponent by instructions."""
    none, small, large = (instructions(folder, tool, kind, n) for n in (LEAST, *COUNTED))
    return math.log((large - none) / (small - none), COUNTED[1] / COUNTED[0])


def time(folder, kinds):
    failed = 0
    for kind in kinds:
        for tool in TOOLS:
            if tool in ("sync", "allreduce", "over", "save") and kind not in TRAIN:
                continue
            seconds, memory, large = measure(folder, tool, kind)
            by = ""
            if seconds > EXPONENT or memory > EXPONENT:  # others use the machine, too
                again = measure(folder, tool, kind)
                seconds, memory = min(seconds, again[0]), min(memory, again[1])
            if EXPONENT < seconds <= CACHES:
                seconds = counted(folder, tool, kind)
                by = " by instructions"
            bad = max(seconds, memory) > EXPONENT
            failed += bad
            print(f"{kind:12} {tool:10} {large[0]:7.2f} s, n^{seconds:.2f}{by}  "
                  f"{large[1] / 1024:7.0f} MiB, n^{memory:.2f}"
                  + ("  TOO MUCH" if bad else ""), flush=True)
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
    return failed


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("count", "time"):
        sys.exit("usage: growth.py count [all] | time [KIND...]")
    if sys.argv[2:] == ["all"]:
        PAIRS.extend(MORE)
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1] == "count":
            failed = count(folder)
        else:
            failed = time(folder, sys.argv[2:] or KINDS)
    sys.exit(f"{failed} grow faster than what they are given" if failed else 0)


main()
