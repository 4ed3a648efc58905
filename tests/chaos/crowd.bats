#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many processes on few cores, and a job that has nothing to do.
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    export OMP_NUM_THREADS=1 TMPDIR=$BATS_TEST_TMPDIR
    set -o pipefail
    # 32 variables, to lie on 16 shards; each step adds 1 to all of them
    cat >model.lua <<'LUA'
x = Placeholder{dtype = float32, name = "x", shape = {-1, 8}}
local terms = {}
for i = 1, 32 do
  terms[i] = Sum(variable{name = "v" .. i, shape = {8}, init = 0} * -Mean(x, 0), 0)
end
loss = AddN(terms)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph model.lua | tf-opt >model.tfg
    echo 1,1,1,1,1,1,1,1 >ones.csv
    # a worker that sleeps until its data comes
    cat >feed <<'SH'
#!/bin/sh
sleep "$1"; unset TF_SHARD # each has the same
exec tf-data csv ones.csv x=1-8 --batch 1 --epochs "$2"
SH
    chmod +x feed
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

# The seconds of CPU that the processes of the job have used.
cpu_seconds() {
    local file ticks=0 line
    for file in job/*.pid; do
        line=$(sed 's/.*) //' "/proc/$(cat "$file")/stat") || return 1
        # shellcheck disable=SC2086
        set -- $line
        ticks=$((ticks + ${12} + ${13}))
    done
    echo "$ticks" | awk -v hz="$(getconf CLK_TCK)" '{ print $1 / hz }'
}

@test "100 workers that sleep and 16 shards start, train and end" {
    timeout -k 5 600 tf-run --ps 16 --workers 100 --threads 1 --lease 30s --timeout 300s \
        --mode async --save ck/ --job "$PWD/job" model.tfg 3>&- -- ./feed 5 2
    tf-ckpt export ck@200 ck.ckpt
    # integers: the sum of what was pushed, exactly
    [ "$(tf-show ck.ckpt | grep -cE '^v[0-9]+  float32\[8\]  200( 200){7}$')" = 32 ]
    [ -z "$(find job -type s -o -type p)" ]
}

@test "an idle job uses less than 1 % of a core" {
    timeout -k 5 300 tf-run --ps 2 --workers 2 --threads 1 --job "$PWD/job" model.tfg 3>&- \
        -- ./feed 90 1 &
    local before after
    sleep 15
    before=$(cpu_seconds)
    sleep 60
    after=$(cpu_seconds)
    echo "$before to $after seconds in a minute"
    awk -v a="$before" -v b="$after" 'BEGIN { exit !(b - a < 0.6) }'
    wait $!
}
