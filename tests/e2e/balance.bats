#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Large dense variables are partitioned over shards that would be unequal; training stays equal.
# shellcheck disable=SC2154  # root is of tools
load ../lib/tools
load ../lib/shards

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    # 67 rows: no number of slices divides them
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 67}}
y = Placeholder{dtype = float32, shape = {-1}}
local h = Tanh(nn.dense(x, 40, {name = "hidden"}))
loss = nn.mse(Reshape(nn.dense(h, 1, {name = "out"}), {-1}), y)
entry.train = minimize(loss, optim[D.opt or "sgd"]{rate = 0.01}, {clip = D.clip})
entry.whole = trainable()
LUA
    awk 'BEGIN { srand(7); for (i = 0; i < 80; i++) {
        for (k = 0; k < 67; k++) printf "%.6f,", rand() - 0.5
        print rand() } }' >x.csv
    tf-data csv x.csv x=1-67:float32 y=68 --batch 4 -o f.rec
}

teardown() {
    kill_pids "${pids[@]}"
}

cluster() { # SHARDS WORKERS
    for ((i = 0; i < $1; i++)); do echo "task ps:$i unix:p$i"; done >c
    for ((i = 0; i < $2; i++)); do echo "task worker:$i unix:w$i"; done >>c
}

# bytes SHARDS OPTION...: bytes of AlexNet's variables, by shard
bytes() {
    cluster "$1" 1
    tf-graph -D model=alexnet -D batch=16 "$root/tests/bench/train.lua" | tf-opt |
        tf-replicate --mode sync | tf-place -c c --report "${@:2}" 2>&1 >/dev/null |
        sed -n 's/.*ps.task:\([0-9]\).*by bytes: \([0-9]*\) of .*/\1 \2/p' |
        awk '{ n[$1] += $2 } END { for (i in n) print n[i] }'
}

even() { # from bytes: whether nobody has a tenth more or less than the mean
    awk '{ n[NR] = $1; all += $1 }
        END { for (i in n) bad += n[i] * NR > 1.1 * all || n[i] * NR < 0.9 * all; exit bad > 0 }'
}

@test "of AlexNet 3 and 4 shards have as many bytes each, within a tenth" {
    for n in 3 4; do
        bytes $n >is
        [ "$(wc -l <is)" = $n ]
        even <is
        bytes $n --cut-above 0 >was
        run -1 even <was
        [ "$(awk '{ n += $1 } END { print n }' is)" = "$(awk '{ n += $1 } END { print n }' was)" ]
    done
}

@test "nothing is cut where wholes are as even, nor what asks for a task" {
    cluster 2 1
    printf '%s\n' 'for i = 1, 4 do variable{name = "v" .. i, shape = {100, 10}} end' >even.lua
    tf-graph even.lua | tf-place -c c --cut-above 100 | tf-show --text >even
    [ "$(grep -c '^v[1-4] = Variable' even)" = 4 ]
    echo 'device("/job:ps/task:1", function() variable{name = "w", shape = {100, 10}} end)' >one.lua
    tf-graph one.lua | tf-place -c c --cut-above 100 | tf-show --text | grep '^w = Variable'
    sed 's/.task:1//' one.lua | tf-graph - | tf-place -c c --cut-above 100 |
        tf-show --text | grep '^w/part_1 = Variable'
}

# train MODE CUT OPTION...: runs the workers; their fetches are in wK.txt
train() {
    cluster 3 "${workers:-2}"
    # shellcheck disable=SC2086  # options
    tf-graph m.lua "${@:3}" | tf-opt | tf-replicate --mode $1 | tf-place -c c --cut-above "$2" |
        tf-part >p.tfg
    for i in 0 1 2; do serve ps:$i; done
    local each=() i
    for ((i = 0; i < ${workers:-2}; i++)); do
        work $i --run train --fetch loss --feed f.rec 2>w$i.err | tf-show --json >w$i.txt 3>&- &
        each+=($!)
    done
    for i in "${each[@]}"; do
        wait "$i" || { cat w?.err; return 1; }
    done
    work 0 --run whole | tf-show --json >whole.txt
    stop
}

