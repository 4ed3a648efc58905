#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Feeds of a device with memory of its own, which are read and prefetched while the step before
# runs: on the TEST device (tests/lib/device_test.h). The feeding process may wait for each answer,
# be slow, fail or end in the middle.
# shellcheck disable=SC2154  # stderr is set by run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
    cd "$BATS_TEST_TMPDIR" || return 1
    tf-graph --text << 'EOL' | tf-place > cpu.tfg
entry init = ^set
entry train = ^add
x = Placeholder() {dtype=float32, shape=[?,3]}
v = Variable() {dtype=float32, shape=[]}
zero = Const() {dtype=float32, value=0}
set = Assign(v, zero)
axes = Const() {dtype=int32, value=[0,1]}
squares = Mul(x, x)
s = Sum(squares, axes)
add = AssignAdd(v, s)
predict = Add(x, squares)
EOL
    tf-show --text cpu.tfg | sed 's/device:CPU:0/device:TEST:0/' | tf-graph --text > test.tfg
    for i in 1 2 3 4 5; do
        echo "$i,$((i + 1)),$((i * i))" > row.csv
        tf-data csv row.csv x=1-3 --batch 1 > "$i.rec" # each a stream, which are read as one
    done
    cat [1-5].rec > all.rec
}

grows() { # FILE: until it has more bytes than when it was asked about before
    until [[ $(stat -c %s "$1" 2> no-file) -gt ${size:-0} ]]; do sleep 0.02; done
    size=$(stat -c %s "$1")
}

expect_the_cpus() { # FILE of fetches
    tf-exec -g cpu.tfg --fetch predict --feed all.rec | tf-show --json > wanted
    tf-show --json "$1" > got
    cmp wanted got
    [ "$(wc -l < got)" -ge 5 ]
}

@test "who waits for each answer before it feeds the next step gets it" {
    mkfifo in
    tf-exec -g test.tfg --fetch predict --feed in > out &
    exec 7> in
    for i in 1 2 3 4 5; do
        cat "$i.rec" >&7
        grows out
    done
    exec 7>&-
    wait $!
    expect_the_cpus out
}

@test "records that come in pieces are taken when they are whole" {
    for ((at = 0; at < $(stat -c %s all.rec); at += 97)); do
        tail -c +$((at + 1)) all.rec | head -c 97
        sleep 0.01
    done | tf-exec -g test.tfg --fetch predict --feed - > out
    expect_the_cpus out
}

@test "feeds of parts on the device and on the CPU train to the CPU's bits" {
    tf-show --text cpu.tfg | sed -E '/ = (Sum|Placeholder)\(/s/device:CPU:0/device:TEST:0/' |
        tf-graph --text | tf-part > parts.tfg
    for graph in cpu test parts; do
        tf-exec -g $graph.tfg --run train --fetch x --feed all.rec --save $graph.ckpt > $graph.out
        tf-show --json $graph.ckpt > $graph.json
        cmp cpu.json $graph.json
        tf-show --json $graph.out > $graph.fed
        cmp cpu.fed $graph.fed
    done
}

@test "a record that is damaged is told behind the answers of the steps before it" {
    head -c $(($(stat -c %s all.rec) - 20)) all.rec > cut.rec
    run --separate-stderr bash -c 'tf-exec -g test.tfg --fetch predict --feed cut.rec > out'
    [ "$status" -eq 65 ]
    on_test=$stderr
    [[ $stderr == *"truncated after"* ]]
    run --separate-stderr bash -c 'tf-exec -g cpu.tfg --fetch predict --feed cut.rec > wanted'
    [ "$status" -eq 65 ]
    [ "$on_test" = "$stderr" ]
    for file in out wanted; do
        tf-show --json $file > $file.json || [ $? -eq 65 ]
    done
    cmp out.json wanted.json
    [ "$(grep -c predict out.json)" -ge 4 ]
}

@test "steps that are not to be run take no feeds" {
    { cat [1-3].rec; echo "no record"; } > some.rec
    tf-exec -g test.tfg --fetch predict --feed some.rec --steps 3 > out
    [ "$(tf-show --json out | grep -c '"predict"')" -eq 3 ]
}

@test "a signal ends the wait for feeds, and what was trained is saved" {
    mkfifo in
    tf-exec -g test.tfg --run train --fetch s --feed in --save v.ckpt > out 2> err &
    pid=$!
    exec 7> in
    for i in 1 2 3; do
        cat "$i.rec" >&7
        grows out
    done
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    exec 7>&-
    [ "$code" -eq 143 ]
    grep -q 'interrupted after step 3' err
    cat [1-3].rec | tf-exec -g cpu.tfg --run train --feed - --save wanted.ckpt
    tf-show --json v.ckpt > got
    tf-show --json wanted.ckpt > wanted
    cmp got wanted
}
