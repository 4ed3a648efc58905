#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The filters of graphs start quickly. The limit is for a busy machine; `make bench` says how long
# they take (target: 10 ms).

@test "a graph of 100 nodes takes no filter longer than 100 ms" {
    [[ ${BUILD:-build} == build ]] || skip "sanitizers take their time"
    "$BATS_TEST_DIRNAME/../bench/startup.sh" 100
}
