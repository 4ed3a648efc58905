#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# For each way to send a gradient, the links count the bytes per step that formulas predict. TCP
# over the loopback, where no memory is shared; the trace of each worker has bytes of values by
# peer.
load ../lib/tools
load ../lib/shards
load ../lib/bytes

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    # the gradient has 256 * 1024 elements: 16 blocks
    cat >m.lua <<'LUA'
local x = RandomUniform({8, 256}, {dtype = float32})
local W = variable{name = "W", shape = {256, 1024}, init = init.normal{}}
loss = nn.mse(MatMul(x, W), RandomUniform({8, 1024}, {dtype = float32}))
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
}

teardown() {
    kill_pids "${pids[@]}"
}

# counted FIELD BYTES SLACK TRACE...: the total of all in each step from the second on
counted() {
    jq -s --arg field "$1" 'map(select(.step < 6)) |
        [group_by(.step)[] | map(.[$field]) | add] |
        [.[1:], .[:-1]] | transpose | map(.[0] - .[1])' "${@:4}" |
        jq -e --argjson n "$2" --argjson slack "$3" \
        'length == 4 and all(.[]; . >= $n and . <= $n + $slack)' ||
        { echo "not $2 to $(($2 + $3)) $1"; tail -n 9 "${@:4}"; return 1; }
}

@test "workers among themselves: whole gradients, factors, bits, and the largest elements" {
    local n mode bytes whole=$((256 * 1024 * 4))
    for n in 2 3; do
        cluster 0 $n
        # for groups of 1,024 elements a bit each and two means; 1 and 2 bits as in MXNet; 655 of
        # each 65,536 elements with their places
        while read -r bytes mode; do
            tf-graph m.lua | tf-opt | tf-replicate --mode "allreduce$mode" --workers $n |
                tf-place -c c | tf-part >p.tfg
            train $n 6
            # in addition, 16 bytes per member and step agree on the last step
            counted sent "$bytes" $((n * n * 64)) t?.txt
        done <<END
$((2 * (n - 1) * whole))
$((n * (n - 1) * 8 * (256 + 1024) * 4)) ,factors=all
$((2 * (n - 1) * (whole / 32 + 256 * 8))) ,bits=1
$((n * (n - 1) * whole / 16)) ,bits=2,threshold=0.1
$((n * (n - 1) * whole / 32)) ,bits=1,threshold=0.1
$((n * (n - 1) * 4 * 655 * 8)) ,top=0.01
END
        rm t?.txt
    done
}

@test "one bit of columns of 2,048 elements: 31 times fewer bytes, 32 n / (n + 64)" {
    local whole=$((128 * 2048 * 4)) code=$((128 * (2048 / 8 + 8)))
    sed -i 's/{256, 1024}/{128, 2048}/; s/{8, 256}/{8, 128}/; s/{8, 1024}/{8, 2048}/' m.lua
    ((whole * (2048 + 64) == code * 32 * 2048))
    cluster 0 2
    tf-graph m.lua | tf-opt | tf-replicate --mode allreduce,bits=1 --workers 2 | tf-place -c c |
        tf-part >p.tfg
    train 2 6
    counted sent $((2 * code)) 256 t?.txt
}

@test "workers that update, by shards that add: each value crosses once each way" {
    local n mode sent got what whole=$((256 * 1024 * 4))
    local rows=$((128 * 256 * 4 + 128 * 1024 * 4)) code=$((256 * (8 + 1024)))
    for n in 2 3; do
        cluster 2 $n
        serve ps:0
        serve ps:1
        # a value for a single other worker goes only to it
        while read -r sent got what mode; do
            sed "s/{8, /{$what, /g" m.lua >rows.lua
            tf-graph rows.lua | tf-opt | tf-replicate --mode "sync,update=worker$mode" -c c |
                tf-place -c c | tf-part >p.tfg
            train $n 6
            echo "$n workers$mode"
            counted sent "$sent" $((n * 4096)) t?.txt
            counted got "$got" $((n * 4096)) t?.txt
        done <<END
$((n * whole)) $((n * whole)) 8
$((n * rows)) $((n * (n - 1) * rows)) 128 ,factors=all
$((n * code)) $((n * (n - 1) * code)) 8 ,bits=8
END
        stop
        rm t?.txt
    done
}

