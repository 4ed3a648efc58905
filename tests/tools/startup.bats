#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The filters of graphs start quickly. The limit suits a busy machine; `make bench` prints the times
# (target: 10 ms).

bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "a graph of 100 nodes takes no filter longer than 100 ms" {
    [[ ${BUILD:-build} == build ]] || skip "sanitizers take their time"
    "$BATS_TEST_DIRNAME/../bench/startup.sh" 100
}

@test "a calculator loads neither libevent nor LMDB nor OpenSSL" {
    [[ ${BUILD:-build} == build ]] || skip "sanitizers load what they like"
    LD_DEBUG=libs tf-op Neg 1 2>loaded | cat >/dev/null
    grep -q 'calling init:.*libopenblas' loaded
    run -1 grep -E 'calling init:.*(libevent|liblmdb|libcrypto|libssl|libtf-jobs)' loaded
}
