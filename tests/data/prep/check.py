#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prepares each table of tables.json with tf-data, and compares with what scikit-learn has made.

usage: check.py [FILE]. It is fitted to the first rows (--fit), and by that all rows are prepared
(--prep): from a file, or from a pipe as they arrive.
"""
import json
import pathlib
import subprocess
import sys


def call(command, text=None):
    return subprocess.run(command, input=text, capture_output=True, check=False)


def prepare(case, number):
    pathlib.Path("d.csv").write_text(case["csv"], encoding="utf-8")
    done = call(["tf-data", "csv", "d.csv", *case["columns"], "--rows", f"1-{case['fitted']}",
                 "--fit", "p.json", "-o", "fitted.rec"])
    is_fitted = "--fit: no column is fitted" not in done.stderr.decode()
    if done.returncode and is_fitted:
        return done.stderr.decode()
    source = "d.csv" if number % 2 else "-"
    done = call(["tf-data", "csv", source, *case["columns"], "--batch", "99", *(
        ["--prep", "p.json"] if is_fitted else [])], case["csv"].encode())
    if done.returncode:
        return done.stderr.decode()
    return json.loads(call(["tf-show", "--json"], done.stdout).stdout)


def same(got, expected):
    if isinstance(expected, list):
        if len(expected) == 1 and not isinstance(got, list):
            return same(got, expected[0])  # of one column a vector is fed
        return len(got) == len(expected) and all(map(same, got, expected))
    return abs(float(got) - expected) <= 1e-9 * max(1, abs(expected))


def main():
    wrong = 0
    file = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("tables.json")
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        case = json.loads(line)
        got = prepare(case, number)
        if not isinstance(got, dict) or not all(same(got[k], v) for k, v in case["fed"].items()):
            wrong += 1
            print(f"{line}: got {json.dumps(got)}", file=sys.stderr)
    print(f"{len(lines)} tables, {wrong} wrong")
    return 1 if wrong or not lines else 0


sys.exit(main())
