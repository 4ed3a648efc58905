#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The variables that tf-exec restores from a checkpoint of another graph.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >old.txt <<'TEXT'
entry init = ^set_a, ^set_b, ^set_c
a = Variable() {dtype=float32, shape=[2]}
b = Variable() {dtype=float32, shape=[3]}
c = Variable() {dtype=float32, shape=[1]}
one = Const() {dtype=float32, value=[1,1]}
two = Const() {dtype=float32, value=[2,2,2]}
three = Const() {dtype=float32, value=[3]}
set_a = Assign(a, one)
set_b = Assign(b, two)
set_c = Assign(c, three)
TEXT
    # a is in it, b has another shape, d is new, and c is called e/c
    cat >new.txt <<'TEXT'
entry init = ^set_a, ^set_b, ^set_d, ^set_c
a = Variable() {dtype=float32, shape=[2]}
b = Variable() {dtype=float32, shape=[4]}
d = Variable() {dtype=float32, shape=[1]}
ec = Variable() {dtype=float32, shape=[1], shared_name="e/c"}
seven = Const() {dtype=float32, value=[7,7]}
eight = Const() {dtype=float32, value=[8,8,8,8]}
nine = Const() {dtype=float32, value=[9]}
set_a = Assign(a, seven)
set_b = Assign(b, eight)
set_d = Assign(d, nine)
set_c = Assign(ec, nine)
TEXT
    tf-graph --text old.txt >old.tfg
    tf-graph --text new.txt >new.tfg
    tf-exec -g old.tfg --run init --save old.ckpt
    tf-exec -g old.tfg --run init --save old/
}

values() { # OPTION...
    run --separate-stderr tf-exec -g new.tfg --fetch a,b,d,ec "$@" -o out.rec
    [ "$status" -eq 0 ] || return
    tf-show out.rec | xargs
}

@test "--restore-partial takes what fits, and lists what does not" {
    for from in old old@1 old.ckpt; do
        [[ "$(values --restore $from --restore-partial)" == \
            "step 1 a 1 1 b 8 8 8 8 d 9 ec 9" ]]
        values --restore $from --restore-partial
        name=$from
        [ "$name" != old ] || name=old@1
        [ "$stderr" = "tf-exec: $name: not restored: variable 'b' is float32[3] there, \
but float32[4] in the graph
tf-exec: $name: not restored: variable 'd' is not in it
tf-exec: $name: not restored: variable 'e/c' is not in it
tf-exec: $name: not restored: 'c' is not in the graph" ]
    done
    [[ "$(values --restore old --restore-partial --restore-as e/c=c)" == *"ec 3" ]]
    run --separate-stderr tf-exec -g new.tfg --fetch a --restore old
    [ "$status" -eq 65 ]
    run --separate-stderr tf-exec -g new.tfg --fetch a --restore-partial
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-exec: --restore-partial is for --restore, which is not given" ]
    run --separate-stderr tf-exec -g new.tfg -c c --task worker:0 --restore old --restore-partial
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-exec: --restore-partial and --task do not go together" ]
    sed 's/\[2\]/[5]/; s/\[3\]/[5]/; s/\[1\]/[5]/; s/value=.*}/value=[5,5,5,5,5]}/' old.txt |
        tf-graph --text - >other.tfg
    run --separate-stderr tf-exec -g other.tfg --fetch a --restore old --restore-partial
    [ "$status" -eq 65 ]
    [[ $stderr == *"tf-exec: old@1: none of its variables fits the graph" ]]
}

@test "--restore-as that is for no variable is an error" {
    run --separate-stderr tf-exec -g old.tfg --fetch a --restore old --restore-as x=c
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-exec: --restore-as x=c: no variable of the graph is meant" ]
    run --separate-stderr tf-exec -g old.tfg --fetch a --restore old --restore-as a=a,a=c
    [ "$stderr" = "tf-exec: --restore-as a=c: no variable of the graph is meant" ]
    run --separate-stderr tf-exec -g old.tfg --fetch a --restore old --restore-as first/=f/
    [ "$status" -eq 64 ]
    tf-exec -g old.tfg --fetch a --restore old --restore-as a=a >/dev/null
}

@test "--restore reads files of other programs, also in part" {
    /usr/bin/python3 -c 'import numpy as np
values = dict(a=np.float32([4, 5]), b=np.float32([1, 2, 3]), c=np.float32([6]))
np.savez("of.npz", **values)
np.savez_compressed("lacks.npz", a=values["a"], b=values["b"])' || skip "no numpy"
    tf-ckpt import of.npz old --replace
    tf-ckpt export old of.safetensors
    tf-ckpt export old of.index
    for from in of.npz of.safetensors of.index; do
        [ "$(tf-exec -g old.tfg --fetch a,b,c --restore $from | tf-show | xargs)" = \
            "step 1 a 4 5 b 1 2 3 c 6" ]
        tf-ckpt diff $from old
        [[ "$(values --restore $from --restore-partial)" == "step 1 a 4 5 b 8 8 8 8 d 9 ec 9" ]]
        run --separate-stderr -66 tf-exec -g old.tfg --fetch a --restore no-$from
        [[ $stderr = *"no-$from"*": No such file or directory" ]]
        cp $from cut-$from
        truncate -s 50 cut-$from
        run --separate-stderr -65 tf-exec -g old.tfg --fetch a --restore cut-$from
        [[ $stderr = "tf-exec: cut-$from: "* && ${#stderr_lines[@]} -eq 1 ]]
    done
    run --separate-stderr -65 tf-exec -g old.tfg --fetch a --restore lacks.npz
    [ "$stderr" = "tf-exec: lacks.npz: variable 'c' is not in it" ]
    run --separate-stderr -65 tf-exec -g new.tfg --fetch a --restore of.npz
    [[ $stderr = "tf-exec: of.npz: variable 'b' is float32[3] there, but "* ]]
}
