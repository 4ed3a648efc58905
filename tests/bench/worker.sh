#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A worker's step compared with the same step alone: in turns two processes of one thread each,
# alone and at once, and a job of two such workers. MODELS ("lenet:32:40 alexnet:16:6 lstm:32:40":
# net of train.lua, batch, steps), MODES ("sync allreduce"), ROUNDS (3), BIN (build/bin; several to
# compare builds).
# Prints medians of the rounds: milliseconds a step; milliseconds of processor time a step of the
# computing threads (the figure to trust on a busy machine), and of all other threads of the job per
# core, including the shard's; how long a step may therefore take, without the transfer of the last
# gradient: 1.05 times the step alone plus the time of these others; peak MB of one process (RSS:
# memory that both workers map, as gradients that one reads in place, counts in each of them), and,
# from one more run that is not timed, PSS: peak MB of both processes, halved, where memory that n
# processes map counts 1/n in each. Steps are traced in both, so neither fuses anything.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD rounds=${ROUNDS:-3}
export OMP_NUM_THREADS=1
unset OPENBLAS_CORETYPE # the tools choose by the machine's features
work=$(mktemp -d)
pids=()
finish() {
    ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

measured() { # COMMAND...
    "$root/tests/bench/sample.py" used "$@"
}

# Until one of the two measured processes ends: the peak MB of one of them, as PSS. Reading it is
# costly, so such runs are not timed. Memory that one unmaps counts wholly in the other from then
# on: the first is read again after the second, so that nothing counts twice.
weigh() {
    python3 -c '
import os, time
def pss(process):
    with open(f"/proc/{process}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
most = 0
try:
    while True:
        time.sleep(0.02)
        processes = open("processes").read().split() if os.path.exists("processes") else []
        if len(processes) == 2:
            first, second = pss(processes[0]), pss(processes[1])
            most = max(most, (min(first, pss(processes[0])) + second) / 2)
except OSError:
    print(most / 1024)'
}

weighed() { # FILE COMMAND...
    local weigher
    rm -f processes
    weigh >>"$1" &
    weigher=$!
    "${@:2}" >/dev/null
    wait "$weigher"
}

step_of() { # TRACE: seconds of the median step
    tf-show --json "$1" | python3 -c '
import json, statistics, sys
steps = [e["ns"] * 1e-9 for e in map(json.loads, sys.stdin) if "node" not in e and "ns" in e]
print(statistics.median(steps[len(steps) // 5:]))'
}

alone() { # STEPS
    local each=()
    rm -f processes
    for i in 0 1; do
        measured tf-exec -g net.tfg --run train --steps "$1" --threads 1 --trace "trace.$i" &
        each+=($!)
    done
    wait "${each[@]}"
    step_of trace.0
}

together() { # MODE STEPS
    local each=() sampler
    rm -rf run processes
    printf 'task worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    [[ $1 = allreduce ]] || echo 'task ps:0 unix:p0' >>c
    tf-ps init -c c
    tf-replicate --mode "$1" net.tfg | tf-place -c c | tf-part >parts.tfg
    if [[ $1 != allreduce ]]; then
        tf-ps serve --task ps:0 --threads 1 2>ps.err &
        pids=($!)
        until grep -q "ready on" ps.err; do sleep 0.05; done
        "$root/tests/bench/sample.py" used.ps -p "${pids[0]}" &
        sampler=$!
    fi
    for i in 0 1; do
        measured tf-exec -g parts.tfg --task "worker:$i" --run train --steps "$2" --threads 1 \
            --trace "trace.$i" &
        each+=($!)
    done
    wait "${each[@]}"
    if ((${#pids[@]})); then
        kill "${pids[@]}"
        wait "${pids[@]}" "$sampler" || true
        pids=()
    fi
    step_of trace.0
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# Peak memory and processor time of the last two processes, per time of their step. Alone, the first
# thread computes; a worker's first thread serves its links.
keep_used() { # FILE
    local step
    step=$(tail -1 "$1.of")
    sort -g used | tail -1 | cut -d' ' -f1 >>"$1_mb.of"
    if [[ $1 = *.alone ]]; then
        awk -v step="$step" '{ sum += $2 + $3 } END { print step * sum / NR }' used >>"$1_cpu.of"
    else
        awk -v step="$step" '{ sum += $3 } END { print step * sum / NR }' used >>"$1_cpu.of"
        [[ ! -f used.ps ]] || awk '{ print 0, $2 + $3, 0 }' used.ps >>used
        awk -v step="$step" -v cores="$(nproc)" '{ sum += $2 } END { print step * sum / cores }' \
            used >>"$1_others.of"
    fi
    rm -f used used.ps
}

cd "$work"
export TF_JOB=run
printf '%-8s %5s %-9s %-20s %8s %9s %6s %9s %7s %8s %9s %6s %8s %9s %6s %9s %10s %6s\n' MODEL \
    BATCH MODE BUILD ALONE/ms WORKER/ms RATIO OTHERS/ms MOST/ms CPU/ms WORKER/ms RATIO ALONE/MB \
    WORKER/MB RATIO ALONE/PSS WORKER/PSS RATIO
for entry in ${MODELS:-lenet:32:40 alexnet:16:6 lstm:32:40}; do
    IFS=: read -r model batch steps <<<"$entry"
    for mode in ${MODES:-sync allreduce}; do
        rm -f ./*.of ./.*.of
        for ((round = 0; round < rounds; round++)); do
            for bin in ${BIN:-build/bin}; do
                PATH=$(realpath "$root/$bin"):$PATH
                name=${bin//\//_}
                [[ -f net.tfg ]] || tf-graph -D "model=$model" -D "batch=$batch" \
                    "$root/tests/bench/train.lua" | tf-opt | tf-place >net.tfg
                alone "$steps" >>"$name.alone.of"
                keep_used "$name.alone"
                together "$mode" "$steps" 2>>err >>"$name.worker.of" || { cat err >&2; exit 1; }
                keep_used "$name.worker"
            done
        done
        for bin in ${BIN:-build/bin}; do
            PATH=$(realpath "$root/$bin"):$PATH
            weighed "${bin//\//_}.alone_pss.of" alone "$steps"
            weighed "${bin//\//_}.worker_pss.of" together "$mode" "$steps" 2>>err
            rm -f used used.ps
        done
        for bin in ${BIN:-build/bin}; do
            name=${bin//\//_}
            for what in '' _cpu _mb _pss; do
                median <"$name.alone$what.of"
                median <"$name.worker$what.of"
            done | paste -sd' ' |
                awk -v what="$(printf '%-8s %5s %-9s %-20s' "$model" "$batch" "$mode" "$bin")" \
                    -v others="$(median <"$name.worker_others.of")" '{
                    printf "%s %8.2f %9.2f %6.2f %9.2f %7.2f %8.2f %9.2f %6.2f %8.0f %9.0f %6.2f" \
                        " %9.0f %10.0f %6.2f\n", what, $1 * 1e3, $2 * 1e3, $2 / $1, others * 1e3,
                        1.05e3 * $1 + 1e3 * others, $3 * 1e3, $4 * 1e3, $4 / $3, $5, $6, $6 / $5,
                        $7, $8, $8 / $7 }'
        done
    done
    rm net.tfg
done
