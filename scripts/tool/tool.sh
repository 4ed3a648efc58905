# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
#
# The start of a tool that is a script, with $tool its name: a program (bin/NAME-options.c) parses
# the command line as for every tool, and sets opt_NAME for each option and the arguments "$@".
# The folder $dir is for temporary files; it is removed at the script's end, however that comes, and
# then the script's own `tidy` runs.
set -u
mask=$(umask)
umask 077
here=$(cd "$(dirname "$0")" && pwd) || exit 71
lib=$here/../lib/tf-tools/${tool#tf-}
PATH=$here:$PATH

# die CODE TEXT: ends with a message of one line, whatever characters a file's name has
die() {
    code=$1
    shift
    printf '%s: %s\n' "$tool" "$(printf %s "$*" | LC_ALL=C tr '\001-\037\177' ' ')" >&2
    exit "$code"
}

tidy() { :; }
sleeper=''
clean() {
    rm -rf -- "$dir"
    [ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null
    tidy
}
leave() { # SIGNAL
    trap - EXIT "$1"
    clean
    kill -s "$1" $$
}

# Sleeps; a signal takes effect at once.
pause() { # SECONDS
    sleep "$1" &
    sleeper=$!
    wait "$sleeper"
    sleeper=''
}

put() { # FILE: to stdout
    [ -z "$is_closed" ] || die 74 "stdout: Bad file descriptor"
    cat "$1" 2>"$dir/said" && return
    [ $? -ne 141 ] || leave PIPE
    die 74 "stdout: $(sed 's/.*: //; q' "$dir/said")"
}

assignments=$("$lib/options" "$@" 3>&1 >/dev/null) || exit
[ -n "$assignments" ] || exec "$lib/options" "$@" # --help and the like
eval "$assignments"
# A closed descriptor would be reused for the first file that is opened.
is_closed=''
[ -e /proc/$$/fd/0 ] || exec </dev/null
[ -e /proc/$$/fd/1 ] || { is_closed=1 && exec >/dev/null; }
[ -e /proc/$$/fd/2 ] || exec 2>/dev/null
dir=$(mktemp -d "${TMPDIR:-/tmp}/$tool.XXXXXX") || exit 73
trap clean EXIT
trap 'leave HUP' HUP
trap 'leave INT' INT
trap 'leave TERM' TERM
trap 'leave PIPE' PIPE
