#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A large CSV file from disk to records, in turns with pandas.read_csv (peer_csv.py, timed without
# the import): medians of the rounds in seconds of processor time. The target is 1.0 times pandas,
# also with a fitted prep and a split, and the memory of one batch. ROWS (1200000, of 28 columns:
# 320 MB), ROUNDS (5); PYTHON (python3 with pandas).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
PATH=$(realpath -m "${BUILD:-build}/bin"):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

awk -v rows="${ROWS:-1200000}" 'BEGIN {
    srand(1)
    for (i = 0; i < 27; i++) printf "f%d,", i
    print "label"
    for (r = 0; r < rows; r++) {
        for (i = 0; i < 27; i++) printf "%.7g,", rand() * 4 - 2
        print int(rand() * 2)
    }
}' >d.csv
tf-data csv d.csv 'x=f*:standardize' y=label:category --rows 1-10000 --fit prep.json -o /dev/null

ours() { # ARGUMENT...: processor time, and the most memory it had, in MiB
    /usr/bin/time -f '%U %S %M' tf-data csv d.csv "$@" --batch 1024 -o /dev/null 2>&1 |
        awk '{ print $1 + $2, $3 / 1024 }'
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

for ((round = 0; round < ${ROUNDS:-5}; round++)); do
    ours 'x=f*' y=label:int32 >>plain
    ours 'x=f*:standardize' y=label:category --prep prep.json --split 70/15/15 --part train >>prep
    "${PYTHON:-python3}" "$root/tests/bench/peer_csv.py" d.csv >>pandas ||
        echo nan >>pandas
done
printf '%-14s %8s %8s %6s %8s\n' WHAT OURS/s PANDAS/s RATIO OURS/MiB
for what in plain prep; do
    paste <(median <"$what") <(median <pandas) <(cut -d' ' -f2 "$what" | median) |
        awk -v what="$what" \
            '{ printf "%-14s %8.2f %8.2f %6.2f %8.1f\n", what, $1, $2, $1 / $2, $3 }'
done
