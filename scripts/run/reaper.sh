# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
#
# Before tf-run executes tf-supervise: starts the reaper, which locks the job's directory and tidies
# up after this process, whatever it then runs; and handles signals until then.

hold_job() {
    [ -z "$opt_cluster" ] || [ -r "$opt_cluster" ] || die 66 "$opt_cluster: cannot be read"
    [ ! -d "$opt_cluster" ] || die 65 "$opt_cluster: is a directory"
    job=$opt_job
    [ -z "$job" ] || mkdir -p "$job" || exit 74
    if [ -n "$opt_dry_run" ]; then
        [ -n "$job" ] || job=$(mktemp -d "${TMPDIR:-/tmp}/tf-run.XXXXXX") || exit 71
        return
    fi
    trap 'leave 130' INT
    trap 'leave 143' TERM
    trap 'leave 129' HUP
    if [ -n "$job" ]; then
        cleanup='exec tf-ps end --job "$1"'
        set -- --job "$job" --cleanup "$cleanup"
    else
        cleanup='exec rm -rf -- "$1"'
        set -- --job "${TMPDIR:-/tmp}/tf-run.XXXXXX" --temporary
    fi
    held=$(tf-supervise --reaper $$ --detach "$@" 2>&1) || {
        code=$? held=${held#*: }
        die "$code" "${held:-the reaper of the job was killed}"
    }
    reaper=${held%% *} job=${held#* }
    TF_SUPERVISED=$$.run # marks our processes for the reaper
    export TF_SUPERVISED
}

# Ends tf-run and what it has started so far. A second signal ends the wait.
leave() {
    trap 'exit "$1"' INT TERM HUP
    trap '' USR2
    unset TF_SUPERVISED
    [ -z "$reaper" ] || rm -f "$job/run.cluster" "$job/run.options" "$job/cluster.new" "$job/said"
    [ -z "$reaper" ] || kill -USR1 "$reaper" 2>/dev/null
    looks=0
    while [ -n "$reaper" ] && [ -e "/proc/$reaper/fd/0" ]; do
        sleep 0.05
        looks=$((looks + 1))
        [ "$looks" -gt 600 ] || continue # 30 s
        printf 'tf-run: its reaper (pid %s) does not end: killed; %s stays\n' "$reaper" "$job" >&2
        kill -KILL "$reaper"
        break
    done
    exit "$1"
}
