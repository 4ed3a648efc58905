#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-data --fit and --prep: what is fitted to some rows is applied to others.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools
load ../lib/data

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    printf 'age,sex,bmi\n1,0,10\n3,1,30\n5,0,90\n7,1,-50\n' > d.csv
}

@test "statistics of some rows serve all that come after, also one alone and without a header" {
    [ "$(x csv d.csv x=age,bmi:standardize --rows 1-2 --fit prep.json -b 2)" = '[[-1,-1],[1,1]]' ]
    [ "$(x csv d.csv x=age,bmi:standardize --rows 3- --prep prep.json -b 2)" = '[[3,7],[5,-7]]' ]
    [ "$(tail -n 1 d.csv | x csv - x=age,bmi:standardize --prep prep.json)" = '[[5,-7]]' ]
    [ "$(x csv d.csv x=age,bmi:standardize:scale=2:offset=1 --prep prep.json --steps 1)" = \
        '[[-1,-1]]' ]
    # columns are found by name, in any order
    printf 'bmi,age\n-50,7\n' > other.csv
    [ "$(x csv other.csv x=age,bmi:standardize --prep prep.json)" = '[[5,-7]]' ]
    # by position they are the same columns
    [ "$(tail -n 1 d.csv | x csv - x=1,3:standardize --prep prep.json)" = '[[5,-7]]' ]
    tail -n 2 d.csv | x csv - x=age,bmi:standardize --prep prep.json --shuffle-buffer 2 -b 2 |
        jq -e 'sort == [[3,7],[5,-7]]'
}

@test "rows of a pipe are standardized as they arrive" {
    tf-data csv d.csv x=age:standardize --fit prep.json -b 4 -o /dev/null
    mkfifo in
    tf-data csv - x=age:standardize --prep prep.json < in | tf-show > shown &
    exec 7> in
    echo "4,1,1" >&7
    soon 10 grep -qx 'feed 1  x float32\[1\] 0' shown
    exec 7>&-
    wait
}

@test "the file can be read, and is exact" {
    tf-data csv d.csv x=age,bmi:float64:standardize z=sex:standardize --rows 1-3 --fit prep.json \
        -o /dev/null
    jq -e '.header == ["age", "sex", "bmi"] and .standardize.x.columns == ["age", "bmi"] and
           .standardize.x.rows == 3 and .standardize.x.mean[0] == 3 and
           (.standardize.z.mean | length) == 1' prep.json
    tf-data csv d.csv x=age,bmi:float64:standardize --rows 1-3 -q -o own.rec
    tf-data csv d.csv x=age,bmi:float64:standardize --rows 1-3 --prep prep.json -o kept.rec
    [ "$(tf-show --json own.rec)" = "$(tf-show --json kept.rec)" ]
    tf-data csv d.csv 'x=1:standardize' --header no --missing 0 --rows 2- --fit bare.json \
        -o /dev/null
    jq -e '(has("header") | not) and .standardize.x.columns == [1]' bare.json
}

@test "arrays of files" {
    tf-data csv d.csv x=1,3 -b 4 | tf-show --npy - x > a.npy
    tf-data npy x=a.npy:standardize --rows 1-2 --fit prep.json -o /dev/null
    [ "$(x npy x=a.npy:standardize --rows 4 --prep prep.json)" = '[[5,-7]]' ]
}

@test "standardizing a selection by itself says so" {
    run --separate-stderr -0 tf-data csv d.csv x=age:standardize --rows 1-2 -o /dev/null
    [ "$stderr" = "tf-data: 'x' is fitted to the rows selected alone; for other rows to be \
prepared alike, --fit FILE keeps what was found and --prep FILE uses it" ]
    run --separate-stderr -0 bash -c 'tf-data csv - x=age:standardize -o /dev/null < d.csv'
    [[ $stderr == "tf-data: 'x' is fitted to the rows selected alone; "* ]]
    for quiet in "csv d.csv x=age:standardize" "csv d.csv x=age:standardize --rows 1-2 -q" \
        "csv d.csv x=age:standardize --rows 1-2 --fit p" \
        "csv d.csv x=age:standardize --rows 2 --prep p"; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr -0 tf-data $quiet -o /dev/null
        [ -z "$stderr" ]
    done
}

