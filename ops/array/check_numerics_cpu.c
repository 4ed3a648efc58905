/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/str.h"
#include "exec/device/kernel.h"

struct check {
    const char *message;
};

static int check_prepare(struct kernel_setup *setup)
{
    struct check *check = mem_alloc(sizeof *check);
    check->message = node_string(setup->node, "message");
    setup->state = check;
    setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

static int check_run(struct kernel_call *call)
{
    int64_t bad = tensor_find_not_finite(call->in[0]);
    if (bad < 0)
        return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
    struct str what = STR_INIT;
    tensor_print_not_finite(&what, call->in[0], bad);
    kernel_fail(call, "%s is %s", ((const struct check *)call->state)->message, str_text(&what));
    str_release(&what);
    call->err->reason = ERROR_NOT_FINITE;
    return call->err->code;
}

const struct kernel_code kernel_check_numerics = {.prepare = check_prepare, .run = check_run};
