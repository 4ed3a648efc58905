# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: workers of one graph. The test kills those in the array pids
# when it ends.

# among WORKERS OPTION...: each runs parts.tfg with the options and those in FEEDn; its output is in
# wN.txt, if none fails. The status is that of the first, by number, that fails by itself, else 69:
# another one had failed before. Which one hears of a failure first is chance.
among() {
    local i n=$1 code=0 status feed workers=()
    shift
    for ((i = 0; i < n; i++)); do
        feed="FEED$i"
        # shellcheck disable=SC2086  # options
        tf-exec --task "worker:$i" -g parts.tfg "$@" ${!feed} >"w$i.rec" 2>"w$i.err" 3>&- &
        workers[i]=$!
        pids+=($!)
    done
    for ((i = 0; i < n; i++)); do
        status=0
        wait "${workers[i]}" || status=$?
        ((code && (code != 69 || status == 0))) || code=$status
    done
    for ((i = 0; i < n; i++)); do
        cat "w$i.err"
        ((code)) || tf-show --json "w$i.rec" >"w$i.txt"
    done
    return $code
}
