# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# What is remembered of each task, and the table at the end.

remember() {
    eval "$1_$(printf '%s' "$2" | tr : _)=\$3"
}

recall() {
    eval "printf '%s' \"\${$1_$(printf '%s' "$2" | tr : _):-$3}\""
}

set_ended() {
    remember ended "$1" "$2"
}

set_silent() {
    remember silent "$1" "$2"
}

get_silent() {
    recall silent "$1" ''
}

count_restart() {
    remember restarts_of "$1" $(($(recall restarts_of "$1" 0) + 1))
}

# What the shards have at the end: when the data has ended, or when a signal came.
save_now() {
    setsid -w tf-ps save "$opt_save" --job "$job" --timeout "$opt_timeout"
    code=$?
    [ "$code" != 0 ] || saved=1
    [ "$code" = 0 ] || [ "$result" != 0 ] || result=$code
}

shards_live() {
    for shard in $shards; do
        [ -n "$(recall alive "$shard" '')" ] || return
    done
    [ -n "$shards" ]
}

# Shards do that themselves.
forget_old() {
    [ -z "$shards" ] && [ -e "$opt_save/data.mdb" ] || return
    tf-ckpt forget "$opt_save" --keep-last "$opt_keep" --lock-wait 60s -q &&
        tf-ckpt prune "$opt_save" --lock-wait 60s -q
}

finish() {
    counters=$(! shards_live || tf-ps stats --by worker --job "$job" --timeout 5s 2>/dev/null)
    [ -z "$opt_save" ] || [ -n "$saved" ] || [ "$stopping" = FAIL ] || ! shards_live || save_now
    [ -n "$stopping" ] || stop_with END "$result"
    # shellcheck disable=SC2086
    signal_tasks TERM $shards
    while [ "$running" -gt 0 ]; do
        hear
    done
    kill "$watch" 2>/dev/null
    wait "$watch" 2>/dev/null
    [ -z "$opt_keep" ] || forget_old
    [ -n "$quiet" ] || print_table >&2
    exec 9>&-
    end_job
    exit "$result"
}

print_table() {
    printf 'TASK PID STEPS COUNTED LATE RESTARTS ENDED\n' | table_row
    for task in $tasks; do
        printf '%s %s %s %s %s\n' "$task" "$(recall pid "$task" -)" "$(counters_of "$task")" \
            "$(recall restarts_of "$task" 0)" "$(recall ended "$task" '?')" | table_row
    done
}

# STEPS, COUNTED and LATE: of WORKER CLOCK BEHIND WAITED PUSHED LATE DROPPED DUPLICATE SEEN
counters_of() {
    printf '%s\n' "$counters" | awk -v task="$1" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == task { print $at["PUSHED"], $at["CLOCK"], $at["LATE"]; found = 1 }
        END { if (!found) print "- - -" }'
}

table_row() {
    while read -r task pid steps counted late restarts how; do
        printf '%-10s %-7s %-6s %-8s %-5s %-9s %s\n' \
            "$task" "$pid" "$steps" "$counted" "$late" "$restarts" "$how"
    done
}
