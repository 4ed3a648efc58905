#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-data: the records that it feeds, and the errors for input that it cannot feed.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools
load ../lib/data

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    examples=$(realpath "$BATS_TEST_DIRNAME/../../examples")
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

@test "the digits: 460 steps of 64 and a rest, each row once an epoch" {
    tf-data csv "$examples/data/digits.csv.gz" x=1-64 y=65:int32 --rows 1-1437 \
        --shuffle --batch 64 --epochs 20 > train.rec
    [ "$(tf-show train.rec | wc -l)" -eq 460 ]
    [ "$(tf-show train.rec | sed -n 23p | cut -d' ' -f1-4)" = "feed 23  x" ]
    tf-show train.rec | sed -n 23p | finds 'float32\[29,64\]'
    sum=$(zcat "$examples/data/digits.csv.gz" |
        awk -F, 'NR <= 1437 { s += $65 } END { print s }')
    tf-show --json train.rec y |
        jq -es "[.[range(23; 46)].y[]] | length == 1437 and add == $sum"
}

@test "columns by position, range, list and name; casts, scale, offset, shape, one-hot" {
    printf 'a,b,c\n1,2,3\n4,5,6\n' > t.csv
    [ "$(x csv t.csv x=2 -b 2)" = '[2,5]' ]
    [ "$(x csv t.csv x=1,3 -b 2)" = '[[1,3],[4,6]]' ]
    [ "$(x csv t.csv x=2- -b 2)" = '[[2,3],[5,6]]' ]
    [ "$(x csv t.csv x=c,a -b 2)" = '[[3,1],[6,4]]' ]
    [ "$(x csv t.csv x=a:int64:scale=2:offset=-1 -b 2)" = '[1,7]' ]
    [ "$(x csv t.csv x=1-2:shape=2x1 -b 1 --steps 1)" = '[[[1],[2]]]' ]
    [ "$(x csv t.csv x=1:shape=1 -b 2)" = '[[1],[4]]' ]
    [ "$(x csv t.csv x=1:onehot=5 -b 2)" = '[[0,1,0,0,0],[0,0,0,0,1]]' ]
    [ "$(x csv t.csv x=1:standardize -b 2)" = '[-1,1]' ]
    [ "$(x csv t.csv x=b:string -b 2)" = '["2","5"]' ]
}

@test "a header is seen by itself, or as told" {
    printf 'a,b\n1,2\n' > named.csv
    printf '1,2\n3,4\n' > bare.csv
    [ "$(x csv named.csv x=1)" = '[1]' ]
    [ "$(x csv bare.csv x=1 -b 2)" = '[1,3]' ]
    [ "$(x csv bare.csv x=1 --header yes)" = '[3]' ]
    [ "$(x csv bare.csv x=1:string -b 2 --header no)" = '["1","3"]' ]
    fails 65 "bare.csv:1: no column named 'price'" csv bare.csv x=price
    fails 65 "named.csv:1: column 1: 'a' is not a number" csv named.csv x=1 --header no
}

