#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-data: JSON lines, several files, compressed files, two files side by side; describe.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools
load ../lib/data

bats_require_minimum_version 1.5.0

# shellcheck disable=SC2094  # --fit writes another file than the pipeline
setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    printf 'a,b\n1,2\n' > m1.csv
    printf 'a,b\n3,4\n5,6\n' > m2.csv
}

@test "JSON lines: what is nested, missing, of other types" {
    printf '%s\n' '{"id": 1, "a": {"b": 1.5}, "v": [1, 2], "s": "red", "ok": true}' '' \
        '{"s": "blue", "id": 12345678901234567, "v": [3], "other": 1, "a": {"b": null}}' \
        '{"id":-1,"a":{"b":"NA"},"v":[5,6],"s":"red","ok":false}' > d.jsonl
    tf-data jsonl d.jsonl x=id:int64 -b 9 | tf-show --json | finds -F '[1,12345678901234567,-1]'
    [ "$(x jsonl d.jsonl x=a.b:impute=0:flag -b 9)" = '[[1.5,0],[0,1],[0,1]]' ]
    [ "$(x jsonl d.jsonl 'x=v[*:impute=0' -b 9)" = '[[1,2],[3,0],[5,6]]' ]
    [ "$(x jsonl d.jsonl x=s:category -b 9)" = '[1,0,1]' ]
    [ "$(x jsonl d.jsonl x=ok:impute=0 -b 9)" = '[1,0,0]' ]
    [ "$(x jsonl d.jsonl x=1,3:int32 --rows 1)" = '[[1,1]]' ]
    fails 65 "d.jsonl:1: no column named 'colour'" jsonl d.jsonl x=colour
    fails 65 "d.jsonl:3: column 2: missing; --missing VALUE puts a value there" jsonl d.jsonl x=a.b
    for wrong in '3|'"'[' or '{' expected near '3'" \
        "[{}]|is a list, not an object; jq -c '.[]' makes lines of it" \
        '{"a": 1|'"'}' expected near end of file" '{}|has no columns' \
        '{"a": 1, "a": 2}|duplicate object key near '"'\"a\"'" \
        '{"a.b": 1, "a": {"b": 2}}|two columns have one name'; do
        printf '%s' "${wrong%|*}" > wrong.jsonl
        run --separate-stderr -65 tf-data jsonl wrong.jsonl x=a -o /dev/null
        [[ $stderr == "tf-data: wrong.jsonl:1: ${wrong#*|}"* ]] ||
            { echo "$wrong: $stderr" >&2 && false; }
    done
    fails 64 "--separator is for csv and describe, not for jsonl" jsonl d.jsonl x=id --separator ,
}

@test "JSON lines: a column that the first object leaves out is one, as in pandas" {
    printf '%s\n' '{}' '{"v": [1], "a": 1}' '{"v": [2, 3], "b": "x"}' >late.jsonl
    printf '%s\n' '{"c": {"d": 5}, "a": 2}' >more.jsonl
    [ "$(x jsonl late.jsonl 'x=v[*,a:impute=0' -b 9)" = '[[0,0,0],[1,0,1],[2,3,0]]' ]
    [ "$(x jsonl 'late.jsonl,more.jsonl' x=a,c.d:impute=0 -b 9)" = '[[0,0],[1,0],[0,0],[2,5]]' ]
    # columns by their place in the object: columns that appear later stay together, and the last
    # stays last
    [ "$(tf-data describe --json late.jsonl | jq -c '[.columns[].name]')" = \
        '["v[0]","v[1]","b","a"]' ]
    # a pipe has the columns of its first object, and those that --prep knows, in their order
    fails 65 "stdin:1: no column named 'b'; there is only 'a'" jsonl - x=b:category <<<'{"a": 1}'
    tf-data jsonl late.jsonl 'x=*,-b:impute=mean' y=b:text --fit late.json -o /dev/null
    [ "$(x jsonl - 'x=*,-b:impute=mean' --prep late.json -b 9 <<<'{"v": [7, 8]}')" = '[[7,8,1]]' ]
    fails 65 "late.json: 'x' was fitted to columns v[0],v[1],a, not to v[0],v[1],a,id" \
        jsonl - 'x=*,-b:impute=mean' --prep late.json <<<'{"id": 1}'
    [ "$(x jsonl - 'x=v[*,a:impute=mean' --prep late.json --keep id <<<'{"id": 1}')" = \
        '[[1.5,3,1]]' ]
    # of which none has another number for what stands between them
    printf '%s\n' '{"a": 1, "y": 2}' '{"a": 3, "y": 4}' >fitted.jsonl
    printf '%s\n' '{"a": 1, "y": 2}' '{"a": 3, "new": 7, "y": 4}' >between.jsonl
    tf-data jsonl fitted.jsonl x=a:standardize y=2 --fit fitted.json -o /dev/null
    tf-data jsonl between.jsonl x=a:standardize y=2 --prep fitted.json -b 9 | tf-show --json |
        jq -c .y | finds -x '\[2,4\]'
}

