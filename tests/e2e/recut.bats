#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Files of partitioned variables: from any number of shards onto any other, into one process, and
# back. An incomplete variable is refused, and changes nothing.
load ../lib/tools
load ../lib/shards

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    # 7 rows: no number of slices divides them
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 7}}
y = Placeholder{dtype = float32, shape = {-1, 5}}
local w = variable{name = "w", shape = {7, 11}, init = init.normal{}, partitions = D.n}
local v = variable{name = "v", shape = {11, 5}, init = init.normal{}}
loss = nn.mse(MatMul(MatMul(x, w), v), y)
entry.train = minimize(loss, optim.momentum{rate = 0.01})
entry.whole = w
LUA
    # the same w, in another type or with more rows
    cat >other.lua <<'LUA'
local w = variable{name = "w", shape = {D.rows or 7, 11}, dtype = D.type, init = init.zeros,
                   partitions = D.n}
entry.train = AssignAdd(w, OnesLike(w))
LUA
    awk 'BEGIN { srand(3); for (i = 0; i < 40; i++) {
        line = rand(); for (j = 1; j < 12; j++) line = line "," rand(); print line } }' >x.csv
    tf-data csv x.csv x=1-7 y=8-12 --batch 4 -o f.rec
    tf-graph m.lua | tf-opt >one.tfg
    tf-exec -g one.tfg --run train --feed f.rec --save one.ckpt
    # a run that resumes from there has these losses
    tf-exec -g one.tfg --restore one.ckpt --run train --fetch loss --feed f.rec |
        tf-show --json >on.txt
}

teardown() {
    kill_pids "${pids[@]}"
}

slices() { # N [FILE OPTION...]: the graph in N slices, in one process
    tf-graph "${2:-m.lua}" -D n="$1" "${@:3}" | tf-opt |
        tf-place --devices CPU:0,CPU:1,CPU:2,CPU:3,CPU:4 | tf-part
}

shards() { # N: these are running, for workers of p.tfg with as many slices
    local i
    for ((i = 0; i < $1; i++)); do echo "task ps:$i unix:p$i"; done >c
    echo 'task worker:0 unix:w0' >>c
    tf-graph m.lua -D n="$1" | tf-opt | tf-place -c c | tf-part >p.tfg
    for ((i = 0; i < $1; i++)); do serve ps:$i; done
}

parts() { # [STEPS]: of a job on 3 shards a file of each, 0.ckpt to 2.ckpt; w is on the last two
    local i
    shards 3
    work 0 --run train --feed f.rec --steps "${1:-10}"
    rm -rf store
    tf-ckpt init store
    tf-ps save "$PWD/store" -c c
    stop
    for i in 0 1 2; do
        tf-ckpt export "store/shards/ps-$i" "$i.ckpt"
        tf-show "$i.ckpt" >"$i.txt"
    done
    grep -q '^v ' 0.txt
    grep -q '^w/part_0 ' 1.txt
    grep -q '^w/part_1 ' 2.txt
    grep -q '^w/part_2 ' 2.txt
}

# refuses LINE FILE: tf-exec refuses it, whatever the graph; so does tf-ckpt, which keeps its store
refuses() {
    local n
    for n in one 2 3; do
        cp one.ckpt saved.ckpt
        run --separate-stderr tf-exec -g $n.tfg --restore "$2" --run train --feed f.rec \
            --save saved.ckpt
        [ "$status" -eq 65 ]
        # shellcheck disable=SC2154  # of run
        [[ $stderr == "tf-exec: $2: "$1 ]]
        [[ $stderr != *$'\n'* ]]
        cmp saved.ckpt one.ckpt
    done
    tf-ckpt init kept
    tf-ckpt import one.ckpt kept
    tf-ckpt list kept >before
    run --separate-stderr tf-ckpt import "$2" kept --step 99
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-ckpt: $2: "$1 ]]
    tf-ckpt list kept | cmp before
    tf-ckpt diff kept one.ckpt
    rm -r kept
    for form in npz safetensors index; do
        echo kept >"x.$form"
        run --separate-stderr tf-ckpt export "$2" "x.$form"
        [ "$status" -eq 65 ]
        [[ $stderr == "tf-ckpt: $2: "$1 ]]
        [ "$(cat "x.$form")" = kept ]
    done
}

