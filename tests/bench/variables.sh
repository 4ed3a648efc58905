#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The time of a step of two workers, and of two shards if the mode has some, by the number of small
# variables: the cost of a variable besides its bytes. Milliseconds of a step, median of the rounds:
# a job with STEPS more steps, minus one with few; and processor time of all tasks.
# usage: variables.sh     from the environment: COUNTS ("100 1000 4000"), MODES ("sync async
# allreduce"), STEPS (200), ROUNDS (3)
set -euo pipefail
PATH=$(realpath -m "$(dirname "$0")/../../${BUILD:-build}/bin"):$PATH
read -ra counts <<<"${COUNTS:-100 1000 4000}"
read -ra modes <<<"${MODES:-sync async allreduce}"
steps=${STEPS:-200} rounds=${ROUNDS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >net.lua <<'LUA'
local each = {}
for i = 1, math.tointeger(D.n) do
  local v = variable{name = "v" .. i, shape = {4}, init = 1}
  each[i] = Sum(v * v, {0})
end
entry.train = minimize(AddN(each), optim.sgd{rate = 0.001})
LUA

# Wall time and processor time of a job, in microseconds.
job() { # MODE STEPS
    local shards=(--ps 2)
    [[ $1 != allreduce ]] || shards=()
    { TIMEFORMAT='%R %U %S'; time tf-run "${shards[@]}" --workers 2 --mode "$1" --steps "$2" \
        --threads 1 -q net.tfg >/dev/null 2>said || cat said >&2; } 2>&1 |
        awk '/^[0-9.]+ [0-9.]+ [0-9.]+$/ { printf "%d %d\n", $1 * 1e6, ($2 + $3) * 1e6; next }
            { print >"/dev/stderr" }'
}

median() { sort -g | awk '{ v[NR] = $1 } END { printf "%.2f", v[int((NR + 1) / 2)] / 1000 }'; }

for count in "${counts[@]}"; do
    tf-graph -D "n=$count" net.lua >net.tfg
    for mode in "${modes[@]}"; do
        for ((i = 0; i < rounds; i++)); do
            read -r few few_cores < <(job "$mode" 10)
            read -r many many_cores < <(job "$mode" $((10 + steps)))
            echo $(((many - few) / steps)) >>wall
            echo $(((many_cores - few_cores) / steps)) >>cores
        done
        printf '%5d variables  %-10s %8s ms a step, of processors %8s ms\n' "$count" "$mode" \
            "$(median <wall)" "$(median <cores)"
        rm wall cores
    done
done