@test "JSON lines: the number of columns has a limit, which is told" {
    /usr/bin/python3 -c 'print("{\"v\": [%s]}" % ", ".join(["7"] * (1 << 20)))' >most.jsonl
    tf-data jsonl most.jsonl 'x=v[1048575]' | tf-show --json | jq -ce '.x == [7]'
    sed 's/\]/, 7&/' most.jsonl >more.jsonl
    fails 65 "more.jsonl:1: more than 1048576 columns" jsonl more.jsonl 'x=v[5]'
}

@test "JSON lines and CSV of the same rows are prepared alike, also as they arrive" {
    printf '%s\n' 'n,w,d' '1,red,2024-01-01' ',blue,2024-01-02' '3,,2024-02-01' > d.csv
    printf '%s\n' '{"n":1,"w":"red","d":"2024-01-01"}' '{"n":null,"w":"blue","d":"2024-01-02"}' \
        '{"n":3.0,"d":"2024-02-01"}' > d.jsonl
    columns=(x=n:impute=mean:standardize:flag w=w:onehot:impute=most d=d:date=month)
    tf-data csv d.csv "${columns[@]}" -b 9 --fit c.json | tf-show --json > of_csv
    tf-data jsonl d.jsonl "${columns[@]}" -b 9 --fit j.json | tf-show --json > of_jsonl
    cmp of_csv of_jsonl
    cmp c.json j.json
    tf-data jsonl - "${columns[@]}" -b 9 --prep c.json < d.jsonl | tf-show --json | cmp - of_csv
    mkfifo in
    tf-data jsonl - x=n:int32 < in | tf-show > shown &
    exec 7> in
    echo '{"n": 7}' >&7
    soon 10 grep -qx 'feed 1  x int32\[1\] 7' shown
    exec 7>&-
    wait
}

@test "several files are one behind the other, with the header of the first" {
    [ "$(x csv 'm*.csv' x=a,b -b 9)" = '[[1,2],[3,4],[5,6]]' ]
    [ "$(x csv m2.csv,m1.csv x=a -b 9)" = '[3,5,1]' ]
    [ "$(x csv 'm2.csv,m?.csv' x=a --rows 2-3 -b 9)" = '[5,1]' ]
    seq 3 > s1
    seq 4 5 > s2
    [ "$(x csv s1,s2 x=1 -b 9)" = '[1,2,3,4,5]' ]
    printf '{"a":1}\n' > 1.jsonl
    printf '{"b":1,"a":2}\n' > 2.jsonl
    [ "$(x jsonl '?.jsonl' x=a -b 9)" = '[1,2]' ]
    printf 'a,c\n3,4\n' > m3.csv
    fails 65 "m3.csv:1: column 2 is 'c', but 'b' in the file before" csv 'm*.csv' x=a
    fails 66 "n*.csv: No such file or directory" csv 'm1.csv,n*.csv' x=a
    fails 66 "n.csv: No such file or directory" csv 'n.csv,m1.csv' x=a
    # a file with that very name
    printf 'a\n9\n' > 'm*,.csv'
    [ "$(x csv 'm*,.csv' x=a)" = '[9]' ]
}

