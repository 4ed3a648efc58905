/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "ops/aggregate/ids_any.h"
#include "resource/journal.h"

struct journal_use {
    struct journal *journal;
    const char *of; /* NULL: of all values */
};

static int prepare(struct kernel_setup *setup)
{
    struct journal_use *use = setup->state = mem_alloc(sizeof *use);
    if (!setup->variables)
        return kernel_setup_fail(setup, "there is nowhere to keep a journal");
    use->journal = journal_of(setup->variables, container_of_node(setup->node));
    use->of = node_attr(setup->node, "of") ? node_string(setup->node, "of") : NULL;
    return 0;
}

/* ---- a worker joins ---- */

static int heads_run(struct kernel_call *call)
{
    const struct journal_use *use = call->state;
    struct journal_head heads[JOURNAL_COPIES];
    int n;
    if (journal_heads(use->journal, heads, &n, call->err))
        return call->err->code;
    struct shape shape = shape_matrix(n, 2);
    struct tensor *out = kernel_alloc_output(call, 0, &shape);
    if (!out)
        return call->err->code;
    for (int i = 0; i < n; i++) {
        tensor_set_int64(out, 2 * i, heads[i].incarnation);
        tensor_set_int64(out, 2 * i + 1, heads[i].step);
    }
    return KERNEL_DONE;
}

static int begin_run(struct kernel_call *call)
{
    const struct journal_use *use = call->state;
    bool own = *(const bool *)call->in[2]->data;
    const struct journal_head head = {*(const int64_t *)call->in[0]->data,
                                      own ? *(const int64_t *)call->in[1]->data : 0};
    return journal_begin(use->journal, &head, call->err);
}

static int read_run(struct kernel_call *call)
{
    const struct journal_use *use = call->state;
    struct tensor *value = kernel_alloc_output(call, 0, &call->node->outputs[0].shape);
    struct tensor *open = value ? kernel_alloc_output(call, 1, &SHAPE_SCALAR) : NULL;
    return open ? journal_read(use->journal, use->of, value, open->data, call->err)
                : call->err->code;
}

/* ---- a worker pushes ---- */

static int write_run(struct kernel_call *call)
{
    const struct journal_use *use = call->state;
    return journal_write(use->journal, call->step->number, use->of, call->in[0], call->err);
}

static int journal_add_run(struct kernel_call *call)
{
    const struct journal_use *use = call->state;
    return journal_add(use->journal, call->step->number, use->of, call->in[0], call->err);
}

static int commit_run(struct kernel_call *call)
{
    const struct journal_use *use = call->state;
    return journal_commit(use->journal, call->step->number, call->err);
}

const struct kernel_code kernel_journal_heads = {.prepare = prepare, .run = heads_run};
const struct kernel_code kernel_journal_begin = {.prepare = prepare, .run = begin_run};
const struct kernel_code kernel_journal_read = {.prepare = prepare, .run = read_run};
const struct kernel_code kernel_journal_write = {.prepare = prepare, .run = write_run};
const struct kernel_code kernel_journal_add = {.prepare = prepare, .run = journal_add_run};
const struct kernel_code kernel_journal_commit = {.prepare = prepare, .run = commit_run};
