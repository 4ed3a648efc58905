/* SPDX-License-Identifier: Apache-2.0
 *
 * Local steps: each worker updates its variables by its own gradients, and every so many steps all
 * average the variables that updates write (model averaging; Moritz et al., SparkNet, ICLR 2016).
 * Updates also write optimizer slots and batch statistics, so these are averaged too (Yu, Jin and
 * Yang, ICML 2019): after each average all workers are equal, and a checkpoint of one of them is
 * one of all.
 *
 * The entry that trains is unchanged. The exchange is in the entry `average`, so steps between two
 * averages do not wait for other workers. With a code the variable's change since the last average
 * crosses, quantized; `anchor` variables have the values from which these changes are computed, and
 * the entry `anchor` sets them when a worker begins.
 */
#include "graph/access_nodes.h"
#include "graph/worker_attr.h"
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_reduce.h"

enum { IS_WRITTEN = 1, IS_TRAINED = 2 }; /* of a variable, by the entry that trains */

int replicate_plan_averages(struct replicator *r)
{
    const struct graph *from = r->from;
    unsigned char *marks = arena_array(&r->arena, from->nodes.n + 1, sizeof *marks);
    const int *variables = access_variables(from, &r->arena);
    if (replicate_refuse_leaving_out(r, "goes by all gradients: average=N has none of others"))
        return r->err->code;
    vec_each(x, &r->exchanges) {
        (*x)->crossing = CROSSES_NOT;
        if ((*x)->is_gradient && (*x)->variable)
            marks[(*x)->variable->id] |= IS_TRAINED;
    }
    graph_each(node, from) {
        for (int i = 0; i < node->n_inputs && has(r, node->id, FACT_WRITER); i++) {
            int variable = access_variable_at(from, variables, node->inputs[i]);
            if (variable >= 0 && node_writes_ref(node, i))
                marks[variable] |= IS_WRITTEN;
        }
    }
    graph_each(node, from) {
        if (!(marks[node->id] & IS_WRITTEN) || !dtype_is_floating(node->outputs[0].type))
            continue;
        struct exchange *x = replicate_new_exchange(r, (struct edge){node->id, 0});
        x->variable = node;
        x->is_gradient = marks[node->id] & IS_TRAINED;
        x->steps = r->options->average;
        x->reduction = "mean";
        vec_push_in(&r->arena, &r->planned, x);
    }
    return 0;
}

/* A variable in code exchanges its change since the last average. */
void replicate_begin_averages(struct replicator *r)
{
    vec_each(at, &r->planned) {
        struct exchange *x = *at;
        if (!r->options->average || x->crossing != CROSSES_IN_CODE)
            continue;
        const char *name = x->node->name;
        struct edge variable = replicate_edge(r, x->edge);
        x->kept = replicate_local(r, replicate_text(r, name, "anchor"), x->output->type,
                                  &x->output->shape);
        replicate_assign(r, &r->joined, x->kept, variable, "%s/anchor/Assign", name);
        x->brought = replicate_op(r, "Sub", variable, x->kept, "%s/change", name);
    }
}

int replicate_end_averages(struct replicator *r)
{
    if (!r->options->average)
        return r->err->code;
    vec_each(at, &r->planned) {
        const struct exchange *x = *at;
        const char *name = x->node->name;
        struct edge mean = x->got;
        if (edge_exists(x->kept)) {
            mean = replicate_op(r, "Add", x->kept, x->got, "%s/average", name);
            replicate_assign(r, &r->ends, x->kept, mean, "%s/anchor/average", name);
        }
        replicate_assign(r, &r->ends, replicate_edge(r, x->edge), mean, "%s/average/Assign", name);
    }
    struct edge every = replicate_number(r, INT64, r->options->average, WORKER_AVERAGE "/every");
    int set = replicate_after(r, "NoOp", WORKER_DEVICE, &r->ends, WORKER_AVERAGE "/set");
    const struct edge average[] = {every, {set, CONTROL_SLOT}};
    r->ends.n = 0; /* they belong to no step */
    if (replicate_entry(r, WORKER_AVERAGE, average, 2) || !r->joined.n)
        return r->err->code;
    int begun = replicate_after(r, "NoOp", WORKER_DEVICE, &r->joined, WORKER_ANCHOR "/set");
    return replicate_entry(r, WORKER_ANCHOR, &(struct edge){begun, CONTROL_SLOT}, 1);
}