@test "which first rows are headers, and what is said of them" {
    says() { # VALUES SAID TEXT ARGUMENT...: SAID is a pattern
        local values=$1 said=$2 text=$3
        shift 3
        printf '%b' "$text" > t.csv
        run --separate-stderr -0 tf-data csv t.csv "$@" --batch 9 -o t.rec
        # shellcheck disable=SC2053
        [[ $stderr == $said && $(tf-show --json t.rec | jq -c .x) == "$values" ]] ||
            { echo "$text: $stderr $(tf-show --json t.rec)" >&2 && false; }
    }
    # data, with any blanks and quotes around them
    says '[[0.5,1],[1.5,2]]' "" '   0.500,   1.000\n   1.500,   2.000\n' x=1,2
    says '[[1,10],[2,20]]' "" '1 ,10 \n2 ,20 \n' x=1,2
    says '[[1,2],[3,4]]' "" '"1" ,2\n"3" ,4\n' x=1,2
    says '[[true,false],[false,true]]' "" 'True,False\nfalse,TRUE\n' x=1,2:bool
    says '[[1,0],[0,1]]' "" 'True,False\nfalse,TRUE\n' x=1,2
    says '[[7,7],[3,4]]' "" '?,NA\n3,4\n' x=1,2 --missing 7
    says '["b","c"]' "" '1e400,b\n3,c\n' x=2:string
    says '[5.1,3.5]' "" '5.1,setosa\n3.5,virginica\n' x=1
    # names, though some are empty
    local taken="tf-data: t.csv:1: taken as the names of the columns (--header yes or no says what \
it is): "
    says '[0.5,1.5]' "$taken,a,b" ',a,b\n0,0.5,1\n1,1.5,2\n' x=2
    says '[[0,0.5]]' "${taken}NA,a,\\?" 'NA,a,?\n0,0.5,1\n' x=1,2
    says '[[0.5,1],[1.5,2]]' "$taken,0,1" ',0,1\n0,0.5,1\n1,1.5,2\n' x=2,3
    says '[[0,0.5]]' "" ',a,b\n0,0.5,1\n' x=1,2 --header yes
    says '[0.5]' "" ',a,b\n0,0.5,1\n' x=a
    says '[2]' "" 'a, b\n1,2\n' x=b
    # if in doubt, data, with a warning in time
    says '[2019,0.5,0.25]' "tf-data: t.csv:1: taken as data, though column 1 is a word there and a \
number in line 2; if it names the columns, say --header yes" 'id,2019\n7,0.5\n8,0.25\n' x=2
    says '[2019,0.5,0.25]' "" 'id,2019\n7,0.5\n8,0.25\n' x=2 --header no
    printf 'a,b,a\n1,2,3\n' > t.csv
    [ "$(x csv t.csv x=b)" = '[2]' ]
    fails 65 "t.csv:1: more than one column is named 'a': ask for one by its position" csv t.csv x=a
}

@test "lines that end with CR, CRLF and LF" {
    printf '1,2\r3,4\r\n5,6\n7,8\r' > t.csv
    [ "$(x csv t.csv x=1 -b 9)" = '[1,3,5,7]' ]
    printf '1,2\r3\r' > t.csv
    fails 65 "t.csv:2: 1 columns, but line 1 has 2" csv t.csv x=1
    # a row is complete when its CR has come, whatever comes next
    mkfifo cr
    tf-data csv - x=1 < cr | tf-show > shown &
    exec 7> cr
    printf '1,2\r' >&7
    soon 10 grep -q '^feed 1' shown
    printf '\n3,4\r' >&7
    soon 10 grep -q '^feed 2' shown
    exec 7>&-
    wait
    [ "$(wc -l < shown)" -eq 2 ]
}

@test "random tables are what pandas and Python read in them" {
    /usr/bin/python3 "$BATS_TEST_DIRNAME/../data/csv/check.py"
}

@test "a byte order mark, CRLF, quotes, comments, blanks, tabs, gzip" {
    printf '\xef\xbb\xbf"a";"b"\r\n"1";2\r\n# no\r\n3;"4"\r\n' > t.csv
    [ "$(x csv t.csv x=a,b -b 2)" = '[[1,2],[3,4]]' ]
    gzip -k t.csv
    [ "$(x csv t.csv.gz x=a,b -b 2)" = '[[1,2],[3,4]]' ]
    printf ' 1  2\n\n 3\t4\n' > blanks.txt
    [ "$(x csv blanks.txt x=1-2 -b 2)" = '[[1,2],[3,4]]' ]
    printf '1|2\n' > pipe.txt
    [ "$(x csv pipe.txt x=2 --separator '|')" = '[2]' ]
    printf '1\t2\n' > tab.txt
    [ "$(x csv tab.txt x=2 --separator tab)" = '[2]' ]
}

@test "a row that begins as a comment does is not lost without a word" {
    printf '# made today\na,b\n1,2\n# as they came\n3,#N/A\n#N/A,4\n#N/A,5\n6,7\n' > t.csv
    run --separate-stderr tf-data csv t.csv x=a,b:impute=0 -b 9
    [ "$stderr" = "tf-data: t.csv:6: passed over as a comment, and so are others that begin with \
'#' (--comment '' takes them as rows)" ]
    sed -i '/^# /d' t.csv
    [ "$(x csv t.csv x=a,b:impute=0 -b 9 --comment '')" = '[[1,2],[3,0],[0,4],[0,5],[6,7]]' ]
}

