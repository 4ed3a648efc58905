#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The day of docs/patients.md, typed as it stands there, compared with scikit-learn's pipeline on
# the same split (tests/data/patients/pipeline.py).
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cp -r "$root/examples" .
    awk '/^```/ { typed = $0 == "```sh"; next } typed' "$root/docs/patients.md" >typed
}

@test "from a raw file to answers in eighteen lines, as good as scikit-learn's" {
    # a continued line counts once; one line goes to the data, and another makes new patients
    awk '/[|\\]$/ { next } { n++ } END { exit n - 2 > 18 }' typed
    bash -e typed >out 2>err
    cat out err
    finds -E '^tf-exec: risk.tfg: step [0-9]+, epoch [0-9]+, after [0-9.]+ s; stopped, as eval' err
    finds -x 'tf-exec: tf-exec -g risk.tfg --run predict --restore ck@best' err
    local accuracy auc
    read -r accuracy auc < <(awk '/^LogisticRegression/ { print $2, $3 }' \
        "$root/tests/data/patients/expected.txt")
    # 225 rows: two standard errors are 0.05
    awk -v accuracy="$accuracy" -v auc="$auc" '/^step 4  / {
        for (i = 1; i < NF; i++) has[$i] = $(i + 1)
        found = has["accuracy"] >= accuracy - 0.05 && has["auc"] >= auc - 0.03 }
        END { exit !found }' out
    paste -sd' ' out | finds -E \
        $' label\tconfusion.high.\tconfusion.low. high\t[0-9]+\t[0-9]+ low\t[0-9]+\t[0-9]+ '
    finds -x 'id,risk,p.high.,p.low.' out
    [ "$(grep -Ec '^P100[012],(high|low),0?\.?[0-9e-]+,0?\.?[0-9e-]+$' out)" -eq 3 ]
}
