#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The run that a checkpoint belongs to: which checkpoints copies, imports and jobs replace.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
entry init = ^set
entry step = ^add
x = Placeholder() {dtype=float32, shape=[2]}
v = Variable() {dtype=float32, shape=[2]}
zero = Const() {dtype=float32, value=[0,0]}
set = Assign(v, zero)
add = AssignAdd(v, x)
TEXT
    tf-graph --text m.txt >m.tfg
}

# train STORE VALUE OPTION...: steps that add the value
train() {
    tf-exec -g m.tfg --run step --feed "x=[$2,1]" --save "$1/" "${@:3}"
}

# One line on stderr, which is or begins with the pattern.
refuses() { # STATUS PATTERN COMMAND...
    local wanted=$1 pattern=$2
    shift 2
    run --separate-stderr "$@"
    # shellcheck disable=SC2053  # a pattern
    [[ $status -eq $wanted && $stderr == $pattern && ${#stderr_lines[@]} -eq 1 ]] ||
        { echo "$*: $status, $stderr" && false; }
}

run_of() { # NAME
    tf-ckpt show --json "$1" | jq -r 'select(.run) | "\(.run) \(.run_name)"'
}

@test "copy and import replace no checkpoint of another run, or with other values" {
    train a 1 -n 1 --run-name digits
    for n in 2 3; do train a 1 -n $n --resume -q; done
    train b 2 -n 3
    [[ "$(run_of a)" =~ ^[0-9a-f]{32}\ digits$ ]]
    [ "$(run_of a@1)" = "$(run_of a)" ]
    tf-ckpt list a | finds " digits/[0-9a-f]*$"
    tf-ckpt show a | finds "^run  *digits/"
    refuses 78 "tf-ckpt: a@3: is there already with other values, of run digits/*; \
--replace replaces it" tf-ckpt copy b a
    tf-ckpt cat a v | tf-show | finds '3 3$'
    [ "$(tf-ckpt list --json a | wc -l)" -eq 3 ]
    # a refused checkpoint does not prevent others from being copied
    refuses 78 "tf-ckpt: b@3: is there already *" tf-ckpt copy a b
    [ "$(tf-ckpt list --json b | jq .step | xargs)" = "3 1 2" ]
    [ "$(run_of b@1)" = "$(run_of a)" ]
    tf-ckpt copy a@1 b # the same once more
    [ "$(tf-ckpt list --json b | jq .step | xargs)" = "3 1 2" ]
    tf-ckpt copy a@3 b --replace
    tf-ckpt diff a@3 b@3

    tf-ckpt export a@1 one.npz
    tf-ckpt export a@2 two.npz
    tf-ckpt import one.npz b --run-name mine
    [[ "$(run_of b@0)" == *" mine" ]]
    tf-ckpt import one.npz b # the same once more
    refuses 78 "tf-ckpt: b@0: is there already with other values, of run mine/*; \
--step N says which it is; --replace replaces it" tf-ckpt import two.npz b
    tf-ckpt import two.npz b --replace
    tf-ckpt diff a@2 b@0
    refuses 64 "tf-ckpt: --run-name: 1 to 100 bytes, fit to print and no blanks" \
        tf-ckpt import two.npz b --step 9 --run-name "a b"
}

@test "import finds the step in the file" {
    cat >g.txt <<'TEXT'
entry init = ^set
c = Const() {dtype=int64, value=1200}
global_step = Variable() {dtype=int64, shape=[]}
set = Assign(global_step, c)
TEXT
    tf-graph --text g.txt >g.tfg
    tf-exec -g g.tfg --run init --save 7.ckpt
    tf-ckpt init s
    tf-ckpt import 7.ckpt s # which says the steps of its run, 1
    tf-ckpt export s g.npz
    tf-ckpt import g.npz s
    train a 1 -n 2
    tf-ckpt export a model-42.index
    tf-ckpt import model-42.index s
    [ "$(tf-ckpt list --json s | jq .step | xargs)" = "1 1200 42" ]
}

@test "import of nothing says so" {
    tf-ckpt init s
    /usr/bin/python3 -c "import zipfile; zipfile.ZipFile('none.npz', 'w').close()"
    refuses 65 "tf-ckpt: none.npz: has no tensors: nothing to import" tf-ckpt import none.npz s
}

@test "a second job is refused its store, and goes on with --resume" {
    train s 1 -n 3 --save-every 1 --run-name first
    local before
    before=$(tf-ckpt list --json s | sha256sum)
    refuses 78 "tf-exec: s: has checkpoints of run first/*, the newest of step 3; \
--resume goes on from them, or another store is wanted" \
        train s 2 -n 7
    [ "$(tf-ckpt list --json s | sha256sum)" = "$before" ]
    train s 1 -n 5 --resume -q
    [ "$(run_of s@5)" = "$(run_of s@3)" ]
    train s 1 -n 6 --resume --run-name second -q
    [ "$(run_of s@6)" = "$(run_of s@3 | sed 's/first/second/')" ]
}

@test "of two jobs that begin with one store, one is refused when it saves" {
    mkfifo feeds
    tf-exec -g m.tfg --fetch x --feed 'x=[1,1]' -n 1 >one.rec
    tf-exec -g m.tfg --run step --feed feeds -n 1 --save s/ --run-name slow 4<>feeds 2>said 3>&- &
    soon 20 test -e s/data.mdb
    train s 2 -n 2 --run-name quick # both had begun with an empty store
    cat one.rec >feeds
    status=0
    wait $! || status=$?
    [ "$status" -eq 78 ]
    [[ $(cat said) == "tf-exec: s: has checkpoints of run quick/"* ]]
    [ "$(tf-ckpt list --json s | jq -r .run_name | xargs)" = quick ]
}

@test "a store that was made before runs were told apart is read, and gone on with" {
    tar xzf "$BATS_TEST_DIRNAME/../data/checkpoint/store-1.0.tgz" # steps 1 and 2
    [ "$(tf-ckpt list --json old | jq -c '[.step, .run, .run_name]' | xargs)" = "[1,,] [2,,]" ]
    [ "$(tf-ckpt list old | head -1 | xargs)" = "STEP SAVED TENSORS SIZE NEW" ]
    tf-ckpt verify old --data
    refuses 78 "tf-exec: old: has checkpoints of a run that is not known, the newest of step 2; *" \
        train old 2 -n 7
    train old 1 -n 3 --resume -q --run-name young
    [[ "$(run_of old@3)" == *" young" ]]
    [[ "$(tf-ckpt list old | awk '{print $1, $NF}' | xargs)" == "STEP RUN 1 - 2 - 3 young/"* ]]
    [ "$(tf-ckpt cat old v | tf-show)" = "v  float32[2]  3 3" ]
}

has_steps() { # STORE N
    [ "$(tf-ckpt list --json "$1" 2>/dev/null | wc -l)" -eq "$2" ]
}

@test "--keep forgets checkpoints of the own run only, and nothing beyond them" {
    train other 2 -n 100 --run-name other
    train other 2 -n 103 --resume -q
    # other runs' checkpoints arrive between two steps of a run
    mkfifo feeds
    sed 's/\[2\]/[1,2]/; s/\[0,0\]/[[0,0]]/' m.txt | tf-graph --text - >rows.tfg
    tf-exec -g rows.tfg --run step --feed feeds --save a/ --save-every 1 --keep 2 --run-name mine \
        2>err 3>&- &
    exec 4>feeds
    for n in 1 2 3 4 5 6; do printf '%s,1\n' "$n"; done | tf-data csv - 'x=1-2' --batch 1 >six.rec
    half=$(($(stat -c %s six.rec) / 2))
    head -c "$half" six.rec >&4
    soon 20 has_steps a 1
    tf-ckpt copy other@100 a --lock-wait 20s
    tf-ckpt copy other@103 a --lock-wait 20s
    tail -c +$((half + 1)) six.rec >&4
    exec 4>&-
    wait $!
    [ "$(tf-ckpt list --json a | jq -r .run_name | sort | uniq -c | xargs)" = "2 mine 2 other" ]
    [ "$(tf-ckpt list --json a | jq 'select(.run_name == "mine").step' | sort -n | tail -n 1)" = 6 ]
    # chunks without references are gone as well
    [[ $(tf-ckpt prune --dry-run a) == "0 B to be removed, "* ]]
    refuses 64 "tf-exec: --keep is for --save, which is not given" \
        tf-exec -g m.tfg --run step --feed "x=[1,1]" --keep 2
    refuses 64 "tf-exec: --keep: -1 is negative" train c 1 -n 1 --keep -1
}

@test "--save-best: the best is kept, is what its loss says, and is STORE@best" {
    cat >best.lua <<'END'
w = variable{name = "w", shape = {}, init = 0}
loss = Abs(w - 100)
entry.train = AssignAdd(w, 1 + 0 * loss)
END
    tf-graph best.lua >best.tfg
    tf-exec -g best.tfg --run train --fetch loss -n 1000 --save best/ --save-best loss --keep 1 \
        >/dev/null
    [ "$(tf-ckpt list --json best | jq -c '[.step, .scalars.loss]' | tr '\n' ' ')" = \
        '[100,0] [1000,null] ' ]
    [ "$(tf-ckpt cat best@best w | tf-show --json)" = '{"w":100}' ]
    [ "$(tf-exec -g best.tfg --restore best@best --fetch loss | tf-show --json)" = \
        '{"step":1,"loss":0}' ]
    tf-ckpt diff best@best best@100
    tf-ckpt salvage best@best saved.ckpt
    tf-ckpt diff saved.ckpt best@100
    # by the policy of a cron line, too
    tf-exec -g best.tfg --run train --fetch loss -n 300 --save every/ --save-every 1 >/dev/null \
        2>&1
    kept=$(tf-ckpt list --json every | jq -s 'map(select(.scalars.loss != null)) |
        min_by(.scalars.loss) | .step')
    tf-ckpt forget every --keep-best 1 --by loss
    [ "$(tf-ckpt list --json every | jq -c .step | tr '\n' ' ')" = "$kept 300 " ]
    [ "$(tf-exec -g best.tfg --restore "every@$kept" --fetch loss | tf-show --json | jq .loss)" = \
        "$(tf-ckpt list --json every | jq -s '.[0].scalars.loss')" ]
    # a run that only gets worse has its best before the first step
    tf-exec -g best.tfg --run train --fetch loss -n 5 --save worse/ --save-best loss:max >/dev/null
    [ "$(tf-ckpt cat worse@best w | tf-show --json)" = '{"w":0}' ]
    run -66 --separate-stderr tf-ckpt cat every@best w
    [[ $stderr == "tf-ckpt: every@best: nothing there was saved by a metric (--save-best)"* ]]
}

tags() { # STORE
    tf-ckpt list --json "$1" | jq -c '[.step, .tags]' | tr '\n' ' '
}

one_by_one() { # FROM TO OPTION...: each step is saved
    local i
    for ((i = $1; i <= $2; i++)); do
        train s 1 -n "$i" --resume "${@:3}"
    done
}

@test "a tag names a checkpoint, and keeps it from --keep and from every rule" {
    one_by_one 1 3
    tf-ckpt tag s@2 good
    tf-ckpt tag s@best good 2>err || [ $? -eq 66 ]
    tf-ckpt tag s@2 good # once more is the same
    [ "$(tags s)" = '[1,[]] [2,["good"]] [3,[]] ' ]
    [ "$(tf-ckpt list s | awk '{ print $1, $NF }' | xargs)" = "STEP TAGS 1 - 2 good 3 -" ]
    tf-ckpt diff s@good s@2
    [ "$(tf-ckpt cat s@good v | tf-show --json)" = '{"v":[2,2]}' ]
    tf-exec -g m.tfg --run step --feed "x=[5,5]" --restore s@good --save t.ckpt
    [ "$(tf-show --json t.ckpt)" = '{"v":[7,7]}' ]
    one_by_one 4 7 --keep 2
    [ "$(tags s)" = '[2,["good"]] [6,[]] [7,[]] ' ]
    tf-ckpt verify s --data
    [ "$(tf-ckpt forget s --keep-last 1 -n | grep good -c || true)" -eq 0 ]
    tf-ckpt forget s --keep-last 1 -n | finds -x 'step 2  kept (tag)'
    tf-ckpt forget s --keep-last 1
    tf-ckpt prune s
    [ "$(tags s)" = '[2,["good"]] [7,[]] ' ]

    # the newest; two tags on one; one moved; a copy has them, too
    tf-ckpt tag s last
    tf-ckpt tag s@7 prod
    refuses 64 "tf-ckpt: s@good: is step 2; --replace gives the tag to another" tf-ckpt tag s good
    tf-ckpt tag s good --replace
    [ "$(tags s)" = '[2,[]] [7,["last","prod","good"]] ' ]
    tf-ckpt init copy
    tf-ckpt copy s copy
    [ "$(tags copy)" = "$(tags s)" ]
    tf-ckpt untag s@good
    refuses 66 "tf-ckpt: s@good: no checkpoint has this tag (did you mean 'prod'?)" \
        tf-ckpt show s@good
    # by name it is dropped in spite of its tags, and the newest is whole
    tf-ckpt forget s@prod
    [ "$(tags s)" = '[2,[]] ' ]
    tf-ckpt verify s --data
}

@test "tags are found in a store that is damaged, and names are not taken for them" {
    one_by_one 1 3
    tf-ckpt tag s@1 first
    tf-ckpt tag s@3 good
    tf-ckpt tag --replace s@2 good # what is left of the store does not say which came later
    python3 - s/data.mdb <<'END' # both meta pages
import sys
with open(sys.argv[1], 'r+b') as f:
    for page in (0, 1):
        f.seek(4096 * page + 16)
        f.write(b'\xff' * 4)
END
    refuses 65 "tf-ckpt: s: *" tf-ckpt show s@good
    for name in 2:2 first:1; do
        tf-ckpt salvage "s@${name%:*}" out.ckpt
        [ "$(tf-show --json out.ckpt)" = "{\"v\":[${name#*:},${name#*:}]}" ]
    done
    refuses 64 "tf-ckpt: s@good: steps 3 and 2 have had this tag; name one" \
        tf-ckpt salvage s@good out.ckpt
    refuses 66 "tf-ckpt: s@god: no manifest of this name is there" tf-ckpt salvage s@god out.ckpt
    # an @ is part of the name of a store that exists
    tf-ckpt init s@v2
    tf-ckpt import out.ckpt s@v2
    refuses 66 "tf-ckpt: s@v3: no store there; tf-ckpt init makes one" tf-ckpt copy s@v2 s@v3
}

@test "what is no tag, and tags that nobody has" {
    one_by_one 1 2
    for tag in 12 best a/b 'a b' ''; do
        refuses 64 "tf-ckpt: *" tf-ckpt tag s@1 "$tag"
    done
    refuses 66 "tf-ckpt: s@7: *" tf-ckpt tag s@7 good
    refuses 64 "tf-ckpt: '1' is no tag: *" tf-ckpt untag s@1
    for verb in untag show forget; do
        refuses 66 "tf-ckpt: s@god: no checkpoint has this tag" tf-ckpt "$verb" s@god
    done
    refuses 66 "tf-ckpt: s@god: no checkpoint has this tag" tf-ckpt diff s s@god
    refuses 66 "tf-ckpt: s@god: no checkpoint has this tag" tf-ckpt salvage s@god out.ckpt
    refuses 66 "tf-exec: s@god: no checkpoint has this tag" \
        tf-exec -g m.tfg --run step --feed "x=[1,1]" --restore s@god
    [ "$(tags s)" = '[1,[]] [2,[]] ' ]
}
