#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Completion of command lines: bash offers what the tools' own tables contain, and zsh the same.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    # shellcheck source=scripts/completion/tf-tools
    . "$root/scripts/completion/tf-tools"
}

# The words as bash splits them: three for x=1; the last one is incomplete.
offered() { # WORD...
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _tf_bash
    printf '%s\n' "${COMPREPLY[@]}"
}

offers() { # EXPECTED WORD...
    local expected=$1 got
    shift
    got=$(offered "$@" | sort | paste -sd' ')
    [ "$got" = "$expected" ] || { echo "$*: '$got', not '$expected'" && false; }
}

@test "all options of each verb are offered, and no others" {
    local file tool verb
    for file in "$root/${BUILD:-build}"/bin/tf-*; do
        tool=${file##*/}
        complete -p "$tool"
        "$tool" --help --json >table.json
        # before a verb is typed: the options of all verbs, unless one verb has no name
        jq -r '(.verbs | any(.name == "")) as $bare | .options[] |
            select(($bare | not) or any(.verbs[]; . == "")) | "--" + .name' table.json >expected
        _tf_candidates -- "$tool" | diff expected -
        while IFS= read -r verb; do
            jq -r --arg verb "$verb" '.options[] | select(any(.verbs[]; . == $verb)) |
                "--" + .name' table.json >expected
            _tf_candidates -- "$tool" "$verb" | diff expected -
        done < <(jq -r '.verbs[].name | select(. != "")' table.json)
    done
}

@test "verbs, ops and words of an option" {
    offers 'list' tf-ckpt li
    offers 'csv cut' tf-data c
    offers 'serve' tf-exec ser
    offers 'part place plot ps' tf p
    offers 'save serve stats status stop' tf ps s
    offers '--keep-last' tf ckpt forget --keep-l
    offers 'MatMul' tf-op show MatM
    offers 'test train' tf-data csv f x = 1 --part t
    offers '--keep-last' tf-ckpt forget --keep-l
    offers '' tf-ckpt list --keep-l
    offers '--fetch --fetch-every --fetch-limit' tf-exec --job serve --fetch # a job's name
    offers '' tf-exec serve --fetch
}

@test "files, also behind an equals sign; of a name with blanks, too" {
    touch m.tfg 'my net.tfg'
    offers 'm.tfg my net.tfg' tf-exec -g m
    offers 'm.tfg my net.tfg' tf-exec --graph = m
    offers 'm.tfg my net.tfg' tf-opt m
    offers 'my net.tfg' tf-opt 'my\ n'
    offers 'my net.tfg' tf-opt '"my n'
    offers 'my net.tfg' tf-data idx x = "'my n"
    offers '' tf-ckpt m
    offers 'm.tfg my net.tfg' tf-ckpt '>' m
}

@test "entries and tensors of the graph that the line names" {
    tf-graph -o net.tfg "$root/examples/digits.lua"
    cp net.tfg 'my net.tfg'
    offers 'eval predict train' tf-exec -g net.tfg --run ''
    offers 'eval' tf-exec --graph = net.tfg --run = ev
    offers 'eval' tf-exec -g 'my\ net.tfg' --run ev
    offers 'eval' tf-exec -g "'my net.tfg'" --run ev
    HOME=$PWD offers 'eval' tf-exec -g \~/'my\ net.tfg' --run ev
    offers 'logits loss loss/check loss/reduction_indices' tf-exec -g net.tfg --fetch lo
    offers 'loss,class loss,class/dimension' tf-exec -g net.tfg --fetch loss,cl
    offers '' tf-exec -g net.tfg --run-name lo
}

@test "columns of the table that the line names, of its first lines alone" {
    local patients=$root/examples/data/patients.csv.gz
    offers 'age' tf-data csv "$patients" x = a
    offers 'age,bmi' tf-data csv "$patients" x = age,b
    offers 'risk' tf-data csv "$patients" --stratify r
    { echo 'name,size,shoe size' && seq -f '%g,1,2' 40; } >people.txt
    offers 'shoe\ size size' tf-data csv people.txt x = s
    offers 'shoe size' tf-data csv people.txt x = '"sh'
    echo 'x,1,2,3,4' >>people.txt
    run -65 tf-data describe people.txt
    offers 'size' tf-data csv people.txt x = si
    echo '{"name": "a", "size": {"foot": 38}}' >people.jsonl
    offers 'size.foot' tf-data jsonl people.jsonl y = name x = s
}

@test "where there is nothing to ask, nothing is offered and nothing said" {
    local bad
    tf-graph -o net.tfg "$root/examples/digits.lua"
    head -c 20000 net.tfg >cut.tfg
    touch empty.tfg empty.csv
    echo no >no.csv.gz
    mkfifo pipe.tfg pipe.csv # one that waited for a writer would never end
    {
        for bad in missing cut empty pipe; do
            offers '' tf-exec -g $bad.tfg --run ''
            offers '' tf-exec -g $bad.tfg --fetch ''
        done
        offers '' tf-exec -g - --run ''
        offers '' tf-exec --run ''
        for bad in missing.csv empty.csv no.csv.gz pipe.csv -; do
            offers '' tf-data csv $bad x = ''
        done
        offers '' tf-none --
        offers '' /none/tf-exec -g net.tfg --run ''
        PATH=/usr/bin:/bin offers '' tf-exec -g net.tfg --run ''
        offers '' tf-exec -g net.tfg --run '"none'
    } 2>said
    diff said /dev/null
}

@test "zsh is offered the same" {
    command -v zsh >/dev/null || skip "needs zsh"
    tf-graph -o net.tfg "$root/examples/digits.lua"
    local line words patients=$root/examples/data/patients.csv.gz
    for line in '-- tf-exec' '-- tf-ckpt forget' 'x tf-data' 'e tf-exec -g net.tfg --run' \
        'loss,a tf-exec -g net.tfg --fetch' "x=age,b tf-data csv $patients"; do
        read -ra words <<<"$line"
        _tf_candidates "${words[@]}" >of-bash
        zsh -f -c '. "$0" && _tf_candidates "$@"' "$root/scripts/completion/tf-tools" \
            "${words[@]}" >of-zsh
        [ -s of-bash ]
        diff of-bash of-zsh
    done
}
