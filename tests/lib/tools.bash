# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What test files share; load ../lib/tools

# Sets root, and puts the built tools on PATH. With TEST_PLACE, such as TEST:0, that device replaces
# the CPU on which a test places nodes.
use_tools() {
    local built
    root=$(realpath "$BATS_TEST_DIRNAME/../..")
    built=$(realpath -m "$root/${BUILD:-build}")
    PATH=$built/bin:$PATH
    if [ -n "${TEST_PLACE-}" ]; then
        PATH=$root/tests/lib/device:$PATH
        export TF_DEVICE_PATH=$built/tests/lib
    fi
    export root PATH
}

# places_on_cpus WHY: the test is skipped where TEST_PLACE says otherwise
places_on_cpus() {
    [ -z "${TEST_PLACE-}" ] || skip "$1"
}

# has_terminal: the test is skipped where no pseudo-terminal can be opened
has_terminal() {
    script -qec true /dev/null >/dev/null 2>&1 </dev/null || skip "no pseudo-terminal here"
}

# soon SECONDS COMMAND...: waits until it succeeds, and says so if it never does
soon() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "never: $*"
            return 1
        fi
        sleep 0.05
    done
}

# wait_each PID...: all end well; wait of several has the status of the last alone
wait_each() {
    local pid
    for pid in "$@"; do wait "$pid" || return; done
}

# finds [OPTION...] PATTERN: grep -q that reads its input to the end. If a pipe fails with any of
# its parts, a writer that grep -q left early would fail the test by chance.
finds() {
    [ "$(grep -c "$@")" -gt 0 ]
}

# has_reached STORE STEP: it has a checkpoint as new as that; the step's own may be forgotten by now
has_reached() {
    [ "$(tf-ckpt list --json "$1" | tail -n 1 | jq .step)" -ge "$2" ]
}

# kill_pids PID...: also kills stopped ones
kill_pids() {
    local pid
    for pid in "$@"; do kill -9 "$pid" 2>/dev/null || true; done
}

# kill_job DIR: the processes of a job
kill_job() {
    local file
    for file in "$1"/*.pid; do
        [ ! -s "$file" ] || kill_pids "$(cat "$file")"
    done
}

# end_pids PID...: asks them to end. A timeout hands TERM on, but not KILL.
end_pids() {
    local pid
    for pid in "$@"; do
        kill "$pid" 2>/dev/null || true
        kill -CONT "$pid" 2>/dev/null || true
    done
}

# The instruction sets that kernels are built for.
isas() {
    local module
    for module in "$root"/build/lib/tf-tools/cpu-*.so; do
        module=${module##*/cpu-}
        printf '%s ' "${module%.so}"
    done
}
