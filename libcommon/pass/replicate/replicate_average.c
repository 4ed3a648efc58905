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

static bool is_trained(const struct replicator *r, const struct node *variable)
{
    vec_each(x, &r->exchanges) {
        if ((*x)->is_gradient && (*x)->variable == variable)
            return true;
    }
    return false;
}

static void add_average(struct replicator *r, const struct node *variable)
{
    const struct exchange found = {.edge = {variable->id, 0},
                                   .node = variable,
                                   .output = &variable->outputs[0],
                                   .variable = variable,
                                   .is_gradient = is_trained(r, variable),
                                   .steps = r->options->average,
                                   .reduction = "mean",
                                   .kept = EDGE_NONE,
                                   .brought = EDGE_NONE,
                                   .got = EDGE_NONE};
    vec_push_in(&r->arena, &r->planned, arena_copy(&r->arena, &found, sizeof found));
}

int replicate_plan_averages(struct replicator *r)
{
    const struct graph *from = r->from;
    bool *is_written = arena_array(&r->arena, from->nodes.n + 1, sizeof *is_written);
    const int *variables = access_variables(from, &r->arena);
    if (replicate_may_leave_out(r))
        return error_set(r->err, ERR_DATA,
                         "the graph leaves out updates now and then, as a dynamic loss scale does, "
                         "which goes by all gradients: average=N has none of others");
    vec_each(x, &r->exchanges)
        (*x)->crossing = CROSSES_NOT;
    graph_each(node, from) {
        for (int i = 0; i < node->n_inputs && has(r, node->id, FACT_WRITER); i++) {
            int variable = access_variable_at(from, variables, node->inputs[i]);
            if (variable >= 0 && node_writes_ref(node, i))
                is_written[variable] = true;
        }
    }
    graph_each(node, from) {
        if (is_written[node->id] && dtype_is_floating(node->outputs[0].type))
            add_average(r, node);
    }
    return 0;
}

/* A variable in code exchanges its change since the last average. */
void replicate_begin_averages(struct replicator *r)
{
    vec_each(at, &r->planned) {
        struct exchange *x = *at;
        const char *name = x->node->name;
        struct edge variable = replicate_edge(r, x->edge);
        if (!r->options->average || x->crossing != CROSSES_IN_CODE)
            continue;
        x->kept = replicate_local(r, replicate_text(r, name, "anchor"), x->output->type,
                                  &x->output->shape);
        replicate_assign(r, &r->joined, x->kept, variable, "%s/anchor/Assign", name);
        x->brought = replicate_op(r, "Sub", variable, x->kept, "%s/change", name);
    }
}

static void set_average(struct replicator *r, const struct exchange *x)
{
    const char *name = x->node->name;
    struct edge mean = x->got;
    if (edge_exists(x->kept)) {
        mean = replicate_op(r, "Add", x->kept, x->got, "%s/average", name);
        replicate_assign(r, &r->ends, x->kept, mean, "%s/anchor/average", name);
    }
    replicate_assign(r, &r->ends, replicate_edge(r, x->edge), mean, "%s/average/Assign", name);
}

static int add_entry(struct replicator *r, const char *name, struct edge fetched,
                     const node_list *nodes)
{
    struct edge *edges = arena_array(&r->arena, nodes->n + 1, sizeof *edges);
    int n = 0;
    if (edge_exists(fetched))
        edges[n++] = fetched;
    vec_each(node, nodes)
        edges[n++] = (struct edge){*node, CONTROL_SLOT};
    if (n && !r->err->code)
        graph_add_entry(r->to, name, edges, n);
    return r->err->code;
}

int replicate_end_averages(struct replicator *r)
{
    if (!r->options->average)
        return r->err->code;
    vec_each(x, &r->planned)
        set_average(r, *x);
    struct edge every = replicate_number(r, INT64, r->options->average, WORKER_AVERAGE "/every");
    add_entry(r, WORKER_AVERAGE, every, &r->ends);
    add_entry(r, WORKER_ANCHOR, EDGE_NONE, &r->joined);
    r->ends.n = 0; /* they belong to no step */
    return r->err->code;
}
