#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Behaviour that all programs in bin/ share. A new program is covered as soon as it is built; one
# that needs more than FILE to read a file gets a row in arguments_for.
# shellcheck disable=SC2030,SC2031  # variables of run
bats_require_minimum_version 1.5.0

setup() {
    bin=$(realpath -m "$BATS_TEST_DIRNAME/../../${BUILD:-build}/bin")
    PATH=$bin:$PATH
    tools=()
    for file in "$bin"/tf-*; do
        [[ ! -x $file ]] || tools+=("${file##*/}")
    done
    cd "$BATS_TEST_TMPDIR" || return 1
    ((${#tools[@]})) || skip "no programs yet"
}

# Sets `arguments` to what makes TOOL read FILE; empty FILE: its standard input.
arguments_for() { # TOOL FILE
    arguments=()
    case $1 in
    tf-data) arguments=(csv "${2:--}" x=1) ;;
    tf-exec) arguments=(-g "${2:--}" --fetch y) ;;
    tf-grad) arguments=(--of y --wrt x ${2:+"$2"}) ;;
    tf-op) arguments=(Neg "${2:--}") ;;
    tf-plot) arguments=(--terminal dumb ${2:+"$2"}) ;;
    *) arguments=(${2:+"$2"}) ;;
    esac
}

# Calls FUNCTION for each tool, reports which ones failed, and fails if any did.
each() { # FUNCTION [TOOL]...
    local check=$1 wrong=0 tool
    shift
    for tool in "${@:-${tools[@]}}"; do
        if ! "$check" "$tool"; then
            echo "^ $check $tool: status ${status-}, output: ${output-}"
            echo "  stderr: ${stderr-}"
            wrong=1
        fi
    done
    return "$wrong"
}

# The tools that read a stream of records on stdin and write one.
filters() {
    local tool
    for tool in "${tools[@]}"; do
        case $tool in
        tf-graph | tf-data | tf-op | tf-ps | tf-run | tf-supervise | tf-ckpt | tf-import | \
            tf-top | tf-events) ;;
        *) echo "$tool" ;;
        esac
    done
}

sample_graph() {
    command -v tf-graph >/dev/null || skip "needs tf-graph"
    printf '%s\n' 'x = Placeholder() {dtype=float32, shape=[2]} : float32[2]' \
        'y = Neg(x) {T=float32} : float32[2]' >sample.txt
    tf-graph --text sample.txt >sample.tfg
}

# Status and one line on stderr that begins with the tool's name. (stdout may get an error record.)
fails_with() { # STATUS TOOL ARGUMENT...
    local wanted=$1 tool=$2
    shift 2
    run --separate-stderr bash -c 'exec timeout 10 "$@" >/dev/null' - "$tool" "$@"
    [[ $status -eq $wanted && $stderr == "$tool: "* && $stderr != *$'\n'* ]]
}

