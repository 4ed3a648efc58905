/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a gradient is pushed: the gradient, or the two factors that it is a product of, which the
 * shard multiplies when a round is taken (Chilimbi et al., Project Adam, OSDI 2014, section 3.2).
 * Rows of the round's members come one after the other, by rank, so that a shard makes the bits
 * that workers make who send each other factors.
 */
#include "pass/replicate/replicate_push.h"
#include "pass/replicate/replicate_code.h"

int replicate_list_pushed(struct replicator *r)
{
    if (r->options->factors == FACTORS_AUTO && replicate_workers(r->options) < 1)
        return error_set(r->err, ERR_USAGE,
                         "factors=auto depends on the number of workers: give -c or --workers");
    vec_each(push, &r->pushes) {
        push->first_product = r->products.n;
        for (size_t k = 0; k < push->edges.n; k++) {
            struct edge edge = push->edges.items[k];
            const struct node *node = graph_node(r->from, edge.node);
            const char *reduction = replicate_reduction(node, node->outputs[edge.slot].type);
            struct gradient_product product;
            switch (replicate_choose(r, edge, &product)) {
            case CROSSES_BY_FACTORS:
                product.first = (int)push->values.n;
                vec_push_in(&r->arena, &push->values,
                            ((struct pushed_value){product.left, "rows", PUSHED_FACTOR}));
                vec_push_in(&r->arena, &push->values,
                            ((struct pushed_value){product.right, "mean_rows", PUSHED_FACTOR}));
                vec_push_in(&r->arena, &r->products, product);
                break;
            case CROSSES_IN_CODE:
                vec_push_in(&r->arena, &push->values,
                            ((struct pushed_value){edge, "rows", PUSHED_CODE}));
                if (r->options->after < 1)
                    break;
                vec_push_in(&r->arena, &push->values,
                            ((struct pushed_value){edge, "mean", PUSHED_FIRST}));
                vec_push_in(&r->arena, &push->values,
                            ((struct pushed_value){edge, "first", PUSHED_CODING}));
                break;
            case CROSSES_WHOLE:
                edge_map_add(&r->by_edge[BY_WHOLE], edge, (int)(push - r->pushes.items));
                edge_map_add(&r->by_edge[BY_SLOT], edge, (int)push->values.n);
                vec_push_in(&r->arena, &push->values,
                            ((struct pushed_value){edge, reduction, PUSHED_WHOLE}));
            }
        }
        push->n_products = r->products.n - push->first_product;
    }
    return r->err->code;
}

/* ---- gradients in few bits ----
 *
 * Gradients that are pushed to shards in few bits. Each worker codes the sum of its gradient and of
 * what its codes have lost so far, a variable of its own; the shard takes the mean of what the
 * codes of a round's members stand for. Once a push is decided the worker keeps what its code has
 * lost; of one that is dropped, as late, the whole. */

const struct coded_gradient *replicate_find_coded(const struct replicator *r, struct edge gradient)
{
    return &r->coded.items[replicate_at(r, BY_CODED, gradient)];
}

/* ---- pushing ---- */

/* The value where it is there, which is where `coding` is not `without`, else nothing. */
static struct edge or_nothing(struct replicator *r, const char *name, struct edge value,
                              const struct node_output *output, int without)
{
    /* A tensor without rows, of the type and the other dimensions of an output. */
    struct shape none = output->shape;
    none.dims[0] = 0;
    struct edge nothing = replicate_zeros(r, name, output->type, &none);
    struct edge steered = replicate_op(r, "Switch", nothing, r->coding, "%s/Switch", name);
    return replicate_op(r, "Merge", value, build_slot(steered, without), "%s/Merge", name);
}

struct edge replicate_push_first(struct replicator *r, const struct pushed_value *value)
{
    if (value->as == PUSHED_FIRST)
        return replicate_find_coded(r, value->edge)->first;
    return replicate_due_to_push(r, r->coding);
}

