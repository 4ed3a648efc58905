# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# `tf-run logs`: prints the messages of a job's tasks, from JOB/TASK.err, with the task before each
# line.

of_file='function task_of(file) {
    sub(/.*\//, "", file); sub(/\.err$/, "", file); sub(/-/, ":", file); return file }'

# Sorts lines by the time with which those of the tools begin. Lines of a feed command stay behind
# the line before.
sorted_logs() { # FILE...
    awk "$of_file"'
        FNR == 1 { time = "" }
        /^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9:.]*Z / { time = $1 }
        { printf "%s\t%-10s %s\n", time, task_of(FILENAME), $0 }' "$@" |
        LC_ALL=C sort -s -t "$(printf '\t')" -k 1,1 | cut -f 2-
}

# Prints lines as they come, until the process ends. The header that tail prints before lines of
# another file becomes the first word of each, and the empty line before it is dropped; a single
# file has no header. (The shell reads a line as it comes; not every awk does.)
followed_logs() { # PID FILE...
    pid=$1 blank=''
    shift
    {
        [ $# -gt 1 ] || printf '==> %s <==\n' "$1"
        tail -n +1 -s 0.2 -f --pid="$pid" -- "$@" 2>/dev/null
    } | while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '==> '*'.err <==')
            line=${line##*/} line=${line%.err <==}
            task=${line%%-*}:${line#*-} blank=''
            continue
            ;;
        esac
        [ -z "$blank" ] || printf '%-10s\n' "$task"
        blank=1
        [ -z "$line" ] || {
            blank=''
            printf '%-10s %s\n' "$task" "$line"
        }
    done
}

show_logs() { # TASK, or an empty text
    asked=$1
    [ -d "$opt_job" ] || die 66 "job directory $opt_job: No such file or directory"
    folder=$opt_job
    case $folder in /*) ;; *) folder=./$folder ;; esac # awk would take a=b/c.err as an assignment
    set -- "$folder"/*-*.err
    [ -f "$1" ] || die 66 "job directory $opt_job: no task has a log there"
    log=$folder/$(printf '%s' "$asked" | tr : -).err
    if [ -n "$asked" ]; then
        [ -f "$log" ] ||
            die 66 "$asked: no task of $opt_job; it has $(printf '%s\n' "$@" | awk "$of_file"'
                { printf "%s%s", (NR > 1 ? ", " : ""), task_of($0) }')"
        set -- "$log"
    fi
    if [ -n "$opt_follow" ]; then
        state=$("$lib/options" status --json --job "$opt_job" 3>&-) || exit
        pid=${state#*:}
        case $state in
        *'"state":"over"'*) sorted_logs "$@" ;; # the pid may be another process's now
        *) followed_logs "${pid%%,*}" "$@" ;;
        esac
    else
        sorted_logs "$@"
    fi
}
