#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-show --csv and --tsv: tensors as a table, in the units before fitting.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    printf '%s\n' id,age,risk 'p 1,50,low' '"p,2",NA,high' p3,30,low p4,NA,mid \
        '"p""5",70,high' > p.csv
    columns=(x=age:impute=median:standardize y=risk:category o=risk:onehot v=age:impute=0:scale
        w=age:impute=0:log1p)
    tf-data csv p.csv "${columns[@]}" --fit prep.json --batch 2 > p.rec
}

fails() { # STATUS LINE ARGUMENT...
    local status=$1 line=$2
    shift 2
    run --separate-stderr -"$status" tf-show "$@"
    [ "$stderr" = "tf-show: $line" ] || { echo "$stderr" >&2 && false; }
}

@test "a row of each tensor is a row, under its name or the names of its elements" {
    tf-show --csv p.rec y o > table
    diff table - << 'END'
y,o[0],o[1],o[2]
1,0,1,0
0,1,0,0
1,0,1,0
2,0,0,1
0,1,0,0
END
    [ "$(tf-show --tsv p.rec y o | head -n 1)" = $'y\to[0]\to[1]\to[2]' ]
    [ "$(tf-show --csv p.rec | head -n 1)" = 'x,y,o[0],o[1],o[2],v,w' ]
    # it can be read back as written
    tf-show --csv p.rec x o > t.csv
    tf-data csv t.csv x=x 'o=o[*' --batch 2 | tf-show --json > again
    tf-show --json p.rec x o | cmp - again
}

@test "categories and values are those of the file again, behind what was kept" {
    tf-data csv p.csv "${columns[@]}" --prep prep.json --batch 2 --keep id > k.rec
    tf-show --csv --prep prep.json k.rec x y o v > table
    diff table - << 'END'
id,x,y,o[high],o[low],o[mid],v
p 1,50,low,0,1,0,50
"p,2",50,high,1,0,0,0
p3,30,low,0,1,0,30
p4,50,mid,0,0,1,0
"p""5",70,high,1,0,0,70
END
    tf-show --csv --prep prep.json --columns 'id,o[[]*' k.rec o=y | head -n 2 > few
    diff few - <<< $'id,o[high],o[low],o[mid]\np 1,0,1,0'
    # through a pipe, shuffled, and a part: each id with its row
    tf-data csv p.csv y=risk:category --prep prep.json --keep id --shuffle \
        --split 1/1 --part train | tf-show --csv --prep prep.json > table
    [ "$(tail -n +2 table | wc -l)" -ge 2 ]
    tail -n +2 table | while IFS= read -r line; do
        finds -F "${line%,*}" p.csv
        finds "${line##*,}" <(grep -F "${line%,*}" p.csv)
    done
    # values fitted as logarithms
    tf-data csv p.csv w=age:impute=0:log1p:standardize --fit log.json -b 9 |
        tf-show --csv --prep log.json | tr '\n' ' ' | finds '^w 50\(.0000[0-9]*\)\? .*'
}

@test "scalars are a row a record, behind the step" {
    echo 'x = Placeholder{dtype = float32, shape = {-1}} s = Sum(x, {0})' | tf-graph - > g.tfg
    seq 4 | tf-data csv - x=1 -b 2 | tf-exec -g g.tfg --fetch s | tf-show --csv > table
    diff table - <<< $'step,s\n1,3\n2,7'
}

@test "tables that cannot be" {
    fails 65 "p.rec: no tensor 'z'" --csv p.rec z
    fails 65 "p.rec: prep.json: has nothing fitted to 'age'" --csv --prep prep.json p.rec x=age
    fails 64 "p.rec: 'x=y': --prep FILE says what a feed was" --csv p.rec x=y
    fails 65 "p.rec: --columns 'q*': there is none of them" --csv p.rec --columns 'q*'
    fails 64 "--csv and --tsv do not go together" --csv --tsv p.rec
    fails 64 "--prep is for --csv or --tsv, which is not given" --prep prep.json p.rec
}

@test "what is kept goes through a step, in front of what it fetches, in several columns" {
    echo 'o = Placeholder{dtype = float32, shape = {-1, 3}} s = o * 2' | tf-graph - > g.tfg
    tf-data csv p.csv o=risk:onehot --prep prep.json --keep id,age --batch 2 |
        tf-exec -g g.tfg --fetch s | tee k.rec | tf-show --csv - s > table
    diff table - << 'END'
id,age,s[0],s[1],s[2]
p 1,50,0,2,0
"p,2",NA,2,0,0
p3,30,0,2,0
p4,NA,0,0,2
"p""5",70,2,0,0
END
    [ "$(tf-show --json k.rec | jq -r '."@id"[]' | tail -n 1)" = 'p"5' ]
    # a step's results belong to its own rows
    tf-data csv p.csv o=risk:onehot --prep prep.json --keep id |
        tf-exec -g g.tfg --fetch s --steps 2 | tf-show --csv | cut -d, -f1 | paste -sd' ' |
        finds -x 'id p 1 "p'
    run --separate-stderr -65 tf-data csv p.csv o=risk:onehot --prep prep.json --keep nobody
    [ "$stderr" = "tf-data: p.csv:1: no column named 'nobody'" ]
}
