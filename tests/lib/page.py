#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""page.py PAGE [--write]: types the ```console sessions of a page, in the current folder.

A command follows "$ ", and goes on in lines that begin with two blanks; what it prints follows.
"# exit N" behind it is its status, 0 without. What it prints is compared, where a figure is as good
as another. --write puts what is printed into the page. What stands in a block that is named, as
```lua net.lua, is written to this file first.
"""
import os
import pty
import re
import subprocess
import sys
import tempfile


def sessions(lines):
    """(index behind the command, command, what it prints, lines of that)."""
    inside = False
    i = 0
    while i < len(lines):
        if lines[i].startswith("```"):
            inside = lines[i] == "```console"
        if not inside or not lines[i].startswith("$ "):
            i += 1
            continue
        command = [lines[i][2:]]
        i += 1
        while lines[i].startswith("  "):
            command.append(lines[i])
            i += 1
        end = i
        while not lines[end].startswith(("$ ", "```")):
            end += 1
        yield i, "\n".join(command), lines[i:end]
        i = end


def write_files(text):
    for name, content in re.findall(r"^```[a-z]+ (\S+)\n(.*?)^```$", text, re.M | re.S):
        open(name, "w").write(content)


def type_it(command):
    """Its status, and the lines on stdout, which is a terminal, and then on stderr, which is none:
    no progress is drawn."""
    ours, theirs = pty.openpty()
    with tempfile.TemporaryFile("w+") as err:
        run = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL,
                               stdout=theirs, stderr=err)
        os.close(theirs)
        out = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:  # all have closed it
                break
            out += more
        os.close(ours)
        code = run.wait()
        err.seek(0)
        lines = out.decode().splitlines() + err.read().splitlines()
    return code if code >= 0 else 128 - code, lines


def figures(text):
    return re.sub(r"[0-9][0-9.]*(e[+-]?[0-9]+)?", "0", re.sub(r" +", " ", text.strip()))


def main():
    path = sys.argv[1]
    lines = open(path).read().split("\n")
    write_files("\n".join(lines))
    wrong = 0
    typed = []
    written = list(lines)
    shift = 0
    for at, command, wanted in sessions(lines):
        status = re.search(r"  # exit ([0-9]+)$", command)
        code, is_there = type_it(command)
        typed.append(command)
        written[at + shift:at + shift + len(wanted)] = is_there
        shift += len(is_there) - len(wanted)
        if code != int(status[1] if status else 0):
            wrong += 1
            print(f"{path}: status {code}: {command}", *is_there, sep="\n")
        elif "--write" not in sys.argv and [*map(figures, is_there)] != [*map(figures, wanted)]:
            wrong += 1
            print(f"{path}: {command}\nwanted:", *wanted, "is:", *is_there, sep="\n")
    if "--write" in sys.argv:
        open(path, "w").write("\n".join(written))
    print(f"{len(typed)} commands")
    sys.exit(wrong > 0 or not typed)


main()