help_is_right() {
    run --separate-stderr "$1" --help
    [[ $status -eq 0 && -z $stderr && ${lines[0]} == "$1: "* && ${#lines[@]} -le 60 &&
        $output == *"usage: $1 "* ]] && [[ $("$1" -h) == "$output" ]]
}

@test "--help goes to stdout, names the tool, and fits on a page" {
    each help_is_right
}

version_is_right() {
    run --separate-stderr "$1" --version
    [[ $status -eq 0 && -z $stderr && $output =~ ^"$1 "[0-9]+\.[0-9]+$ ]] &&
        [[ $("$1" --version --json | jq -r '.tool + " " + .version') == "$output" ]]
}

@test "--version names tool and version, as JSON too" {
    each version_is_right
}

manual_is_complete() {
    local option man
    man=$("$1" --man | sed 's/\\//g')
    [[ $man == ".TH ${1^^} 1"*".SH EXAMPLES"*".SH EXIT STATUS"* ]] || return 1
    for option in $("$1" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        status=$option
        [[ $man == *"$option"* ]] || return 1
    done
}

@test "the manual page has every option, examples and the exit status" {
    each manual_is_complete
}

refuses_unknown_option() {
    fails_with 64 "$1" --hlep && [[ $stderr == *"did you mean --help?" ]] &&
        fails_with 64 "$1" --zzzzzzzzzz && [[ $stderr == *"see $1 --help" ]]
}

@test "an unknown option is a usage error with a suggestion" {
    each refuses_unknown_option
}

# Each option with each verb that does not read it, and without the option that it needs: as in the
# tool's own table.
# shellcheck disable=SC2086  # without a verb there is no word
refuses_what_it_would_not_read() {
    local verb option argument
    "$1" --help --json >table.json || return 1
    while IFS=$'\t' read -r verb option argument; do
        run --separate-stderr "$1" ${verb#-} --"$option" ${argument:+1}
        [[ $status -eq 64 && $stderr == "$1: --$option is "*"for "* ]] || return 1
    done < <(jq -r '(.verbs | map(.name)) as $all | .options[] | . as $option |
        ($all - .verbs)[] | [if . == "" then "-" else . end, $option.name, $option.argument] |
        @tsv' table.json)
    while IFS=$'\t' read -r verb option argument; do
        run --separate-stderr "$1" ${verb#-} --"$option" ${argument:+1}
        [[ $status -eq 64 && $stderr == "$1: --$option is for --"*", which is not given" ]] ||
            return 1
        [[ -z $argument ]] || continue
        run --separate-stderr "$1" ${verb#-} --no-"$option" # says nothing of anything
        [[ $stderr != *"which is not given" ]] || return 1
    done < <(jq -r '.options[] | select(.needs != []) | [.verbs[0] as $verb |
        if ($verb // "") == "" then "-" else $verb end, .name, .argument] | @tsv' table.json)
    local other value variable
    while IFS=$'\t' read -r verb option other argument value; do
        run --separate-stderr "$1" ${verb#-} --"$option" ${argument#-} --"$other" ${value#-}
        [[ $status -eq 64 && $stderr == "$1: --"*" and --"*" do not go together" &&
            $stderr == *"--$option "* && $stderr == *"--$other "* ]] || return 1
        # a setting in the environment gives way, whichever of the two it is
        variable=TF_$(tr a-z- A-Z_ <<<"$other")
        run --separate-stderr env "$variable=1" "$1" ${verb#-} --"$option" ${argument#-}
        [[ $status -lt 128 && $stderr != *"do not go together"* ]] || return 1
        variable=TF_$(tr a-z- A-Z_ <<<"$option")
        run --separate-stderr env "$variable=1" "$1" ${verb#-} --"$other" ${value#-}
        [[ $status -lt 128 && $stderr != *"do not go together"* ]] || return 1
    done < <(jq -r '(.options | map({(.name): (if .argument == "" then "-" else "1" end)}) | add)
        as $value | .options[] | (.verbs[0] // "") as $verb | .name as $name | .clashes[] |
        select(. != $name) | [if $verb == "" then "-" else $verb end, $name, ., $value[$name],
        $value[.]] | @tsv' table.json)
}

@test "an option that would not be read is refused" {
    each refuses_what_it_would_not_read
    [ "$(tf-ckpt --help --json | jq '[.options[] | select(.verbs | length < 14)] | length')" \
        -gt 15 ]
    [ "$(tf-show --help --json | jq '[.options[].clashes[]] | length')" -gt 50 ]
    echo 'task worker:0 unix:w0' >one.cluster
    tf-graph -e 'y = Const(1.0) + 1' | tee y.tfg |
        TF_CLUSTER=one.cluster tf-place --devices CPU:1 | tf-show --text >placed
    grep -q 'CPU:1' placed
    run -1 grep -q worker placed
    TF_DUMP_PLAN=1 run -78 tf-exec -g y.tfg --fetch y -c one.cluster --task worker:0 --no-key
}

# Each option that counts something: a negative number does not mean that it is not given.
# shellcheck disable=SC2086  # without a verb there is no word
refuses_less_than_none() {
    local verb option
    "$1" --help --json >table.json || return 1
    while IFS=$'\t' read -r verb option; do
        for number in -1 -9223372036854775808; do
            run --separate-stderr "$1" ${verb#-} --"$option" $number
            [[ $status -eq 64 && $stderr == "$1: --$option: $number is negative"* ]] || return 1
        done
    done < <(jq -r '.options[] | select((.argument | IN("N", "K", "G", "STEPS", "FD", "PID")) and
        .name != "seed") | [.verbs[0] as $verb |
        if ($verb // "") == "" then "-" else $verb end, .name] | @tsv' table.json)
}

@test "a negative number of something is refused" {
    each refuses_less_than_none
    [ "$(jq '[.options[] | select(.argument == "N")] | length' \
        <<<"$(tf-run --help --json)")" -gt 5 ]
}

verb_help_is_right() {
    local verb
    for verb in $("$1" --help --json | jq -r '.verbs[].name | select(. != "")'); do
        run --separate-stderr "$1" "$verb" --help
        [[ $status -eq 0 && ${lines[0]} == "$1 $verb: "* && $output == *"usage: $1 $verb"* ]] ||
            return 1
    done
}

@test "each verb has its own help" {
    each verb_help_is_right
}

refuses_bad_environment() {
    TF_QUIET=perhaps fails_with 64 "$1" </dev/null && [[ $stderr == *TF_QUIET* ]]
}

@test "a wrong value in the environment is named" {
    each refuses_bad_environment
}

misses_file() {
    arguments_for "$1" "missing/file.tfg"
    fails_with 66 "$1" "${arguments[@]}" && [[ $stderr == *missing/file.tfg* ]]
}

@test "a missing file is 66 and named" {
    mapfile -t names < <(printf '%s\n' "${tools[@]}" | grep -vxE 'tf-(ps|ckpt|top)')
    each misses_file "${names[@]}"
}

refuses_folder() {
    arguments_for "$1" folder
    mkdir -p folder
    fails_with 65 "$1" "${arguments[@]}" && [[ $stderr == *folder* ]]
}

@test "a directory instead of a file is 65 and named" {
    mapfile -t names < <(printf '%s\n' "${tools[@]}" | grep -vxE 'tf-(ps|ckpt|top)')
    each refuses_folder "${names[@]}"
}

@test "a directory instead of a cluster file, too" {
    sample_graph
    mkdir folder
    fails_with 65 tf-run -c folder --run y sample.tfg
    [[ $stderr == 'tf-run: folder: is a directory' ]]
}

says_it_in_one_line() {
    local name=$'a\e[31mb\nc'
    run --separate-stderr bash -c 'exec timeout 10 "$@" >/dev/null </dev/null' - "$@" "$name"
    [[ $status -ge 64 && $status -le 78 && $stderr == *'a [31mb c'* && $stderr != *[[:cntrl:]]* ]]
}

@test "control characters of what is given are blanks in a message" {
    local names
    mapfile -t names < <(printf '%s\n' "${tools[@]}" | grep -vx tf-grad)
    each says_it_in_one_line "${names[@]}"
    sample_graph
    says_it_in_one_line tf-run sample.tfg --run y -c
    says_it_in_one_line tf-grad sample.tfg --of y --wrt
    mkdir $'a\e[31mb\nc'
    mapfile -t names < <(printf '%s\n' "${tools[@]}" | grep -vx tf-grad)
    each says_it_in_one_line "${names[@]}"
}

@test "one of something is not called several" {
    sample_graph
    echo a,1 | tr , '\n' >one.csv
    run -0 tf-data describe one.csv
    [[ ${lines[0]} == 'one.csv: 1 row, 1 column' ]]
    tf-exec -g sample.tfg --fetch y --feed x='[1.0,2.0]' --trace one.trace >/dev/null
    run -0 tf-show one.trace
    [[ ${lines[0]} == 'trace   1 step  '* ]]
    printf '%s\n' 'local w = variable{name = "w", shape = {}, init = init.zeros}' \
        'local set = device("/device:CPU:0", function() return Assign(w, 1.0) end)' \
        'entry.over = device("/device:CPU:1", function() return group{set} end)' |
        tf-graph - | tf-place --devices CPU:0,CPU:1 | tf-part --report 2>said >/dev/null
    grep -qx 'tf-part: 2 graphs, 0 tensors cross, 0 B a step; 1 time order only' said
}

refuses_empty_input() {
    arguments_for "$1" ""
    fails_with 65 "$1" "${arguments[@]}" </dev/null && [[ $stderr == *stdin* ]]
}

@test "an empty stdin is no stream: 65" {
    mapfile -t names < <(filters)
    ((${#names[@]})) || skip "no filters yet"
    each refuses_empty_input "${names[@]}"
}

refuses_terminal_input() {
    arguments_for "$1" ""
    run timeout 10 script -qec "$1 ${arguments[*]} >out" /dev/null </dev/null
    [[ $status -eq 64 && $output == *"stdin is a terminal"* ]]
}

@test "a terminal as stdin is a usage error, not a wait" {
    mapfile -t names < <(filters)
    script -qec true /dev/null > /dev/null 2>&1 < /dev/null || skip "no pseudo-terminal here"
    ((${#names[@]})) || skip "no filters yet"
    each refuses_terminal_input "${names[@]}"
}

tells_full_disk() {
    run --separate-stderr bash -c '"$1" --help >/dev/full' - "$1"
    [[ $status -eq 74 && $stderr == "$1: stdout: No space left on device" ]]
}

tells_closed_stdout() {
    run --separate-stderr bash -c '"$1" --help >&-' - "$1"
    [[ $status -eq 74 && $stderr == "$1: stdout: Bad file descriptor" ]]
}

@test "a full disk and a closed stdout are 74" {
    each tells_full_disk
    each tells_closed_stdout
}

ends_quietly_without_reader() {
    run --separate-stderr bash -c '{ sleep 0.1; "$1" --help; echo $? >status; } | true; sleep 0.2
        cat status' - "$1"
    [[ $output == 141 && -z $stderr ]]
}

@test "a reader that has gone ends the tool quietly" {
    each ends_quietly_without_reader
}

tells_truncation() {
    local size cut
    size=$(stat -c %s sample.tfg)
    for cut in 1 3 $((size / 2)) $((size - 1)); do
        head -c "$cut" sample.tfg >cut.tfg
        arguments_for "$1" ""
        run --separate-stderr timeout 10 "$1" "${arguments[@]}" -o out.tfg <cut.tfg
        [[ $status -eq 65 && $stderr == "$1: "*truncated* && ! -e out.tfg ]] || return 1
    done
    [[ -z $(compgen -G '.*.tmp') ]]
}

@test "a truncated stream is 65, and leaves no file behind" {
    sample_graph
    mapfile -t names < <(filters)
    each tells_truncation "${names[@]}"
}

passes_the_blame_on() {
    arguments_for "$1" ""
    run --separate-stderr bash -c 'echo "x = Bogus()" | tf-graph --text 2>/dev/null | "$@"' - \
        "$1" "${arguments[@]}"
    [[ $status -eq 65 && $stderr == "$1: stdin: stopped by tf-graph" ]]
}

@test "a stage that is stopped by the one before names it and keeps its status" {
    sample_graph
    mapfile -t names < <(filters)
    each passes_the_blame_on "${names[@]}"
}

@test "a name that reads like the words of a message changes no message" {
    sample_graph
    echo 'x = Bogus()' | { tf-graph --text 2>/dev/null || true; } >'stopped by me.tfg'
    run --separate-stderr tf-opt 'stopped by me.tfg'
    [[ $status -eq 65 && $stderr == 'tf-opt: stopped by me.tfg: stopped by tf-graph' ]]
}

@test "-o FILE appears whole or not at all, and keeps its mode" {
    sample_graph
    tf-graph --text -o out.tfg sample.txt
    chmod 640 out.tfg
    cp out.tfg before.tfg
    run tf-graph --text -o out.tfg <<<"x = Bogus()"
    [ "$status" -eq 65 ]
    cmp out.tfg before.tfg
    ln -s out.tfg link.tfg
    tf-graph --text -o link.tfg sample.txt
    [ -L link.tfg ]
    [ "$(stat -c %a out.tfg)" = 640 ]
    run tf-graph --text -o /dev/full sample.txt
    [ "$status" -eq 74 ]
    run tf-graph --text -o missing/out.tfg sample.txt
    [ "$status" -eq 74 ]
    [[ -z $(compgen -G '.*.tmp') ]]
}

@test "a signal removes the unfinished file" {
    command -v tf-graph >/dev/null || skip "needs tf-graph"
    mkfifo input
    tf-graph --text -o out.tfg <input &
    exec 9>input
    sleep 0.2
    kill -TERM $!
    wait $! || [ $? -eq 143 ]
    exec 9>&-
    [ ! -e out.tfg ]
    [[ -z $(compgen -G '.*.tmp') ]]
}

@test "a binary stream does not go to a terminal" {
    script -qec true /dev/null > /dev/null 2>&1 < /dev/null || skip "no pseudo-terminal here"
    sample_graph
    run script -qec "tf-graph --text sample.txt" /dev/null </dev/null
    [ "$status" -eq 64 ]
    [[ $output == *"tf-graph: will not write a binary stream to a terminal; try: tf-graph "* ]]
    [[ $output == *"sample.txt | tf-show"* ]]
}

@test "a binary stream that goes among the lines of a log is announced there" {
    sample_graph
    bash -c 'tf-graph --text sample.txt >>log 2>&1'
    [ "$(head -n 1 log)" = "tf-graph: stdout is the file that stderr is: what follows in it is a \
binary stream; try: | tf-show" ]
    : > log
    tf-graph -q --text sample.txt >>log 2>&1
    tf-graph --text sample.txt -o g.tfg >>log2 2>&1
    tf-show g.tfg >>log3 2>&1
    tf-graph --text sample.txt 2>err >g2.tfg
    tf-graph --text sample.txt 2>&1 | tf-show > shown
    for file in log log2 log3 err; do
        run -1 grep -a 'binary stream' "$file"
    done
}
