#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-plot: its curves are those in the stream. The numbers are checked in the program for gnuplot,
# which our own gnuplot hands back; the real one shows that it can be drawn.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    command -v gnuplot >/dev/null || skip "needs gnuplot"
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    unset COLUMNS LINES
}

# From here on tf-plot prints the program that gnuplot would read.
programs() {
    mkdir -p own
    printf '#!/bin/sh\nexec cat "$1"\n' >own/gnuplot
    chmod +x own/gnuplot
    PATH=$PWD/own:$PATH
}

# A run with known scalars: x is 1 to N, y is 10 times that.
make_run() { # FILE STEPS
    tf-graph -o run.tfg -e 'v = variable{name = "v", shape = {}, init = 0.0}
        x = AssignAdd(v, 1.0, {name = "x"})
        y = Mul(x, 10.0, {name = "y"})
        z = Mul(x, {1.0, 2.0}, {name = "z"})
        entry.train = {x}'
    tf-exec -q -g run.tfg --run train --fetch x,y,z --steps "$2" -o "$1"
}

# The points of curve NAME in a program, as "step value" lines.
points() { # NAME FILE
    sed -n "/^\\\$$1 << EOD/,/^EOD/{//!p;}" "$2"
}

@test "a curve has the values of its stream, on the axes of its name" {
    make_run a.rec 7
    programs
    tf-plot a.rec >program
    seq 7 | sed 's/.*/& &/' | diff - <(points c1_1 program)
    seq 7 | sed 's/.*/& &0/' | diff - <(points c2_1 program)
    [ "$(grep -c '^plot' program)" -eq 2 ]
    grep "title 'x'" program
    run -1 grep "title 'z'" program
    tf-plot --fetch 'y*' <a.rec >program
    [ "$(grep -c '^plot' program)" -eq 1 ]
    seq 7 | sed 's/.*/& &0/' | diff - <(points c1_1 program)
}

@test "runs are beside each other, evaluations on the axes of what they evaluate" {
    make_run a.rec 3
    make_run "b'\`date\`.rec" 2
    programs
    tf-plot --fetch x a.rec "b'\`date\`.rec" >program
    grep -F "title 'x  a.rec'" program
    grep -F "title 'x  b''\`date\`.rec'" program
    seq 2 | sed 's/.*/& &/' | diff - <(points c1_2 program)
    ln -s "$root/examples/data" .
    tf-graph "$root/examples/digits.lua" -o digits.tfg
    "$root/examples/feed" --rows 1-256 --batch 32 | tf-exec -q -g digits.tfg --run train \
        --fetch accuracy --eval eval --eval-feed "$root/examples/feed --rows 1438-1797 --batch 90" \
        --eval-every 4 >digits.rec
    tf-plot digits.rec >program
    [ "$(grep -c '^plot' program)" -eq 1 ]
    [ "$(points c1_1 program | wc -l)" -eq 8 ]
    points c1_2 program | diff - <(tf-show --tsv digits.rec eval/accuracy | sed 1d | tr '\t' ' ' |
        awk '{ printf "%s %.9g\n", $1, $2 }')
    [ "$(points c1_2 program | wc -l)" -eq 2 ]
}

@test "a smoothed curve is the mean with weights that fall, from its first value on" {
    make_run a.rec 5
    programs
    tf-plot --fetch x --smooth 0.75 a.rec | points s1_1 /dev/stdin >smooth
    /usr/bin/python3 - >expected <<'END'
for n in range(1, 6):
    weights = [0.75 ** (n - k) for k in range(1, n + 1)]
    mean = sum(w * k for w, k in zip(weights, range(1, n + 1))) / sum(weights)
    print("%d %.9g" % (n, mean))
END
    diff expected smooth
}