@test "rows, shards, steps, after, drop-remainder" {
    seq 10 > t.csv
    [ "$(x csv t.csv x=1 --rows 2-4,9- -b 9)" = '[2,3,4,9,10]' ]
    [ "$(x csv t.csv x=1 --shard 1/3 -b 9)" = '[2,5,8]' ]
    [ "$(x csv t.csv x=1 -b 4 | tail -1)" = '[9,10]' ]
    [ "$(x csv t.csv x=1 -b 4 --drop-remainder | tail -1)" = '[5,6,7,8]' ]
    [ "$(x csv t.csv x=1 -b 4 --steps 4 | tail -1)" = '[1,2,3,4]' ]
    [ "$(x csv t.csv x=1 -b 4 --epochs 2 --steps 9 | wc -l)" -eq 6 ]
    tf-data csv t.csv x=1 -b 4 --epochs 3 --shuffle --seed 5 | tf-show > all
    tf-data csv t.csv x=1 -b 4 --epochs 3 --shuffle --seed 5 --after 4 | tf-show > rest
    diff <(tail -n +5 all) rest
    [ "$(wc -l < rest)" -eq 5 ]
    tf-data csv t.csv x=1 -b 4 --epochs 3 --after 4 -o rest.rec
    tf-show --follow rest.rec | finds "^step 9/9"
}

@test "the order follows from the seed and the epoch, and shards share it" {
    seq 100 > t.csv
    [ "$(x csv t.csv x=1 -b 100 --shuffle)" = "$(x csv t.csv x=1 -b 100 --shuffle --seed 0)" ]
    [ "$(x csv t.csv x=1 -b 100 --shuffle)" != "$(x csv t.csv x=1 -b 100 --shuffle --seed 1)" ]
    x csv t.csv x=1 -b 100 --shuffle --epochs 2 > two
    [ "$(sed -n 1p two)" != "$(sed -n 2p two)" ]
    for i in 0 1; do x csv t.csv x=1 -b 7 --shuffle --shard $i/2; done |
        jq -s 'add | sort == [range(1; 101)]' | finds true
    [ "$(x csv t.csv x=1 -b 100 --shuffle --prefetch 3)" = "$(x csv t.csv x=1 -b 100 --shuffle)" ]
    x csv t.csv x=1 -b 5 --shuffle-buffer 20 > window
    jq -s '.[:4] | add | sort == [range(1; 21)]' window | finds true
    [ "$(head -1 window)" != '[1,2,3,4,5]' ]
}

@test "records say where they come from" {
    seq 5 > t.csv
    tf-data csv t.csv x=1 -b 2 --epochs 2 --shuffle --seed 9 > t.rec
    /usr/bin/python3 - > positions <<'PYTHON'
import msgpack
unpacker = msgpack.Unpacker(open("t.rec", "rb"), raw=False, strict_map_key=False)
for item in unpacker:
    if isinstance(item, dict) and item.get("kind") == "feed":
        print(item["step"], item["source"], item["epoch"], item["offset"], item["seed"])
PYTHON
    [ "$(sed -n 3p positions)" = "3 t.csv 1 5 9" ]
    [ "$(sed -n 4p positions)" = "4 t.csv 2 2 9" ]
}

@test "from a pipe each line is answered as it comes" {
    mkfifo in out
    tf-data csv - x=1-2 --batch 1 < in > out &
    tf-show < out > shown &
    exec 7> in
    for i in 1 2 3; do
        echo "$i,5" >&7
        for _ in $(seq 100); do
            [ "$(wc -l < shown)" -ge "$i" ] && break
            sleep 0.02
        done
        mean=$(awk "BEGIN { print ($i + 5) / 2 }")
        [ "$(sed -n "${i}p" shown)" = "feed $i  x float32[1,2] min $i max 5 mean $mean" ]
    done
    exec 7>&-
    wait
}

@test "a pipe that ends: a rest, shards, all of it where it is needed" {
    [ "$(seq 5 | x csv - x=1 -b 2 | tail -1)" = '[5]' ]
    [ "$(seq 5 | x csv - x=1 -b 2 --shard 1/2)" = '[2,4]' ]
    [ "$(seq 4 | x csv - x=1 -b 4 --epochs 2 | wc -l)" -eq 2 ]
    [ "$(seq 5 | x csv - x=1 -b 2 --prefetch 2 | tail -1)" = '[5]' ]
    [ "$(seq 1000000 | x csv - x=1 -b 2 --rows 3-4)" = '[3,4]' ]
}

