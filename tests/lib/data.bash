# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats of tf-data.

# Prints the elements of x, one batch a line, as JSON.
x() {
    tf-data "$@" | tf-show --json | jq -c .x
}

# Asserts that tf-data fails with the status, the line, and nothing else on stderr.
fails() { # STATUS LINE ARGUMENT...
    local status=$1 line=$2
    shift 2
    run --separate-stderr -"$status" tf-data "$@" -o /dev/null
    [ "$stderr" = "tf-data: $line" ] || { echo "$stderr" >&2 && false; }
}
