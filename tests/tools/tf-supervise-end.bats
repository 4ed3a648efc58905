#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-supervise: services that die while the final hook needs them, and hooks that die.
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir -m 700 job
}

tasks() { # the lines of FILE, from stdin; the job's folder is there
    { echo "job job" && cat; } >tasks
}

@test "a service that dies while the hook for the end runs takes all back, and that is done again" {
    tasks <<'END'
end [ ! -e again ] || exit 0; touch again; kill -9 $(cat s.pid); sleep 60
task s
service
restart all
command echo $$ >s.pid; echo s >>starts; exec sleep 60
task a
command echo a >>starts; until [ -e s.pid ]; do sleep 0.05; done
END
    timeout 20 tf-supervise tasks 3>&-
    [ "$(sort starts | paste -sd' ')" = "a a s s" ]
}

@test "a service that refuses the hook for the end because it ends itself is such a one" {
    tasks <<'END'
end [ ! -e again ] || exit 0; touch again; kill -INT $(cat s.pid); exit 69
task s
service
restart all
command echo $$ >s.pid; echo s >>starts; trap 'sleep 0.4; exit 0' INT; while :; do sleep 0.05; done
task a
command echo a >>starts; until [ -e s.pid ]; do sleep 0.05; done
END
    timeout 20 tf-supervise tasks 3>&-
    [ "$(sort starts | paste -sd' ')" = "a a s s" ]
    # a hook that fails by itself counts as failed
    tasks <<'END'
end exit 74
task s
service
command sleep 60
task a
command true
END
    run -74 timeout 20 tf-supervise tasks 3>&-
}

@test "a hook that is killed is run again, a few times" {
    tasks <<'END'
stop echo stop >>log; [ -e kept ] || { touch kept; kill -TERM $$; }
end echo end $JOB_SAVED >>log; [ -e over ] || { touch over; kill -KILL $$; }
task a
command echo $$ >a.pid; exec sleep 60
END
    timeout 20 tf-supervise tasks 3>&- &
    soon 10 test -s a.pid
    local code=0
    kill -TERM $!
    wait $! || code=$?
    [ "$code" -eq 143 ]
    [ "$(paste -sd' ' log)" = "stop stop end 1 end 1" ]
    tasks <<'END'
stop echo stop >>log; kill -TERM $$
task a
command echo $$ >again.pid; exec sleep 60
END
    rm log
    # timeout also signals its group, which may hit a hook before it has printed anything.
    timeout --foreground 20 tf-supervise tasks 3>&- &
    soon 10 test -s again.pid
    kill -TERM $!
    wait $! || code=$?
    [ "$(wc -l <log)" -eq 4 ]
}
