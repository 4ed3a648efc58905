#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The time of a step with each technique of communication when the network is the limit: workers are
# hosts of their own (network namespaces, which need root), whose adapters tc limits to a rate that
# is probed before, and share the cores of this machine. In turns, medians of the rounds in
# milliseconds: each technique; the prediction of tf-replicate --explain for it, its exchange plus
# the step alone (with delay=1 the longer of both); and PyTorch's DistributedDataParallel over gloo,
# plain and with its hooks, if PYTHON has it. Techniques predicted to take longer than LONGEST
# seconds are not measured. A technique's shard is on a host of its own; the choice of auto is
# printed after it.
# usage: techniques.sh     from the environment: MODELS ("mlp:32 embedding:32", net of train.lua and
# batch), WORKERS ("2 4"), RATES ("10 100 1000", Mbit/s), TECHNIQUES, PEERS ("plain fp16 powersgd1
# powersgd4"), ROUNDS (3), STEPS (6), LONGEST (30), PYTHON
set -euo pipefail
python=$(type -P "${PYTHON:-python3}") && python=$(realpath -s "$python") || python=false
cd "$(dirname "$0")/../.."
root=$PWD
PATH=$root/${BUILD:-build}/bin:$PATH
read -ra techniques <<<"${TECHNIQUES:-allreduce allreduce,factors=all allreduce,factors=auto \
    allreduce,bits=1 allreduce,bits=1,delay=1 allreduce,factors=auto,bits=1 sync,factors=auto auto}"
