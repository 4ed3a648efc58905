/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/exec_life.h"

#include "base/failpoint.h"
#include "cli/tool.h"

const struct exec_life_rule exec_life_rules[LIFE_STATES] = {
    [LIFE_READS] = {"exec.reads", "reading the graph", END_AT_ONCE, true},
    [LIFE_OPENS] = {"exec.opens", "the start", END_AT_ONCE, true},
    [LIFE_STARTS] = {"exec.starts", "init", END_LEAVES, true},
    [LIFE_FEEDS] = {"exec.feeds", NULL, END_SAVES, false},
    [LIFE_STEPS] = {"exec.steps", NULL, END_AT_ONCE, true},
    [LIFE_ENDS] = {"exec.ends", NULL, END_SAVES, false},
    [LIFE_GONE] = {"exec.gone", NULL, END_AT_ONCE, true}};

/* The failpoint makes nothing fail: a test uses it to stop or kill the process in this state. */
void exec_life_go(enum exec_life *life, enum exec_life next)
{
    *life = next;
    tool_end_late(exec_life_rules[next].ends_late);
    if (FAILPOINT(exec_life_rules[next].point))
        return;
}
