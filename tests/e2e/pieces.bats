#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers without shards that make, sum and use large gradients in chunks. Unix sockets in the
# test's own folder.
# shellcheck disable=SC2154  # root, stderr are of tools and run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    printf 'task ps:0 unix:p0\ntask worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    cat >net.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
local units = D.units or 320
local h = nn.dense(x / 16, units, {name = "a", activation = Relu})
h = nn.dense(h, 200, {name = "b", activation = Relu})
loss = nn.cross_entropy(nn.dense(h, 10, {name = "c"}), y)
if D.cut then
    local w = variable{name = "w", shape = {64, 640}, partitions = 2, init = 0}
    loss = loss + Mean(Square(MatMul(x, w) - 1), {0, 1})
end
if D.decay then for _, w in ipairs(trainable()) do loss = loss + 1e-3 * L2Loss(w) end end
entry.train = minimize(loss, optim.momentum{rate = 0.05, momentum = 0.9}, {clip = D.clip})
LUA
}

teardown() {
    kill_pids "${pids[@]}"
}

text() { # MODE OPTION...: the graph that has been made for workers
    local mode=$1
    shift
    tf-graph "$@" net.lua | tf-opt | tf-replicate --mode "$mode" | tf-show --text
}

pieces() { # VARIABLE: how many updates of it there are, of some rows each; the text is read
    grep -cE "ApplyMomentum\($1, .* _first_row=" || true
}

@test "a gradient of twice the size is in pieces of that size, of 64 rows, or more" {
    # sizes: a is 64 by 320, 80 KiB; b 320 by 200, 250 KiB; c 200 by 10, 8 KiB
    while read -r size a b c; do
        text "allreduce,pieces=$size" >t
        echo "$size: $(pieces a/W <t) $(pieces b/W <t) $(pieces c/W <t)"
        [ "$(pieces a/W <t) $(pieces b/W <t) $(pieces c/W <t)" = "$a $b $c" ]
    done <<'SIZES'
1k 0 5 4
4k 0 5 0
100k 0 3 0
125k 0 3 0
126k 0 0 0
none 0 0 0
SIZES
    text allreduce >t
    [ "$(grep -c _first_row t)" = 0 ] # they are small
    text allreduce,pieces=4k -D units=64000 >t
    [ "$(pieces a/W <t) $(pieces b/W <t)" = "0 1000" ]
}

@test "a gradient that is more than a product, or does not cross whole, is in one" {
    local mode how
    for how in clip=5 decay=1; do
        text allreduce,pieces=1k -D $how >t
        [ "$(grep -c _first_row t)" = 0 ]
    done
    text allreduce,pieces=1k -D cut=1 >t # tf-place does, with its update
    [ "$(pieces w <t) $(pieces c/W <t)" = "0 4" ]
    for mode in delay=1 factors=all bits=1 schedule=nccl; do
        text "allreduce,pieces=1k,$mode" >t
        [ "$(grep -c _first_row t)" = 0 ]
    done
    text allreduce,pieces=1k,schedule=ring >t
    [ "$(grep -c 'AllReduce(.*/product.* schedule="ring"' t)" = 9 ]
}

@test "sizes that are none are refused" {
    local size
    tf-graph net.lua | tf-opt >m.tfg
    for size in 0 -1 4x '' all; do
        run -64 --separate-stderr tf-replicate --mode "allreduce,pieces=$size" m.tfg
        [[ $stderr == "tf-replicate: --mode allreduce takes "*"pieces=SIZE"*"not 'pieces=$size'" ]]
    done
    run -64 --separate-stderr tf-replicate --mode auto,pieces=4k -c c m.tfg
    [[ $stderr == *"--mode auto takes a code that may be used"* ]]
}

train() { # MODE NAME: what two workers learn in 20 steps
    local w workers=() shard=
    tf-graph net.lua | tf-opt | tf-replicate --mode "$1" | tf-place -c c | tf-part >parts.tfg
    if [[ $1 == sync,* ]]; then
        tf-ps serve --task ps:0 --threads 1 2>ps.err 3>&- &
        shard=$!
        pids+=($!)
        soon 10 grep -q ready ps.err
    fi
    for w in 0 1; do
        tf-exec -g parts.tfg --task "worker:$w" --run train --fetch loss --feed "f$w.rec" \
            --save "$2.ckpt" --threads 1 >"$2.$w" 2>"w$w.err" 3>&- &
        workers+=($!)
        pids+=($!)
    done
    wait "${workers[0]}" || { cat w0.err && false; }
    wait "${workers[1]}" || { cat w1.err && false; }
    [[ -z $shard ]] || end_pids "$shard"
}

@test "losses and variables have the bits of whole gradients, among workers and by a shard" {
    local w mode
    for w in 0 1; do
        (cd "$root/examples" && ./feed --rows 1-1408 --batch 32 --shard $w/2 --steps 20) >f$w.rec
    done
    train allreduce,pieces=none whole
    for mode in allreduce,pieces=4k allreduce,pieces=100k,schedule=chain \
        sync,update=worker,pieces=4k; do
        train "$mode" some
        for w in 0 1; do cmp <(tf-show --json whole.$w) <(tf-show --json some.$w); done
        tf-ckpt diff whole.ckpt some.ckpt
    done
}

# As soon as one has been used, not only when all lower layers have been computed.
@test "the next piece of a gradient comes between two layers" {
    local w workers=()
    tf-graph -D model=lenet -D batch=32 "$root/tests/bench/train.lua" | tf-opt |
        tf-replicate --mode allreduce,pieces=1600k | tf-place -c c | tf-part >parts.tfg
    for w in 0 1; do
        tf-exec -g parts.tfg --task "worker:$w" --run train --steps 25 --threads 1 \
            --trace "trace.$w" 2>"w$w.err" 3>&- &
        workers+=($!)
    done
    pids=("${workers[@]}")
    wait "${workers[0]}"
    wait "${workers[1]}"
    tf-show --json trace.0 | jq -se '
        map(select(.node)) | group_by(.step) |
        map((map(select(.op == "Conv2DBackpropFilter").start) | max) as $last |
            (map(select(.node == "allreduce/fc1/W/gradient/rows_1536/product").start) | min) <
            $last) |
        any'
}

@test "kill -9 of a worker between pieces: the other says who, and exits 69" {
    local w
    (cd "$root/examples" && ./feed --rows 1-1408 --batch 32 --epochs 900) >f.rec
    tf-graph -D units=4096 net.lua | tf-opt | tf-replicate --mode allreduce,pieces=50k |
        tf-place -c c | tf-part >parts.tfg
    for _ in 1 2 3 4; do
        pids=()
        for w in 0 1; do
            tf-exec -g parts.tfg --task "worker:$w" --run train --fetch loss --feed f.rec \
                --threads 1 >"w$w.rec" 2>"w$w.err" 3>&- &
            pids+=($!)
        done
        soon 20 bash -c "tf-show w0.rec 2>/dev/null | grep -c '^step 1 '" # not its hello alone
        sleep "0.$((RANDOM % 9))$((RANDOM % 9))"
        kill -9 "${pids[1]}"
        status=0
        wait "${pids[0]}" || status=$?
        [ "$status" -eq 69 ]
        grep -qE '^tf-exec: worker:0: step [0-9]+: .*worker:1 at unix:w1, incarnation' w0.err
        kill_pids "${pids[@]}"
    done
}
