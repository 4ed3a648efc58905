#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All-reduce of float32 between processes of this machine, in turns with those of gloo (PyTorch) and
# OpenMPI if installed: each round runs all of them, and the median of the rounds counts. PYTHON
# names a Python with torch. usage: allreduce.sh [RANKS [ROUNDS]]
set -euo pipefail
cd "$(dirname "$0")/../.."
ranks=${1:-2} rounds=${2:-5} work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ours=${BUILD:-build}/tests/bench/allreduce

columns=(shared unix tcp)
PYTHON=${PYTHON:-python3}
if "$PYTHON" -c 'import torch' 2>/dev/null; then
    columns+=(gloo)
else
    echo "gloo: skipped, no torch (set PYTHON)"
fi
if command -v mpicc >/dev/null && mpicc -O2 -x c tests/bench/peer_allreduce.mpi -o "$work/mpi"; then
    columns+=(mpi-tcp mpi-shared)
else
    echo "OpenMPI: skipped, no mpicc"
fi
mpi=(mpirun --allow-run-as-root --oversubscribe -n "$ranks")

measure() { # COLUMN BYTES CALLS
    case $1 in
    gloo) "$PYTHON" tests/bench/peer_allreduce.py "$ranks" "$2" "$3" 2>/dev/null ;;
    mpi-tcp) "${mpi[@]}" --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include lo \
        "$work/mpi" "$2" "$3" ;;
    mpi-shared) "${mpi[@]}" "$work/mpi" "$2" "$3" ;;
    *) "$ours" "$1" "$ranks" "$2" "$3" ;;
    esac
}

echo "all-reduce of float32 among $ranks processes, us:"
printf '%-10s' bytes
printf '%12s' "${columns[@]}"
echo
for size in "4 2000" "1048576 200" "104857600 7"; do
    read -r bytes calls <<<"$size"
    for ((round = 0; round < rounds; round++)); do
        for column in "${columns[@]}"; do
            measure "$column" "$bytes" "$calls" >>"$work/$column.$bytes" || true
        done
    done
    printf '%-10s' "$bytes"
    for column in "${columns[@]}"; do
        sort -n "$work/$column.$bytes" |
            awk '{ t[NR] = $1 } END { printf "%12s", NR ? t[int((NR + 1) / 2)] : "failed" }'
    done
    echo
done