struct edge replicate_push_code(struct replicator *r, struct edge gradient, struct edge value)
{
    bool warms_up = r->options->after > 0;
    struct edge steered = value, after = value;
    if (warms_up && !edge_exists(r->coding)) {
        /* A gradient that is coded after some updates crosses whole before, by the version that the
         * worker computes from: members of a round of several have the same. */
        struct edge updates = replicate_number(r, INT64, r->options->after, "clock/codes/after");
        r->coding =
            replicate_op(r, "GreaterEqual", replicate_out(r->version), updates, "clock/codes");
    }
    if (warms_up) {
        steered = replicate_op(r, "Switch", value, r->coding, "%s/uncoded",
                               replicate_edge_name(r, gradient));
        after = (struct edge){steered.node, 1};
    }
    const struct node_output *output = &graph_node(r->from, gradient.node)->outputs[gradient.slot];
    const char *name = replicate_edge_text(r, gradient, "residual");
    struct edge residual = replicate_local(r, name, FLOAT32, &output->shape);
    struct coded_gradient *coded = replicate_code_value(r, gradient, after, residual);
    if (r->err->code)
        return EDGE_NONE;
    coded->pushed = coded->own.code;
    if (warms_up) {
        const struct node *source = graph_node(r->from, coded->gradient.node);
        const struct node *code = graph_node(r->to, coded->own.code.node);
        coded->pushed = or_nothing(r, replicate_edge_text(r, coded->gradient, "code/none"),
                                   coded->own.code, &code->outputs[coded->own.code.slot], 0);
        coded->first = or_nothing(r, replicate_edge_text(r, coded->gradient, "uncoded/none"),
                                  steered, &source->outputs[coded->gradient.slot], 1);
    }
    vec_push_in(&r->arena, &r->states, ((struct own_state){gradient, residual, EDGE_NONE}));
    return r->err->code ? EDGE_NONE : coded->pushed;
}

/* Takes, of a code, the gradient and whether it is coded, the i-th to i+2-nd value, one of the
 * first two where the third is `there`. */
static struct edge take_either(struct replicator *r, const struct push *push, int i,
                               const char *suffix, int which, int there)
{
    struct edge value = {push->take, i + which}, coding = {push->take, i + 2};
    return build_slot(replicate_op_beside(r, "Switch", value, coding, push->variable, "%s/%s",
                                          replicate_edge_name(r, push->values.items[i].edge),
                                          suffix),
                      there);
}

static int add_decoded(struct replicator *r, const struct push *push)
{
    for (size_t i = 0; i < push->values.n && !r->err->code; i++) {
        struct edge gradient = push->values.items[i].edge;
        if (push->values.items[i].as != PUSHED_CODE)
            continue;
        const struct coded_gradient *coded = replicate_find_coded(r, gradient);
        struct edge code = {push->take, (int)i};
        if (r->options->after > 0)
            code = take_either(r, push, (int)i, "code/taken", 0, 1);
        const struct edge inputs[] = {code, {r->round, 1}};
        struct edge mean =
            replicate_decode(r, coded, "mean", inputs, &coded->shape, push->variable);
        if (r->options->after > 0)
            mean = replicate_op_beside(
                r, "Merge", take_either(r, push, (int)i, "uncoded/taken", 1, 0), mean,
                push->variable, "%s/mean/Merge", replicate_edge_name(r, gradient));
        replicate_note_reduced(r, (struct reduced_value){gradient, mean, FOR_UPDATES, "mean", 0});
    }
    return r->err->code;
}

/* Products of factors, means of codes. */
int replicate_add_taken(struct replicator *r, const struct push *push)
{
    for (size_t i = 0; i < push->n_products; i++) {
        const struct gradient_product *product = &r->products.items[push->first_product + i];
        const struct edge factors[] = {{push->take, product->first},
                                       {push->take, product->first + 1}};
        struct edge made = replicate_add_product(r, product, factors, push->variable);
        replicate_note_reduced(
            r, (struct reduced_value){product->gradient, made, FOR_UPDATES, "mean", 0});
    }
    return add_decoded(r, push);
}

/* ---- what is lost ---- */

int replicate_keep_lost_pushes(struct replicator *r, struct edge counted)
{
    for (size_t i = 0; i < r->coded.n && !r->err->code; i++) {
        /* `counted`: whether the push is in the variables. */
        const struct coded_gradient *coded = &r->coded.items[i];
        struct code_edges lost = coded->own;
        struct edge value = replicate_op(r, "Switch", coded->own.value, counted, "%s/counted",
                                         replicate_edge_name(r, coded->gradient));
        lost.value = build_slot(value, 1);
        struct edge kept = replicate_keep(r, coded, &lost, "lost");
        struct edge back = replicate_op(r, "AssignAdd", coded->own.residual, build_slot(value, 0),
                                        "%s/back", replicate_edge_name(r, coded->gradient));
        replicate_also(r, &r->ends, kept);
        replicate_also(r, &r->ends, back);
    }
    return r->err->code;
}
