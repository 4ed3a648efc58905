#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tables in slices: training over several shards ends with the bits of the whole table.
load ../lib/tools
load ../lib/shards

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    # 1001 rows: no number of slices divides them
    cat >m.lua <<'LUA'
ids = Placeholder{dtype = int32, shape = {-1}}
pairs_ = Placeholder{dtype = int64, shape = {-1, 2}}
y = Placeholder{dtype = float32, shape = {-1}}
local how = {uniform = init.uniform{min = -1, max = 1}, normal = init.normal{},
             truncated = init.truncated_normal{}, ones = init.ones}
local e = nn.embedding(ids, 1001, 8,
                       {name = "table", init = how[D.init or "uniform"], partitions = D.n})
local table = trainable()[1]
local f = Sum(Cast(pairs_, {DstT = float32}), {1}, {keep_dims = true}) * 0.001
if D.rows ~= 1 then f = Sum(Gather(table, pairs_), {1}) end
if D.dense == 1 then f = f + Sum(table, {0}) * 0.001 end
local v = variable{name = "v", shape = {8, 1}, init = init.normal{}}
loss = nn.mse(Reshape(MatMul(e * f, v), {-1}), y)
entry.train = minimize(loss, optim[D.opt or "sgd"]{rate = 0.01}, {clip = D.clip})
entry.whole = table
LUA
    awk 'BEGIN { srand(7); for (i = 0; i < 120; i++)
        print int(1001 * rand()) "," int(40 * rand()) "," int(1001 * rand()) "," rand() }' >x.csv
    tf-data csv x.csv ids=1:int32 pairs_=2-3:int64 y=4 --batch 6 -o f.rec
}

teardown() {
    kill_pids "${pids[@]}"
}

graph() { # OPTION...
    tf-graph m.lua "$@" | tf-opt
}

@test "slices on the devices of a process compute the same, whatever the optimizer and the init" {
    for how in "sgd uniform" "adagrad normal" "momentum truncated" "adam ones" \
        "adagrad uniform -D rows=1" "sgd normal -D dense=1" "rmsprop uniform -D clip=0.5"; do
        read -r opt init more <<<"$how"
        # shellcheck disable=SC2086  # options
        graph -D opt="$opt" -D init="$init" $more |
            tf-exec --run train --fetch loss --feed f.rec --save one.ckpt | tf-show --json >one.txt
        for n in 2 5; do
            # shellcheck disable=SC2086
            graph -D opt="$opt" -D init="$init" $more -D n=$n |
                tf-place --devices CPU:0,CPU:1,CPU:2 | tf-part |
                tf-exec --run train --fetch loss --feed f.rec --save p.ckpt |
                tf-show --json | cmp one.txt
            [ "$(tf-show p.ckpt | grep -c '^table/W/part_')" = $n ]
            graph -D n=$n | tf-place --devices CPU:0,CPU:1,CPU:2 | tf-part |
                tf-exec --run whole --restore p.ckpt | tf-show --json >p.whole
            graph | tf-exec --run whole --restore one.ckpt | tf-show --json | cmp p.whole
        done
    done
}

@test "rows that are looked up, also twice, train as a product with ones does" {
    cat >ones.lua <<'LUA'
ids = Placeholder{dtype = int32, shape = {-1}}
y = Placeholder{dtype = float32, shape = {-1}}
local e
if D.n then
  e = nn.embedding(ids, 40, 8, {name = "table", init = init.ones, partitions = D.n})
else
  local w = variable{name = "table/W", shape = {40, 8}, init = init.ones}
  e = MatMul(OneHot(ids, 40, 1.0, 0.0), w)
end
loss = nn.mse(Sum(e * Cast(Range(1, 9, 1), {DstT = float32}), {1}) * 0.1, y)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    awk 'BEGIN { srand(5); for (i = 0; i < 400; i++) print int(40 * rand()) "," rand() }' >x.csv
    tf-data csv x.csv ids=1:int32 y=2 --batch 20 -o o.rec
    local how
    for how in "" "-D n=4"; do
        # shellcheck disable=SC2086  # options
        tf-graph ones.lua $how | tf-opt | tf-place --devices CPU:0,CPU:1,CPU:2 | tf-part >o.tfg
        tf-exec -g o.tfg --run train --fetch loss --feed o.rec --save "o$how.ckpt" |
            tf-show --json | jq .loss >"o$how.txt"
    done
    paste o.txt "o-D n=4.txt" | awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > 1e-6) bad = 1
        if (NR == 1) first = $1; last = $1 } END { exit bad || NR != 20 || last > first / 2 }'
}