@test "of a long curve the largest and least values stay" {
    tf-graph -o run.tfg -e 'v = variable{name = "v", shape = {}, init = 0.0}
        x = AssignAdd(v, 1.0) y = Mul(Cast(Equal(x, 7777.0), {DstT = float32}), 50.0, {name = "y"})'
    tf-exec -q -g run.tfg --fetch y --steps 20000 -o a.rec
    programs
    tf-plot a.rec | points c1_1 /dev/stdin >curve
    [ "$(wc -l <curve)" -le 2001 ]
    grep -x '7777 50' curve
    sort -n -c curve
    awk '$2 != 0 && $2 != 50 { exit 1 }' curve
}

@test "what is not finite is counted, not drawn" {
    tf-graph -o run.tfg -e 'v = variable{name = "v", shape = {}, init = 0.0}
        x = AssignAdd(v, 1.0) y = Log(Sub(x, 3.0), {name = "y"})'
    tf-exec -q -g run.tfg --fetch y --steps 5 -o a.rec
    tf-plot a.rec | grep '3 not drawn: not finite'
    tf-plot --log a.rec | grep '4 not drawn: not above 0'
    tf-exec -q -g run.tfg --fetch y --steps 1 -o b.rec
    tf-plot b.rec | grep '1 not drawn: not finite'
}

@test "a histogram counts each element once" {
    tf-graph -o run.tfg -e 'x = Const{value = {0.0, 0.1, 1.0, 2.0, 2.1, 2.2, 3.9, 4.0}, name = "x"}
        y = Neg(x, {name = "y"})'
    tf-exec -q -g run.tfg --fetch x,y -o a.rec
    programs
    tf-plot histogram --bins 4 a.rec x >program
    printf '%s\n' '0.5 2' '1.5 1' '2.5 3' '3.5 2' | diff - <(points h program)
    grep '8 elements, 0 to 4, mean 1.9125, deviation' program
    tf-plot histogram --bins 4 a.rec y >program
    printf '%s\n' '-3.5 2' '-2.5 2' '-1.5 1' '-0.5 3' | diff - <(points h program)
}

@test "a variable of a checkpoint, by its store and step" {
    tf-graph -o run.tfg -e 'v = variable{name = "v", shape = {2, 3}, init = 0.0}
        entry.train = {AssignAdd(v, {{1.0, 1.0, 1.0}, {2.0, 2.0, 3.0}})}'
    tf-exec -q -g run.tfg --run train --steps 3 --save st/ --save-every 1
    programs
    tf-plot histogram --bins 3 st@1 v | points h /dev/stdin | awk '{ print $2 }' | xargs >counts
    [ "$(cat counts)" = '3 2 1' ]
    tf-plot histogram st v | grep '6 elements, 3 to 9'
    run --separate-stderr tf-plot histogram st@9 v
    [[ $status -eq 66 && $stderr == 'tf-plot: st@9'* ]]
}

@test "images are rows of a tensor: text shows their pixels, larger is darker" {
    tf-graph -o run.tfg -e 'x = Const{name = "x", value = {
        {0.0, 9.0, 9.0, 0.0}, {9.0, 0.0, 0.0, 4.5}}}'
    tf-exec -q -g run.tfg --fetch x -o a.rec
    tf-plot images a.rec x >picture
    printf '%s\n' '  @@|@@  ' '@@  |  ==' '' | diff - picture
    tf-plot images --shape 1x4 a.rec x >picture
    printf '%s\n' '  @@@@  |@@    ==' '' | diff - picture
    run --separate-stderr tf-plot images --shape 3x3 a.rec x
    [[ $status -eq 65 && $stderr == "tf-plot: a.rec: 'x': its rows are no images of 3 x 3 x 1"* ]]
}

@test "a timeline has each op of the step once, in its lane" {
    make_run a.rec 3
    tf-exec -q -g run.tfg --fetch y --steps 3 --trace t.rec >/dev/null
    tf-plot timeline t.rec >picture
    grep -E '^step 3, ' picture
    grep -E '^thread 1 \|' picture
    tf-show --json t.rec | jq -r 'select(.step == 2 and .op) | .op' | sort -u >ops
    tf-plot timeline --step 2 t.rec | sed -n 's/^[A-H]  \([^ ]*\) .*/\1/p' | sort | diff ops -
    run --separate-stderr tf-plot timeline --step 9 t.rec
    [[ $status -eq 65 && $stderr == 'tf-plot: t.rec: no event of step 9: the last is 3' ]]
}