read -ra peers <<<"${PEERS-plain fp16 powersgd1 powersgd4}"
rounds=${ROUNDS:-3} steps=${STEPS:-6} longest=${LONGEST:-30}
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
export OMP_NUM_THREADS=1
shard=
unset OPENBLAS_CORETYPE TF_JOB TF_CLUSTER
work=$(mktemp -d)
net=tft$$
n=0
finish() {
    jobs -p | xargs -r kill 2>/dev/null || true
    for ((i = 0; i < n; i++)); do ip netns del "$net-$i" 2>/dev/null || true; done
    ip netns del "$net-s" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# ---- hosts: a switch, and an adapter of each that is slow in both directions ----

# The burst in bytes: the bytes of a millisecond, if packets are small beside it, and at most 64
# KiB.
burst_of() { # MBIT
    local bytes=$((125 * $1))
    bytes=$((bytes < 4096 ? 4096 : bytes))
    echo $((bytes > 65536 ? 65536 : bytes))
}

# Several packets go through as one of up to 7/8 of these bytes, which the adapter itself splits:
# otherwise tc would split those beyond the burst, which takes time of the hosts' cores.
limit() { # NAMESPACE ADAPTER MBIT
    local burst
    burst=$(burst_of "$3")
    ip -n "$1" link set "$2" gso_max_size $((burst * 7 / 8))
    ip netns exec "$1" tc qdisc replace dev "$2" root \
        tbf rate "$3mbit" burst "${burst}b" latency 200ms
}

make_hosts() {
    n=$1 # the last one is the shard's
    ip netns add "$net-s"
    ip -n "$net-s" link add switch type bridge
    ip -n "$net-s" link set switch up
    for ((i = 0; i < n; i++)); do
        ip netns add "$net-$i"
        ip link add eth0 netns "$net-$i" type veth peer name "port$i" netns "$net-s"
        ip -n "$net-$i" addr add "10.77.0.$((i + 1))/24" dev eth0
        ip -n "$net-$i" link set lo up
        ip -n "$net-$i" link set eth0 up
        ip -n "$net-s" link set "port$i" master switch up
    done
}

remove_hosts() {
    for ((i = 0; i < n; i++)); do ip netns del "$net-$i"; done
    ip netns del "$net-s"
    n=0
}

at() { # HOST COMMAND...
    ip netns exec "$net-$1" "${@:2}"
}

# Measures the bytes per second from the first host to the second, for a second.
probe_once() {
    at 1 python3 -c '
import socket, time
listener = socket.create_server(("10.77.0.2", 9))
open("listens", "w")
taker = listener.accept()[0]
taker.recv(1 << 16)
begin, got = time.monotonic(), 0
while some := taker.recv(1 << 16):
    got += len(some)
print(got / (time.monotonic() - begin))' &
    until [[ -e listens ]]; do sleep 0.05; done
    at 0 python3 -c '
import socket, time
to = socket.create_connection(("10.77.0.2", 9))
end = time.monotonic() + 1
while time.monotonic() < end:
    to.sendall(bytes(1 << 16))'
    wait $!
    rm listens
}

# A temporary load of the cores by others must not count as the adapters' limit.
probe() {
    for _ in 1 2 3; do probe_once; done | sort -g | tail -n 1
}

# ---- steps ----

step_of() { # TRACE: milliseconds of the median step
    tf-show --json "$1" | python3 -c '
import json, statistics, sys
steps = [e["ns"] * 1e-6 for e in map(json.loads, sys.stdin) if "node" not in e and "ns" in e]
print(statistics.median(steps[len(steps) // 5:]))'
}

median() {
    sort -g | awk '
        { v[NR] = $1 }
        END { if (NR) printf "%.1f", v[int((NR + 1) / 2)]; else print "-" }'
}

# As many processes at once as there will be workers, on the same cores.
alone() {
    local each=() k
    for ((k = 0; k < workers; k++)); do
        tf-exec -g net.tfg --run train --steps "$steps" --threads 1 --trace "trace.$k" >/dev/null &
        each+=($!)
    done
    wait "${each[@]}"
    step_of trace.0
}

# Measures the time of each node on a core of its own.
measure_costs() {
    tf-exec -g net.tfg --run train --steps "$steps" --threads 1 --trace trace >/dev/null
    tf-show --costs trace >costs
}

predicted() { # TECHNIQUE: milliseconds of a step, by the median of steps alone
    tf-replicate --mode "$1" -c c --costs costs --explain net.tfg 2>&1 >many.tfg |
        awk '$1 == "exchange" { print $5 } $4 == "taken" { print $2 }' |
        awk -v step="$(median <of.alone)" -v late="${1##*delay=1*}" '
            { printf "%.1f", (late ? $1 + step : $1 > step ? $1 : step) }'
}

# The choice of auto.
taken() { # TECHNIQUE
    [[ $1 != auto* ]] || tf-replicate --mode "$1" -c c --costs costs --explain net.tfg 2>&1 \
        >many.tfg |
        awk '$4 == "taken" { print ": " $1 }'
}

serve() { # the shard
    : >shard.log
    ip netns exec "$net-$((n - 1))" tf-ps serve --job run --task ps:0 --threads 1 2>shard.log &
    shard=$! # its own, as it is to be stopped
    until grep -q 'ready on' shard.log; do
        kill -0 "$shard" || { cat shard.log >&2 && return 1; }
        sleep 0.05
    done
}

together() { # TECHNIQUE
    local each=() k
    rm -rf run
    tf-ps init --job run -c c
    tf-replicate --mode "$1" -c c --costs costs net.tfg | tf-place -c c | tf-part >parts.tfg
    ! tf-show --text parts.tfg | grep -c '@/job:ps\|schedule="servers"' >/dev/null || serve
    for ((k = 0; k < workers; k++)); do
        at "$k" tf-exec --job run -g parts.tfg --task "worker:$k" --run train --steps "$steps" \
            --threads 1 --timeout 5m --trace "trace.$k" >/dev/null &
        each+=($!)
    done
    wait "${each[@]}"
    if [[ -n $shard ]]; then
        kill "$shard"
        wait "$shard" || true
        shard=
    fi
    step_of trace.0
}

peer() { # HOOK
    local each=() k
    for ((k = 0; k < workers; k++)); do
        GLOO_SOCKET_IFNAME=eth0 MASTER_ADDR=10.77.0.1 MASTER_PORT=2900 RANK=$k WORLD_SIZE=$workers \
            at "$k" timeout -k 5 $(((steps + 4) * longest + 60)) \
            "$python" "$root/tests/bench/peer_ddp.py" "$model" "$batch" "$steps" "$1" \
            >"peer.$k" 2>"peer.$k.log" &
        each+=($!)
    done
    if wait "${each[@]}"; then
        cat peer.0
    else
        echo "$1 of $model over $workers workers failed: $(tail -n 1 peer.0.log)" >&2
    fi
}

line() {
    printf '%-8s %5s %7s %9s  %-27s %9s %12s\n' "$@"
}

row() { # TECHNIQUE MS PREDICTED
    line "$model" "$batch" "$workers" "$rate" "$@"
}

measure() {
    local round technique
    for ((round = 0; round < rounds; round++)); do
        alone >>of.alone
        for technique in "${techniques[@]}"; do
            ! grep -qx "$technique" measured || together "$technique" >>"of.$technique"
        done
        for technique in "${peers[@]}"; do
            peer "$technique" >>"of.ddp-$technique"
        done
    done
}

cell() {
    local bytes technique i
    rm -f of.* measured
    for ((i = 0; i < n; i++)); do
        limit "$net-$i" eth0 "$rate"
        limit "$net-s" "port$i" "$rate"
    done
    bytes=$(probe)
    for ((i = 0; i < n; i++)); do
        ((i < workers)) && echo "task worker:$i 10.77.0.$((i + 1)):7000" ||
            echo "task ps:0 10.77.0.$((i + 1)):7000"
        echo "host 10.77.0.$((i + 1)) bandwidth=${bytes%.*} within=machine"
    done >c
    echo "host machine cores=$cores" >>c
    alone >of.alone
    : >measured
    for technique in "${techniques[@]}"; do
        ! predicted "$technique" | awk -v most="$longest" '{ exit $1 > most * 1e3 }' ||
            echo "$technique" >>measured
    done
    measure
    row alone "$(median <of.alone)" -
    for technique in "${techniques[@]}"; do
        touch "of.$technique"
        row "$technique$(taken "$technique")" "$(median <"of.$technique")" \
            "$(predicted "$technique")"
    done
    for technique in "${peers[@]}"; do
        touch "of.ddp-$technique"
        row "ddp $technique" "$(median <"of.ddp-$technique")" -
    done
}

cd "$work"
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "DistributedDataParallel: skipped, no torch (set PYTHON)"
    peers=()
fi
line MODEL BATCH WORKERS MBIT/S TECHNIQUE STEP/ms PREDICTED/ms
for entry in ${MODELS:-mlp:32 embedding:32}; do
    IFS=: read -r model batch <<<"$entry"
    tf-graph -D "model=$model" -D "batch=$batch" "$root/tests/bench/train.lua" | tf-opt |
        tf-place >net.tfg
    measure_costs
    for workers in ${WORKERS:-2 4}; do
        make_hosts $((workers + 1))
        for rate in ${RATES:-10 100 1000}; do cell; done
        remove_hosts
    done
done
