#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# watchdog.sh PID PROGRAM: tf-run waits for each of its parts, and until it is tf-supervise nobody
# sees that one stands still, stopped by a signal. Until PID ends, or is another program, this looks
# every second. That a process which descends from PID was stopped is told after 5 s; after 10 s it
# is killed, and PID gets USR2. When PID was stopped itself, as by a terminal, nothing is done.
set -u
owner=$1

# Sets name, state and parent, as proc_pid_stat(5) has them. The name may have any character.
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

# Sets stopped, empty: none is.
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

# Who has been told may have a next part before it ends, and that is not waited for.
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
# Whoever reads what tf-run said to its end, before it asks how that ended, would wait for this.
while sleep 0.2 2>/dev/null && read_stat "$owner" && [ "$name" = "$2" ] && [ "$state" != Z ]; do
    ticks=$((ticks + 1))
    [ $((ticks % 5)) -ne 0 ] || look
done
