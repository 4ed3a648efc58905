#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A day of mistakes: the sessions of docs/typist.md, and the lines of tests/data/typist.txt, each
# with all of its output.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >p.csv <<'END'
id,age,bmi,sex,visit,risk
1,50,20.5,f,2024-01-31,low
2,NA,31,m,2024-02-29,high
3,30,22,f,2023-12-31,low
4,41,27,m,2024-05-05,low
END
    printf '%s\n' 1,2,3 4,x,6 >bad.csv
    printf '%s\n' '{"v": [1, 2], "s": "red"}' '{"v": [3], "s": 3' >bad.jsonl
    printf '%s\n' '{"a": 1, "s": "red"}' '{"a": 2, "s": "blue"}' >d.jsonl
    tf-data csv -q p.csv x=age,bmi:impute=median:standardize y=risk:category --fit prep.json \
        --batch 4 >p.rec
    cat >m.lua <<'END'
x = Placeholder{dtype = float32, shape = {-1, 2}}
y = Placeholder{dtype = int32, shape = {-1}}
h = nn.dense(x, 4, {name = "hidden", activation = Relu})
logits = nn.dense(h, 2, {name = "output"})
p = Softmax(logits)
label = ArgMax(logits, 1)
loss = nn.cross_entropy(logits, y)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
entry.eval = metric.accuracy(logits, y)
END
    tf-graph m.lua | tf-opt >m0.tfg
    tf-place m0.tfg >m.tfg
    grep -v entry.train m.lua >f.lua
    tf-graph f.lua | tf-place >fwd.tfg
    tf-exec -q -g m.tfg --run train --feed p.rec --save ck/ --fetch loss >f.rec
    tf-ckpt tag ck good
    printf '%s\n' 'x = Placeholder{dtype = float32, shape = {-1, 4}}' \
        'y = Placeholder{dtype = int32, shape = {-1}}' \
        'i = Placeholder{dtype = int32, shape = {-1, 5}}' \
        's = Placeholder{dtype = float32, shape = {-1, 5, 3}}' \
        'm = Placeholder{dtype = float32, shape = {-1, 8, 8, 2}}' >inputs.lua
}

@test "docs/typist.md" {
    has_terminal
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    cp -r "$root/examples" typed
    cd typed
    timeout 100 /usr/bin/python3 "$root/tests/lib/page.py" "$root/docs/typist.md"
}

@test "two hundred mistakes, and what is said of each" {
    local status line typed said code wrong=0 n=0
    while IFS=$'\t' read -r status typed line; do
        case $typed in
        '' | '#'*) continue ;;
        tf-*) said=$(eval "$typed" 2>&1 >/dev/null </dev/null) && code=0 || code=$? ;;
        *)
            { cat inputs.lua && printf '%s\n' "$typed"; } >t.lua
            said=$(tf-graph t.lua 2>&1 >/dev/null) && code=0 || code=$?
            said=${said#tf-graph: t.lua:6: }
            ;;
        esac
        n=$((n + 1))
        if [ "$code" != "$status" ] || [ "$said" != "$line" ]; then
            printf '%s\n  wanted %s %s\n  has    %s %s\n' "$typed" "$status" "$line" "$code" "$said"
            wrong=$((wrong + 1))
        fi
    done <"$root/tests/data/typist.txt"
    echo "$n mistakes, $wrong of them told otherwise"
    [ "$wrong" = 0 ]
    [ "$n" -ge 200 ]
    [ ! -e none ] && [ ! -e s1 ]
}
