#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-part in pipes, and its parts in tf-exec.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
entry init = ^set
entry step = ^add, y
x = Placeholder() {dtype=float32, shape=[2]}
v = Variable() {dtype=float32, shape=[2]} @?/device:CPU:1
zero = Const() {dtype=float32, value=[0,0]}
set = Assign(v, zero)
n = Neg(x) @?/device:CPU:2
add = AssignAdd(v, n)
y = Neg(add) @?/device:CPU:2
TEXT
    tf-graph --text m.txt | tf-place --devices CPU:0,CPU:1,CPU:2 >m.tfg
}

@test "a graph for each device, and what crosses" {
    run --separate-stderr bash -c 'tf-part --report m.tfg | tf-show | grep -c "^graph"'
    [ "$output" = 3 ]
    [ "$stderr" = "x  CPU:0 -> CPU:2  8 B
n  CPU:2 -> CPU:1  8 B
add  CPU:1 -> CPU:2  8 B
tf-part: 3 graphs, 3 tensors cross, 24 B a step" ]
}

# tf-place counts the tensors that it would send, tf-part those that it does.
@test "tf-place and tf-part count the same tensors" {
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >cluster
    echo 'task worker:0 unix:w0' >>cluster
    tf-graph - <<'LUA' >train.tfg
local h = nn.dense(Placeholder{dtype = float32, shape = {8, 4}, name = "x"}, 8)
entry.train = minimize(nn.mse(h, 0.5), optim.sgd{rate = 0.1})
LUA
    tf-replicate -q --mode sync --workers 1 train.tfg | tf-place -c cluster --report 2>placed |
        tf-part --report 2>parts >/dev/null
    n=$(sed -n 's/^tf-place: \([0-9]*\) tensors cross.*/\1/p' placed)
    only=$(grep -c '  order only$' parts)
    grep -q "^tf-part: 3 graphs, $n tensors cross, .* a step; $only times" parts
}

@test "parts run together: feeds, fetches and entries are found in whichever has them" {
    run bash -c 'tf-part m.tfg | tf-exec --run step --feed x=[1,2] -n 3 | tf-show'
    [ "$status" -eq 0 ]
    [ "$output" = "step 1  y 1 2
step 2  y 2 4
step 3  y 3 6" ]
    tf-exec -g m.tfg --run step --feed x=[1,2] -n 3 | tf-show >one.txt
    [ "$output" = "$(cat one.txt)" ]
}

@test "the fetches of an entry come in its order, wherever they are" {
    sed -i 's/^entry step/entry all = y, x, ^add, n, x, add\nentry pair = n, y\n&/' m.txt
    tf-graph --text m.txt | tf-place --devices CPU:0,CPU:1,CPU:2 >m.tfg
    for entry in all pair; do
        tf-exec -g m.tfg --run "$entry" --feed x=[1,2] -n 1 | tf-show >one.txt
        tf-part m.tfg | tf-exec --run "$entry" --feed x=[1,2] -n 1 | tf-show | diff - one.txt
        tf-part -o parts/ m.tfg
        cat parts/*.tfg | tf-exec --run "$entry" --feed x=[1,2] -n 1 | tf-show | diff - one.txt
    done
    grep ' n .* y ' one.txt
}

@test "a file for each device, and their variables saved and restored" {
    tf-part -o parts/ m.tfg
    for i in 0 1 2; do [ -s parts/localhost-0-CPU-$i.tfg ]; done
    cat parts/*.tfg | tf-exec --run step --feed 'x=[1,2]' --save v.ckpt >/dev/null
    run bash -c 'tf-part m.tfg | tf-exec --fetch v --restore v.ckpt | tf-show'
    [ "$output" = "step 1  v -1 -2" ]
}

@test "feed records follow the parts" {
    printf '1,2\n3,4\n' >x.csv
    run bash -c '(tf-part m.tfg; tf-data csv x.csv x=1-2 --batch 1) | tf-exec --run step | tf-show'
    [ "$status" -eq 65 ] # the records are [1,2]
    [[ $output == *"node 'x'"* ]]
}

@test "a part alone, and a graph that was not placed" {
    tf-part -o parts/ m.tfg
    run bash -c 'tf-exec -g parts/localhost-0-CPU-1.tfg --run step 2>&1 >/dev/null'
    [ "$status" -eq 65 ]
    [[ $output == *"all parts of a graph run together"* ]]
    run bash -c 'tf-graph --text m.txt | tf-part | tf-show'
    [ "${lines[0]}" = "tf-part: stdin: node 'x': has no device; tf-place gives it one" ]
}

# FILE...: runs the parts and prints how many values at most had been received but not used: u1 to
# u12 are all there before h1 begins, and each is used by one h
waiting() {
    cat "$@" | tf-exec --run r --trace trace.rec | tf-show --json | cmp one.json
    tf-show --json trace.rec | awk -F '[":,]+' '
        $11 ~ /^u[0-9]+\/Recv/ { print $5 + $7, 1 }
        $11 ~ /^h[1-9]/ { print $5 + $7, -1 }' | sort -n |
        awk '{ n += $2; most = n > most ? n : most } END { print most }'
}

all_wait() {
    [ "$(waiting parts/*.early)" -ge 8 ]
}

@test "what is needed late is received late" {
    {
        echo 'entry r = h12'
        echo 'shape = Const() {dtype=int32, value=[256,256]} @?/device:CPU:0'
        echo 'h0 = RandomUniform(shape, ^u12) {dtype=float32} @?/device:CPU:1'
        before=
        for i in $(seq 12); do
            echo "u$i = RandomUniform(shape$before) {dtype=float32, seed=$i} @?/device:CPU:0"
            before=", ^u$i"
            # the values come faster than they are used
            echo "f$i = MatMul(h$((i - 1)), u$i) @?/device:CPU:1"
            echo "g$i = MatMul(f$i, u$i) @?/device:CPU:1"
            echo "h$i = MatMul(g$i, u$i) @?/device:CPU:1"
        done
    } >u.txt
    tf-graph --text u.txt | tf-exec --run r | tf-show --json >one.json
    tf-graph --text u.txt | tf-place --devices CPU:0,CPU:1 | tf-part -o parts/
    [ "$(waiting parts/*.tfg)" -le 4 ]
    for part in parts/*.tfg; do # for comparison: nothing waits
        tf-show --text "$part" | sed 's/_after=\[[^]]*\], //' |
            tf-graph --text >"${part%.tfg}.early"
    done
    # a late thread finds the values there, and takes the one that it needs first
    soon 30 all_wait
}
