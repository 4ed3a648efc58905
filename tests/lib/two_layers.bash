# SPDX-License-Identifier: Apache-2.0
# What tests/e2e/two_layers.lua is fed.
# shellcheck shell=bash

# feeds WORKERS ROWS: fK.csv, and fK.rec in steps of two rows of $type (float64)
feeds() {
    local k
    for ((k = 0; k < $1; k++)); do
        awk -v n="$2" -v k="$k" 'BEGIN { for (i = 0; i < n; i++) for (j = 0; j < 9; j++)
            printf "%.3f%s", sin(i * 1.7 + j * j + k * 5), j < 8 ? "," : "\n" }' >"f$k.csv"
        tf-data csv "f$k.csv" "x=1-6:${type:-float64}" "y=7-9:${type:-float64}" --batch 2 >"f$k.rec"
    done
}