@test "a file goes from any number of slices into any other, and training goes on with its bits" {
    for n in 1 2 3 5; do slices $n >$n.tfg; done
    for from in 1 2 3 5; do
        tf-exec -g $from.tfg --run train --feed f.rec --save $from.ckpt
        [ "$(tf-show $from.ckpt | grep -c '^w/part_')" = $((from > 1 ? from : 0)) ]
        tf-ckpt diff one.ckpt $from.ckpt
        for to in 1 2 3 5; do
            tf-exec -g $to.tfg --restore $from.ckpt --run train --fetch loss --feed f.rec |
                tf-show --json | cmp on.txt
        done
    done
}

@test "a file of shards goes onto other shards, into one process, and back" {
    for from in 2 3; do
        shards $from
        work 0 --run train --feed f.rec --save $from.ckpt
        stop
        tf-ckpt diff one.ckpt $from.ckpt
        tf-exec -g one.tfg --restore $from.ckpt --run train --fetch loss --feed f.rec |
            tf-show --json | cmp on.txt
    done
    for from in one 2 3; do
        for to in 1 2 3; do
            shards $to
            work 0 --restore $from.ckpt --run train --fetch loss --feed f.rec --save again.ckpt |
                tf-show --json | cmp on.txt
            stop
            tf-exec -g one.tfg --restore $from.ckpt --run train --feed f.rec --save straight.ckpt
            tf-ckpt diff straight.ckpt again.ckpt
        done
    done
}

@test "a file of slices is whole in the files of other programs and in stores" {
    slices 3 >3.tfg
    tf-exec -g 3.tfg --run train --feed f.rec --save 3.ckpt
    for form in npz safetensors index ckpt; do
        tf-ckpt export 3.ckpt slices.$form
        tf-ckpt init $form
        tf-ckpt import slices.$form $form
        tf-ckpt diff one.ckpt $form
        tf-exec -g 3.tfg --restore $form --run train --fetch loss --feed f.rec | tf-show --json |
            cmp on.txt
    done
    tf-ckpt cat 3.ckpt w | tf-show --json >w.txt
    tf-ckpt cat one.ckpt w | tf-show --json | cmp w.txt
    cat >op.text <<'TEXT'
path = Placeholder() {dtype=string, shape=[]}
name = Const() {dtype=string, value="w"}
r = Restore(path, name) {dt=float32}
TEXT
    tf-graph --text op.text >op.tfg
    tf-exec -g op.tfg --fetch r --feed 'path="one.ckpt"' | tf-show --json >r.txt
    tf-exec -g op.tfg --fetch r --feed 'path="3.ckpt"' | tf-show --json | cmp r.txt
}

@test "files of the shards of a job, one behind the other, are one file" {
    parts
    slices 2 >2.tfg
    cat 2.ckpt 0.ckpt 1.ckpt >all.ckpt
    tf-ckpt diff all.ckpt one.ckpt
    cat 2.ckpt 0.ckpt one.ckpt 1.ckpt 2.ckpt >twice.ckpt # the same bits
    for file in all twice; do
        for graph in one 2; do
            tf-exec -g $graph.tfg --restore $file.ckpt --run train --fetch loss --feed f.rec |
                tf-show --json | cmp on.txt
        done
    done
}

@test "slices that are missing are counted" {
    for n in 2 3; do slices $n >$n.tfg; done
    parts
    cat 2.ckpt 0.ckpt >gap.ckpt
    refuses "variable 'w*': [0-4] of [3-7] rows are in it" gap.ckpt
    run --separate-stderr tf-exec -g one.tfg --restore gap.ckpt --run whole
    [ "$stderr" = "tf-exec: gap.ckpt: variable 'w': $(rows_of gap.ckpt) of 7 rows are in it" ]
    cat 2.ckpt 0.ckpt 2.ckpt 2.ckpt >gap.ckpt # what is there twice fills no gap
    refuses "variable 'w*': * rows are in it" gap.ckpt
    tf-ckpt export gap.ckpt rest.ckpt # which keeps what is there, for who has the rest
    cat rest.ckpt 1.ckpt >all.ckpt
    tf-ckpt diff all.ckpt one.ckpt
}

