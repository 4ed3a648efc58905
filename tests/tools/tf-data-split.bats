#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-data --split, --fold and weights of rows.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools
load ../lib/data

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    seq 1 100 > s.csv
}

@test "random streams, cut, sharded and resumed: a row is in its part" {
    /usr/bin/python3 "$BATS_TEST_DIRNAME/../data/prep/split.py" 25
}

@test "shares are right within each block, and another name draws another split" {
    for part in train:70 valid:15 test:15; do
        [ "$(x csv s.csv x=1 --split 70/15/15 --part "${part%:*}" -b 100 | jq length)" = \
            "${part#*:}" ]
    done
    valid=$(x csv s.csv x=1 --split 70/15/15 --part valid -b 100)
    [ "$valid" = "$(x csv s.csv x=1 --split 14/3/3 --part valid -b 100)" ]
    [ "$(jq -c sort <<<"$valid")" = "$(x csv s.csv x=1 --split 70/15/15 --part valid -b 100 \
        --shuffle --seed 9 | jq -c sort)" ]
    [ "$valid" != "$(x csv s.csv x=1 --split 70/15/15:other --part valid -b 100)" ]
    # the same rows in every version: rows held out stay held out
    [ "$valid" = '[1,4,8,25,26,33,51,53,54,62,75,79,86,89,96]' ]
    tf-data csv s.csv x=1 -b 100 | tf-show --npy - x > s.npy
    [ "$valid" = "$(x npy x=s.npy --split 70/15/15 --part valid -b 100)" ]
    [ "$(x csv s.csv x=1 --split 70/15/15 --part valid --rows 26-53 -b 100)" = '[26,33,51,53]' ]
    # new rows are in no part: all are fed, also without the column of the groups
    [ "$(x csv s.csv x=1 --split 70/15/15 --group 2 --part new -b 100)" = \
        "$(x csv s.csv x=1 -b 100)" ]
    # each place is equally frequent in each part: 1000 blocks of 5, chi-square with 4 degrees of
    # freedom
    seq 0 4999 | x csv - x=1 --header no --split 80/20 --part test -b 5000 |
        jq -e '[.[] % 5] | group_by(.) | map(length - 200 | . * . / 200) | add < 23'
}

@test "arrays of an .npz are dealt, weighed and kept as columns are" {
    /usr/bin/python3 - <<'PYTHON' || skip "no numpy"
import numpy as np
y = np.arange(90) % 7 // 3
np.savez("a.npz", x=np.zeros((90, 2, 2)), y=y, id=1000 + np.arange(90))
np.savetxt("a.csv", np.c_[1000 + np.arange(90), y], "%d", ",", header="id,y", comments="")
PYTHON
    for split in "--split 70/15/15 --part valid --stratify y" "--fold 1/3 --part train --group y" \
        "--split 80/20 --part test --stratify y --rows 1-50 --balance y"; do
        for form in csv npz; do
            # shellcheck disable=SC2086  # words
            tf-data -q $form a.$form y=y:int32 --keep id -b 90 $split | tf-show --csv >of-$form
        done
        [ "$(wc -l <of-csv)" -gt 5 ]
        cmp of-csv of-npz
    done
    fails 65 "a.npz: 'x' has no value for each of 90 rows" \
        npz a.npz y=y --fold 0/2 --part train --group x
    fails 65 "a.npz: no array named 'ids' (did you mean 'id'?)" npz a.npz y=y --keep ids
    # which alone would be fed, where without it all arrays are
    fails 64 'npz: say what to feed, as in x=ARRAY' npz a.npz --keep id
    fails 64 'npz: say what to feed, as in x=ARRAY' npz a.npz --balance y
}

@test "weights of rows" {
    printf '%s\n' w,y 1,a 2.5,b 1,a 3,a > w.csv
    weights() { tf-data csv w.csv "$@" -b 9 | tf-show --json | jq -c .sample_weight; }
    [ "$(weights x=w --sample-weight w)" = '[1,2.5,1,3]' ]
    # 4 rows / (2 classes * rows of the class), as compute_class_weight has it
    [ "$(weights x=w --balance y | jq -c 'map(. * 1e4 | round)')" = '[6667,20000,6667,6667]' ]
    tf-data csv w.csv x=w --balance y --fit w.json -o /dev/null
    jq -e '.balance.sample_weight.weights | .[1] == 2 and length == 2' w.json
    [ "$(weights --balance y --prep w.json --rows 2)" = '[2]' ]
    printf 'w,y\n1,c\n' > w.csv
    [ "$(weights --balance y --prep w.json)" = '[1]' ]
}

@test "splits that cannot be" {
    fails 64 "--part is for --split or --fold, which is not given" csv s.csv x=1 --part train
    fails 64 "--split is for --part, which is not given" csv s.csv x=1 --split 70/30
    fails 64 "--stratify is for --split or --fold, which is not given" csv s.csv x=1 --stratify 1
    for wrong in 70 70/30/0 1/2/3/4 70/a 70//30 -1/2 0.7/0.3 9999/2; do
        fails 64 "--split '$wrong': expected two or three whole shares, as 70/15/15 or 80/20:NAME" \
            csv s.csv x=1 "--split=$wrong" --part train
    done
    fails 64 "--part 'valid': the parts of --split 80/20 are train and test" \
        csv s.csv x=1 --split 80/20 --part valid
    for wrong in 5/5 0/1 -1/3 1 a/b 0/2000; do
        fails 64 "--fold '$wrong': expected I/K with 0 <= I < K, and K from 2 to 1024" \
            csv s.csv x=1 "--fold=$wrong" --part train
    done
    fails 64 "--part 'test': the parts of --fold are train and valid" \
        csv s.csv x=1 --fold 0/2 --part test
    fails 64 "--split and --fold do not go together" \
        csv s.csv x=1 --fold 0/2 --split 1/1 --part train
    fails 64 "--stratify is for csv, jsonl and npz, not for npy" \
        npy x=s.npy --split 1/1 --part train --stratify x
    fails 65 "s.csv:1: '--stratify or --group' wants column 2, but there are 1" \
        csv s.csv x=1 --split 1/1 --part train --group 2
}
