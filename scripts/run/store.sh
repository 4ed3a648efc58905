# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What tf-run and its hooks ask a store of checkpoints.

# newest_step DIR/: of the newest checkpoint there; nothing where there is none
newest_step() {
    [ -n "$1" ] || return
    tf-ckpt list "$1" 2>/dev/null | awk 'NR > 1 { step = $1 } END { print step }'
}