# same_bits CUT OPTIMIZER [OPTION]...: compares losses and all variables of two workers, whole and
# partitioned; the parts are in net.0 and net.CUT
same_bits() {
    local cut
    for cut in 0 "$1"; do
        train sync "$cut" -D opt="$2" "${@:3}"
        cat w0.txt w1.txt whole.txt >"is.$cut"
        tf-show --text p.tfg >"net.$cut"
    done
    [ "$(wc -l <is.0)" = 41 ]
    cmp is.0 "is.$1"
}

@test "replicated training ends with the same bits, cut or whole, whatever the optimizer" {
    for how in sgd momentum adagrad adam rmsprop "sgd -D clip=0.05" "adam -D clip=0.05"; do
        # shellcheck disable=SC2086  # options
        same_bits 1000 $how
        run -1 grep -q '^hidden/W/part_' net.0
        [ "$(grep -c '^hidden/W/part_[0-9] = Variable' net.1000)" = 3 ]
    done
}

# Three shards cannot have one of two rows each; the bias, as long as a row, stays whole.
@test "what has few rows is cut along its longest axis, with the same bits" {
    sed -i 's/nn.dense(x, 40,/nn.dense(Slice(x, {0, 3}, {-1, 2}), 400,/' m.lua
    for how in momentum adam "sgd -D clip=0.05"; do
        # shellcheck disable=SC2086  # options
        same_bits 700 $how
        grep -q "^hidden/W/part_0 .*\[0,0\].* float32\[2,134\]" net.700
        grep -q "^hidden/W/part_2 .*\[0,267\].* float32\[2,133\]" net.700
        run -1 grep -q '^hidden/b/part_' net.700
    done
}

@test "downpour as well: what a worker fetches is put together, what it pushes is cut" {
    for mode in downpour,fetch=3,push=2 downpour,push.hidden=3; do
        for cut in 0 1000; do
            workers=1 train $mode $cut
            cat w0.txt whole.txt >"is.$cut"
        done
        cmp is.0 is.1000
    done
}

@test "a job goes on over other shards: of three, of two, whole" {
    cat >m.lua <<'LUA'
y = Placeholder{dtype = float32, shape = {-1}}
local x = Reshape(y, {-1, 1}) * Cast(Range(0, 1100, 1), {DstT = float32}) * 0.001
local h = nn.dense(x, 1000, {name = "hidden"}) -- 1,100,000 elements: more than a million
loss = nn.mse(Reshape(nn.dense(h, 1, {name = "out"}), {-1}), y)
entry.train = minimize(loss, optim.momentum{rate = 1e-4})
entry.whole = trainable()[1]
LUA
    tf-graph m.lua | tf-opt >m.tfg
    tf-data csv x.csv y=68 --batch 4 -o f.rec
    go() { # STORE SHARDS [OPTION]...
        timeout -k 5 60 tf-run --ps "$2" --workers 1 --mode async --save "$1/" "${@:3}" m.tfg \
            -- cat "$PWD/f.rec" 3>&-
    }
    go straight 3
    tf-ckpt show straight | finds '^hidden/W/part_2 '
    go moved 3 --steps 7
    go moved 2 --steps 14 --resume
    tf-ckpt show moved | finds '^hidden/W/part_1 '
    run -1 finds '^hidden/W/part_2 ' < <(tf-ckpt show moved)
    go moved 1 --steps 17 --resume
    tf-ckpt show moved | finds '^hidden/W '
    go moved 3 --resume
    tf-ckpt diff straight moved
    tf-exec -g m.tfg --run whole --restore moved | tf-show --json >moved.json
    tf-exec -g m.tfg --run whole --restore straight | tf-show --json | cmp moved.json
}