@test "what does not fit is refused" {
    tf-data csv d.csv x=age,bmi:standardize --rows 1-2 --fit p -o /dev/null
    fails 65 "p: 'x' was fitted to columns age,bmi, not to bmi,age" \
        csv d.csv x=bmi,age:standardize --prep p
    fails 65 "p: 'x' was fitted to columns age,bmi, not to age" csv d.csv x=age:standardize --prep p
    fails 65 "p: 'x' was fitted to columns age,bmi, not to sex,bmi" \
        csv d.csv x=2-3:standardize --prep p --header no --missing 0 --rows 2-
    fails 65 "p: has nothing fitted to 'xy' (did you mean 'x'?)" \
        csv d.csv xy=age:standardize --prep p
    local none="no column is fitted: none has standardize, scale, category, onehot, or impute with \
what is found"
    fails 64 "--prep: $none" csv d.csv x=age --prep p
    fails 64 "--fit: $none" csv d.csv x=age --fit q
    fails 64 "--fit and --prep do not go together" \
        csv d.csv x=age:standardize --fit q --prep p
    fails 66 "none: No such file or directory" csv d.csv x=age:standardize --prep none
    [ ! -e q ]
    printf '1,2\n' > narrow.csv
    fails 65 "narrow.csv:1: 2 columns, but p was fitted to 3" \
        csv narrow.csv x=age,bmi:standardize --prep p
    # a header with other columns is not data
    printf 'id,age\n1,50\n' > narrow.csv
    fails 65 "narrow.csv:1: no column named 'bmi'" csv narrow.csv x=age,bmi:standardize --prep p
    printf '1\nnan\n' > nan.csv
    fails 65 "nan.csv: 'x': row 2 of the rows selected is nan, which has no mean" \
        csv nan.csv x=1:standardize
    for wrong in '{' '[]' '{"tf-data prep": 2}' '{"tf-data prep": 1}' \
        '{"tf-data prep": 1, "standardize": {"x": 3}}' \
        '{"tf-data prep": 1, "standardize": {"x": {"rows": 1, "mean": [1], "deviation": []}}}' \
        '{"tf-data prep": 1, "standardize": {"x": {"rows": 1, "mean": [1], "deviation": [0]}}}' \
        '{"tf-data prep": 1,
          "standardize": {"x": {"rows": 1, "mean": ["a"], "deviation": [1]}}}'; do
        printf '%s' "$wrong" > wrong.json
        run --separate-stderr -65 tf-data csv d.csv x=1:standardize --prep wrong.json -o /dev/null
        [[ $stderr == "tf-data: wrong.json:"* && $(wc -l <<< "$stderr") -eq 1 ]] ||
            { echo "$wrong: $stderr" >&2 && false; }
    done
}

@test "missing cells have no part in mean and deviation" {
    printf 'a,b\n1,1\nNA,2\n3,?\n,3\n' > gaps.csv
    [ "$(x csv gaps.csv x=a:standardize -b 4 --missing 2)" = '[-1,0,1,0]' ]
    [ "$(x csv gaps.csv x=a:standardize -b 4 --missing 0)" = '[-1,-2,1,-2]' ]
    [ "$(x csv gaps.csv x=a:standardize -b 4 --missing nan)" = '[-1,"NaN",1,"NaN"]' ]
    [ "$(x csv gaps.csv x=a:standardize:offset=5 -b 4 --missing mean)" = '[4,5,6,5]' ]
    x csv gaps.csv x=a,b:float64:standardize -b 4 --missing 7 --fit prep.json > /dev/null
    jq -e '.standardize.x.mean == [2, 2] and .standardize.x.rows == 4' prep.json
    # also for rows that come later
    [ "$(printf 'NA,2\n5,NA\n' | x csv - x=1,2:standardize --prep prep.json --missing mean -b 1 |
        tail -1)" = '[[3,0]]' ]
    fails 65 "gaps.csv:3: column 1: missing; only what is standardized has a mean to put there" \
        csv gaps.csv x=a --missing mean
    fails 65 "gaps.csv:3: column 1: missing; --missing: 'no' is not a number" \
        csv gaps.csv x=a --missing no
    printf 'NA\n?\n' > none.csv
    fails 65 "none.csv: 'x': none of the rows selected has a value" \
        csv none.csv x=1:standardize --missing 0
}

@test "a run that fails leaves no statistics behind" {
    printf 'a\n1\nx\n' > bad.csv
    run -65 tf-data csv bad.csv x=a:standardize --fit p -o /dev/null
    [ ! -e p ]
}