@test "no rows, and nothing left of them" {
    empty() { # LINE INPUT ARGUMENT...
        local line=$1 input=$2
        shift 2
        run --separate-stderr -65 bash -c 'printf "$1" | tf-data "${@:2}"' _ "$input" "$@"
        [ "$stderr" = "tf-data: $line" ] || { echo "$stderr" >&2 && false; }
    }
    empty "stdin: no rows" '' csv - x=1
    empty "stdin: no rows" 'a,b\n' csv - x=a
    empty "stdin: no rows" '1\n' csv - x=1 --rows 2-
    empty "stdin: no rows" '' csv - x=1 --prefetch 2
    empty "stdin: 2 rows make no batch of 3" '1\n2\n' csv - x=1 -b 3 --drop-remainder
    empty "stdin: 0 rows of this shard make no batch of 1" '1\n' csv - x=1 --shard 1/2
    empty "stdin: --after 3: there are only 2 records" '1\n2\n' csv - x=1 --after 3
    seq 4 > t.csv
    fails 65 "t.csv: --after 3: there are only 2 records" csv t.csv x=1 -b 2 --after 3
    fails 65 "t.csv: --after 3: there are only 2 records" csv t.csv x=1 -b 1 --steps 2 --after 3
    [ -z "$(x csv t.csv x=1 -b 2 --after 2)" ] # all was done before
    [ -z "$(seq 4 | x csv - x=1 -b 2 --after 2)" ]
}

@test "IDX, .npy and .npz" {
    printf '\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\2\1\2\3\4\5\6\7\xff' > i.idx
    printf '\0\0\x08\x01\0\0\0\2\7\x9' | gzip > l.gz
    tf-data idx x=i.idx y=l.gz:int32 | tf-show > shown
    [ "$(sed -n 1p shown)" = "feed 1  x uint8[1,2,2] min 1 max 4 mean 2.5  y int32[1] 7" ]
    [ "$(x idx x=i.idx:float64:scale=0.5:shape=4 --rows 2)" = '[[2.5,3,3.5,127.5]]' ]
    seq 4 | tf-data csv - x=1-:float64:shape=1 -b 4 | tf-show --npy - x > a.npy
    [ "$(x npy x=a.npy:int16 -b 4)" = '[[1],[2],[3],[4]]' ]
    seq 2 | tf-data csv - x=1 -b 2 | tf-show --npy - x > b.npy
    fails 65 "b.npy: 'y' has 2 rows, but 'x' has 4" npy x=a.npy y=b.npy
    /usr/bin/python3 -c 'from numpy import *
savez("a.npz", x=arange(6).reshape(3, 2), y=ones(3))
savez("odd.npz", **{"x\33y": ones(3)})' || skip "no numpy"
    [ "$(x npz a.npz -b 2 | tail -1)" = '[[4,5]]' ]
    [ "$(x npz a.npz x=y:int8 -b 3)" = '[1,1,1]' ]
    fails 65 "a.npz: no array named 'z'" npz a.npz x=z
    fails 65 "odd.npz: array 'x y' has a name that is not fit to print" npz odd.npz
    fails 64 "'x y=1': a name that is not fit to print" csv a.csv $'x\33y=1'
}

@test "arrays of an archive beside others that cannot be fed" {
    /usr/bin/python3 - << 'PYTHON' || skip "no numpy"
import zipfile
import numpy as np
np.savez("o.npz", classes=np.array(["cat", "dog"]), day=np.array(["2024-01-01"], "M8[D]"),
         x=np.array([1, 2], "f4"), any=np.array([None, 1], dtype=object))
zipfile.ZipFile("o.npz", "a").writestr("README.txt", "hi")
np.savez("many.npz", **{f"a{i}": np.float32([i]) for i in range(20000)})
PYTHON
    [ "$(x npz o.npz x=x -b 2)" = '[1,2]' ]
    fails 65 "o.npz: array 'day': arrays of type '<M8[D]' are not supported" npz o.npz
    run --separate-stderr -65 tf-show o.npz
    [[ $output == 'classes  string[2]  "cat" "dog"'$'\n'"x  float32[2]  1 2" ]]
    [[ $stderr == "tf-show: o.npz: array 'day': "* ]]
    run --separate-stderr -0 tf-show o.npz x
    [ -z "$stderr" ]
    # 20,000 members: time enough to go through them once, not once for each
    timeout 20 tf-data npz many.npz | tf-show --json | finds '"a19999":\[19999\]'
}

