#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random tables, how they are to be prepared, and what pandas and scikit-learn make of them.

usage: make.py N SEED > tables.json. Each line is a table, the rows that are fitted to, the columns
that are asked for, and what is fed under their names of all rows. Needs pandas and scikit-learn.
"""
import io
import json
import random
import sys

import numpy as np
import pandas as pd
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

MISSING = ["", "NA", "N/A", "?", "null", "NaN"]
WORDS = ["red", "Green", "blue", "ümlaut", "a b", "-1x", "zz", "b", "B"]
STRATEGIES = {"mean": "mean", "median": "median", "most": "most_frequent"}


def number(rng):
    kind = rng.randrange(3)
    if kind == 0:
        return str(rng.randrange(5))
    return repr(rng.uniform(0, 100)) if kind == 1 else "%.2e" % rng.uniform(0, 1e6)


def date(rng):
    day = pd.Timestamp("1900-01-01") + pd.Timedelta(seconds=rng.randrange(200 * 365 * 86400))
    return day.strftime(rng.choice(["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y%m%d",
                                    "%Y-%m-%d %H:%M:%S+02:00"]))


KINDS = {"number": number, "word": lambda rng: rng.choice(WORDS), "date": date,
         "code": lambda rng: rng.choice(["1", "2", "10", "1.0", "-3", "30"])}


def column(rng, kind, rows, holes):
    cells = [rng.choice(MISSING) if rng.random() < holes else KINDS[kind](rng) for _ in range(rows)]
    cells[0] = KINDS[kind](rng)  # something to fit to
    return cells


def numbers(rng, data, rows):
    """Numbers: filled, logarithm, scaled, flagged."""
    data = data.astype(float)
    parts, filled = [], data.to_numpy()
    how = rng.choice(["mean", "median", "most", "7.5"])
    imputer = (SimpleImputer(strategy=STRATEGIES[how]) if how in STRATEGIES
               else SimpleImputer(strategy="constant", fill_value=float(how)))
    filled = imputer.fit(data.iloc[:rows].to_numpy()).transform(data.to_numpy())
    parts.append(f"impute={how}")
    seen = data.iloc[:rows].to_numpy()
    if rng.random() < 0.3:
        parts.append("log1p")
        filled, seen = np.log1p(filled), np.log1p(seen)
    norm = rng.choice([None, ("standardize", StandardScaler()), ("scale", MinMaxScaler())])
    if norm:
        parts.append(norm[0])
        filled = norm[1].fit(seen).transform(filled)
    if rng.random() < 0.4:
        parts.append("flag")
        flags = MissingIndicator(features="all").fit(seen).transform(data.to_numpy())
        filled = np.hstack([filled, flags.astype(float)])
    return parts + ["float64"], filled


def categories(rng, data, rows):
    """Words or codes: the commonest for what is missing, ids or zeros and ones."""
    data = data.astype(object).where(data.notna(), np.nan).to_numpy()
    imputer = SimpleImputer(strategy="most_frequent").fit(data[:rows])
    data, seen = imputer.transform(data), imputer.transform(data[:rows])
    present = [sorted(set(seen[:, k])) for k in range(seen.shape[1])]
    if rng.random() < 0.5:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(seen)
        return ["onehot", "impute=most", "float64"], encoder.transform(data)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(seen)
    ids = encoder.transform(data)
    for k, seen_there in enumerate(present):
        ids[ids[:, k] < 0, k] = len(seen_there)
    return ["category", "impute=most"], ids


def dates(rng, data):
    parts = ["seconds", "year", "month", "day", "hour", "minute", "second", "weekday", "yearday"]
    part = rng.choice(parts)
    fed = np.empty(data.shape)
    for k, name in enumerate(data.columns):
        when = pd.to_datetime(data[name], utc=True, format="mixed")
        if part == "seconds":
            values = (when - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
        else:
            others = {"weekday": "day_of_week", "yearday": "day_of_year"}
            values = getattr(when.dt, others.get(part, part))
        fed[:, k] = values
    return ["date" if part == "seconds" else f"date={part}"], fed


def table(rng):
    rows = rng.randrange(3, 14)
    fitted = rng.randrange(2, rows + 1)
    width = rng.randrange(1, 4)
    cells, asked, fed = {}, [], {}
    for kind in rng.sample(sorted(KINDS), rng.randrange(1, 4)):
        names = [f"{kind}{i}" for i in range(width)]
        holes = 0 if kind == "date" else rng.choice([0, 0.3])
        for name in names:
            cells[name] = column(rng, kind, rows, holes)
        text = pd.DataFrame({name: cells[name] for name in names}).to_csv(index=False)
        data = pd.read_csv(io.StringIO(text), na_values=["?"], skip_blank_lines=False,
                           dtype=str if kind == "date" else None)
        parts, values = (numbers(rng, data, fitted) if kind == "number" else
                         dates(rng, data) if kind == "date" else categories(rng, data, fitted))
        where = rng.choice([",".join(names), f"{kind}*"])
        asked.append(f"{kind}={where}:" + ":".join(rng.sample(parts, len(parts))))
        fed[kind] = values.tolist()
    lines = [",".join(f'"{c}"' for c in row) for row in zip(*cells.values())]
    return {"csv": ",".join(cells) + "\n" + "\n".join(lines) + "\n", "fitted": fitted,
            "columns": asked, "fed": fed}


def main():
    rng = random.Random(int(sys.argv[2]))
    for _ in range(int(sys.argv[1])):
        print(json.dumps(table(rng), ensure_ascii=False))


main()
