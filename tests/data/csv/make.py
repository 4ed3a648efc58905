#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tables.json: random tables as programs write them, and what pandas reads in them.

Each line is a table, the columns that are asked for, and their rows as float64. Python's own csv
must agree. Needs pandas.
"""
import csv
import io
import json
import math
import random

import pandas

MISSING = ["", "NA", "N/A", "?"]
NAMES = ["a", "b2", "col c", "true b", "x,y", 'say "q"', "naïve", "2nd"]


def number(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return str(rng.randrange(-9, 100))
    if kind == 1:
        return repr(rng.uniform(-1, 1))
    if kind == 2:
        return "%.3e" % rng.uniform(-1e9, 1e9)
    if kind == 3:
        return "+" + str(rng.randrange(10)) + "."
    if kind == 4:
        return "%8.3f" % rng.uniform(-100, 100)
    return rng.choice(["inf", "-inf", ".5", "-0.0", "1e-320", "12345678901234567890"])


def cell(rng, is_bool, holes):
    if rng.random() < holes:
        return rng.choice(MISSING)
    return rng.choice(["True", "False"]) if is_bool else number(rng)


def pad(rng, text):
    return rng.choice(["", " ", "  ", "\t"]) + text + rng.choice(["", " ", " \t"])


def header_of(rng, kind, width):
    if kind == "names":
        return rng.sample(NAMES, width)
    if kind == "holes":  # an index without a name, or names that say nothing
        return [rng.choice(MISSING)] + rng.sample(NAMES, width - 1)
    if kind == "counted":  # a DataFrame of an array
        return [""] + [str(i) for i in range(width - 1)]
    return None


def table(rng):
    width, n = rng.randrange(2, 6), rng.randrange(1, 7)
    kind = rng.choice(["none", "none", "names", "names", "holes", "counted"])
    holes = rng.choice([0, 0, 0.3])
    bools = [rng.random() < 0.3 for _ in range(width)]
    header = header_of(rng, kind, width)
    rows = [[cell(rng, bools[i], holes) for i in range(width)] for _ in range(n)]
    if kind == "counted":
        for i, row in enumerate(rows):
            row[0] = str(i)
    if kind == "none":  # its first row must say something, and not what a header of pandas says
        rows[0][0] = "0.25"
    # Padding is not part of a quoted text to everybody: only where nothing needs quotes.
    padded = rng.random() < 0.3
    separator = rng.choice([",", ",", ";", "\t", "|"])
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=separator,
        quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
        lineterminator=rng.choice(["\n", "\n", "\r\n", "\r"]),
    )
    if header:
        writer.writerow(header)
    for row in rows:
        writer.writerow([pad(rng, c) if padded and separator != "\t" else c for c in row])
    text = out.getvalue()
    if rng.random() < 0.3:
        text = text.rstrip("\r\n")
    if rng.random() < 0.2:
        text = "\ufeff" + text
    return text, header, separator, width


def read_pandas(text, header, separator):
    frame = pandas.read_csv(
        io.StringIO(text.lstrip("\ufeff")),
        sep=separator,
        header=0 if header else None,
        dtype=str,
        keep_default_na=False,
    )
    return frame.values.tolist()


def read_python(text, header, separator):
    rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=separator))
    return [row for row in rows if row][1 if header else 0 :]


def value(text):
    text = text.strip(" \t")
    if text in MISSING:
        return None
    if text in ("True", "False"):
        return float(text == "True")
    return float(text)


def shown(number):
    if number is None:
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def main():
    rng = random.Random(32)
    with open("tables.json", "w", encoding="utf-8") as out:
        done = 0
        while done < 150:
            text, header, separator, width = table(rng)
            rows = read_pandas(text, header, separator)
            assert rows == read_python(text, header, separator), text
            columns = sorted(rng.sample(range(width), rng.randrange(1, width + 1)))
            where = ",".join(str(c + 1) for c in columns)
            expected = [[shown(value(row[c])) for c in columns] for row in rows]
            if len(columns) == 1:
                expected = [row[0] for row in expected]
            case = {"csv": text, "separator": separator, "x": where, "rows": expected}
            out.write(json.dumps(case) + "\n")
            done += 1


main()
