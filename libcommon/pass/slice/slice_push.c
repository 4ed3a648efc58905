/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of a replicated graph: each has an aggregator of its own, and gets its own rows.
 */
#include "pass/slice/slice_private.h"

/* Outputs that are no gradient go with the first slice. */
static bool goes_with(enum taken what, int k)
{
    return what != TAKEN_OTHER || k == 0;
}

/* Finds all that depends on an AggregatorTake, and all that this needs. */
void slice_find_updates(struct slicer *s)
{
    graph_each(node, s->from) {
        s->updates[node->id] = node_round(node) == ROUND_TAKE;
    }
    spread_facts(s->from, s->r.order, s->updates, (struct spread){.fact = 1});
    spread_facts(s->from, s->r.order, s->updates, (struct spread){.fact = 1, .up = true});
}

static const char *aggregator_of(struct slicer *s, const struct node *node, int k)
{
    return s->names[graph_find(s->from, node_string(node, "aggregator"))->id][k];
}

static struct edge pushed(struct slicer *s, const struct node *push, int i, int k)
{
    const struct node *take = graph_node(s->from, s->take[push->id]);
    enum taken what = slice_taken(s, take, i);
    int slicing = s->slicing[push->id];
    const struct form *form = NULL;
    if (what == TAKEN_OTHER)
        return slice_whole(s, push, push->inputs[i]);
    if (what == TAKEN_DENSE)
        form = slice_rows_of(s, slicing, push->inputs[i]);
    else if (what == TAKEN_INDEX)
        form = slice_index_of(s, slicing, push->inputs[i]);
    else
        form = slice_part_of(s, slicing, push->inputs[i], push->inputs[slice_partner(take, i)]);
    return form ? form->parts[k] : EDGE_NONE;
}

int slice_visit_push(struct slicer *s, const struct node *node)
{
    const struct node *take = graph_node(s->from, s->take[node->id]);
    struct form form = slice_new_rows(s, node, 0);
    struct edge *inputs = arena_array(&s->r.arena, (size_t)node->n_inputs, sizeof *inputs);
    for (int k = 0; k < slice_n_slices(s, node) && !s->err->code; k++) {
        int n = 0;
        for (int i = 0; i < node->n_inputs && !s->err->code; i++)
            if (goes_with(slice_taken(s, take, i), k))
                inputs[n++] = pushed(s, node, i, k);
        struct attr more = {"aggregator", attr_string(aggregator_of(s, node, k))};
        form.parts[k] = slice_add_copy(
            s,
            (struct rewrite_copy){
                .node = node, .k = k, .inputs = inputs, .n_inputs = n, .more = &more, .n_more = 1});
    }
    if (!slice_note(s, &form))
        return s->err->code;
    rewrite_await_parts(&s->r, node, form.parts, slice_n_slices(s, node));
    slice_is_whole(s, form.edge, form.parts[0]);
    return 0;
}

int slice_visit_take(struct slicer *s, const struct node *node)
{
    size_t n = (size_t)node->n_outputs;
    struct partition cut = slice_cut_at(s, s->slicing[node->id]);
    struct form *forms = arena_array(&s->r.arena, n, sizeof *forms);
    struct edge *all = arena_array(&s->r.arena, (size_t)cut.n[0], sizeof *all);
    for (int i = 0; i < node->n_outputs; i++) {
        enum taken what = slice_taken(s, node, i);
        forms[i] = slice_new_rows(s, node, i);
        forms[i].kind = what == TAKEN_INDEX    ? FORM_INDEX
                        : what == TAKEN_VALUES ? FORM_PART
                                               : FORM_ROWS;
        if (what == TAKEN_VALUES)
            forms[i].index = (struct edge){node->id, slice_partner(node, i)};
    }
    for (int k = 0; k < cut.n[0] && !s->err->code; k++) {
        enum dtype *types = arena_array(&s->r.arena, n, sizeof *types);
        struct shape *shapes = arena_array(&s->r.arena, n, sizeof *shapes);
        const char **reductions = arena_array(&s->r.arena, n, sizeof *reductions);
        int used = 0; /* of the k-th slice's outputs */
        for (int i = 0; i < node->n_outputs; i++) {
            enum taken what = slice_taken(s, node, i);
            if (!goes_with(what, k))
                continue;
            types[used] = node->outputs[i].type;
            shapes[used] = node_attr(node, "shapes")->shapes[i];
            if (what == TAKEN_DENSE)
                shapes[used] = cut_shape(&cut, &shapes[used], k);
            reductions[used] = node_attr(node, "reductions")->strings[i];
            forms[i].parts[k].slot = used++;
        }
        struct edge inputs[] = {slice_whole(s, node, node->inputs[0]),
                                slice_whole(s, node, node->inputs[1])};
        struct attr more[] = {
            {"T", {.kind = ATTR_LIST_TYPE, .n = used, .types = types}},
            {"shapes", {.kind = ATTR_LIST_SHAPE, .n = used, .shapes = shapes}},
            {"reductions", {.kind = ATTR_LIST_STRING, .n = used, .strings = reductions}},
            {"aggregator", attr_string(aggregator_of(s, node, k))}};
        all[k] = slice_add_copy(
            s,
            (struct rewrite_copy){
                .node = node, .k = k, .inputs = inputs, .n_inputs = 2, .more = more, .n_more = 4});
        for (int i = 0; i < node->n_outputs; i++)
            forms[i].parts[k].node = all[k].node;
    }
    rewrite_await_parts(&s->r, node, all, cut.n[0]);
    for (int i = 0; i < node->n_outputs && !s->err->code; i++) {
        if (slice_taken(s, node, i) == TAKEN_OTHER)
            slice_is_whole(s, forms[i].edge, forms[i].parts[0]);
        else
            slice_note(s, &forms[i]);
    }
    return s->err->code;
}

/* ClockPush gets the tokens of all pushes. */
int slice_visit_clock(struct slicer *s, const struct node *node)
{
    VEC(struct edge) inputs = VEC_INIT;
    for (int i = 0; i < node->n_inputs && !s->err->code; i++) {
        const struct node *from = graph_node(s->from, node->inputs[i].node);
        const struct form *tokens =
            s->role[from->id] == SLICE_PUSH ? slice_first_known(s, node->inputs[i]) : NULL;
        for (int k = 0; tokens && k < slice_n_slices(s, from); k++)
            vec_push_in(&s->r.arena, &inputs, tokens->parts[k]);
        if (!tokens)
            vec_push_in(&s->r.arena, &inputs, slice_whole(s, node, node->inputs[i]));
    }
    struct edge clock = slice_add_copy(
        s, (struct rewrite_copy){
               .node = node, .k = -1, .inputs = inputs.items, .n_inputs = (int)inputs.n});
    if (edge_exists(clock))
        rewrite_stand_in(&s->r, node, clock.node);
    return s->err->code;
}
