#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that push the two factors of a gradient, which the shard multiplies.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    ln -s "$root/examples/data" data
    # two layers with the same input share a factor
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 64}, name = "x"}
local y = Placeholder{dtype = int32, shape = {-1}, name = "y"}
local h = nn.dense(x / 16, 48, {name = "h", activation = Tanh})
local logits = nn.dense(h, 10, {name = "o"}) + nn.dense(h, 10, {name = "p", bias = false})
loss = nn.cross_entropy(logits, y)
for _, w in ipairs(D.decay and trainable() or {}) do
  loss = loss + tonumber(D.decay) * Sum(Reshape(Square(w), {-1}), {0})
end
local n = global_step()
local rates = {sgd = 0.05, momentum = 0.02, adam = 0.003, rmsprop = 0.001}
local how = D.optim or "momentum"
local rate = schedule.inverse_time{step = n, rate = rates[how], steps = 10, decay = 0.1}
entry.train = minimize(loss, optim[how]{rate = rate}, {global_step = n, clip = D.clip})
LUA
}

teardown() {
    kill_pids "${pids[@]}"
}

# job NAME MODE OPTION...: two workers and two shards train m.tfg; NAME/ is the store
job() {
    local name=$1 mode=$2
    shift 2
    timeout 60 tf-run --workers "${workers:-2}" --ps 2 --mode "$mode" --fetch loss \
        --save "$name/" --job "job-$name" "$@" m.tfg -- \
        "$root/examples/feed" --rows 1-1430 --shuffle --batch 24 --epochs "${epochs:-1}" \
        2>"$name.err" 3>&- || { cat "$name.err"; return 1; }
}

# near STORE STORE BOUND: their variables differ by at most BOUND
near() {
    local v
    for v in h/W h/b o/W o/b p/W; do
        paste <(tf-ckpt cat "$1" $v | tf-show --json | jq '.[] | flatten[]') \
            <(tf-ckpt cat "$2" $v | tf-show --json | jq '.[] | flatten[]')
    done | awk -v bound="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d }
        END { if (NR < 64 * 48 || most > bound) { print NR " numbers, by up to " most; exit 1 } }'
}

@test "the shard makes of factors the gradient, to rounding, whatever the optimizer" {
    for how in "sgd" "momentum -D clip=0.5" "adam" "momentum -D decay=0.002"; do
        # shellcheck disable=SC2086  # options
        tf-graph m.lua -D optim=$how | tf-opt >m.tfg
        rm -rf dense factors
        job dense sync
        job factors sync,factors=all
        tf-replicate --mode sync,factors=all --workers 2 --explain m.tfg 2>said >/dev/null
        [ "$(grep -c ' factors$' said)" = 3 ]
        near dense factors 1e-5
        tf-ckpt list --json factors | jq -e '.step == 30' # the last one of 24 and 14 rows
    done
}

@test "pushed to shards, or sent to all workers: factors make the same bits" {
    for how in "optim=momentum" "decay=0.002"; do
        tf-graph m.lua -D $how | tf-opt >m.tfg
        rm -rf shards all
        job shards sync,factors=all
        timeout 60 tf-run --workers 2 --mode allreduce,factors=all --fetch loss --save all/ \
            --job job-all m.tfg -- "$root/examples/feed" --rows 1-1430 --shuffle --batch 24 \
            --epochs 1 2>all.err 3>&-
        near shards all 0
    done
}

@test "a matrix in slices is updated by the product of factors, too" {
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 64}, name = "x"}
local y = Placeholder{dtype = int32, shape = {-1}, name = "y"}
local w = variable{name = "w", shape = {64, 10}, init = init.normal{stddev = 0.1}, partitions = 2}
loss = nn.cross_entropy(MatMul(x / 16, w), y)
entry.train = minimize(loss, optim.adam{rate = 0.01})
LUA
    tf-graph m.lua | tf-opt >m.tfg
    job dense sync
    job factors sync,factors=all
    for v in w/part_0 w/part_1 w/adam/m/part_1; do
        paste <(tf-ckpt cat dense $v | tf-show --json | jq '.[] | flatten[]') \
            <(tf-ckpt cat factors $v | tf-show --json | jq '.[] | flatten[]')
    done | awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) bad = 1 } END { exit bad || NR != 960 }'
}

@test "rounds of some workers, or of one, are of factors as they are of gradients" {
    tf-graph m.lua | tf-opt >m.tfg
    job dense ssp,bound=0
    job factors ssp,bound=0,factors=all
    near dense factors 1e-5
    workers=1 job one async
    workers=1 job other async,factors=all
    near one other 1e-5
    workers=1 job third downpour,push=3,fetch=2
    workers=1 job fourth downpour,push=3,fetch=2,factors=all
    near third fourth 1e-5
    # a late push is dropped, and the others' rows are multiplied
    workers=3 job late sync,backup=1,factors=all
    tf-show --json job-late/worker-0.rec | jq -se 'last.loss < 0.9 * first.loss'
}

@test "the mean of some steps: their rows are pushed, one after the other" {
    tf-graph m.lua -D optim=adam | tf-opt >m.tfg
    job dense sync --accumulate 4
    job factors sync,factors=all --accumulate 4
    near dense factors 1e-5
    job half sync,factors=all --accumulate 4 --compress bf16
    near dense half 2e-2
    run -1 near dense half 1e-5
}

@test "a resumed run has the bits of one that was not, also from whole gradients" {
    tf-graph m.lua -D optim=adam | tf-opt >m.tfg
    job whole sync,factors=all
    job half sync,factors=all --steps 17
    job half sync,factors=all --resume
    near whole half 0
    job mixed sync --steps 17
    job mixed sync,factors=all --resume
    near whole mixed 1e-5
}

# in_of MODE: writes to MODE.in the bytes that the shard receives from a worker in 50 steps
in_of() {
    tf-replicate --mode "$1" m.tfg | tf-place -c c | tf-part >p.tfg
    tf-ps serve -c c --task ps:0 >out 2>ps.err 3>&- &
    pids=($!)
    soon 10 grep -q 'ps:0: ready' ps.err
    { cat f.rec && sleep 3; } | timeout 20 tf-exec -c c --task worker:0 -g p.tfg --run train \
        --feed - >out 2>worker.err 3>&- &
    pids+=($!)
    all_counted() { tf-ps stats -c c --json | finds '"counted":50,'; }
    soon 10 all_counted
    tf-ps stats -c c --json | jq .in >"$1.in"
    wait "${pids[1]}"
    kill "${pids[0]}"
    wait "${pids[0]}"
}

@test "what crosses is K (M + N) floats, not M N" {
    printf 'task ps:0 unix:p\ntask worker:0 unix:w\n' >c
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 100}, name = "x"}
local h = nn.dense(x, 80, {name = "h", bias = false})
entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.1})
LUA
    tf-graph m.lua | tf-opt >m.tfg
    awk 'BEGIN { for (i = 0; i < 250; i++) for (k = 0; k < 100; k++)
        printf "%d%s", (i * k) % 7, k < 99 ? "," : "\n" }' >x.csv
    tf-data csv x.csv x=1-100 --batch 5 -o f.rec
    in_of sync
    in_of sync,factors=all
    paste sync.in sync,factors=all.in | awk '{
        want = 50 * 4 * (100 * 80 - 5 * (100 + 80)); got = $1 - $2
        if (got < 0.98 * want || got > 1.02 * want) { print got " bytes, not " want; exit 1 } }'
}
