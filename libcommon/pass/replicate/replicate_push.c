/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a gradient is pushed: the gradient, or the two factors that it is a product of, which the
 * shard multiplies when a round is taken (Chilimbi et al., Project Adam, OSDI 2014, section 3.2).
 * Rows of the round's members come one after the other, by rank, so that a shard makes the bits
 * that workers make who send each other factors.
 */
#include "pass/replicate/replicate_push.h"

int replicate_list_pushed(struct replicator *r)
{
    if (r->options->factors == FACTORS_AUTO && replicate_workers(r->options) < 1)
        return error_set(r->err, ERR_USAGE,
                         "factors=auto depends on the number of workers: give -c or --workers");
    for (size_t i = 0; i < r->pushes.n; i++) {
        struct push *push = &r->pushes.items[i];
        push->first_product = r->products.n;
        for (size_t k = 0; k < push->edges.n; k++) {
            struct edge edge = push->edges.items[k];
            const struct node *node = graph_node(r->from, edge.node);
            const char *reduction = replicate_reduction(node, node->outputs[edge.slot].type);
            struct gradient_product product;
            switch (replicate_choose(r, edge, &product)) {
            case CROSSES_BY_FACTORS:
                product.first = (int)push->values.n;
                vec_push(&push->values,
                         ((struct pushed_value){product.left, "rows", PUSHED_FACTOR}));
                vec_push(&push->values,
                         ((struct pushed_value){product.right, "mean_rows", PUSHED_FACTOR}));
                vec_push(&r->products, product);
                break;
            case CROSSES_IN_CODE:
                vec_push(&push->values, ((struct pushed_value){edge, "rows", PUSHED_CODE}));
                if (r->options->after < 1)
                    break;
                vec_push(&push->values, ((struct pushed_value){edge, "mean", PUSHED_FIRST}));
                vec_push(&push->values, ((struct pushed_value){edge, "first", PUSHED_CODING}));
                break;
            case CROSSES_WHOLE:
                edge_map_add(&r->by_edge[BY_WHOLE], edge, (int)(push - r->pushes.items));
                edge_map_add(&r->by_edge[BY_SLOT], edge, (int)push->values.n);
                vec_push(&push->values, ((struct pushed_value){edge, reduction, PUSHED_WHOLE}));
            }
        }
        push->n_products = r->products.n - push->first_product;
    }
    return r->err->code;
}

int replicate_add_products(struct replicator *r, const struct push *push)
{
    for (size_t i = 0; i < push->n_products; i++) {
        const struct gradient_product *product = &r->products.items[push->first_product + i];
        const struct edge factors[] = {{push->take, product->first},
                                       {push->take, product->first + 1}};
        struct edge made = replicate_add_product(r, product, factors, push->variable);
        replicate_note_reduced(r,
                               (struct reduced){product->gradient, made, FOR_UPDATES, "mean", 0});
    }
    return r->err->code;
}