@test "pictures are SVG and PNG by the name of the file, and whole or not there" {
    make_run a.rec 9
    tf-plot -o a.svg a.rec
    xmllint --noout a.svg 2>/dev/null || grep -q '</svg>' a.svg
    tf-plot -o a.png --smooth 0.5 --title "it's" a.rec
    [ "$(head -c 8 a.png | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ]
    tf-plot images -o i.png --shape 1x2 a.rec z
    tf-plot timeline -o t.svg <(tf-exec -q -g run.tfg --fetch y --trace /dev/stdout -o /dev/null)
    tf-plot --terminal sixel a.rec | head -c 2 | od -An -tx1 | grep '1b 50'
    head -c 300 a.rec >cut.rec
    run --separate-stderr tf-plot -o cut.svg cut.rec
    [[ $status -eq 65 && $stderr == 'tf-plot: cut.rec: truncated'* && ! -e cut.svg ]]
    [ -z "$(compgen -G '*.tmp')" ]
    run --separate-stderr tf-plot -o a.gif a.rec
    [[ $status -eq 64 && $stderr == "tf-plot: -o a.gif: name it .svg or .png, or give --terminal" ]]
    run --separate-stderr tf-plot -o none/a.svg a.rec
    [ "$status" -eq 74 ]
}

@test "wrong use has a line and its status" {
    make_run a.rec 2
    while IFS='|' read -r code expected words; do
        # shellcheck disable=SC2086
        run --separate-stderr tf-plot $words
        [[ $status -eq $code && ${stderr_lines[0]} == "tf-plot: $expected"* ]] ||
            { echo "$words: $status, $stderr" && false; }
    done <<'END'
64|--smooth 1: |--smooth 1 a.rec
64|--smooth nan: |--smooth nan a.rec
64|--bins 0: |histogram --bins 0 a.rec x
64|--size 30: |--size 30 a.rec
64|--shape 8: |images --shape 8 a.rec x
64|--terminal vga: |--terminal vga a.rec
64|histogram: a file and the name|histogram a.rec
64|images: a file and the name|images a.rec x y
65|a.rec: no scalar 'nope' (there is: x, y)|--fetch nope a.rec
65|a.rec: no tensor 'nope'|histogram a.rec nope
65|run.tfg: no scalar in it|run.tfg
65|a.rec: no event of a trace|timeline a.rec
66|none.rec: No such file|none.rec
END
}

@test "a picture follows a stream until it ends" {
    make_run a.rec 4
    mkfifo feed
    tf-plot --follow --fetch x --size 60x15 - <feed >pictures &
    local plot=$!
    exec 5>feed
    head -c "$(($(stat -c %s a.rec) - 40))" a.rec >&5
    until [ -s pictures ]; do sleep 0.05; done # one of what there is so far
    tail -c 40 a.rec >&5
    exec 5>&-
    wait "$plot"
    [ "$(grep -c '+-----' pictures)" -ge 2 ]
}

@test "what is no file is written to, and a new file has the mode that others have" {
    make_run a.rec 3
    mkfifo picture.svg
    cat picture.svg >got &
    tf-plot -o picture.svg a.rec
    wait $!
    [ -p picture.svg ]
    grep -q '</svg>' got
    (umask 027 && tf-plot -o -x.svg a.rec 2>err)
    [ ! -s err ]
    [ "$(stat -c %a ./-x.svg)" = 640 ]
    run --separate-stderr tf-plot -o /dev/full --terminal svg a.rec
    [[ $status -eq 74 && $stderr == 'tf-plot: /dev/full: No space left on device' ]]
    run --separate-stderr bash -c 'tf-plot a.rec >/dev/full'
    [[ $status -eq 74 && $stderr == 'tf-plot: stdout: No space left on device' ]]
    run --separate-stderr bash -c 'tf-plot a.rec >&-'
    [[ $status -eq 74 && $stderr == 'tf-plot: stdout: Bad file descriptor' ]]
    run --separate-stderr bash -c 'timeout 60 tf-plot -f - <&-'
    [[ $status -eq 65 && $stderr == 'tf-plot: stdin: empty: no stream' ]]
    run --separate-stderr tf-plot -o none/a.svg a.rec
    [[ $status -eq 74 && $stderr == 'tf-plot: none/a.svg: '* ]]
    [ "$(printf '%s\n' "$stderr" | wc -l)" = 1 ]
}

@test "what a text says is no program" {
    make_run a.rec 3
    tf-plot --title $'a\nsystem("touch pwned")\n# it\'s `touch pwned`' a.rec >picture
    [ ! -e pwned ]
    grep -q 'a system(' picture
}

@test "a panel without anything above 0 says so on a logarithmic axis, and the others are drawn" {
    tf-graph -o run.tfg -e 'v = variable{name = "v", shape = {}, init = 0.0}
        x = AssignAdd(v, 1.0, {name = "x"}) y = Neg(x, {name = "y"})'
    tf-exec -q -g run.tfg --fetch x,y --steps 5 -o a.rec
    tf-plot --log a.rec >picture
    grep -q 'y  (5 not drawn: not above 0)' picture
    grep -q 'x \*' picture
}

@test "a file with an @ in its name is no checkpoint, and a spread far from 0 is exact" {
    tf-graph -o run.tfg -e 'x = Const({100000000.0, 100000001.0, 100000002.0, 100000003.0},
        {name = "x", dtype = float64})'
    tf-exec -q -g run.tfg --fetch x -o u@h.rec
    tf-plot histogram u@h.rec x >picture
    grep -q '4 elements, 1e+08 to 1e+08, mean 1e+08, deviation 1.11803' picture
}