@test "files that are packed, whole, in members, cut, and damaged" {
    seq 20000 > s.csv
    gzip -k s.csv
    xz -k s.csv
    # seq 20000 | zstd
    cp "$BATS_TEST_DIRNAME/../data/csv/seq.csv.zst" s.csv.zst
    sum=$(x csv s.csv x=1:int64 -b 20000 | jq add)
    for packed in s.csv.gz s.csv.xz s.csv.zst; do
        [ "$(x csv $packed x=1:int64 -b 20000 | jq add)" = "$sum" ]
        [ "$(x csv - x=1:int64 -b 20000 < $packed | jq add)" = "$sum" ]
        cat $packed $packed > two
        [ "$(x csv two x=1:int64 -b 40000 | jq length)" = 40000 ]
        case $packed in *.gz) kind=gzip ;; *.xz) kind=xz ;; *) kind=zstd ;; esac
        head -c 500 $packed > cut.csv
        run --separate-stderr -65 tf-data csv cut.csv x=1 -o /dev/null
        [[ $stderr == "tf-data: cut.csv: truncated $kind data after "* ]]
        { head -c 300 $packed && head -c 100 /dev/zero | tr '\0' x && tail -c +401 $packed; } > bad
        run --separate-stderr -65 tf-data csv bad x=1 -o /dev/null
        [[ $stderr == "tf-data: bad"*": "* ]]
        { cat $packed && echo more; } > behind
        fails 65 "behind: garbage after the $kind data" csv behind x=1
    done
}

@test "two files side by side" {
    printf 'c\n7\n8\n' > n.csv
    [ "$(x csv m2.csv --join n.csv x=a,c -b 9)" = '[[3,7],[5,8]]' ]
    [ "$(x csv m2.csv --join n.csv x=-b -b 9)" = '[[3,7],[5,8]]' ]
    printf 'c\n7\n8\n9\n' > o.csv
    [ "$(x csv 'm*.csv' --join o.csv x=a,c -b 9)" = '[[1,7],[3,8],[5,9]]' ]
    fails 65 "m1.csv: ends after 2 rows, but n.csv has more" csv m1.csv --join n.csv x=a
    fails 65 "n.csv: ends after 3 rows, but m1.csv,m2.csv has more" \
        csv m1.csv,m2.csv --join n.csv x=1:text --header no
    fails 66 "none.csv: No such file or directory" csv m1.csv --join none.csv x=a
}

