# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: shards of the cluster file c, in the background, and workers
# that run p.tfg. The test sets pids=() before, and calls kill_pids in the end.

serve() { # TASK: until it is ready
    tf-ps serve -c c --task "$1" 2>"$1.err" 3>&- &
    pids+=($!)
    soon 10 grep -q "$1: ready on" "$1.err" || { cat "$1.err"; return 1; }
}

work() { # N OPTION...
    local n=$1
    shift
    timeout 60 tf-exec -c c --task "worker:$n" -g p.tfg "$@"
}

stop() { # all that serve
    local pid
    for pid in "${pids[@]}"; do kill "$pid" && wait "$pid"; done
    pids=()
}