@test "a stream that is cut ends what follows it, and a job that has just begun is waited for" {
    make_run a.rec 4
    run --separate-stderr bash -c 'head -c "$(($(stat -c %s a.rec) - 40))" a.rec |
        timeout 60 tf-plot -f --fetch x -'
    [[ $status -eq 65 && $stderr == 'tf-plot: stdin: truncated after '* ]]
    mkdir run
    : >run/run.tasks
    timeout 60 tf-plot -f run >picture 2>err &
    local plot=$!
    sleep 0.1
    : >run/worker-0.rec
    sleep 0.1
    cp a.rec run/worker-0.rec
    wait "$plot"
    [ ! -s err ]
    grep -q 'x  worker:0' picture
}

@test "text is as wide as the terminal" {
    script -qec true /dev/null >/dev/null 2>&1 </dev/null || skip "no pseudo-terminal here"
    make_run a.rec 4
    script -qec 'stty rows 40 cols 120; tf-plot --fetch x a.rec' /dev/null </dev/null >picture
    tr -d '\r\f' <picture | awk '{ if (length > most) most = length } END { print most }' >width
    cat width
    [ "$(cat width)" = 119 ]
}

@test "help names the verbs of an option only where a picture without a verb has none" {
    tf-plot --help >help
    finds -E '^ +--title TEXT +above the picture$' help
    finds -E '^ +--bins N +histogram: of a histogram' help
}

@test "one step has an axis, and what gnuplot cannot draw is one line" {
    printf '%s\n' v 1e308 -1e308 >v.csv
    tf-data csv v.csv v=v:float64 --batch 2 >v.rec
    run --separate-stderr -65 tf-plot histogram v.rec v
    [[ $stderr = 'tf-plot: v.rec: gnuplot cannot draw it: '* && $stderr != *$'\n'* ]]
    tf-exec --fetch one -g <(echo 'one = Const(1.5)' | tf-graph -) >one.rec
    run --separate-stderr -0 tf-plot one.rec
    [ -z "$stderr" ]
    [[ $output = *A*'0  '*' 1 '*' 2'* ]]
}