@test "describe says what is there, and its line feeds it" {
    printf '%s\n' id,age,sex,when,n,risk 1,50,f,2024-01-31,0.5,low 2,NA,m,2024-02-29,1.5,high \
        3,30,,2024-01-31,-2,low > p.csv
    tf-data describe p.csv > shown
    grep -qx 'p.csv: 3 rows, 6 columns' shown
    finds -xE 'age +whole +1 +2 +30 +50 +40 +30 \(1\), 50 \(1\)' shown
    finds -xE 'risk +text +0 +2 +- +- +- +low \(2\), high \(1\)' shown
    tf-data describe --json p.csv | jq -e '.rows == 3 and ([.columns[].type] == ["whole", "whole",
        "text", "date", "number", "text"]) and .columns[1].mean == 40 and
        .columns[2].commonest[0] == {"value": "f", "rows": 1} and .columns[2].min == null'
    line=$(tail -n 1 shown)
    [ "$line" = "tf-data csv p.csv x=age,n:impute=median:standardize sex=sex:onehot:impute=most \
when=when:date:standardize y=risk:category --fit prep.json --shuffle --batch 32" ]
    eval "$line" | tf-show | finds 'y int32\[3\]'
    printf '1,2,0\n3,4,1\n' > bare.csv
    tf-data describe bare.csv | tail -n 1 | finds 'x=1-2:standardize y=3:category'
    printf '{"a b": 1, "c,d": 2, "y": 0.5}\n{"a b": 4, "c,d": 1, "y": 1}\n' > d.jsonl
    line=$(tf-data describe d.jsonl | tail -n 1)
    [ "$line" = "tf-data jsonl d.jsonl 'x=a b:standardize' y=y --fit prep.json --shuffle --batch \
32" ]
    eval "$line" | tf-show | finds 'y float32\[2\]'
    : > empty
    fails 65 "empty: no rows" describe empty
    # the range of dates is in order of time, in the form in which they are written
    printf '%s\n' d 2024-05-01 31.12.2023 2024-02-29T10:00 >dates.csv
    tf-data describe --json dates.csv |
        jq -e '.columns[0] | .type == "date" and .min == "31.12.2023" and .max == "2024-05-01"'
    tf-data describe dates.csv | finds -E '^d +date +0 +3 +31.12.2023 +2024-05-01 +-'
    # a date of digits alone, or a number among texts, makes no mean
    printf '%s\n' d,t 2024-05-01,a 20240301,7 31.12.2023,9 >digits.csv
    tf-data describe digits.csv >shown
    finds -E '^d +date +0 +3 +31.12.2023 +2024-05-01 +- ' shown
    finds -E '^t +text +0 +3 +- +- +- ' shown
    # the format of a pipe, of several files, or after a byte order mark, is recognized by content
    tf-data describe d.jsonl | tail -n +3 > whole
    sed -i 's/ d.jsonl / - /' whole
    tf-data describe - <d.jsonl | tail -n +3 | cmp - whole
    printf '\xef\xbb\xbf' | cat - d.jsonl | gzip | tf-data describe - | tail -n +3 | cmp - whole
    tf-data describe <(cat d.jsonl) | finds '^/dev/fd/[0-9]*: 2 rows, 3 columns'
    tf-data describe <(cat bare.csv) | finds '^/dev/fd/[0-9]*: 2 rows, 3 columns'
    tf-data describe 'd.json?' | finds "^tf-data jsonl 'd.json?'"
    # arrays are described; a header that begins like one is not mistaken for one
    printf 'x\n1\n2\n' | tf-data csv - x=1 --batch 2 | tf-show --npy - x >a.npy
    fails 65 "a.npy: arrays have no columns to describe; tf-data npy feeds them" describe a.npy
    printf 'PK\003\004' >a.npz
    fails 65 "a.npz: arrays have no columns to describe; tf-data npz feeds them" describe a.npz
    printf 'PK,a\n1,2\n' >pk.csv
    tf-data describe pk.csv | finds '^pk.csv: 1 row, 2 columns'
    fails 66 "none: No such file or directory" describe none
}

@test "describe: what is no table of UTF-8 is told, and names that are no text are not lost" {
    printf 'a,b\n1,2\n' | iconv -f UTF-8 -t UTF-16 >wide.csv
    printf 'a,b\n1,2\n' | iconv -f UTF-8 -t UTF-16BE | sed '1s/^/\xfe\xff/' >big.csv
    fails 65 "wide.csv: is UTF-16: iconv -f UTF-16 -t UTF-8 converts it" describe wide.csv
    fails 65 "big.csv: is UTF-16: iconv -f UTF-16 -t UTF-8 converts it" csv big.csv x=a
    iconv -f UTF-16 -t UTF-8 wide.csv | tf-data csv - x=b | tf-show --json | finds -F '"x":[2]'
    printf '%s\n' '[' ' {"a": 1},' ' {"a": 2}' ']' >list.json
    fails 65 "list.json:1: is a list, not an object; jq -c '.[]' makes lines of it" \
        describe list.json
    # ISO 8859-1; an infinite value is no whole number
    printf 'caf\xe9,y\n1,2\n5,3\ninf,4\n' >latin.csv
    tf-data describe latin.csv --json | jq -e '.columns[0].type == "number" and
        (.command | startswith("tf-data csv latin.csv x=1:standardize y=y"))'
    cp latin.csv $'caf\xe9.csv'
    fails 65 $'caf\xe9.csv: a name that is no text (UTF-8) has no JSON' \
        describe $'caf\xe9.csv' --json
}
