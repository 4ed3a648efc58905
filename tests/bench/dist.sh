#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Null steps of workers and a shard: the time of a step in which every worker reads the shard's
# values and returns them to be added. In turns with the raw link (a byte there and back; the step's
# bytes both ways and two passes over memory) and with the peers that are installed: PyTorch's RPC
# and TensorFlow's runtime, if PYTHON has them, and the program that PSLITE names, built on ps-lite
# with the arguments and output of peer_rpc.py. Medians of the rounds.
# usage: dist.sh [all|CASE[/WORKERS]...]     cases as below, or in CASES; by default the quick
# ones of one worker. From the environment: ROUNDS (3), SECONDS_EACH (2), LINKS ("shared tcp tls"),
# PYTHON, PSLITE. CASES=all make bench-dist measures everything.
set -euo pipefail
program() { # NAME: its whole path, for names are relative to where the caller is
    local found
    found=$(type -P "$1") || { echo "dist.sh: $1: no such program" >&2 && return 1; }
    realpath -s "$found"
}
PYTHON=$(program "${PYTHON:-python3}") || PYTHON=false
[[ -z ${PSLITE:-} ]] || PSLITE=$(program "$PSLITE")
cd "$(dirname "$0")/../.."
root=$PWD
rounds=${ROUNDS:-3} each=${SECONDS_EACH:-2}
read -ra links <<<"${LINKS:-shared tcp tls}"
PATH=$root/${BUILD:-build}/bin:$PATH
dist=$root/${BUILD:-build}/tests/bench/dist
read -ra given <<<"${*:-${CASES:-scalar/1 1MB/1 100MB/1 rows-64MB/1 pushes-64B/1}}"
set -- "${given[@]}"
work=$(mktemp -d)
pids=()
finish() {
    ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
export OMP_NUM_THREADS=1

# name, workers, elements or rows:columns:batch, MB there and back, MB of memory that it needs
cases() {
    local n
    for n in 1 2 8 100; do echo "scalar $n dense:1 0 $((n * 20))"; done
    for n in 1 2 8; do echo "1MB $n dense:250000 2 $((n * 30))"; done
    for n in 1 2 8; do echo "100MB $n dense:25000000 200 $((1000 + n * 500))"; done
    for n in 1 2; do echo "1GB $n dense:250000000 2000 $((4000 + n * 4000))"; done
    for n in 1 2 8 100; do echo "rows-64MB $n sparse:16384:1024:32 0.262 $((200 + n * 20))"; done
    for n in 1 2 8; do echo "rows-1GB $n sparse:262144:1024:32 0.262 $((3000 + n * 20))"; done
    for n in 1 2 8; do echo "rows-4GB $n sparse:1048576:1024:32 0.262 $((9000 + n * 20))"; done
    echo "pushes-64B 1 push:65536:16:4096 0.28 100" # as many in one message
}

peers=()
find_peers() {
    if "$PYTHON" -c 'import torch.distributed.rpc' 2>/dev/null; then
        peers+=(torch)
    else
        echo "PyTorch RPC: skipped, no torch (set PYTHON)"
    fi
    if "$PYTHON" -c 'import tensorflow' 2>/dev/null; then
        peers+=(grpc)
    else
        echo "TensorFlow's gRPC runtime: skipped, no tensorflow (set PYTHON)"
    fi
    if [[ -n ${PSLITE:-} ]]; then peers+=(pslite); else echo "ps-lite: skipped (set PSLITE)"; fi
}

run_peer() { # PEER WORKERS CASE
    case $1 in
    torch) timeout 300 "$PYTHON" "$root/tests/bench/peer_rpc.py" "$2" "$each" "$3" ;;
    grpc) timeout 300 "$PYTHON" "$root/tests/bench/peer_grpc.py" "$2" "$each" "$3" ;;
    pslite) timeout 300 "$PSLITE" "$2" "$each" "$3" ;;
    esac 2>/dev/null | awk '{ print $2 }'
}

make_cluster() { # LINK WORKERS
    local address=unix:p0 i
    [[ $1 == shared ]] || address=127.0.0.1:$((20000 + RANDOM % 12000))
    echo "task ps:0 $address" >c
    for ((i = 0; i < $2; i++)); do echo "task worker:$i unix:none$i"; done >>c
    (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >key)
}

make_parts() { # CASE
    local kind a b batch options=()
    IFS=: read -r kind a b batch <<<"$1"
    if [[ $kind == dense ]]; then options=(-D "n=$a"); else
        options=(-D "rows=$a" -D "n=$b" -D "batch=$batch")
    fi
    [[ $kind != push ]] || options+=(-D push=1)
    tf-graph "${options[@]}" "$root/tests/bench/dist.lua" | tf-place -c c | tf-part >parts.tfg
}

