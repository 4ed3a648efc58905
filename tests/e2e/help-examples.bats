#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The examples of each tool's --help are typed here, literally, with the files and jobs that they
# name.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cp -r "$root/examples/." "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    cp data/digits.csv.gz .
}

# The examples of a tool, a line each; a line that ends in a pipe continues in the next.
examples() { # TOOL
    "$1" --help | awk 'NR > 2 && /^usage/ { ended = 1 } # read to its end: no SIGPIPE
        NR > 2 && NF && !ended { sub(/^ */, ""); printf "%s%s", $0, /[|]$/ ? " " : "\n" }'
}

# example TOOL TEXT: the example that contains TEXT
example() {
    local line
    line=$(examples "$1" | grep -F -e "$2")
    [[ -n $line && $line != *$'\n'* ]]
    printf 'set -o pipefail; %s' "$line"
}

# A job named run, which trains until it is stopped
job_runs() {
    digits job.tfg
    timeout 120 tf-run --ps 2 --workers 2 --run train --job run --save job-ckpt/ job.tfg -- \
        ./feed --rows 1-1437 --batch 32 --epochs 100000 2>run.err 3>&- &
    job=$!
    soon 60 eval '[[ $(tf-run status --job run 2>&1) == *worker:1* ]]'
    soon 60 jq -e '.step > 2' run/run.json
}

# job_stops LINE: the line stops it; it has saved
job_stops() {
    local code=0
    bash -c "$1"
    wait "$job" || code=$?
    [ "$code" = 143 ]
}

teardown() {
    kill_job run
}

# types TOOL N [EXCEPT]: runs the N examples except for those that match EXCEPT, which the test
# types in its own way.
types() {
    local line n=0
    examples "$1" >lines
    while IFS= read -r line <&9; do
        n=$((n + 1))
        [[ -z ${3-} || ! $line =~ $3 ]] || continue
        timeout 120 bash -c "set -o pipefail; $line" >out 2>err ||
            [[ $? = 141 ]] || { echo "fails: $line"; cat err; return 1; }
    done 9<lines
    [ "$n" = "$2" ] || { echo "$1 has $n examples"; return 1; }
}

digits() { # FILE: the net, placed
    tf-graph digits.lua | tf-opt | tf-place >"$1"
}

forward() { # fwd.tfg: a net that is not trained yet
    cat >fwd.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4, 8}}
h = nn.dense(x, 3, {name = "hidden", activation = Relu})
loss = Mean(Square(h), {0, 1})
LUA
    tf-graph fwd.lua >fwd.tfg
}

records() {
    ./feed --rows 1-256 --batch 64 >train.rec
    ./feed --rows 257-512 --batch 64 >test.rec
}

table() { # FILE: of people
    awk 'BEGIN { print "age,bmi,target"; for (i = 0; i < 400; i++)
        print 20 + i % 60 "," 18 + i % 17 "," i % 90 }' >"$1"
}

idx() { # images.gz and labels.gz, of 256 random images
    python3 - <<'END'
import gzip
import random
import struct
random.seed(1)
with gzip.open("images.gz", "wb") as f:
    f.write(struct.pack(">4I", 2051, 256, 8, 8) + random.randbytes(256 * 64))
with gzip.open("labels.gz", "wb") as f:
    f.write(struct.pack(">2I", 2049, 256) + bytes(i % 10 for i in range(256)))
END
}

@test "tf-ckpt" {
    digits m.tfg
    ./feed --rows 1-1280 --batch 64 --epochs 20 >train.rec # 400 steps
    ./feed --rows 1-1280 --batch 64 --epochs 23 >more.rec
    tf-exec -g m.tfg --run train --fetch loss,accuracy --feed train.rec --save ckpt/ \
        --save-every 50 >/dev/null
    tf-exec -g m.tfg --run train --fetch loss,accuracy --feed more.rec --save ckpt/ --resume \
        >/dev/null
    run -1 tf-ckpt diff ckpt@400 ckpt@460 # they differ
    types tf-ckpt 7 '--job|^tf-ckpt diff'
    run -1 bash -c "$(example tf-ckpt diff)"
    job_runs
    tf-ckpt init backup
    bash -c "$(example tf-ckpt --job)"
    [ "$(tf-ckpt list --json backup | wc -l)" = 1 ]
    job_stops 'tf-run stop --job run'
}

@test "tf-data" {
    table d.csv
    cp d.csv people.csv
    idx
    digits m.tfg
    records
    ./feed --rows 1-384 --batch 64 | tf-exec -g m.tfg --run train --save ck/ >/dev/null
    types tf-data 7 'tail -f'
    : >new.csv
    bash -c "$(example tf-data 'tail -f')" >new.rec 3>&- &
    local pid=$!
    zcat digits.csv.gz | sed -n 2,4p >>new.csv
    soon 30 eval '[[ $(tf-show new.rec 2>/dev/null) == "feed 1 "* ]]'
    # shellcheck disable=SC2046  # words
    kill_pids $(pgrep -P "$pid") # the tail
    wait "$pid" || true
}

