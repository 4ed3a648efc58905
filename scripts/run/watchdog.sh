#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# watchdog.sh PID PROGRAM: tf-run waits for each of its parts, and until it executes tf-supervise
# nobody else notices a part that was stopped by a signal. Until PID ends, or is another program,
# this checks once a second. A stopped descendant of PID is reported after 5 s; after 10 s it is
# killed, and PID gets USR2. If PID itself was stopped, as by a terminal, nothing is done.
set -u
owner=$1

# Sets name, state and parent, as in proc_pid_stat(5). The name may have any character.
read_stat() { # PID
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
    name=${line#*\(} name=${name%\)*}
    line=${line##*\) }
    state=${line%% *} line=${line#* }
    parent=${line%% *}
}

descends() { # PID
    read_stat "$1" || return
    while [ "$parent" != "$owner" ] && [ "$parent" -gt 1 ]; do
        read_stat "$parent" || return
    done
    [ "$parent" = "$owner" ]
}

# Sets stopped to the pid of a stopped descendant; empty: there is none.
find_stopped() {
    stopped=
    ! read_stat "$owner" || [ "$state" != T ] || return 0
    for folder in /proc/[1-9]*; do
        if read_stat "${folder#/proc/}" && [ "$state" = T ] && descends "${folder#/proc/}"; then
            stopped=${folder#/proc/}
            return
        fi
    done
}

say() { # TEXT
    read_stat "$stopped" && printf 'tf-run: %s (pid %s)%s\n' "$name" "$stopped" "$1" >&2
}

# After USR2, PID may start another part before it ends; if that is stopped it is killed at once.
look() {
    last=$stopped
    find_stopped
    [ -n "$stopped" ] && [ "$stopped" = "$last" ] || looks=0
    looks=$((looks + 1))
    [ -n "$stopped" ] || return
    if [ -n "$told" ] || [ "$looks" -gt 10 ]; then
        say ' stands still, stopped by a signal: killed'
        told=1
        kill -USR2 "$owner"
        kill -KILL "$stopped"
    elif [ "$looks" -eq 6 ]; then
        say ', a part of this, stands still, 5 s left'
    fi
}

stopped='' looks=0 told='' ticks=0
# End with PID: a reader of tf-run's output, up to its end, would wait for this process, too.
while sleep 0.2 2>/dev/null && read_stat "$owner" && [ "$name" = "$2" ] && [ "$state" != Z ]; do
    ticks=$((ticks + 1))
    [ $((ticks % 5)) -ne 0 ] || look
done
