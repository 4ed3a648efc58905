#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads each table of tables.json with tf-data, and compares with what pandas has read."""
import json
import math
import pathlib
import struct
import subprocess
import sys


def plain(value):
    """Of JSON that has no infinities and no NaN: these are words."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    number = float(value)
    return "NaN" if math.isnan(number) else struct.pack("<d", number)


def read(case):
    command = ["tf-data", "csv", "-", f"x={case['x']}:float64", "--batch", "99"]
    command += ["--separator", case["separator"], "--missing", "nan"]
    fed = subprocess.run(command, input=case["csv"].encode(), capture_output=True, check=False)
    if fed.returncode:
        return fed.stderr.decode()
    command = ["tf-show", "--json"]
    shown = subprocess.run(command, input=fed.stdout, capture_output=True, check=True)
    if not shown.stdout:
        return "nothing"
    return plain(json.loads(shown.stdout, parse_int=float)["x"])


def main():
    wrong = 0
    lines = pathlib.Path(__file__).with_name("tables.json").read_text(encoding="utf-8").splitlines()
    for line in lines:
        case = json.loads(line)
        got, expected = read(case), plain(case["rows"])
        if got != expected:
            wrong += 1
            print(f"{case}: got {got}", file=sys.stderr)
    print(f"{len(lines)} tables, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
