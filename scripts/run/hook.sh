#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What tf-supervise runs between the phases of a job: hook.sh restart|stop|end|over JOB. It is told
# JOB_TASK, JOB_ENDED, JOB_STEP, JOB_VALUES, JOB_WHY and JOB_SAVED, docs/supervise.md.
# shellcheck disable=SC2154  # of run.options
set -u
job=$2
# shellcheck source=/dev/null
. "$job/run.options"
# shellcheck source=scripts/run/store.sh
. "${0%/*}/store.sh"

# Tasks that start again listen where they were told to, or where the system lets them now: a port
# that it chose before may be somebody else's.
forget_ports() {
    (
        umask 077
        flock 5 # others may be publishing theirs
        awk -v again=" $* " '
            NR == FNR { given[$2] = $3; next }
            $1 == "task" && index(again, " " $2 " ") { $3 = given[$2] }
            { print }' "$job/run.cluster" "$job/cluster" >"$job/cluster.new" &&
            mv "$job/cluster.new" "$job/cluster"
    ) 5<"$job"
}

# A lost shard, or any loss where workers update, takes everything back to the newest checkpoint.
say_where() {
    newest=$(newest_step "$save")
    if [ -n "$newest" ]; then
        repeat=$((JOB_STEP - newest))
        [ "$repeat" -ge 0 ] || repeat=0
        printf '%s\n' "restored from ${save%/}@$newest, $repeat steps to repeat"
    else
        echo "nothing was saved: all $JOB_STEP steps to repeat"
    fi
    echo "step ${newest:-0}"
}

# Of a worker that ended by itself: shards that lost each other within an update have half of it in
# their variables, and the worker's next incarnations would fail, too.
is_broken() {
    [ -n "$keepers" ] || return
    case $JOB_ENDED in exit*) ;; *) return 1 ;; esac
    tf-ps status --job "$job" --timeout 1s 2>/dev/null | grep -q ' failed='
}

# As each line begins that is about a job (base/time.h).
stamp() {
    [ -z "${TF_LOG_TIMES-}" ] || date -u '+%Y-%m-%dT%H:%M:%S.%3NZ '
}

save_now() { # OPTION...
    tf-ps save "$save" "$@" --job "$job" --timeout "$timeout"
}

# The last one: what it failed with is what the job ends with.
save_last() {
    save_now && return
    code=$?
    newest=$(newest_step "$save")
    lost='nothing was saved'
    [ -z "$newest" ] || lost="what came after ${save%/}@$newest is lost"
    printf '%stf-run: the last checkpoint failed; %s\n' "$(stamp)" "$lost" >&2
    exit "$code"
}

# How far the shards are.
shards_step() {
    tf-ps status --job "$job" --timeout 5s 2>/dev/null |
        sed -n 's/.* step=\([0-9]*\) .*/step \1/p' | sort -k 2n | tail -1
}

# How far the job came, what was fetched last, and what is there of it.
say_end() {
    line="tf-run: ended after step $JOB_STEP${JOB_VALUES:+, $JOB_VALUES}"
    newest=$(newest_step "$save")
    if [ -z "$save" ]; then
        line="$line; nothing is kept, as there was no --save"
    elif [ -z "$newest" ]; then
        line="$line; nothing was saved to $save"
    else
        line="$line; ${save%/}@$newest is kept"
        best=
        [ -z "$save_best" ] ||
            best=$(tf-ckpt show "${save%/}@best" 2>/dev/null | sed -n 's/^checkpoint *//p')
        [ -z "$best" ] || line="$line, and the best, $best"
    fi
    printf '%s%s\n' "$(stamp)" "$line"
}

# Of lines TASK PID RESTARTS ENDED, and of counters the STEPS, COUNTED and LATE: WORKER CLOCK BEHIND
# WAITED PUSHED LATE DROPPED DUPLICATE SEEN
print_table() {
    [ -e "$job/counters" ] || : >"$job/counters"
    awk -v size="$replica_tasks" '
        function replica(task) { # as the clock calls it; of a task that serves one: none
            if (task !~ /^worker:/) return task
            sub(/^worker:/, "", task)
            return task % size ? "" : "worker:" task / size
        }
        function row(task, pid, steps, counted, late, restarts, how) {
            printf "%-10s %-7s %-6s %-8s %-5s %-9s %s\n",
                task, pid, steps, counted, late, restarts, how
        }
        BEGIN { row("TASK", "PID", "STEPS", "COUNTED", "LATE", "RESTARTS", "ENDED") }
        FILENAME != "-" {
            if (FNR == 1) for (i = 1; i <= NF; i++) at[$i] = i
            steps[$1] = $at["PUSHED"]; counted[$1] = $at["CLOCK"]; late[$1] = $at["LATE"]
            next
        }
        {
            how = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ /, "", how)
            who = replica($1)
            if (who in steps) row($1, $2, steps[who], counted[who], late[who], $3, how)
            else row($1, $2, "-", "-", "-", $3, how)
        }' "$job/counters" -
}

case $1 in
restart)
    if [ "$JOB_TASK" = all ]; then
        # shellcheck disable=SC2086
        forget_ports $tasks
        say_where
    else
        ! is_broken || exit 1 # all are to be started again
        forget_ports "$JOB_TASK"
    fi
    ;;
# What workers do when others have left is no round of all, and nobody is to go on from it.
stop) save_now --last ;;
end)
    tf-ps stats --by worker --job "$job" --timeout 5s >"$job/counters" 2>/dev/null
    shards_step
    [ -z "$save" ] || [ -n "$JOB_SAVED" ] || [ "$JOB_WHY" = FAIL ] || save_last
    ;;
over)
    [ -n "$quiet" ] || { print_table && say_end; }
    rm -f "$job/counters" "$job/run.options" "$job/run.cluster"
    ;;
esac
