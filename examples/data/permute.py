#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the lines of a gzipped file in an order drawn once with a fixed seed.

    examples/data/permute.py digits-original.csv.gz digits.csv.gz

The original order of the digits makes the last fifth of the lines other writers than the rest.
"""
import gzip
import random
import sys

SEED = 0

with gzip.open(sys.argv[1], "rb") as source:
    lines = source.read().splitlines(keepends=True)
random.Random(SEED).shuffle(lines)
with open(sys.argv[2], "wb") as target:
    # No time and no name in the gzip header: the same input gives the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as packed:
        packed.write(b"".join(lines))
