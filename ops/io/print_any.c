/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>

#include "base/log.h"
#include "base/memory.h"
#include "exec/device/kernel.h"

struct print {
    const char *message;
    int64_t first_n, summarize;
    atomic_int_fast64_t printed;
};

/* "[1 2 3...]" */
static void append_tensor(struct str *line, const struct tensor *t, int64_t summarize)
{
    int64_t n = tensor_count(t), shown = summarize < 0 || summarize > n ? n : summarize;
    str_append_char(line, '[');
    for (int64_t i = 0; i < shown; i++) {
        if (i > 0)
            str_append_char(line, ' ');
        tensor_print_plain(line, t, i);
    }
    str_append(line, shown < n ? "...]" : "]");
}

/* ---- Print ---- */

static int print_prepare(struct kernel_setup *setup)
{
    struct print *print = setup->state = mem_alloc(sizeof *print);
    print->message = node_string(setup->node, "message");
    print->first_n = node_int(setup->node, "first_n");
    print->summarize = node_int(setup->node, "summarize");
    setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

static int print_run(struct kernel_call *call)
{
    struct print *print = call->state;
    if (print->first_n < 0 || atomic_fetch_add(&print->printed, 1) < print->first_n) {
        struct str line = STR_INIT;
        str_append(&line, print->message);
        for (int i = 1; i < call->n_in; i++)
            append_tensor(&line, call->in[i], print->summarize);
        log_text("%s", str_text(&line));
        str_release(&line);
    }
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_print = {.prepare = print_prepare, .run = print_run};

/* ---- Assert ---- */

static int assert_prepare(struct kernel_setup *setup)
{
    int64_t *summarize = setup->state = mem_alloc(sizeof *summarize);
    *summarize = node_int(setup->node, "summarize");
    return 0;
}

static int assert_run(struct kernel_call *call)
{
    const struct tensor *condition = call->in[0];
    if (tensor_count(condition) != 1)
        return kernel_fail(call, "condition must be a scalar, not %s",
                           shape_text(&condition->shape));
    if (*(const bool *)condition->data)
        return KERNEL_DONE;
    struct str text = STR_INIT;
    for (int i = 1; i < call->n_in; i++) {
        str_append_char(&text, ' ');
        append_tensor(&text, call->in[i], *(const int64_t *)call->state);
    }
    int code = kernel_fail(call, "assertion failed:%s", str_text(&text));
    str_release(&text);
    return code;
}

const struct kernel_code kernel_assert = {.prepare = assert_prepare, .run = assert_run};
