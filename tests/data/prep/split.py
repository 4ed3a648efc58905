#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Splits random streams with tf-data: whole, cut, sharded and resumed, a row is in the same part.

usage: split.py N. Each row has its number, a stratum, a group and a value to be prepared.
"""
import collections
import json
import math
import pathlib
import random
import subprocess
import sys


def feed(text, *arguments):
    """The rows that are fed: number, and the value as it was prepared."""
    command = ["tf-data", "csv", "-", "n=n:int32", "v=v:scale:impute=mean:float64", "--prep",
               "prep.json", *arguments]
    fed = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if fed.returncode:
        # a part may have no rows, or a shard none of a part
        assert b"no rows" in fed.stderr or b"make no batch" in fed.stderr, fed.stderr
        return []
    shown = subprocess.run(["tf-show", "--json"], input=fed.stdout, capture_output=True, check=True)
    rows = []
    for line in shown.stdout.splitlines():
        step = json.loads(line)
        rows += zip(step["n"], step["v"])
    return rows


def check_shares(rows, parts, shares, by):
    """Within a block each stratum has its shares."""
    divisor = math.gcd(*shares)
    block = sum(shares) // divisor
    strata = collections.Counter(row[1] if by else "" for row in rows)
    for stratum, n in strata.items():
        for part, share in zip(parts, shares):
            there = sum(1 for k, _ in part if (rows[k][1] if by else "") == stratum)
            least = n // block * (share // divisor)
            assert least <= there <= least + min(share // divisor, n % block), (stratum, there)


def check(rng):
    rows = [(k, rng.choice("aabc"), rng.randrange(8), rng.choice(["", repr(rng.random() * 9)]))
            for k in range(rng.randrange(20, 200))]
    rows[0] = (0, "a", 1, "3")
    lines = ["n,stratum,group,v"] + [",".join(map(str, row)) for row in rows]
    text = "\n".join(lines) + "\n"
    pathlib.Path("d.csv").write_text(text, encoding="utf-8")
    by = rng.choice([[], ["--stratify", "stratum"], ["--group", "group"]])
    if rng.random() < 0.7:
        shares = rng.choice([[70, 15, 15], [80, 20], [1, 1, 1], [97, 3], [6, 4]])
        split = ["--split", "/".join(map(str, shares)) + rng.choice(["", ":s1"])]
        ways = [split + by + ["--part", part]
                for part in (["train", "valid", "test"] if len(shares) == 3 else ["train", "test"])]
    else:
        shares = [1] * rng.randrange(2, 7)
        ways = [["--fold", f"{i}/{len(shares)}"] + by + ["--part", "valid"]
                for i in range(len(shares))]
    fitted = subprocess.run(["tf-data", "csv", "d.csv", "v=v:scale:impute=mean", "--rows", "1-15",
                             "--fit", "prep.json", "-o", "fitted.rec"], check=True)
    assert fitted.returncode == 0
    parts = [feed(text, *way) for way in ways]
    whole = feed(text)
    assert sorted(sum(parts, [])) == whole and len(whole) == len(rows)
    if by[:1] != ["--group"]:
        check_shares(rows, parts, shares, by)
    groups = [{rows[k][2] for k, _ in part} for part in parts]
    assert by[:1] != ["--group"] or sum(map(len, groups)) == len(set().union(*groups))
    way, part = rng.choice(list(zip(ways, parts)))
    cut = rng.randrange(1, len(rows))
    assert feed("\n".join(lines[:cut + 1]) + "\n", *way) == [r for r in part if r[0] < cut]
    shards = [feed(text, *way, "--shard", f"{i}/3") for i in range(3)]
    assert sorted(sum(shards, [])) == part
    batch, after = rng.randrange(1, 9), rng.randrange(0, 3)
    if after * batch < len(part):
        assert feed(text, *way, "--batch", str(batch), "--after", str(after)) == \
            part[after * batch:]
    if way[0] == "--fold":
        others = feed(text, *way[:-1], "train")
        assert sorted(others + part) == whole


def main():
    rng = random.Random(11)
    for _ in range(int(sys.argv[1])):
        check(rng)


main()
