# SPDX-License-Identifier: Apache-2.0
# For tests of quantized gradients pushed to shards: jobs, and the sums of all gradients.
# shellcheck shell=bash
# shellcheck disable=SC2154  # root is of use_tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    ln -s "$root/examples/data" data
}

teardown() {
    kill_pids "${pids[@]}"
    for dir in job-*; do kill_job "$dir"; done
}

# The gradient of w is the fed row, of small integers, whatever w is.
rows() { # ROWS: m.tfg and x.csv
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 1024}, name = "x"}
local w = variable{name = "w", shape = {1024, 1}, init = 0}
loss = Sum(MatMul(x, w), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph m.lua | tf-opt >m.tfg
    awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) for (k = 0; k < 1024; k++)
        printf "%d%s", (i * 7 + k * k) % 23 - 11, k < 1023 ? "," : "\n" }' >x.csv
}

# job NAME MODE OPTION... [-- FEED...]: NAME/ is its store
job() {
    local name=$1 mode=$2 code
    shift 2
    timeout 120 tf-run --workers "${workers:-2}" --ps 2 --mode "$mode" --save "$name/" \
        --job "job-$name" --max-restarts 20 "$@" 2>>"$name.err" 3>&- ||
        { code=$?; cat "$name.err"; return "$code"; }
}

# all_there STORE SHARE: what is in w, times SHARE, and what all have lost, are the rows of x.csv
all_there() {
    tf-ckpt show --all "$1" | awk '/^worker_value:/ { print $1 }' >names
    { tf-ckpt cat "$1" w && while read -r v; do tf-ckpt cat "$1" "$v"; done <names; } |
        tf-show --json | /usr/bin/python3 -c '
import json, sys
import numpy as np
values = [np.array(v, np.float64).ravel() for line in sys.stdin
          for n, v in json.loads(line).items() if n == "w" or n.startswith("worker_value")]
want = np.loadtxt("x.csv", delimiter=",").sum(0)
got = -values[0] * float(sys.argv[1]) + sum(values[1:])
lost = max(np.abs(v).max() for v in values[1:])
print(len(values) - 1, "workers have lost up to", lost)
sys.exit(int(not lost or np.abs(got - want).max() > 1e-2))' "$2"
}

half() { # NAME: the feed command of a job that goes on when NAME.go is there
    feed=("$root/tests/lib/halfway" "$PWD/$1.go" tf-data csv x.csv x=1-1024 --batch 1)
}

# killed NAME MODE VICTIM FEED...: half way a task dies. A worker restores its values from its
# journal, and goes on; the loss of a shard resets all to a checkpoint.
killed() {
    local name=$1 mode=$2 victim=$3 pid
    shift 3
    job "$name" "$mode" --save-every 4 m.tfg -- "$@" &
    pid=$!
    soon 60 test -e "$name/data.mdb"
    soon 60 has_reached "$name" 4
    kill -9 "$(cat "job-$name/$victim.pid")"
    touch "$name.go"
    wait $pid || { cat "$name.err"; return 1; }
    case $victim in
    worker-*) grep -q "worker:${victim#worker-}.* started again" "$name.err" &&
        ! grep 'restored from' "$name.err" ;;
    *) grep -q 'restored from' "$name.err" ;;
    esac
}

digits() { # m.tfg, and in feed what it is fed
    tf-graph "$root/examples/digits.lua" | tf-opt >m.tfg
    feed=("$root/examples/feed" --rows 1-1200 --shuffle --batch 20 --epochs 1)
}

same() { # STORE STORE: variables, and what workers have lost
    local v
    tf-ckpt diff "$1" "$2"
    for v in {hidden,output}/W/gradient/residual/{0,1,2}; do
        tf-ckpt cat "$1" "worker_value:$v" -o left.rec
        tf-ckpt cat "$2" "worker_value:$v" -o right.rec
        cmp <(tf-show --json left.rec) <(tf-show --json right.rec)
        tf-show --json left.rec | jq -se '[.. | numbers] | any(. != 0)' >left
    done
}

# Of lines NAME SHARE VICTIM MODE: a job in whose second half the victim is killed loses nothing
nothing_is_lost() {
    local name share victim mode
    rows 60
    while read -r name share victim mode; do
        half "$name"
        killed "$name" "$mode" "$victim" "${feed[@]}"
        all_there "$name" "$share"
    done
}