@test "tf-exec" {
    digits m.tfg
    records
    tf-op RandomUniform '[4,64]' dtype=float32 -o x.npy
    types tf-exec 6 'my.cluster'
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 >my.cluster
    { echo 'device("/job:worker/task:1", function()' && cat digits.lua && echo 'end)'; } >away.lua
    tf-graph away.lua | tf-opt | tf-place -c my.cluster | tf-part -c my.cluster >parts.tfg
    bash -c "$(example tf-exec 'tf-exec serve')" 2>served 3>&- &
    local pid=$!
    bash -c "$(example tf-exec '--task worker:0')"
    # shellcheck disable=SC2046  # words
    kill_pids $(pgrep -P "$pid") "$pid"
}

@test "tf-grad" {
    forward
    types tf-grad 2 'tf-exec'
    tf-graph - >fwd.tfg <<'LUA'
x = Const({{1.0, 2}})
scope("hidden", function() W = Const({{3.0}, {4}}, {name = "W"}) end)
loss = Sum(MatMul(x, W), {0, 1})
LUA
    bash -c "$(example tf-grad tf-exec)" | tf-show | finds 'grad/x .*3 4$'
}

@test "tf-graph" {
    forward
    types tf-graph 4
    tf-show --text tanh.tfg | grep ' = Tanh('
}

@test "tf-op" {
    types tf-op 4
}

@test "tf-opt" {
    digits digits.tfg
    types tf-opt 5
}

@test "tf-part" {
    digits m.tfg
    cp two.cluster digits.cluster
    tf-graph digits.lua | tf-place --devices CPU:0,CPU:1 >placed.tfg
    mkdir parts
    types tf-part 3
}

@test "tf-place" {
    digits digits.tfg
    cp two.cluster digits.cluster
    records
    tf-exec -g digits.tfg --run train --feed train.rec --trace trace.rec --without all >/dev/null
    tf-show --costs trace.rec >digits.costs
    types tf-place 3
}

@test "tf-replicate" {
    cp two.cluster C
    digits digits.tfg
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 2 2 3 3 >grid.cluster
    types tf-replicate 5 cnn
    cp grid.cluster C
    tf-graph digits_cnn.lua | tf-opt >cnn.tfg
    bash -c "$(example tf-replicate cnn)"
}

@test "tf-show" {
    digits digits.tfg
    cp digits.tfg m.tfg
    cp digits.tfg a.tfg
    cp digits.tfg b.tfg
    records
    tf-exec -g m.tfg --run train --feed train.rec --trace trace.rec >/dev/null
    printf '%s\n' k high low high | tf-data csv - y=k:category --fit prep.json >/dev/null
    printf '%s\n' 1 0 1 | tf-data csv - label=1:int32 >predictions.rec
    types tf-show 8
    [ "$(xargs <answers.csv)" = 'label low high low' ]
}

@test "tf-run" {
    cp digits.lua m.lua
    cp two.cluster lab.cluster
    (umask 077 && openssl rand -hex 32 >lab.key)
    digits m.tfg
    types tf-run 3 'stop|lab.cluster'
    mv ckpt first
    timeout 120 bash -c "$(example tf-run lab.cluster)" 3>&-
    tf-ckpt verify ckpt
    job_runs
    job_stops "$(example tf-run stop)"
}

@test "tf-ps" {
    cp two.cluster my.cluster
    timeout 60 bash -c "$(example tf-ps serve)" 2>served 3>&- &
    soon 30 grep -q 'ready' served
    # shellcheck disable=SC2046  # words
    kill_pids $(pgrep -P "$!") "$!"
    job_runs
    bash -c "$(example tf-ps list)" | finds 'output/W'
    bash -c "$(example tf-ps get)" | finds 'output/W'
    run -124 timeout 3 env TERM=vt100 COLUMNS=100 LINES=24 bash -c "$(example tf-ps watch)"
    echo "$output"
    [[ $output == *WORKER* ]]
    job_stops 'tf-run stop --job run'
}

@test "tf-plot" {
    digits m.tfg
    ./feed --rows 1-256 --batch 32 --epochs 50 |
        tf-exec -q -g m.tfg --run train --fetch loss --trace trace.rec --save ckpt/ >train.rec
    cp train.rec a.rec
    cp train.rec b.rec
    mkdir run
    cp train.rec run/worker-0.rec
    types tf-plot 6
    [ -s loss.svg ] && [ -s step.svg ]
}

@test "tf-supervise" {
    mkdir -m 700 run
    mkfifo run/channel
    printf '%s\n' "job $PWD/run" '' 'task one' 'command exec sleep 1000' >job.tasks
    bash -c "$(example tf-supervise job.tasks)" 2>err 3>&- &
    job=$!
    soon 30 eval '[[ $('"$(example tf-supervise --status)"' 2>&1) == *one* ]]'
    bash -c "$(example tf-supervise --stop)"
    wait "$job" || true
    [ ! -e run/one.pid ]
}

@test "tf-top" {
    job_runs
    types tf-top 4 'tf-top --job run( --interval| --listen|$)'
    grep -q '^tf_job_running.* 1$' run.prom
    run -124 timeout 3 bash -c "$(examples tf-top | head -n 1)"
    [[ $output == *worker:1* ]]
    timeout 30 bash -c "$(example tf-top count | sed 's/10s/0.1s/')"
    [ "$(grep -c ^TASK minute.txt)" = 6 ]
}

@test "no tool is left out" {
    diff <(cd "$root/build/bin" && printf '%s\n' tf-*) \
        <(sed -n 's/^@test "\(tf-[a-z]*\)" {$/\1/p' "$BATS_TEST_FILENAME" | sort)
}