@test "texts of arrays are fields as those of a table" {
    /usr/bin/python3 - <<'PYTHON' || skip "no numpy"
import numpy as np
kinds = np.array(["low", "NA", "häß\U0001f600", "", "low"])
np.savez("t.npz", kind=kinds, big=kinds.astype(">U7"),
         bytes=np.array([b"1.5", b"?", b"3", b"", b"2"]),
         grid=np.asfortranarray([["a", "b"], ["c", "de"]]), day=np.array(["2024-02-29"] * 5))
np.save("t.npy", kinds)
np.savez("wrong.npz", x=np.frombuffer(b"\0\xd8\0\0a\0\0\0", "<U1"))
PYTHON
    local words='["low","NA","häß😀","","low"]'
    [ "$(x npz t.npz x=kind -b 5)" = "$words" ]
    [ "$(x npz t.npz x=big:text -b 5)" = "$words" ]
    [ "$(x npy x=t.npy -b 5)" = "$words" ]
    [ "$(x npz t.npz x=grid -b 2)" = '[["a","b"],["c","de"]]' ]
    [ "$(x npz t.npz x=kind:category:impute=most -b 5 -q)" = '[1,1,0,1,1]' ]
    [ "$(x npz t.npz x=kind:onehot:impute=most:flag -b 5 -q --rows 2-3)" = '[[1,1],[1,0]]' ]
    [ "$(x npz t.npz x=bytes:impute=mean:float64 -b 5 -q)" = '[1.5,2.1666666666666665,3,'\
'2.1666666666666665,2]' ]
    [ "$(x npz t.npz x=day:date=yearday --steps 1)" = '[60]' ]
    tf-data npz t.npz x=kind:category:impute=most --fit p.json --keep day -b 5 |
        tf-show --csv --prep p.json | sed -n 4p | finds -x '2024-02-29,häß😀'
    # a group is in the same part, whatever file it is read from
    { echo kind,x && seq 50 | sed 's/.*/k&,&/'; } >k.csv
    /usr/bin/python3 -c 'import numpy as np
np.savez("k.npz", kind=[f"k{i}" for i in range(1, 51)], x=range(1, 51))'
    [ "$(x npz k.npz x=x:float32 -b 50 --split 70/30 --part train --group kind)" = \
        "$(x csv k.csv x=x -b 50 --split 70/30 --part train --group kind)" ]
    fails 65 "t.npz: 'x': row 2 of the rows selected: missing; --missing VALUE puts a value there" \
        npz t.npz x=kind:category
    fails 65 "t.npz: 'x': row 1 of the rows selected: 'low' is not a number" npz t.npz x=kind:int32
    fails 65 "wrong.npz: array 'x': text 1 has what is no character" npz wrong.npz
}

@test "values that are no numbers, rows of another length, missing fields" {
    printf '1,2\n3,abc\n' > word.csv
    fails 65 "word.csv:2: column 2: 'abc' is not a number" csv word.csv x=1-2
    printf '1,2\n3\n' > ragged.csv
    fails 65 "ragged.csv:2: 1 columns, but line 1 has 2" csv ragged.csv x=1
    fails 65 "ragged.csv:1: 'x' wants column 3, but there are 2" csv ragged.csv x=1-3
    printf '1,\n3,NA\n' > missing.csv
    fails 65 "missing.csv:1: column 2: missing; --missing VALUE puts a value there" \
        csv missing.csv x=2
    [ "$(x csv missing.csv x=2 -b 2 --missing -1)" = '[-1,-1]' ]
    [ "$(x csv missing.csv x=2 -b 2 --missing nan)" = '["NaN","NaN"]' ]
    printf '1\n300\n' > large.csv
    fails 65 "large.csv:2: column 1: '300' is out of the range of uint8" csv large.csv x=1:uint8
    printf '1\n1e39\n' > huge.csv
    fails 65 "huge.csv:2: column 1: '1e39' is out of the range of float32" csv huge.csv x=1
    printf '1e19\n' > whole.csv
    fails 65 "whole.csv:1: column 1: '1e19' is out of the range of uint64" csv whole.csv x=1:uint64
    printf '1.5\n' > fraction.csv
    fails 65 "fraction.csv:1: column 1: '1.5' is not a whole number" csv fraction.csv x=1:int32
    [ "$(printf '5.0\n2e2\n' | x csv - x=1:int32 -b 2)" = '[5,200]' ]
    fails 65 "fraction.csv: 'x': row 1 of the rows selected: 1.5 is not in [0, 3) for onehot" \
        csv fraction.csv x=1:onehot=3
}

