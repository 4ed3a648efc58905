#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The executors' own cost: ops per second that compute nothing. The target is 10 M/s in a chain.
set -euo pipefail
OMP_NUM_THREADS=1 build/tests/bench/nullops "$@"
