# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What tf-run and its hooks need to know of a store of checkpoints.

# newest_step DIR/: prints the step of the newest checkpoint there, nothing if there is none. Fails
# if that cannot be found out: to start from scratch then would be a guess.
newest_step() {
    [ -n "$1" ] && [ -e "$1/data.mdb" ] || return 0
    list=$(tf-ckpt list "$1") || return
    printf '%s\n' "$list" | awk 'NR > 1 { step = $1 } END { print step }'
}
