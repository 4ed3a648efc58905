#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-data: how fields are parsed and transformed, and missing fields.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools
load ../lib/data

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    printf '%s\n' id,age,sex,visit,risk 1,50,f,2024-01-31,low 2,NA,m,2024-02-29T12:30:00Z,high \
        3,30,,31.12.2023,low 4,null,f,20231231,mid 5,70,NaN,2024-03-01T10:00:30.5+02:00,high > p.csv
}

@test "random tables are prepared as scikit-learn prepares them" {
    /usr/bin/python3 "$BATS_TEST_DIRNAME/../data/prep/check.py"
}

@test "a thousand other tables are so, where pandas and scikit-learn are installed" {
    "${PYTHON:-python3}" -c 'import pandas, sklearn' 2>/dev/null ||
        skip "no pandas, or no scikit-learn"
    "${PYTHON:-python3}" "$BATS_TEST_DIRNAME/../data/prep/make.py" 1000 "$RANDOM" >tables.json
    "${PYTHON:-python3}" "$BATS_TEST_DIRNAME/../data/prep/check.py" tables.json
}

@test "categories: in ascending order of texts, of numbers, or as they are listed" {
    [ "$(x csv p.csv x=risk:category -b 9)" = '[1,0,1,2,0]' ]
    [ "$(x csv p.csv x=risk:category=low,mid,high -b 9)" = '[0,2,0,1,2]' ]
    [ "$(printf '10\n9\n1e1\n-1\n' | x csv - x=1:category -b 9)" = '[2,1,2,0]' ]
    [ "$(x csv p.csv x=risk:onehot --rows 1-2 -b 9 -q)" = '[[0,1],[1,0]]' ]
    tf-data csv p.csv x=risk:category | tf-show | head -1 | finds 'x int32\[1\] 1'
    # an unseen category has the id after the last, or is an error
    tf-data csv p.csv x=risk:category --rows 1-3 --fit p.json -o /dev/null
    [ "$(x csv p.csv x=risk:category --prep p.json -b 9)" = '[1,0,1,2,0]' ]
    fails 65 "p.csv:5: column 5: 'mid' is none of the categories" \
        csv p.csv x=risk:category --prep p.json --unseen error
    [ "$(x csv p.csv x=risk:onehot --prep p.json --rows 4)" = '[[0,0]]' ]
    [ "$(x csv p.csv x=risk:category=low --rows 1-2 -b 2)" = '[0,1]' ]
    fails 65 "'x': p.json: has other categories than category=low" \
        csv p.csv x=risk:category=low --prep p.json
}

@test "a category may be of several lines, as a quoted field is" {
    printf 'note,y\n"a\nb",1\nc,2\n"a\nb",3\n' > lines.csv
    [ "$(x csv lines.csv x=note:category --fit l.json -b 9)" = '[0,1,0]' ]
    jq -e '.category.x.categories == [["a\nb", "c"]]' l.json
    tf-data csv lines.csv x=note:category --prep l.json -b 2 | tf-show --csv --prep l.json |
        diff - <(printf 'x\n"a\nb"\nc\n"a\nb"\n')
    printf 'a\033[1m\nb\n' > odd.csv
    fails 65 "odd.csv:1: column 1: a category that is no text (UTF-8)" \
        csv odd.csv x=1:category --header no
}

@test "hashes stay in their range, and are the same everywhere" {
    [ "$(x csv p.csv x=risk:hash=1 -b 9)" = '[0,0,0,0,0]' ]
    [ "$(x csv p.csv x=risk:hash=1000 -b 9)" = "$(x csv p.csv x=risk:hash=1000 -b 9 --prefetch 2)" ]
    # XXH3 of the three bytes "low", seed 0
    [ "$(x csv p.csv x=risk:hash=16777216 --steps 1)" = '[10345715]' ]
    x csv p.csv x=risk:hash=4:onehot -b 9 | jq -e 'map(add) == [1,1,1,1,1] and (.[0] | length) == 4'
}

