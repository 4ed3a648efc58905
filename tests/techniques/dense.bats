#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Dense layers cut over four workers, in one pass or four (schemes a, b and c of Krizhevsky, One
# weird trick, 2014): what is between layers takes a fourth of the memory in passes, and links bring
# a pass' rows while the one before is computed. The second has network namespaces, which need root
# and tc.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools
load ../lib/shards
load ../lib/bytes
load ../lib/hosts
load ../lib/pause

bats_require_minimum_version 1.5.0

workers=4

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
    close_hosts $((workers + 1))
}

# ones ROWS COLUMNS: ROWS.npy
ones() {
    /usr/bin/python3 -c "import numpy as np; np.save('$1.npy', np.ones(($1, $2), 'float32'))"
}

# parts SCHEME: m.lua for the workers of c
parts() {
    tf-graph m.lua | tf-opt | tf-replicate --mode "allreduce,dense=$1" -c c | tf-place -c c |
        tf-part >p.tfg
}

# peak ROWS: KiB that a worker had at most, the median of all. Each is fed so many rows.
peak() {
    local i each=()
    for ((i = 0; i < workers; i++)); do
        /usr/bin/python3 - "$i" "$1" >"$i.kb" 2>"w$i.err" 3>&- <<'PY' &
import resource, subprocess, sys
subprocess.run("tf-exec -c c --task worker:%s -g p.tfg --no-key --run train --feed x=%s.npy -n 3 "
               "-q --threads 1" % tuple(sys.argv[1:]), shell=True, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
        each+=($!)
    done
    for ((i = 0; i < workers; i++)); do wait "${each[i]}" || { cat "w$i.err"; return 1; }; done
    sort -n ./*.kb | sed -n $((workers / 2))p
}

@test "memory of what is between layers is as n : 1 : 1" {
    local scheme less more
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 16}}
local h = nn.dense(x, 2048, {name = "one", activation = Tanh})
loss = Mean(Square(nn.dense(h, 16, {name = "two"})), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
    cluster 0 $workers
    ones 2048 16
    ones 4096 16
    for scheme in a b c; do
        parts $scheme
        less=$(peak 2048)
        more=$(peak 4096)
        echo $((more - less))
    done >kb
    paste -s kb
    paste -s kb | awk -v n=$workers '{ for (i = 2; i <= 3; i++) if ($1 < 0.85 * n * $i ||
        $1 > 1.15 * n * $i) bad = 1 } END { exit bad || NR != 1 }'
}

# Each worker is a host with an adapter of MBIT, at a switch, which is one host more.
open_switch() { # MBIT
    local i
    open_hosts $((workers + 1))
    inside $workers ip link add switch type bridge
    inside $workers ip link set switch up
    for ((i = 0; i < workers; i++)); do
        join_hosts $i eth0 $workers port$i
        inside $workers ip link set port$i up master switch
        inside $i ip addr add "10.9.2.$((i + 1))/24" dev eth0
        limit $i eth0 "$1"
        echo "task worker:$i 10.9.2.$((i + 1)):7000"
    done >c
}

# Until there is a file `stop`: what each host has sent, again and again
sample() {
    inside $workers nice -n -20 /usr/bin/python3 - $workers <<'PY'
import os, sys, time
files = [open("/sys/class/net/port%d/statistics/rx_bytes" % i) for i in range(int(sys.argv[1]))]
while not os.path.exists("stop"):
    row = [time.monotonic_ns()]
    for file in files:
        file.seek(0)
        row.append(int(file.read()))
    print(*row)
    time.sleep(0.002)
PY
}

# busy SCHEME ROWS: bytes of each host while the first worker computes a pass, a line for each
busy() {
    local i each=() sampler
    parts "$1"
    sample >samples 3>&- &
    sampler=$!
    for ((i = 0; i < workers; i++)); do
        inside $i nice -n -20 timeout 100 tf-exec -c c --task "worker:$i" -g p.tfg --key-file key \
            --run train -n 2 --feed "x=$2.npy" --trace "t$i" -q 2>"w$i.err" 3>&- &
        each+=($!)
    done
    for ((i = 0; i < workers; i++)); do wait "${each[i]}" || { cat "w$i.err"; return 1; }; done
    touch stop
    wait $sampler
    rm stop
    tf-show --json t0 >t0.json
    /usr/bin/python3 "$root/tests/techniques/busy.py" samples t0.json
}

@test "links are busy while workers compute: one sender at a time, or all alike" {
    local pass=$((3 * 128 * 8192 * 4)) # bytes that the rows of a pass are to three others
    open_switch 100
    make_pause
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 8192}}
local h = nn.dense(x, 16, {name = "one", activation = Tanh})
h = Pause(nn.dense(h, 16, {name = "two"}), {forward = 1.2, backward = 0.01})
entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.01})
LUA
    ones 128 8192
    ones 512 8192
    # all has been sent before
    busy a 128 >one_pass
    cat one_pass
    awk '{ for (i = 1; i <= NF; i++) if ($i > 100000) bad = 1 }
        END { exit bad || NR != 1 }' one_pass
    # in the pass k worker k + 1 brings its rows to the others, who send next to nothing; those of
    # the pass 1 may have come before, with those of the pass 0
    busy b 128 >by_worker
    cat by_worker
    awk -v pass=$pass '
        { for (i = 1; i <= NF; i++)
              if (i == NR + 1 ? NR > 1 && $i < 0.5 * pass : $i > 0.05 * pass) bad = 1 }
        END { exit bad || NR != 4 }' by_worker
    # each worker brings a fourth of its rows, of which there are four times as many here
    busy c 512 >by_rows
    cat by_rows
    awk -v pass=$pass '
        { least = most = $1; for (i = 1; i <= NF; i++) { sum[i] += $i
            if ($i < least) least = $i; if ($i > most) most = $i } }
        NR < 4 && least < 0.7 * most || NR == 4 && most > 100000 { bad = 1 }
        END { for (i = 1; i <= NF; i++) if (sum[i] < 3 * 0.4 * pass) bad = 1
              exit bad || NR != 4 }' by_rows
}