rows_of() { # FILE: of w, as its slices are printed
    tf-show "$1" | sed -n 's/^w\/part_[0-9]* *float32\[\([0-9]*\),.*/\1/p' |
        awk '{ n += $1 } END { print n }'
}

@test "slices that overlap and differ, or are of different wholes, are refused" {
    for n in 2 3; do slices $n >$n.tfg; done
    tf-exec -g 2.tfg --run train --feed f.rec --save 2.ckpt
    tf-exec -g 3.tfg --run train --feed f.rec --steps 9 --save earlier.ckpt
    cat 2.ckpt earlier.ckpt >differ.ckpt
    refuses "variable '*': elements are in it twice, and differ" differ.ckpt
    slices 3 other.lua -D rows=8 | tf-exec --run train --save rows.ckpt >rest
    cat 2.ckpt rows.ckpt >rows2.ckpt
    refuses "variable 'w' is float32\[7,11\] by 'w/part_0', but float32\[8,11\] by 'w/part_0'" \
        rows2.ckpt
    slices 3 other.lua -D type=float64 | tf-exec --run train --save type.ckpt >rest
    cat 2.ckpt type.ckpt >type2.ckpt
    refuses "variable 'w' is float32\[7,11\] by 'w/part_0', but float64\[7,11\] by 'w/part_0'" \
        type2.ckpt
}

@test "a file of slices that was cut short is refused, wherever that is" {
    for n in 2 3; do slices $n >$n.tfg; done
    tf-exec -g 3.tfg --run train --feed f.rec --save 3.ckpt
    size=$(stat -c %s 3.ckpt)
    for n in $((size - 1)) $((size / 2)); do
        head -c $n 3.ckpt >short.ckpt
        refuses "truncated*; behind variable '*'" short.ckpt
    done
}

@test "a shard whose worker has such a file keeps what it has" {
    parts 3
    cat 2.ckpt 0.ckpt >gap.ckpt
    shards 2
    work 0 --restore one.ckpt --run whole --fetch v | tf-show --json >before
    run --separate-stderr work 0 --restore gap.ckpt --run train --feed f.rec
    [ "$status" -eq 65 ]
    [[ $stderr == *"gap.ckpt: variable 'w/part_"*" rows are in it"* ]]
    work 0 --run whole --fetch v | tf-show --json | cmp before
    stop
}

@test "what fits of slices goes into a graph with others, and the rest is listed" {
    parts
    slices 2 >2.tfg
    cat 2.ckpt 0.ckpt >gap.ckpt
    run --separate-stderr tf-exec -g one.tfg --restore gap.ckpt --restore-partial --run whole
    [ "$status" -eq 0 ]
    n=$(rows_of gap.ckpt)
    [ "$stderr" = "tf-exec: gap.ckpt: not restored: variable 'w': $n of 7 rows are in it
tf-exec: gap.ckpt: not restored: variable 'w/momentum': $n of 7 rows are in it" ]
    cat 0.ckpt 1.ckpt 2.ckpt >all.ckpt
    tf-exec -g 2.tfg --restore all.ckpt --restore-partial --run train --fetch loss --feed f.rec \
        2>err | tf-show --json | cmp on.txt
    [ ! -s err ]
    slices 2 other.lua >few.tfg
    run --separate-stderr tf-exec -g few.tfg --restore all.ckpt --restore-partial --run train
    [ "$stderr" = "tf-exec: all.ckpt: not restored: 'v' is not in the graph
tf-exec: all.ckpt: not restored: 'v/momentum' is not in the graph
tf-exec: all.ckpt: not restored: 'w/momentum' is not in the graph" ]
}