@test "dates: seconds and parts, in UTC" {
    [ "$(x csv p.csv x=visit:date -b 9)" = \
        '[1706659200,1709209800,1703980800,1703980800,1709280030.5]' ]
    [ "$(x csv p.csv x=visit:date=year -b 9)" = '[2024,2024,2023,2023,2024]' ]
    [ "$(x csv p.csv x=visit:date=weekday -b 9)" = '[2,3,6,6,4]' ]
    printf 'd\n0001-01-01 00:00:35+02:40\n' >first.csv # the last day of the year 0, a Sunday
    [ "$(x csv first.csv x=d:date=weekday)" = '[6]' ]
    [ "$(x csv first.csv x=d:date=yearday)" = '[366]' ]
    [ "$(x csv p.csv x=visit:date=hour -b 9)" = '[0,12,0,0,8]' ]
    [ "$(x csv p.csv x=visit:date=yearday -b 9)" = '[31,60,365,365,61]' ]
    [ "$(x csv p.csv x=visit:date=month:onehot=13:int32 --steps 1)" = \
        '[[0,1,0,0,0,0,0,0,0,0,0,0,0]]' ]
    # one digit where a spreadsheet writes no leading zero
    printf '%s\n' day 1.2.2024 2024-2-1 2024/02/1 '01.2.2024 13:45' > short.csv
    [ "$(x csv short.csv x=day:date -b 4)" = '[1706745600,1706745600,1706745600,1706795100]' ]
    printf '2023-02-29\n' > no.csv
    fails 65 "no.csv:1: column 1: '2023-02-29' is no date as 2024-02-29 or 2024-02-29T13:45:30Z" \
        csv no.csv x=1:date --header no
}

@test "what is missing is imputed and flagged" {
    [ "$(x csv p.csv x=age:impute=mean -b 9)" = '[50,50,30,50,70]' ]
    [ "$(x csv p.csv x=age:impute=-1:flag -b 9)" = '[[50,0],[-1,1],[30,0],[-1,1],[70,0]]' ]
    [ "$(x csv p.csv x=sex:onehot:impute=most:flag -b 9)" = \
        '[[1,0,0],[0,1,0],[1,0,1],[1,0,0],[1,0,1]]' ]
    [ "$(x csv p.csv x=sex:category:impute=none -b 9)" = '[0,1,2,0,2]' ]
    [ "$(x csv p.csv x=age:flag --missing 7 -b 9)" = '[[50,0],[7,1],[30,0],[7,1],[70,0]]' ]
    [ "$(x csv p.csv x=age:scale:impute=mean -b 9)" = '[0.5,0.5,0,0.5,1]' ]
    # NaN is a number if no part handles missing values
    [ "$(printf 'nan\n1\n' | x csv - x=1 -b 2)" = '["NaN",1]' ]
    [ "$(printf 'nan\n1\n' | x csv - x=1:impute=5 -b 2)" = '[5,1]' ]
    tf-data csv p.csv x=age --missing nan -b 9 | tf-show --npy - x > a.npy
    [ "$(x npy x=a.npy:impute=median:flag -b 9)" = '[[50,0],[50,1],[30,0],[50,1],[70,0]]' ]
    [ "$(x npy x=a.npy:category:impute=0 -b 9)" = '[2,0,1,0,3]' ]
}

@test "texts are bytes as they are" {
    [ "$(x csv p.csv x=sex:text -b 3)" = "$(x csv p.csv x=sex:string -b 3)" ]
    [ "$(x csv p.csv x=sex:text -b 3 | head -1)" = '["f","m",""]' ]
}

@test "patterns of names, and what is left out" {
    printf '%s\n' id,a1,a2,b,-5 1,2,3,4,5 > t.csv
    [ "$(x csv t.csv 'x=a*')" = '[[2,3]]' ]
    [ "$(x csv t.csv 'x=*,-id,-b')" = '[[2,3,5]]' ]
    [ "$(x csv t.csv 'x=-id,-a?')" = '[[4,5]]' ]
    [ "$(x csv t.csv 'x=[ab]*,-a1')" = '[[3,4]]' ]
    [ "$(x csv t.csv 'x=b,*')" = '[[4,1,2,3,5]]' ]
    [ "$(x csv t.csv x=-2 --header yes)" = '[[1,2]]' ] # as cut(1) has it: 1 to 2
    fails 65 "t.csv:1: no column has a name as 'z*'" csv t.csv 'x=z*'
    fails 65 "t.csv:1: no column named 'ix' (did you mean 'id'?)" csv t.csv 'x=*,-ix'
    fails 65 "t.csv:1: 'x' has no columns: 'id,-id' leaves none" csv t.csv 'x=id,-id'
    # a name in the header is taken as that name
    printf '%s\n' '*,-id,id' 1,2,3 > odd.csv
    [ "$(x csv odd.csv 'x=*,-id')" = '[[1,2]]' ]
    # rows without a header, for a file that was fitted
    tf-data csv t.csv 'x=a*:scale' --fit t.json -o /dev/null
    [ "$(tail -n 1 t.csv | x csv - 'x=a*:scale' --prep t.json)" = '[[0,0]]' ]
}

