#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A loop over two processes, whose data say when it ends: a million iterations take no more memory
# than ten thousand.
load ../lib/tools
load ../lib/shards

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    printf 'task ps:0 unix:p\ntask worker:0 unix:w\n' >c
    cat >loop.lua <<'LUA'
local shard, worker = "/job:ps/task:0", "/job:worker/task:0"
device(worker, function()
  x = Placeholder{dtype = int64, name = "x", shape = {}}
  n, rest = while_loop(function(i, a) return Greater(a, 1) end,
    function(i, a)
      local next
      device(shard, function() next = Maximum(a - 3, 0) end)
      return i + 1, next
    end, {Cast(0, {DstT = int64}), x})
end)
entry.r = Pack({n, rest})
LUA
    tf-graph loop.lua | tf-place -c c | tf-part >p.tfg
}

teardown() {
    kill_pids "${pids[@]}"
}

# peaks N: KiB that the worker, and the shard, had at most in N iterations
peaks() {
    serve ps:0
    /usr/bin/python3 - "$((3 * $1))" <<'END'
import resource, subprocess, sys
subprocess.run(["tf-exec", "-c", "c", "--task", "worker:0", "-g", "p.tfg", "--run", "r",
                "--feed", "x=" + sys.argv[1], "-o", "r.rec"], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
    [ "$(tf-show --json r.rec | jq -c .Pack)" = "[$1,0]" ]
    awk '$1 == "VmHWM:" { print $2 }' "/proc/${pids[0]}/status"
    stop
}

@test "a million iterations over two processes end by what crosses, in constant memory" {
    peaks 10000 >few
    peaks 1000000 >many
    paste few many
    [ "$(wc -l <many)" = 2 ]
    paste few many | awk '$2 > $1 + 1024 { print; bad = 1 } END { exit bad }'
}
