# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # emulated, work are of gpu-check
# The examples that train, for pieces of gpu-check: where each one is, its feeds, and the value that
# its training minimizes.
examples="digits digits_cnn digits_rnn lion-digits ridge figure1 line"

script_of() { # NAME
    case $1 in
    line) echo examples/c/line.lua ;;
    *) echo "examples/$1.lua" ;;
    esac
}

cost_of() { # NAME
    case $1 in
    figure1) echo C ;;
    *) echo loss ;;
    esac
}

# Prints the same model in float64: variables have their type from the script, or else float32.
in_float64() { # NAME
    sed 's/float32/float64/g; s/variable{/&dtype = float64, /' "$(script_of "$1")"
}

# Prints the rows of a batch of digits. The emulator is slow, and is given fewer.
batch_of() { # NAME
    case $emulated$1 in
    ydigits_cnn) echo 4 ;;
    y*) echo 16 ;;
    *) echo 64 ;;
    esac
}

records() { # NAME TYPE STEPS: prints its feeds, in its own type if it has only float64
    case $1 in
    ridge) (cd examples && ./feed-diabetes --steps "$3") ;;
    figure1)
        tf-op RandomUniform '[8,784]' "dtype=$2" -o "$work/x.npy" &&
            tf-data npy "x=$work/x.npy" --batch 8 --steps "$3"
        ;;
    line)
        printf '%s\n' 0,-1 1,2 2,5 3,8 >"$work/points.csv" &&
            tf-data csv "$work/points.csv" "x=1:$2" "y=2:$2" --header no --batch 4 --steps "$3"
        ;;
    *)
        tf-data csv examples/data/digits.csv.gz "x=1-64:$2" y=65:int32 --rows 1-1437 --shuffle \
            --batch "$(batch_of "$1")" --epochs 20 --steps "$3"
        ;;
    esac
}
