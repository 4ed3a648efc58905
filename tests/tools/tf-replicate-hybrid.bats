#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-replicate --mode auto: no other choice of shards or all-reduce, and for each layer of gradient
# or factors, takes less time, for any layers, batches and clusters.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "what is taken of random nets and clusters is the least of all choices, counted one by one" {
    /usr/bin/python3 "$root/tests/tools/hybrid.py" 1 100
}
