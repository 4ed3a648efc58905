#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sums by schedules between processes (schedules.py has the formulas), and jobs that use them.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/workers

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
    kill_job "$BATS_TEST_TMPDIR/job"
}

track() { # PID: it is killed when the test ends
    pids+=("$1")
}

hosts=0,1,0,2,1,1 # of the workers

cluster() { # WORKERS
    local i of
    IFS=, read -ra of <<<"$hosts"
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i host=h${of[i]}"; done >c
}

@test "sums and means of 2 to 6 processes have the bits of the formulas" {
    cat >m.lua <<'END'
device("/job:worker/task:*", function()
  local k = Placeholder{dtype = float32, shape = {}, name = "k"}
  local x = Sin(Cast(Range(0, 30011, 1), {DstT = float32}) * 0.37 + k) * Pow(3.0, k)
  Identity(x, {name = "x"})
  local hosts = {}
  for host in D.hosts:gmatch "%d+" do hosts[#hosts + 1] = math.tointeger(host) end
  local y, m = AllReduce({x, x}, {reductions = {"sum", "mean"}, schedule = D.schedule,
                                  schedule_hosts = hosts})
  Identity(y, {name = "y"})
  Identity(m, {name = "m"})
end)
END
    for n in 2 3 4 5 6; do
        cluster "$n"
        theirs=$(cut -d, -f"1-$n" <<<"$hosts")
        for ((i = 0; i < n; i++)); do export "FEED$i=--feed k=$i"; done
        for schedule in direct chain ring tree halving two-level; do
            tf-graph -D "schedule=$schedule" -D "hosts=$theirs" m.lua | tf-place -c c |
                tf-part >parts.tfg
            among "$n" --fetch x,y,m
            files=()
            for ((i = 0; i < n; i++)); do files+=("w$i.txt"); done
            /usr/bin/python3 "$root/tests/e2e/schedules.py" "$schedule" "$theirs" "${files[@]}"
        done
    done
}

parts() { # MODE: of the digits, with gradients that are large enough
    tf-graph -D units=700 "$root/examples/digits.lua" | tf-opt | tf-replicate --mode "$1" -c c |
        tf-place -c c | tf-part >parts.tfg
}

feeds() { # WORKERS STEPS: each worker's are its own
    local i
    for ((i = 0; i < $1; i++)); do
        (cd "$root/examples" && exec ./feed --rows 1-1408 --batch 16 --shard "$i/$1" --steps "$2") \
            >"f$i.rec"
        export "FEED$i=--feed f$i.rec"
    done
}

@test "jobs of 2 to 6 workers: weights are the same on all; chain has the bits of direct" {
    for n in 2 3 6; do
        cluster "$n"
        feeds "$n" 6
        for schedule in none direct chain ring tree halving two-level; do
            mode=allreduce,schedule=$schedule
            [ "$schedule" != none ] || mode=allreduce
            parts "$mode"
            among "$n" --run train --fetch loss,hidden/W --fetch-every 6
            for ((i = 0; i < n; i++)); do jq -c '.["hidden/W"]' "w$i.txt" >"v$i"; done
            for ((i = 1; i < n; i++)); do cmp v0 "v$i"; done
            mv v0 "weights.$schedule"
        done
        cmp weights.none weights.direct
        cmp weights.none weights.chain
        ((n == 2)) || run -1 cmp -s weights.none weights.ring
    done
}

@test "a job is resumed from its checkpoint to the same bits, by the same schedule" {
    cluster 3
    feeds 3 14
    for schedule in halving ring; do
        parts "allreduce,schedule=$schedule"
        rm -rf whole half
        among 3 --run train --fetch loss -n 14 --save whole/
        among 3 --run train --fetch loss -n 5 --save half/
        among 3 --run train --fetch loss -n 14 --save half/ --resume
        tf-ckpt diff whole half
    done
}

@test "kill -9 of a worker under tf-run: all go back, and on to the same bits" {
    mkdir -p run
    cp -r "$root/examples/." run
    cd run
    unset TF_CLUSTER
    tf-graph -D units=700 digits.lua | tf-opt >digits.tfg
    line=(timeout -k 5 120 tf-run --workers 3 --mode "allreduce,schedule=ring" --fetch loss)
    data=(--rows 1-1408 --shuffle --batch 16 --epochs 8)
    "${line[@]}" --save whole/ digits.tfg -- ./feed "${data[@]}" 3>&-
    "${line[@]}" --save ck/ --save-every 10 --job "$BATS_TEST_TMPDIR/job" digits.tfg -- \
        "$root/tests/lib/halfway" go ./feed "${data[@]}" 2>err 3>&- &
    tf_run=$!
    track "$tf_run"
    soon 30 eval '[ -n "$(tf-ckpt list ck)" ]'
    kill -9 "$(cat ../job/worker-1.pid)"
    soon 30 grep -q '(restart 1 of 5)' err
    touch go
    wait "$tf_run"
    grep -E '^[0-9T:.-]+Z tf-run: worker:1 \(pid [0-9]+\) killed by signal 9 at step [0-9]+;' err
    tf-ckpt diff whole ck
}

@test "kill -9 of a worker in the midst of a ring: the others say who and for what" {
    cluster 4
    parts allreduce,schedule=ring
    feeds 4 100000
    for i in 0 1 2 3; do
        tf-exec --task "worker:$i" -g parts.tfg --run train --fetch loss --feed "f$i.rec" \
            >"w$i.rec" 2>"w$i.err" 3>&- &
        worker[i]=$!
        track $!
    done
    for i in 0 1 2 3; do soon 20 test -s "w$i.rec"; done
    kill -9 "${worker[2]}"
    for i in 0 1 3; do
        status=0
        wait "${worker[i]}" || status=$?
        cat "w$i.err"
        [ "$status" -eq 69 ]
        grep -qE "^tf-exec: worker:$i: step [0-9]+: .*worker:2 at unix:w[0-9], incarn" "w$i.err"
    done
}

@test "auto takes what the model says, and --explain shows each; what cannot be is refused" {
    for i in 0 1 2 3 4 5; do echo "task worker:$i unix:w$i host=h$((i / 3))"; done >c
    printf 'host h%d bandwidth=12M\n' 0 1 >>c
    tf-graph -D units=4096 "$root/examples/digits.lua" | tf-opt >m.tfg
    tf-replicate --mode allreduce,schedule=auto -c c --explain m.tfg 2>table >many.tfg
    cat table
    [ "$(grep -c '^schedule ' table)" -eq 6 ]
    grep -cE '^schedule .*, taken$' table | grep -x 1
    awk '/^schedule/ { ms = $(NF - 1) == "ms," ? $(NF - 2) : $(NF - 1)
                       if (/taken/) taken = ms; if (!least || ms < least) least = ms }
         END { exit taken != least }' table
    taken=$(awk '/taken/ { print $2 }' table)
    tf-show --text many.tfg | grep -F "schedule=\"$taken\""
    tf-replicate --mode allreduce,schedule=two-level -c c m.tfg >levels.tfg
    tf-show --text levels.tfg | grep -F 'schedule_hosts=[0,0,0,1,1,1]'
    tf-replicate --mode allreduce,schedule=auto --workers 2 m.tfg >/dev/null
    while IFS='|' read -r mode why n; do
        run -64 --separate-stderr env -u TF_CLUSTER tf-replicate --mode "$mode" \
            ${n:+--workers "$n"} m.tfg
        [[ $stderr == *"$why"* ]] || { echo "$stderr"; false; }
    done <<'MODES'
allreduce,schedule=best|schedule is auto, direct, chain, ring, tree, halving and two-level, or of
allreduce,schedule=two-level|schedule=two-level goes by the workers' hosts: give the cluster, -c
allreduce,schedule=auto|schedule=auto depends on the number of workers: give -c or --workers
allreduce,schedule=ring,bits=1|schedule=ring is for whole gradients: codes are not added on the way
allreduce,schedule=nccl,bits=1|schedule=nccl is for whole gradients: codes are not added on the way
allreduce,schedule=tree|schedule=tree is for at most 64 workers, not 65|65
MODES
}
