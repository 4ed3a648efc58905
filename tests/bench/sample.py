#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The resources of a process while it runs: sample.py FILE COMMAND... runs one, sample.py FILE -p
# PID observes one. Adds a line to FILE: peak MB of memory (RSS), and seconds of processor time per
# second of its first thread and of all others. Rates are of the middle of the run, without its
# beginning and end.
import os
import subprocess
import sys
import time


def seconds(stat):
    with open(stat) as file:
        return int(file.read().split()[0]) * 1e-9


def look(process):
    """(when, first thread's, all others') seconds; None: it is gone."""
    tasks = f"/proc/{process}/task"
    try:
        each = {task: seconds(f"{tasks}/{task}/schedstat") for task in os.listdir(tasks)}
    except OSError:
        return None
    first = each.pop(str(process), 0)
    return time.monotonic(), first, sum(each.values())


def main():
    path, *rest = sys.argv[1:]
    child = None if rest[0] == "-p" else subprocess.Popen(rest, stdout=subprocess.DEVNULL)
    process = child.pid if child else int(rest[1])
    if child:
        with open("processes", "a") as file:
            print(process, file=file)
    looks, most = [], 0.0
    while now := look(process):
        looks.append(now)
        try:
            with open(f"/proc/{process}/status") as file:
                most = max([most] + [int(line.split()[1]) for line in file if "VmHWM" in line])
        except OSError:
            break
        if child and child.poll() is not None:
            break
        time.sleep(0.02)
    begin, end = looks[len(looks) * 2 // 5], looks[len(looks) * 9 // 10]
    took = end[0] - begin[0]
    with open(path, "a") as file:
        print(most / 1024, *((end[i] - begin[i]) / took for i in (1, 2)), file=file)
    sys.exit(child.wait() if child else 0)


main()
