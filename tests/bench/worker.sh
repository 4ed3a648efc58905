#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A worker's step against the same step alone: in turns two processes of one thread each, alone and
# at once, and a job of two such workers. MODELS ("lenet:32:40 alexnet:16:6 lstm:32:40": net of
# train.lua, batch, steps), MODES ("sync allreduce"), ROUNDS (3), BIN (build/bin; several to compare
# builds).
# Prints medians of the rounds: milliseconds a step, milliseconds of processor time a step (the ones
# to trust on a busy machine), MB at the most of one process (RSS: memory that both workers map, as
# gradients that one reads where the other has them, counts in each of them), and of one more run,
# whose time does not count, PSS: MB of both processes at the most, halved, what n processes map
# counted as 1/n in each. Steps are traced in both, so neither fuses anything.
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

measured() { # COMMAND...: its peak memory in MB and processor time, to the file `used`
    python3 -c '
import resource, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
with open("processes", "a") as file:
    print(process.pid, file=file)
code = process.wait()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open("used", "a") as file:
    print(used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, file=file)
sys.exit(code)' "$@"
}

# Until one of the two processes that are measured ends: MB of one of them at the most, as PSS. To
# look is costly, so what is weighed is not timed. What one of them unmaps counts wholly in the
# other from then on: the first is looked at again behind the second, so that nothing counts twice.
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
    local each=()
    rm -rf run processes
    printf 'task worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    [[ $1 = allreduce ]] || echo 'task ps:0 unix:p0' >>c
    tf-ps init -c c
    tf-replicate --mode "$1" net.tfg | tf-place -c c | tf-part >parts.tfg
    if [[ $1 != allreduce ]]; then
        tf-ps serve --task ps:0 --threads 1 2>ps.err &
        pids=($!)
        until grep -q "ready on" ps.err; do sleep 0.05; done
    fi
    for i in 0 1; do
        measured tf-exec -g parts.tfg --task "worker:$i" --run train --steps "$2" --threads 1 \
            --trace "trace.$i" &
        each+=($!)
    done
    wait "${each[@]}"
    if ((${#pids[@]})); then
        kill "${pids[@]}"
        wait "${pids[@]}" || true
        pids=()
    fi
    step_of trace.0
}

median() {
    sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

keep_used() { # FILE STEPS: what the last runs took, at the most
    sort -g used | tail -1 | cut -d' ' -f1 >>"$1_mb.of"
    cut -d' ' -f2 used | sort -g | tail -1 | awk -v n="$2" '{ print $1 / n }' >>"$1_cpu.of"
    rm used
}

cd "$work"
export TF_JOB=run
printf '%-8s %5s %-9s %-20s %8s %9s %6s %8s %9s %6s %8s %9s %6s %8s %9s %6s\n' MODEL BATCH MODE \
    BUILD ALONE/ms WORKER/ms RATIO CPU/ms WORKER/ms RATIO ALONE/MB WORKER/MB RATIO \
    ALONE/PSS WORKER/PSS RATIO
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
                keep_used "$name.alone" "$steps"
                together "$mode" "$steps" 2>>err >>"$name.worker.of" || { cat err >&2; exit 1; }
                keep_used "$name.worker" "$steps"
            done
        done
        for bin in ${BIN:-build/bin}; do
            PATH=$(realpath "$root/$bin"):$PATH
            weighed "${bin//\//_}.alone_pss.of" alone "$steps"
            weighed "${bin//\//_}.worker_pss.of" together "$mode" "$steps" 2>>err
            rm used
        done
        for bin in ${BIN:-build/bin}; do
            name=${bin//\//_}
            for what in '' _cpu _mb _pss; do
                median <"$name.alone$what.of"
                median <"$name.worker$what.of"
            done | paste -sd' ' |
                awk -v what="$(printf '%-8s %5s %-9s %-20s' "$model" "$batch" "$mode" "$bin")" '{
                    ms = " %8.2f %9.2f %6.2f"; mb = " %8.0f %9.0f %6.2f"
                    printf "%s" ms ms mb mb "\n", what, $1 * 1e3, $2 * 1e3, $2 / $1, $3 * 1e3,
                        $4 * 1e3, $4 / $3, $5, $6, $6 / $5, $7, $8, $8 / $7 }'
        done
    done
    rm net.tfg
done