@test "dense layers cut over workers: rows at their ends cross, in passes as many; no matrix" {
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 384}}
y = Placeholder{dtype = int32, shape = {-1}}
local h = x * variable{name = "v", shape = {384}, init = 0.1}
for _, n in ipairs{320, 256} do h = nn.dense(h, n, {bias = false, activation = Tanh}) end
local out = nn.dense(h, 64, {bias = false})
loss = nn.cross_entropy(out, y) + 0.1 * Mean(Square(out), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 0.1})
LUA
    awk 'BEGIN { for (r = 0; r < 144; r++) for (i = 0; i < 385; i++)
        printf "%d%s", (r * i) % 7, i < 384 ? "," : "\n" }' >x.csv
    tf-data csv x.csv x=1-384 y=385:int32 --batch 24 -o f.rec
    local n mode
    for n in 2 3; do
        cluster 0 $n
        for mode in a b c b,update=pass c,update=pass; do
            tf-graph m.lua | tf-opt | tf-replicate --mode allreduce,dense=$mode -c c |
                tf-place -c c | tf-part >p.tfg
            train $n 6 --feed f.rec
            echo "$n workers, $mode"
            # there and back: 24 rows of the input, between two layers, and of the output; the
            # gradient of v. The smallest matrix has 64 KiB.
            counted sent $((2 * n * (n - 1) * 24 * (384 + 256 + 64) * 4 + 2 * (n - 1) * 384 * 4)) \
                $((n * n * 1024)) t?.txt
        done
        rm t?.txt
    done
}

@test "factors=auto: of each layer cross the bytes of the cheaper way, as both were measured" {
    cheaper 24 2 0 256,256 300,40 16,2000 100,90 7,1200
    [ "$(tf-show --text p.tfg | grep -c '^allreduce/.*= MatMul(')" = 3 ]
}

@test "shards: a gradient out and a variable in, in 32 bits and in 16" {
    local how bytes
    for how in "$((256 * 1024 * 4))" "$((256 * 1024 * 2)) --compress bf16"; do
        read -r bytes how <<<"$how"
        cluster 2 1
        # shellcheck disable=SC2086  # options
        tf-graph m.lua | tf-opt | tf-replicate --mode sync $how | tf-place -c c | tf-part >p.tfg
        serve ps:0
        serve ps:1
        train 1 6
        counted sent "$bytes" 1024 t0.txt
        counted got "$bytes" 1024 t0.txt
        stop
    done
}

@test "downpour that fetches and pushes every fifth step: a fifth of the bytes cross" {
    local four=$((4 * 256 * 1024 * 4)) how bytes
    # twenty steps; in four of them values cross
    while read -r how bytes; do
        cluster 2 4
        tf-graph m.lua | tf-opt | tf-replicate --mode "downpour,$how" -c c | tf-place -c c |
            tf-part >p.tfg
        serve ps:0
        serve ps:1
        train 4 21 >out
        for way in sent got; do
            jq -s --arg way $way 'map(select(.step == 1 or .step == 21)) | group_by(.step) |
                map(map(.[$way]) | add) | .[1] - .[0]' t?.txt >"$way"
            echo "$how: $way $(cat $way), by the formula $bytes"
            awk -v want="$bytes" '{ exit !($1 > 0.99 * want && $1 < 1.01 * want) }' $way
        done
        rm t?.txt
        stop
    done <<END
fetch=1,push=1 $((20 * four))
fetch=5,push=5 $((4 * four))
END
}

@test "downpour whose layers have intervals of their own: each crosses as often as that says" {
    cat >m.lua <<'LUA'
local x = RandomUniform({8, 256}, {dtype = float32})
local h = nn.dense(x, 1024, {name = "one", bias = false})
local y = nn.dense(h, 128, {name = "two", bias = false})
loss = nn.mse(y, RandomUniform({8, 128}, {dtype = float32}))
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
    local one=$((256 * 1024 * 4)) two=$((1024 * 128 * 4)) row way i
    local of_two_workers=(
        "push.one=5 $((2 * (4 * one + 20 * two))) $((2 * 20 * (one + two)))"
        "fetch=4,push=2,push.two=10 $((2 * (10 * one + 2 * two))) $((2 * 5 * (one + two)))"
        "push.one=4,bits=1 $((2 * (5 * (one / 32 + 256 * 8) + 20 * (two / 32 + 128 * 8))))
            $((2 * 20 * (one + two)))"
    )
    for row in "${of_two_workers[@]}"; do
        cluster 2 2
        # shellcheck disable=SC2206  # three words
        row=($row)
        tf-graph m.lua | tf-opt | tf-replicate --mode "downpour,${row[0]}" -c c | tf-place -c c |
            tf-part >p.tfg
        serve ps:0
        serve ps:1
        train 2 21 >out
        for i in 1 2; do
            way=$([ $i = 1 ] && echo sent || echo got)
            jq -s --arg way "$way" 'map(select(.step == 1 or .step == 21)) | group_by(.step) |
                map(map(.[$way]) | add) | .[1] - .[0]' t?.txt >n
            echo "${row[0]}: $way $(cat n), by the formula ${row[i]}"
            awk -v want="${row[i]}" '{ exit !($1 > 0.99 * want && $1 < 1.01 * want) }' n
        done
        rm t?.txt
        stop
    done
}