ready() { # N FILE...: so many of them say so
    local n=$1 end=$((SECONDS + 120))
    shift
    until (($(cat "$@" 2>/dev/null | grep -c ready) >= n)); do
        ((SECONDS < end)) || { cat ./*.err >&2; return 1; }
        sleep 0.02
    done
}

# Appends the median of all workers to the file of the link.
run_ours() { # LINK WORKERS CASE
    local i outs=() key=() secret=(--no-key)
    [[ $1 != tls ]] || { key=(key) secret=(--key-file key); }
    rm -f go ./*.out ./*.err
    make_cluster "$1" "$2"
    make_parts "$3"
    tf-ps serve -c c --task ps:0 --threads 1 "${secret[@]}" 2>ps.err &
    pids=($!)
    ready 1 ps.err
    mkfifo go && exec 5<>go
    for ((i = 0; i < $2; i++)); do
        "$dist" step parts.tfg c "worker:$i" step "$each" "${key[@]}" <go >"$i.out" \
            2>"$i.err" 5>&- &
        pids+=($!) outs+=("$i.out")
    done
    ready "$2" "${outs[@]}" && exec 5>&-
    wait "${pids[@]:1}" || cat ./*.err >&2
    kill "${pids[0]}"
    wait "${pids[0]}" 2>/dev/null || true
    pids=()
    grep -hv ready "${outs[@]}" | median >>"times.$1"
}

median() { # of the first column
    awk '{ print $1 }' | sort -n | awk '{ t[NR] = $1 } END { if (NR) print t[int((NR + 1) / 2)] }'
}

# The least time of a step, from the raw link: TRIP, and each MB twice over memory.
raw_time() { # LINK MB
    local kind=tcp
    [[ $1 != shared ]] || kind=shared
    "$dist" raw $kind 0.2 | awk -v mb="$2" '{ print $1 + mb * ($2 + $3) }'
}

ratio() { # A B
    awk -v a="$1" -v b="$2" 'BEGIN { if (a && b) printf "%.3g", a / b; else printf "-" }'
}

available_mb() {
    awk '/MemAvailable/ { print int($2 / 1000) }' /proc/meminfo
}

# Each Python process of a peer takes 300 MB before it has any data.
has_room() { # PEER NAME WORKERS MB
    local each=300
    [[ $1 != pslite ]] || each=20
    (($(available_mb) >= ($3 + 2) * each + $4)) ||
        { echo "dist.sh: $1: $2 with $3 workers skipped: not enough memory" >&2 && return 1; }
}

measure() { # NAME WORKERS CASE MB MEMORY
    local round link peer here=()
    rm -f times.* raw.*
    for peer in "${peers[@]}"; do
        [[ $3 == push* ]] || ! has_room "$peer" "$1" "$2" "$5" || here+=("$peer")
    done
    for ((round = 0; round < rounds; round++)); do
        for link in "${links[@]}"; do
            raw_time "$link" "$4" >>"raw.$link"
            run_ours "$link" "$2" "$3"
        done
        for peer in "${here[@]}"; do
            run_peer "$peer" "$2" "$3" >>"times.$peer" ||
                echo "dist.sh: $peer: $1 with $2 workers failed" >&2
        done
    done
    for link in "${links[@]}"; do print_line "$link" "$@"; done
}

print_line() { # LINK NAME WORKERS CASE MB
    local ours raw other peer
    ours=$(median <"times.$1") raw=$(median <"raw.$1")
    printf '%-10s %7s %-7s %12s %12s %8s' "$2" "$3" "$1" "$ours" "$raw" "$(ratio "$ours" "$raw")"
    for peer in "${peers[@]}"; do
        other=
        [[ ! -e times.$peer ]] || other=$(median <"times.$peer")
        printf ' %12s %8s' "${other:--}" "$(ratio "$ours" "${other:-0}")"
    done
    [[ $4 != push:* ]] || awk -v t="$ours" -v batch="${4##*:}" \
        'BEGIN { printf "  %.2f million pushes/s", batch / t }'
    echo
}

find_peers
printf '%-10s %7s %-7s %12s %12s %8s' CASE WORKERS LINK 'STEP us' 'RAW us' '/RAW'
for peer in "${peers[@]}"; do printf ' %12s %8s' "$peer us" "/$peer"; done
echo
cases | while read -r name workers case mb memory; do
    [[ " $* " =~ " all "|" $name "|" $name/$workers " ]] || continue
    if (($(available_mb) < memory)); then
        printf '%-10s %7s skipped: it needs %s MB of memory\n' "$name" "$workers" "$memory"
        continue
    fi
    measure "$name" "$workers" "$case" "$mb" "$memory" </dev/null
done
