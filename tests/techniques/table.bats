#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A table that no process may hold, as its address space is limited, over four shards: rows that
# were looked up, once or a thousand times, and their changes have the bits of one process that may.
load ../lib/tools
load ../lib/shards

ROWS=3000000 # of 32 floats: 384 MB, and of each shard a quarter

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1 MALLOC_ARENA_MAX=1 # each arena of malloc's reserves 64 MB
    cat >m.lua <<'LUA'
ids = Placeholder{dtype = int64, shape = {-1}}
local e = nn.embedding(ids, D.rows, 32, {name = "table", partitions = 4, init = init.ones})
loss = nn.mse(e, e * 0.25)
entry.train = minimize(loss, optim.sgd{rate = 20})
LUA
    # 64 rows from all over the table, in each batch one of them a thousand times more
    awk -v n=$ROWS 'BEGIN { srand(11)
        for (b = 0; b < 4; b++) {
            for (i = 0; i < 64; i++) print last = int(n * rand())
            for (i = 0; i < 1000; i++) print last
        } }' >x.csv
    tf-data csv x.csv ids=1:int64 --batch 1064 -o f.rec
}

teardown() {
    kill_pids "${pids[@]}"
}

# How much a shard that has nothing to do takes of address space; its table comes on top of that.
address_space() {
    awk '/^VmSize:/ { print $2 * 1024 }' "/proc/$1/status"
}

@test "a table larger than the address space of a process trains over four shards" {
    tf-graph m.lua -D rows=$ROWS | tf-opt >m.tfg
    tf-place --devices CPU:0 m.tfg | tf-exec --run train --fetch loss --feed f.rec --save one.ckpt |
        tf-show --json >one.txt
    [ "$(wc -l <one.txt)" = 4 ]

    printf 'task ps:%d unix:p%d\n' 0 0 1 1 2 2 3 3 >c
    echo 'task worker:0 unix:w0' >>c
    serve ps:0
    limit=$(($(address_space "${pids[0]}") + 360 * 1000 * 1000))
    stop
    ulimit -S -v $((limit / 1024))
    # one process has no memory for it
    run tf-exec -g m.tfg --threads 1 --run train --feed f.rec
    [ "$status" -eq 71 ]
    tf-place -c c m.tfg | tf-part >p.tfg
    for i in 0 1 2 3; do serve "ps:$i"; done
    work 0 --run train --fetch loss --feed f.rec | tf-show --json | cmp one.txt
    tf-ps save four.ckpt -c c
    stop
    ulimit -S -v unlimited
    tf-ckpt diff one.ckpt four.ckpt
}
