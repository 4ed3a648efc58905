# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools and shards: what the links of a job count, over TCP on the
# loopback, where nothing is shared.

serve() { # TASK: as of lib/shards, without a key
    tf-ps serve -c c --task "$1" --no-key 2>"$1.err" 3>&- &
    pids+=($!)
    soon 10 grep -q "$1: ready on" "$1.err" || { cat "$1.err"; return 1; }
}

cluster() { # SHARDS WORKERS
    local i port=$((20000 + RANDOM % 10000))
    {
        for ((i = 0; i < $1; i++)); do echo "task ps:$i 127.0.0.1:$((port + i))"; done
        for ((i = 0; i < $2; i++)); do echo "task worker:$i 127.0.0.1:$((port + $1 + i))"; done
    } >c
}

# train N STEPS OPTION...: leaves the counts of worker K's links in tK.txt
train() {
    local n=$1 steps=$2 i each=()
    shift 2
    for ((i = 0; i < n; i++)); do
        work "$i" --no-key --run train --steps "$steps" --trace "t$i" "$@" 2>"w$i.err" 3>&- &
        each+=($!)
    done
    for ((i = 0; i < n; i++)); do
        wait "${each[i]}" || { cat "w$i.err"; return 1; }
        tf-show --json "t$i" | jq -c 'select(.peer)' >"t$i.txt"
    done
}

# crossed MODE BATCH WORKERS SHARDS LAYER...: bytes that the workers' links count of what they send
# in a step of layers, M,N each, in the cluster c
crossed() {
    local mode=$1 batch=$2 n=$3 shards=$4 layer i
    shift 4
    {
        cat <<LUA
local function layer(m, n)
  local x = RandomUniform({$batch, m}, {dtype = float32})
  return Mean(Square(MatMul(x, variable{shape = {m, n}, init = 0.1})), {0, 1})
end
loss = Const(0.0)
LUA
        for layer; do echo "loss = loss + layer(${layer/,/, })"; done
        echo "entry.train = minimize(loss, optim.sgd{rate = 0.01})"
    } >m.lua
    tf-graph m.lua | tf-opt | tf-replicate --mode "$mode" -c c | tf-place -c c | tf-part >p.tfg
    rm -f t?.txt
    for ((i = 0; i < shards; i++)); do serve "ps:$i"; done
    train "$n" 6 >out
    stop
    jq -s 'map(select(.step == 2 or .step == 5)) | group_by(.step) |
        map(map(.sent) | add) | (.[1] - .[0]) / 3 | round' t?.txt
}

# cheaper BATCH WORKERS SHARDS LAYER...: with factors=auto cross of all layers together the bytes
# that of each alone cross by the way that sends less, as both were measured. Without shards workers
# send each other what they have.
cheaper() {
    local mode=sync sum=0 auto way layer
    local job=("${@:1:3}")
    [ "$3" != 0 ] || mode=allreduce
    cluster "$3" "$2"
    echo 'link * * bandwidth=100k' >>c
    for layer in "${@:4}"; do
        for way in "" ,factors=all; do
            crossed "$mode$way" "${job[@]}" "$layer"
        done | sort -n >ways
        echo "$layer" "$(paste -s ways)"
        ((sum += $(head -n 1 ways)))
    done
    auto=$(crossed $mode,factors=auto "$@")
    echo "auto $auto, $sum"
    ((auto > sum - 1000 * $2 && auto < sum + 1000 * $2))
}