@test "a slice says what it is a slice of" {
    graph -D n=4 | tf-place --devices CPU:0,CPU:1 | tf-show --text |
        grep '^table/W/part_3 = Variable' >slice.txt
    grep -q '_slice_of="table/W"' slice.txt
    grep -q '_slice_offset=751' slice.txt # 251, 250, 250, 250 rows
    grep -q '_slice_shape:shape=\[1001,8\]' slice.txt
    grep -q ' shape=\[250,8\]' slice.txt
}

# solid OPTION...: trains a variable of three axes, and one that broadcasts along its last axis
solid() {
    cat >solid.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 5}}
local how = {normal = init.normal{}, ones = init.ones}
local w = variable{name = "w", shape = {5, 6, 7}, init = how[D.init] or 0.25,
                   partitions = D.n, partition_axis = D.axis}
local bias = variable{name = "bias", shape = {7}, init = init.normal{}}
local y = MatMul(x, Reshape(Tanh(w + bias), {5, 42}))
loss = Mean(Square(y - 1), {0, 1}) + 0.01 * L2Loss(w)
entry.train = minimize(loss, optim[D.opt]{rate = 0.05}, {clip = D.clip})
entry.whole = w
LUA
    tf-graph solid.lua "$@" | tf-opt
}

@test "a variable is cut along the axis that it asks for, with the same bits" {
    local how opt init more axis n
    awk 'BEGIN { srand(2); for (i = 0; i < 60; i++) {
        for (k = 0; k < 4; k++) printf "%.6f,", rand() - 0.5
        print rand() } }' >solid.csv
    tf-data csv solid.csv x=1-5:float32 --batch 6 -o s.rec
    for how in "sgd normal" "momentum ones" "adam normal" "rmsprop normal -D clip=0.5"; do
        read -r opt init more <<<"$how"
        # shellcheck disable=SC2086  # options
        solid -D opt="$opt" -D init="$init" $more |
            tf-exec --run train --fetch loss --feed s.rec --save one.ckpt | tf-show --json >one.txt
        solid -D opt="$opt" | tf-exec --run whole --restore one.ckpt | tf-show --json >one.whole
        for axis in 0 1 2; do
            n=$((axis + 2))
            # shellcheck disable=SC2086
            solid -D opt="$opt" -D init="$init" $more -D n=$n -D axis=$axis |
                tf-place --devices CPU:0,CPU:1,CPU:2 | tf-part >parts.tfg
            tf-exec -g parts.tfg --run train --fetch loss --feed s.rec --save p.ckpt |
                tf-show --json | cmp one.txt
            # along that axis, as its slots are
            tf-show p.ckpt | awk -v n=$n -v axis=$axis '/\/part_/ {
                split($2, of, /[][]/); split(of[2], is, ","); split("5,6,7", whole, ",")
                for (i = 1; i <= 3; i++) if ((is[i] == whole[i]) == (i == axis + 1)) wrong = $0
                parts += $1 ~ /^w\/part_/ } END { print wrong; exit wrong != "" || parts != n }'
            tf-exec -g parts.tfg --run whole --restore p.ckpt | tf-show --json | cmp one.whole
            # and the other way: from slices into one, from one into slices
            solid -D opt="$opt" | tf-exec --run whole --restore p.ckpt | tf-show --json |
                cmp one.whole
            tf-exec -g parts.tfg --run whole --restore one.ckpt | tf-show --json | cmp one.whole
        done
    done
}

@test "an axis that there is not, or of what is by rows, is refused in a line" {
    local place=(tf-place --devices 'CPU:0,CPU:1')
    solid -D opt=sgd -D n=2 -D axis=3 >3.tfg
    run --separate-stderr "${place[@]}" 3.tfg
    [ "$status" -eq 65 ]
    # shellcheck disable=SC2154  # of run
    [[ $stderr == *"'w' (solid.lua:3): Variable: _partition_axis is to be an axis of [5,6,7]" ]]
    sed 's/^local table = .*/table = variable{name = "t", shape = {1001, 8}, partitions = 2,\
        partition_axis = 1}/; s/Gather(table, pairs_)/Gather(table, pairs_) * 1/' m.lua >t.lua
    tf-graph t.lua | tf-opt >t.tfg
    run --separate-stderr "${place[@]}" t.tfg
    [ "$status" -eq 65 ]
    [[ $stderr == *"cannot be cut along axis 1, as rows of it are looked up or changed" ]]
    run --separate-stderr tf-graph -e 'variable{shape = {3}, partitions = 2, partition_axis = -1}'
    [ "$status" -eq 65 ]
    [[ $stderr == *"variable: partition_axis must be a whole number of at least 0, not -1"* ]]
}