@test "a table on shards: of each row that a batch has its number, and the row" {
    cat >m.lua <<'LUA'
local ids = Cast(RandomUniform({200}, {dtype = float32}) * 5000, {DstT = int64})
local e = nn.embedding(ids, 5000, 32, {name = "table", partitions = 4})
loss = nn.mse(e, e * 0)
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
    cluster 4 1
    tf-graph m.lua | tf-opt | tf-place -c c | tf-part >p.tfg
    for i in 0 1 2 3; do serve "ps:$i"; done
    train 1 6
    tf-ps stats --by peer -c c --no-key | finds '^TASK  PEER  GOT  SENT$'
    # from worker to shard the ids, and the gradient's rows with theirs; back the rows: 200 (8 + 4 *
    # 32)
    counted got $((200 * 4 * 32)) 1024 t0.txt
    counted sent $((200 * (8 + 4 * 32))) $((200 * 8 + 1024)) t0.txt
    stop
}

@test "a row that a batch has a thousand times: it crosses once, and gets the sum of all" {
    cat >m.lua <<'LUA'
local few = RandomUniform({1000}, {dtype = float32}) / 2 + 5
local ids = Cast(Concat(0, {few, Range(0.0, 40.0, 1.0)}), {DstT = int64})
local e = nn.embedding(ids, 40, 32, {name = "table", partitions = 4, init = init.ones})
entry.train = minimize(Sum(e, {0, 1}) * 0.5, optim.sgd{rate = 0.25})
LUA
    cluster 4 1
    tf-graph m.lua | tf-opt | tf-replicate --mode sync -c c | tf-place -c c | tf-part >p.tfg
    for i in 0 1 2 3; do serve "ps:$i"; done
    train 1 6
    counted got $((40 * 4 * 32)) 1024 t0.txt
    counted sent $((40 * (8 + 4 * 32))) 1024 t0.txt
    tf-ps save end.ckpt -c c --no-key
    stop
    # row 5 occurs 1001 times, the others once; all numbers are dyadic
    tf-ckpt cat end.ckpt table/W | tf-show --json | jq -e '.[] | to_entries |
        length == 40 and all(.[];
            (1 - 6 * 0.25 * 0.5 * (if .key == 5 then 1001 else 1 end)) as $row |
            (.value | length) == 32 and all(.value[]; . == $row))'
}

@test "a thousand small variables: a step has few messages for each shard" {
    local mode
    cat >m.lua <<'LUA'
local each = {}
for i = 1, 1000 do
  local v = variable{name = "v" .. i, shape = {4}, init = 1}
  each[i] = Sum(v * v, {0})
end
loss = AddN(each)
entry.train = minimize(loss, optim.sgd{rate = 0.25})
LUA
    for mode in sync async; do
        cluster 2 2
        tf-graph m.lua | tf-replicate --mode $mode -c c | tf-place -c c | tf-part >p.tfg
        for i in 0 1; do serve "ps:$i"; done
        train 2 6
        for i in 0 1; do
            tf-show --json "t$i" | jq -s '[.[] | select(.step == 3 and
                (.op | test("^(Send|Recv)")?))] | length' >n
            echo "$mode worker:$i $(cat n)"
            # one group for the variables and one for the gradients of each shard, and the clock
            (($(cat n) >= 6 && $(cat n) <= 20))
        done
        tf-ps save "$mode.ckpt" -c c --no-key
        stop
    done
    # each worker halves each variable in each of 6 steps
    tf-ckpt cat sync.ckpt v77 | tf-show --json | jq -e '.v77 == [range(4) | 0.015625]'
}
