#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The executors' own cost: ops per second that compute nothing, in turns with TensorFlow's executors
# if PYTHON has it. ROUNDS (3). Targets: static plans 2.5 times TensorFlow's default executor, and
# at least as many ops as it if each item is separate, as if each had an own input to wait for.
set -euo pipefail
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    OMP_NUM_THREADS=1 build/tests/bench/nullops "$@"
    if "${PYTHON:-python3}" -c 'import tensorflow' 2>/dev/null; then
        "${PYTHON:-python3}" tests/bench/peer_nullops.py "$@"
    else
        echo "TensorFlow: skipped, no tensorflow (set PYTHON)"
    fi
done
