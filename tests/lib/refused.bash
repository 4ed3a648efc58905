# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154  # status and stderr are of run
#
# For tests in bats that load tools: commands, perhaps several in a pipe, that must fail.

# refused CODE PATTERN COMMAND...: with that exit status, and an stderr that matches
refused() {
    run --separate-stderr bash -c "${*:3}"
    printf '%s\n' "$status: $stderr"
    [ "$status" -eq "$1" ]
    # shellcheck disable=SC2053  # a pattern
    [[ $stderr == $2 ]]
}

# refused_with CODE MESSAGE COMMAND...: and with nothing else on stderr than this
refused_with() {
    run --separate-stderr bash -c "${*:3} >/dev/null"
    [ "$status" -eq "$1" ]
    [ "$stderr" = "$2" ]
}