@test "on one device nothing is cut, and the whole table can be fetched when it is" {
    graph -D n=4 | tf-place | tf-show --text | grep '^table/W = Variable' >/dev/null
    graph | tf-exec --run whole | tf-show --json >one.txt
    graph -D n=4 | tf-place --devices CPU:0,CPU:1 | tf-part | tf-exec --run whole |
        tf-show --json | cmp one.txt
}

@test "a row that is not in the table is an error before anything is changed" {
    local bad feeds
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >c
    echo 'task worker:0 unix:w0' >>c
    graph -D n=4 -D opt=adagrad | tf-place -c c | tf-part >p.tfg
    serve ps:0
    serve ps:1
    work 0 --run train --feed f.rec
    work 0 --run whole --fetch v | tf-show --json >before
    for bad in -1 1001; do
        for feeds in "ids=[$bad] pairs_=[[1,2]]" "ids=[3] pairs_=[[1,$bad]]"; do
            run work 0 --run train --feed "${feeds% *}" --feed "${feeds#* }" --feed 'y=[0]'
            [ "$status" -eq 65 ]
            [[ $output == *DynamicPartition* ]]
            work 0 --run whole --fetch v | tf-show --json | cmp before
        done
    done
    # The slots of the rows are restored, too: the next step is the one that would have followed.
    work 0 --run train --fetch loss --feed f.rec | tf-show --json >after
    stop
    serve ps:0
    serve ps:1
    work 0 --run train --feed f.rec
    work 0 --run train --fetch loss --feed f.rec | tf-show --json | cmp after
    stop
}

@test "a table larger than the memory of any shard trains over two, as it does in one process" {
    # 1001 rows of 8 floats are 32032 bytes; adagrad's slot is as large
    for how in "sgd 20K" "adagrad 40K"; do
        read -r opt memory <<<"$how"
        graph -D rows=1 -D opt="$opt" >one.tfg
        tf-exec -g one.tfg --run train --fetch loss --feed f.rec --save one.ckpt |
            tf-show --json >one.txt
        printf 'task ps:%d unix:p%d memory=%s\n' 0 0 "$memory" 1 1 "$memory" >c
        echo 'task worker:0 unix:w0' >>c
        graph -D rows=1 -D opt="$opt" | tf-place -c c --report 2>report.txt | tf-part >p.tfg
        [ "$(grep -c '^table/W/part_[01] .*by bytes' report.txt)" = 2 ]
        serve ps:0
        serve ps:1
        work 0 --run train --fetch loss --feed f.rec | tf-show --json | cmp one.txt
        tf-exec -g one.tfg --run whole --restore one.ckpt | tf-show --json >one.whole
        work 0 --run whole | tf-show --json | cmp one.whole
        stop
    done
}

@test "the placer says so when not even slices fit" {
    printf 'task ps:0 unix:p0 memory=10K\ntask ps:1 unix:p1 memory=10K\ntask worker:0 unix:w0\n' >c
    run --separate-stderr bash -c 'tf-graph m.lua -D rows=1 | tf-opt | tf-place -c c >p.tfg'
    [ "$status" -eq 65 ]
    # shellcheck disable=SC2154  # of run
    [[ $stderr == *"node 'table/W/part_"* ]]
    [[ $stderr == *"bytes of variables share a device"* ]]
}

# Two workers that push at once: the same rounds, whether the table is in slices or not.
@test "replicated training pushes each slice its own rows, and ends with the same bits" {
    for opt in sgd adagrad; do
        for memory in 1M 45K; do
            printf 'task ps:%d unix:p%d memory=%s\n' 0 0 "$memory" 1 1 "$memory" >c
            printf 'task worker:%d unix:w%d\n' 0 0 1 1 >>c
                graph -D rows=1 -D opt=$opt | tf-replicate --mode sync | tf-place -c c |
                tf-part >p.tfg
            serve ps:0
            serve ps:1
            both=()
            for w in 0 1; do
                work $w --run train --fetch loss --feed f.rec 2>w$w.err |
                    tf-show --json >w$w.$memory 3>&- &
                both+=($!)
            done
            wait "${both[0]}"
            wait "${both[1]}"
            work 1 --run whole | tf-show --json >whole.$memory
            stop
        done
        for w in 0 1; do
            [ "$(wc -l <w$w.1M)" = 20 ]
            cmp w$w.1M w$w.45K
        done
        cmp whole.1M whole.45K
    done
}
