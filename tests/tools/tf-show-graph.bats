#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-show and tf-graph --text on graphs.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    { # one line each
        printf '%s\n' 'graph 1' 'made by hand' \
            'entry init = ^w/Assign' 'entry train = ^step' 'entry eval = y'
        printf '%s = %s : %s at net.lua:%d\n' \
            x 'Placeholder() {dtype=float32, shape=[?,3]}' 'float32[?,3]' 1 \
            w 'Variable() {container="", dtype=float32, shape=[3,2], shared_name=""}' \
            'float32[3,2]' 2 \
            w/zero 'Const() {dtype=float32, value=[[0,0],[0,0],[0,0]]}' 'float32[3,2]' 2 \
            w/Assign 'Assign(w, w/zero) {T=float32, use_locking=true, validate_shape=true}' \
            'float32[3,2]' 2 \
            w/read 'Identity(w) {T=float32}' 'float32[3,2]' 2 \
            y 'MatMul(x, w/read) {T=float32, transpose_a=false, transpose_b=false}' \
            'float32[?,2]' 3
        echo 'step = NoOp(^y) at net.lua:4'
    } > net.txt
    tf-graph --text < net.txt > net.tfg
}

@test "a graph is shown in a few lines" {
    run -0 tf-show net.tfg
    [ "${lines[0]}" = "graph   7 nodes" ]
    [ "${lines[1]}" = "entry   train ^step   eval y" ]
    [ "${lines[2]}" = "feeds   x float32[?,3]" ]
    [ "${lines[3]}" = "state   1 variable, 24 B: 1 trained (24 B)" ]
    [ "${lines[4]}" = "made    by hand" ]
    tf-show -v net.tfg | finds '^entry   init ^w/Assign   train'
}

@test "text is printed and read back to the same bytes" {
    tf-show --text net.tfg > again.txt
    diff net.txt again.txt
    tf-graph --text < again.txt | cmp - net.tfg
}

@test "an edit of the text is an edit of the graph" {
    sed '/^w = /s/3,2/3,5/; /^w\/zero/s/\[\[.*\]\]/float32[3,5](0)/' net.txt |
        tf-graph --text | tf-show --text > wide.txt
    grep -q '^y = .* : float32\[?,5\]' wide.txt
}

@test "what is wrong in a text is named with its line" {
    sed 's/MatMul(/MatMull(/' net.txt > wrong.txt
    run -65 tf-graph --text wrong.txt -o out.tfg
    [[ "$output" == *"wrong.txt:11: node 'y': unknown op 'MatMull' (did you mean 'MatMul'?)"* ]]
    [ ! -e out.tfg ]
}

@test "nodes as JSON lines" {
    tf-show --json net.tfg > net.json
    [ "$(jq -r 'select(.op == "Variable") | .name + " " + .type' net.json)" = "w float32[3,2]" ]
    [ "$(jq -c 'select(.name == "step") | .inputs' net.json)" = '["^y"]' ]
    [ "$(jq -c 'select(.name == "w/zero") | .attrs.value' net.json)" = '[[0,0],[0,0],[0,0]]' ]
}

@test "Graphviz reads the drawing, with and without scopes as boxes" {
    tf-show --dot net.tfg | dot -Tplain > all.txt
    [ "$(grep -c ^node all.txt)" -eq 7 ]
    tf-show --dot --depth 1 net.tfg | dot -Tplain > boxes.txt
    [ "$(grep -c ^node boxes.txt)" -eq 4 ]
}

@test "and so it does where edges go back and forth between boxes" {
    tf-graph "$root/examples/digits.lua" | tf-opt >digits.tfg
    for mode in sync async allreduce,bits=1 sync,bits=1 downpour,fetch=3,push=2; do
        tf-replicate --mode "$mode" --workers 3 digits.tfg | tf-show --dot |
            dot -Tplain >"$mode.txt"
        grep -q ^stop "$mode.txt"
    done
}

@test "texts of one graph from two scripts are the same without the places" {
    printf 'x = Placeholder{dtype = float32, name = "x"}\ny = Neg(x)\n' > a.lua
    printf '\n\n-- the same\nx = Placeholder{dtype = float32, name = "x"}\n\ny = Neg(x)\n' > b.lua
    for s in a b; do tf-graph $s.lua > $s.tfg; done
    differ() {
        for s in a b; do tf-show --text "$@" $s.tfg | grep -v ^made > $s.txt; done
        diff a.txt b.txt
    }
    run -1 differ
    [ "${#lines[@]}" -gt 4 ]
    run -0 differ --no-places
    [ -z "$output" ]
    tf-show --text --no-places a.tfg | tf-graph --text | tf-show --text --no-places |
        diff <(tf-show --text --no-places a.tfg) -
    run -64 tf-show --no-places a.tfg
}

@test "a text of more than 64 MiB is read back" {
    awk 'BEGIN { printf "graph 1\nk = Const() {dtype=float32, value=[0.123456"
        for (i = 0; i < 8500000; i++) printf ",0.123456"
        print "]} : float32[8500001]" }' > big.txt
    [ "$(stat -c %s big.txt)" -gt $((64 << 20)) ]
    tf-graph --text big.txt | tf-show --text | grep -v ^made > shown.txt
    tf-graph --text shown.txt | tf-show --text | grep -v ^made | cmp - shown.txt
}
