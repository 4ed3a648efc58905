#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What tf-supervise runs between the phases of a job: hook.sh restart|stop|end|over JOB. It reads
# JOB_TASK, JOB_ENDED, JOB_STEP, JOB_VALUES, JOB_WHY and JOB_SAVED (docs/supervise.md).
# shellcheck disable=SC2154  # of run.options
set -u
job=$2
# shellcheck source=/dev/null
. "$job/run.options"
# shellcheck source=scripts/run/store.sh
. "${0%/*}/store.sh"

# Restores the given addresses of tasks that start again: a port that the system chose for one
# before may now be in use by others.
forget_ports() {
    (
        umask 077
        flock 5 # other tasks may be writing their ports
        awk -v again=" $* " '
            NR == FNR { given[$2] = $3; next }
            $1 == "task" && index(again, " " $2 " ") { $3 = given[$2] }
            { print }' "$job/run.cluster" "$job/cluster" >"$job/cluster.new" &&
            mv "$job/cluster.new" "$job/cluster"
    ) 5<"$job"
}

# A lost shard, or any lost task if workers update, takes all back to the newest checkpoint.
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

# Returns whether shards failed, after a worker ended by itself. Shards that lost each other within
# an update have applied half of it, and the worker's next incarnations would fail, too.
is_broken() {
    [ -n "$keepers" ] || return
    case $JOB_ENDED in exit*) ;; *) return 1 ;; esac
    tf-ps status --job "$job" --timeout 1s 2>/dev/null | grep -q ' failed='
}

# Prints the time with which each line about a job begins (base/time.h).
stamp() {
    [ -z "${TF_LOG_TIMES-}" ] || date -u '+%Y-%m-%dT%H:%M:%S.%3NZ '
}

save_now() { # OPTION...
    tf-ps save "$save" "$@" --job "$job" --timeout "$timeout"
}

# Saves the last checkpoint; its failure becomes the status of the job, unless the job was ended
# before its variables had values: then there is nothing to lose.
save_last() {
    save_now && return
    code=$?
    newest=$(newest_step "$save")
    if [ "$code" = 75 ] && [ -z "$newest" ]; then
        case $(shards_step) in '' | 'step 0') return ;; esac
    fi
    lost='nothing was saved'
    [ -z "$newest" ] || lost="what came after ${save%/}@$newest is lost"
    printf '%stf-run: the last checkpoint failed; %s\n' "$(stamp)" "$lost" >&2
    exit "$code"
}

# Prints the step of the shards.
shards_step() {
    tf-ps status --job "$job" --timeout 5s 2>/dev/null |
        sed -n 's/.* step=\([0-9]*\) .*/step \1/p' | sort -k 2n | tail -1
}

# Prints how far the job came, its last fetched values, and which checkpoints are kept.
say_end() {
    newest=$(newest_step "$save")
    step=$JOB_STEP # of what workers fetch; 0: they fetch nothing
    [ "${newest:-0}" -le "$step" ] || step=$newest
    [ "$step" = 0 ] && step= || step=" after step $step"
    line="tf-run: ended$step${JOB_VALUES:+, $JOB_VALUES}"
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

# Prints a table of lines TASK PID RESTARTS ENDED, with STEPS, COUNTED and LATE from counters:
# WORKER CLOCK BEHIND WAITED PUSHED LATE DROPPED DUPLICATE SEEN
print_table() {
    [ -e "$job/counters" ] || : >"$job/counters"
    awk -v size="$replica_tasks" '
        function replica(task) { # its name for the clock; "" for a task that only serves
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
        ! is_broken || exit 1 # all must start again
        forget_ports "$JOB_TASK"
    fi
    ;;
# Save now: steps of the workers that are left are no round of all, and must not be resumed from.
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