@test "prep.json says what was done to each column" {
    tf-data csv p.csv x=age:impute=median:log1p:scale y=risk:category s=sex:category:impute=most \
        --fit p.json -b 9 > whole.rec
    jq -e '."tf-data prep" == 2 and .impute.x == {"columns": ["age"], "rows": 5, "of": "log1p",
            "by": "median", "value": [50]} and
            .category.y.categories == [["high", "low", "mid"]] and
            .impute.s.value == ["f"] and (.scale.x.max[0] * 1e6 | floor) == 4262679' p.json
    tf-data csv p.csv x=age:impute=median:log1p:scale y=risk:category s=sex:category:impute=most \
        --prep p.json -b 9 > again.rec
    [ "$(tf-show --json whole.rec)" = "$(tf-show --json again.rec)" ]
    fails 65 "p.json: 'x' has no mean and deviation: it was not standardized" \
        csv p.csv x=age:standardize --prep p.json
    fails 65 "p.json: 'x' was fitted to log1p, not to values as they are" \
        csv p.csv x=age:scale --prep p.json
    fails 65 "p.json: 'x' was fitted with impute=median, not mean" \
        csv p.csv x=age:impute=mean --prep p.json
    fails 65 "p.json: 'x' has no categories" csv p.csv x=age:category --prep p.json
    fails 65 "p.json: 'y' was fitted to columns risk, not to sex" \
        csv p.csv y=sex:category --prep p.json
    for change in '."tf-data prep" = 3' '.category.y.categories = [["a", "a"]]' \
        '.category.y.categories = []' '.category.y.categories = [3]' '.scale.x.min = ["1"]' \
        '.category.y.categories = [[{}]]' '.scale.x.min = [9]' '.impute.s.value = ["none"]' \
        '.impute.x.value = [1, 2]' '.scale.x.columns = ["age", "risk"]' \
        '.impute.s.columns = ["a", "b"]' \
        'del(.category, .impute, .scale)'; do
        jq "$change" p.json > wrong.json
        run --separate-stderr -65 tf-data csv p.csv x=age:scale:log1p s=sex:category:impute=most \
            --prep wrong.json -o /dev/null
        [[ $stderr == "tf-data: wrong.json: not written by --fit: "* ]] ||
            { echo "$change: $stderr" >&2 && false; }
    done
}

@test "parts that do not go together" {
    for wrong in 'x=a:category:standardize|ids are no values to compute with' \
        'x=a:hash=3:impute=mean|ids are no values to compute with' \
        'x=a:scale:onehot|either scale or onehot' \
        'x=a:category:onehot=3|onehot without a number is as wide as there are ids' \
        'x=a:date:onehot|onehot of dates wants a number: date=month:onehot=13' \
        'x=a:onehot=3:flag|onehot=N goes with no flag and no log1p' \
        'x=a:text:flag|text cannot be computed with'; do
        fails 64 "'${wrong%|*}': ${wrong#*|}" csv p.csv "${wrong%|*}"
    done
    fails 64 "'x=a:category:date': 'category': another part says the same" \
        csv p.csv x=a:category:date
    fails 64 "--unseen 'new': expected own or error" csv p.csv x=age --unseen new
    fails 64 "--unseen: no column has categories" csv p.csv x=age --unseen error
    printf '1\n-2\n' > minus.csv
    fails 65 "minus.csv: 'x': row 2 of the rows selected: log1p of -2 does not exist" \
        csv minus.csv x=1:log1p
}

@test "amounts with signs and separators are numbers where that is said" {
    local wrong
    printf '%s\n' name,price,tax 'a,"1,234.5",€5' 'b,"-$2,000,000",NA' 'c, 12 ,£6.25' \
        'd,$-3,¥7' > m.csv
    # As float() of Python reads them without the signs and commas.
    tf-data csv m.csv x=price:amount n=price:amount:float64:offset=0.5 y=tax:amount:impute=5 -b 4 |
        tf-show --json | jq -ce '.x == [1234.5,-2000000,12,-3] and .y == [5,5,6.25,7] and
            .n == [1235,-1999999.5,12.5,-2.5]'
    tf-data csv m.csv --rows 3,4 x=price:int32:amount -b 2 | tf-show --json | jq -ce '.x == [12,-3]'
    fails 65 "m.csv:2: column 2: '1,234.5' is a number only as :amount" csv m.csv x=price
    fails 65 "m.csv:2: column 2: '1,234.5' is a number only as :amount" csv m.csv x=price:int32
    for wrong in 1,23 ,123 1,2345 1234,567 1.5,000 1,234,56 '5 $ 5' 12€50 '$' 1,,234 '1e400$' \
        "$(printf '%070d' 5),000"; do
        printf '%s\n' x "\"$wrong\"" > w.csv
        run -65 tf-data csv w.csv x=x:amount -o /dev/null
    done
    fails 64 "'x=price:amount:text': text cannot be computed with" csv m.csv x=price:amount:text
    # What describe suggests feeds them.
    tf-data describe m.csv --json | jq -e '[.columns[].type] == ["text", "amount", "amount"] and
        .columns[1].min == -2000000 and .columns[1].max == 1234.5'
    eval "$(tf-data describe m.csv | tail -n 1)" | tf-show | grep -F 'y float32[4] min 5 max 7'
}
