#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two shards that resume from a store, one of which is refused one system call on its files.

restore_faults.py STORE VALUE EVERY   in whose newest checkpoint v and w are VALUE; of the calls
                                      each EVERY-th is tried, with one errno

Either both go on from the newest checkpoint, or the one that was refused ends with 71 or 74 and a
line that has the system's word. Prints what did neither, and how often each was.
"""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

CALLS = """openat newfstatat fstat statx pread64 read lseek getdents64 fcntl flock ftruncate
           fallocate mmap mremap access pwrite64 fdatasync unlink rename""".split()
ERRORS = {"EIO": "Input/output error", "EMFILE": "Too many open files",
          "ENOMEM": "Cannot allocate memory"}
PATIENCE = 60  # seconds


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


class Shard:
    """Of two, one that resumes from ./store, traced if there is something to inject."""

    def __init__(self, number, trace):
        self.name = f"ps:{number}"
        self.traced = bool(trace)
        serve = ["tf-ps", "serve", "-c", "c", "--task", self.name, "--save", "store/", "--resume"]
        with open(self.name, "wb") as stderr:
            self.process = subprocess.Popen(trace + serve, stdin=subprocess.DEVNULL, stderr=stderr)

    def said(self):
        with open(self.name, encoding="utf-8", errors="replace") as file:
            return [line for line in file.read().splitlines() if line.startswith("tf-ps: ")]

    def is_ready(self):
        return any("ready on" in line for line in self.said())

    def end(self):
        if self.process.poll() is None:
            for pid in children(self.process.pid) if self.traced else [self.process.pid]:
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def values():
    """Of v and w, as the shards have them."""
    found = []
    for name in "vw":
        get = subprocess.run(["tf-ps", "get", name, "-c", "c"], stdout=subprocess.PIPE, check=True)
        show = ["tf-show", "--json"]
        shown = subprocess.run(show, input=get.stdout, stdout=subprocess.PIPE, check=True).stdout
        found.extend(set(json.loads(shown)[name]))
    return found


def fresh(store):
    shutil.rmtree("store", ignore_errors=True)
    shutil.copytree(store, "store")
    for name in ("p0", "p1", "trace.txt"):
        if os.path.exists(name):
            os.unlink(name)


def paths():
    for folder, _, names in os.walk("store"):
        for path in [folder] + [os.path.join(folder, name) for name in names]:
            yield from ("-P", path, "-P", os.path.abspath(path))


def resume(store, victim, calls, inject=None):
    """How it went, and the names of the calls that were traced."""
    fresh(store)
    trace = ["strace", "-f", "-qq", "-o", "trace.txt", *paths(), "-e", f"trace={','.join(calls)}"]
    trace += ["-e", f"inject={calls[0]}:{inject}"] if inject else []
    shards = [Shard(i, trace if i == victim else []) for i in (0, 1)]
    until = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until and shards[victim].process.poll() is None:
            if all(shard.is_ready() for shard in shards):
                found = values()
                break
            time.sleep(0.01)
        else:
            found = shards[victim].process.poll()
    finally:
        for shard in shards:
            shard.end()
    with open("trace.txt", encoding="utf-8", errors="replace") as file:
        traced = re.findall(r"^\d+ +(\w+)\(", file.read(), re.M)
    return found, shards[victim].said(), traced


def main():
    store, value, every = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    with open("c", "w", encoding="ascii") as file:
        file.write("task ps:0 unix:p0\ntask ps:1 unix:p1\ntask worker:0 unix:w0\n")
    right = ended = wrong = 0
    turn = itertools.count()
    errors = itertools.cycle(ERRORS)
    for victim in (0, 1):
        found, said, traced = resume(store, victim, CALLS)
        assert found == [value, value], (found, said)
        for call, n in [(call, n + 1) for call in CALLS for n in range(traced.count(call))]:
            if next(turn) % every:
                continue
            error = next(errors)
            found, said, _ = resume(store, victim, [call], f"error={error}:when={n}")
            if found == [value, value]:
                right += 1
            elif found in (71, 74) and said and ERRORS[error] in said[-1]:
                ended += 1
            else:
                wrong += 1
                print(f"ps:{victim}: {call} {n}: {error}: {found}: {said}")
    print(f"{right} went on, {ended} ended, {wrong} wrong")
    sys.exit(wrong > 0)


main()