@test "files that are missing, empty, cut, or no files" {
    fails 66 "none.csv: No such file or directory" csv none.csv x=1
    fails 65 ".: is a directory" csv . x=1
    : > empty.csv
    fails 65 "empty.csv: no rows" csv empty.csv x=1
    head -c 20000 "$examples/data/digits.csv.gz" > cut.csv.gz
    run --separate-stderr -65 tf-data csv cut.csv.gz x=1 -o /dev/null
    [[ $stderr == "tf-data: cut.csv.gz: truncated gzip data after "*" bytes" ]]
    seq 3 > three.csv
    fails 65 "three.csv: 3 rows make no batch of 4" csv three.csv x=1 -b 4 --drop-remainder
    fails 65 "three.csv: no rows" csv three.csv x=1 --rows 4-
}

@test "words that are wrong" {
    seq 3 > t.csv
    fails 64 "there is no verb 'xyz'; tf-data --help lists them" xyz t.csv
    fails 64 "there is no verb 'jsnol'; did you mean jsonl?" jsnol t.csv
    fails 64 "csv: say what to feed, as in x=1-64" csv t.csv
    fails 64 "csv: expected a file before 'x=a'" csv x=a
    fails 64 "'x': expected NAME=COLUMNS[:TYPE]..." csv t.csv x
    fails 64 "'x' is given twice" csv t.csv x=1 x=1
    fails 64 "--shard '2/2': expected I/N with 0 <= I < N" csv t.csv x=1 --shard 2/2
    fails 64 "--rows: '5-2' is no position from 1 to 2^63 - 1, nor a range as 5-9 or 5-" \
        csv t.csv x=1 --rows 1-3,5-2,9
    fails 64 "--batch 0: from 1 to 2^61" csv t.csv x=1 --batch 0
    fails 64 "--separator 'ab': expected one character" csv t.csv x=1 --separator ab
    run -64 tf-data csv t.csv x=1:flaot32 -o /dev/null
    [[ $output == *"'flaot32': neither a type nor a part"* ]]
    fails 64 "'x=1:float32:int32': 'float32': another part says the same" \
        csv t.csv x=1:float32:int32
    run --separate-stderr -0 tf-data csv t.csv x=1 --rows 2-9 -o /dev/null
    [ "$stderr" = "tf-data: --rows 2-9: there are only 3 rows" ]
    run --separate-stderr -0 tf-data csv t.csv x=1 --rows 2-3 -o /dev/null
    [ -z "$stderr" ]
}

@test "an error in the middle of a pipe stops the next stage with the same status" {
    printf '1\n2\nx\n' > bad.csv
    run --separate-stderr -65 bash -c 'tf-data csv - x=1 < bad.csv | tf-show'
    echo "$stderr" > err
    grep -qx "tf-data: stdin:3: column 1: 'x' is not a number" err
    grep -qx "tf-show: stdin: stopped by tf-data" err
}

@test "a thread that waits for input does not hold up the end" {
    run --separate-stderr bash -c \
        '{ echo 1; sleep 8; } | timeout 5 tf-data csv - x=1 --prefetch 4 >/dev/full'
    [[ $status -eq 74 && $stderr == "tf-data: stdout: "* ]]
}

@test "what the environment says and no column wants does no harm" {
    local word
    printf '1,2\n3,4\n5,6\n' >t.csv
    tf-data csv t.csv x=1 >plain.rec
    for word in FIT=f.json PREP=none.json UNSEEN=error SPLIT=70/30 FOLD=0/3 STRATIFY=2 GROUP=2 \
        DROP_REMAINDER=1 JSON=1 SEED=3; do
        env TF_"$word" tf-data csv t.csv x=1 >word.rec
        [ "$(tf-show --json word.rec | jq -c .x)" = "$(tf-show --json plain.rec | jq -c .x)" ]
    done
    [ ! -e f.json ]
    tf-data csv t.csv x=1 --no-drop-remainder --no-shuffle >word.rec
}
