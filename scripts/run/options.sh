# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154
#
# The command line of tf-run, which a program parses as for every tool: `options` beside this file.

# Prints words as one text, which eval turns into the same words.
quote() {
    for word in "$@"; do
        case $word in
        *\'*) printf "'%s' " "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")" ;;
        *) printf "'%s' " "$word" ;;
        esac
    done
}

# Sets opt_save_every for --save-every and so on, wants_shards by the mode, verb, graph_file, and
# the feed command.
parse_options() {
    assignments=$("$lib/options" "$@" 3>&1 >/dev/null) || exit
    [ -n "$assignments" ] || exec "$lib/options" "$@" 3>&- # --help, status and the like
    eval "$assignments" # also sets "$@" to the words of the feed command
    feed=$(quote "$@") feed_program=${1-}
}
