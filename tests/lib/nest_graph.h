/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: programs of lib/nest.h lowered to Switch, Merge and frames. Statements with effects
 * are chained by a token, an integer that travels with the control flow like any other value.
 */
#ifndef TF_TESTS_LIB_NEST_GRAPH_H
#define TF_TESTS_LIB_NEST_GRAPH_H

#include <stdio.h>

#include "base/vec.h"
#include "graph/build.h"
#include "lib/nest.h"

#define NEST_TOKEN NEST_SLOTS

struct nest_routed {
    struct edge from, to;
};

/* Where nodes are made: outside, in a branch or in a loop. */
struct nest_place {
    struct nest_place *parent;
    const char *frame; /* of a loop; NULL: a branch */
    struct edge predicate;
    int branch;
    int pivot; /* node that constants run after; -1: outside */
    VEC(struct nest_routed) routed;
};

struct nest_bound {
    struct edge edge;
    struct nest_place *place;
};

struct nest_lowering {
    struct build build;
    struct nest_bound slots[NEST_SLOTS + 1];
    struct edge variables[NEST_VARIABLES];
    int parallel_iterations;
    bool loose; /* reads outside of loops do not use the token: the planner orders them */
    int n_frames;
};

static inline void nest_lower(struct nest_lowering *l, struct nest_place *place,
                              const struct nest_block *block);

static inline struct edge nest_enter(struct nest_lowering *l, struct nest_place *place,
                                     struct edge from, bool constant)
{
    struct attr attrs[] = {{"frame_name", attr_string(place->frame)},
                           {"is_constant", attr_bool(constant)},
                           {"parallel_iterations", attr_int(l->parallel_iterations)}};
    return build_op(&l->build, "Enter", &from, 1, attrs, 3);
}

static inline void nest_run_after(struct nest_lowering *l, const int *node)
{
    l->build.controls = node;
    l->build.n_controls = node && *node >= 0 ? 1 : 0;
}

/* Routes a value to `place`, which is inside the place where it was made. */
static inline struct edge nest_route(struct nest_lowering *l, struct nest_place *place,
                                     struct nest_bound value)
{
    if (value.place == place)
        return value.edge;
    struct edge from = nest_route(l, place->parent, value), to;
    for (size_t i = 0; i < place->routed.n; i++)
        if (place->routed.items[i].from.node == from.node &&
            place->routed.items[i].from.slot == from.slot)
            return place->routed.items[i].to;
    if (place->frame) {
        to = nest_enter(l, place, from, true);
        nest_run_after(l, &place->pivot); /* it exists even when the loop is over */
        to = build_unary(&l->build, "Identity", to);
        nest_run_after(l, NULL);
    } else
        to = build_slot(build_binary(&l->build, "Switch", from, place->predicate), place->branch);
    struct nest_routed routed = {from, to};
    vec_push(&place->routed, routed);
    return to;
}

static inline struct edge nest_slot(struct nest_lowering *l, struct nest_place *place, int slot)
{
    return nest_route(l, place, l->slots[slot]);
}

static inline void nest_bind(struct nest_lowering *l, struct nest_place *place, int slot,
                             struct edge edge)
{
    l->slots[slot] = (struct nest_bound){edge, place};
}

static inline struct edge nest_constant(struct nest_lowering *l, struct nest_place *place, int slot,
                                        int number)
{
    float elements[NEST_LENGTH];
    struct shape shape = shape_vector(NEST_LENGTH);
    for (int i = 0; i < NEST_LENGTH; i++)
        elements[i] = (float)number;
    struct tensor vector = tensor_borrow(FLOAT32, &shape, elements);
    nest_run_after(l, &place->pivot);
    struct edge edge = slot >= NEST_INTS && slot < NEST_SLOTS
                           ? build_const(&l->build, &vector)
                           : build_scalar(&l->build, slot < NEST_FLOATS ? FLOAT32 : INT32, number);
    nest_run_after(l, NULL);
    return edge;
}

static inline bool nest_in_loop(const struct nest_place *place)
{
    while (place && !place->frame)
        place = place->parent;
    return place != NULL;
}

/* Reads and writes of variables run after the token, those of all variables but the first by way of
 * a node that does nothing; the token then runs after them. */
static inline void nest_effect(struct nest_lowering *l, struct nest_place *place,
                               const struct nest_statement *s)
{
    struct edge variable = l->variables[s->variable], done;
    /* An Identity, as nodes after a Switch itself would run in both branches. */
    struct edge token = build_unary(&l->build, "Identity", nest_slot(l, place, NEST_TOKEN));
    struct edge value = s->kind == NEST_READ ? EDGE_NONE : nest_slot(l, place, s->a);
    nest_run_after(l, &token.node);
    int nothing = s->variable ? build_op(&l->build, "NoOp", NULL, 0, NULL, 0).node : token.node;
    nest_run_after(l, &nothing);
    if (s->kind == NEST_READ)
        done = build_unary(&l->build, "Identity", variable);
    else
        done = build_binary(&l->build, s->kind == NEST_ASSIGN ? "Assign" : "AssignAdd", variable,
                            value);
    if (s->kind == NEST_READ)
        nest_bind(l, place, s->slot, done);
    if (s->kind != NEST_READ || !l->loose || nest_in_loop(place)) {
        nest_run_after(l, &done.node);
        nest_bind(l, place, NEST_TOKEN, build_unary(&l->build, "Identity", token));
    }
    nest_run_after(l, NULL);
}

static inline struct edge nest_lower_less(struct nest_lowering *l, struct nest_place *place,
                                          const struct nest_statement *s)
{
    return build_binary(&l->build, "Less", nest_slot(l, place, s->a), nest_slot(l, place, s->b));
}

/* Returns the slots that a block changes, as bits. */
static inline unsigned nest_changes(const struct nest_block *block)
{
    unsigned changes = 0;
    for (int i = 0; i < block->n; i++) {
        const struct nest_statement *s = &block->statements[i];
        if (s->kind == NEST_COND || s->kind == NEST_LOOP)
            changes |= nest_changes(&s->yes) | nest_changes(&s->no);
        else if (s->kind != NEST_ASSIGN && s->kind != NEST_INCREMENT)
            changes |= 1u << s->slot;
        if (s->kind == NEST_READ || s->kind == NEST_ASSIGN || s->kind == NEST_INCREMENT)
            changes |= 1u << NEST_TOKEN;
    }
    return changes;
}

static inline void nest_lower_cond(struct nest_lowering *l, struct nest_place *place,
                                   const struct nest_statement *s)
{
    const struct nest_block *blocks[] = {&s->no, &s->yes};
    unsigned changes = nest_changes(&s->yes) | nest_changes(&s->no);
    struct edge predicate = nest_lower_less(l, place, s), results[2][NEST_SLOTS + 1];
    struct edge sides = build_binary(&l->build, "Switch", predicate, predicate);
    struct nest_bound before[NEST_SLOTS + 1];
    memcpy(before, l->slots, sizeof before);
    for (int side = 0; side < 2; side++) {
        struct nest_place inside = {.parent = place, .predicate = predicate, .branch = side};
        inside.pivot = build_unary(&l->build, "Identity", build_slot(sides, side)).node;
        memcpy(l->slots, before, sizeof before);
        nest_lower(l, &inside, blocks[side]);
        for (int i = 0; i <= NEST_SLOTS; i++)
            if (changes >> i & 1)
                results[side][i] = nest_slot(l, &inside, i);
        vec_release(&inside.routed);
    }
    memcpy(l->slots, before, sizeof before);
    for (int i = 0; i <= NEST_SLOTS; i++)
        if (changes >> i & 1)
            nest_bind(l, place, i, build_binary(&l->build, "Merge", results[0][i], results[1][i]));
}

/* Makes a Merge whose second input nest_close sets. */
static inline struct edge nest_open(struct nest_lowering *l, struct edge enter)
{
    struct edge inputs[] = {enter, EDGE_NONE};
    struct node_spec spec = {.op = "Merge", .inputs = inputs, .n_inputs = 2};
    struct node *merge = l->build.err->code ? NULL : graph_add(l->build.graph, &spec, l->build.err);
    return merge ? (struct edge){merge->id, 0} : EDGE_NONE;
}

static inline void nest_close(struct nest_lowering *l, struct edge merge, struct edge value)
{
    struct edge next = build_unary(&l->build, "NextIteration", value);
    if (!l->build.err->code)
        graph_set_input(l->build.graph, graph_node(l->build.graph, merge.node), 1, next,
                        l->build.err);
}

struct nest_variable {
    struct edge merge, sides;
};

static inline struct edge nest_loop_condition(struct nest_lowering *l, struct nest_place *inside,
                                              const struct nest_statement *s, struct edge count)
{
    struct edge limit = nest_constant(l, inside, NEST_TOKEN, s->limit);
    struct edge more = build_binary(&l->build, "Less", count, limit);
    if (s->limited)
        more = build_binary(&l->build, "LogicalAnd", more, nest_lower_less(l, inside, s));
    return build_unary(&l->build, "LoopCond", more);
}

static inline void nest_lower_loop(struct nest_lowering *l, struct nest_place *place,
                                   const struct nest_statement *s)
{
    unsigned changes = nest_changes(&s->yes);
    char frame[32];
    snprintf(frame, sizeof frame, "loop%d", l->n_frames++);
    struct nest_place inside = {.parent = place, .frame = frame};
    struct nest_variable v[NEST_SLOTS + 2];
    struct edge zero = nest_constant(l, place, NEST_TOKEN, 0);
    struct edge count = nest_open(l, nest_enter(l, &inside, zero, false));
    inside.pivot = count.node;
    for (int i = 0; i <= NEST_SLOTS; i++) {
        if (!(changes >> i & 1))
            continue;
        v[i].merge = nest_open(l, nest_enter(l, &inside, nest_slot(l, place, i), false));
        nest_bind(l, &inside, i, v[i].merge);
    }
    struct edge more = nest_loop_condition(l, &inside, s, count);
    inside.routed.n = 0; /* in the body what comes from outside waits for the body's pivot */
    struct edge counting = build_binary(&l->build, "Switch", count, more);
    struct edge body_count = build_unary(&l->build, "Identity", build_slot(counting, 1));
    inside.pivot = body_count.node;
    for (int i = 0; i <= NEST_SLOTS; i++) {
        if (!(changes >> i & 1))
            continue;
        v[i].sides = build_binary(&l->build, "Switch", v[i].merge, more);
        nest_bind(l, &inside, i, build_slot(v[i].sides, 1));
    }
    nest_lower(l, &inside, &s->yes);
    struct edge one = nest_constant(l, &inside, NEST_TOKEN, 1);
    nest_close(l, count, build_binary(&l->build, "Add", body_count, one));
    for (int i = 0; i <= NEST_SLOTS; i++) {
        if (!(changes >> i & 1))
            continue;
        nest_close(l, v[i].merge, nest_slot(l, &inside, i));
        nest_bind(l, place, i, build_unary(&l->build, "Exit", v[i].sides));
    }
    vec_release(&inside.routed);
}

static inline void nest_lower(struct nest_lowering *l, struct nest_place *place,
                              const struct nest_block *block)
{
    static const char *const ops[] = {[NEST_ADD] = "Add", [NEST_SUB] = "Sub", [NEST_MUL] = "Mul"};
    for (int i = 0; i < block->n && !l->build.err->code; i++) {
        const struct nest_statement *s = &block->statements[i];
        if (s->kind == NEST_COND)
            nest_lower_cond(l, place, s);
        else if (s->kind == NEST_LOOP)
            nest_lower_loop(l, place, s);
        else if (s->kind == NEST_COPY)
            l->slots[s->slot] = l->slots[s->a];
        else if (s->kind == NEST_CONSTANT)
            nest_bind(l, place, s->slot, nest_constant(l, place, s->slot, s->number));
        else if (s->kind > NEST_CONSTANT)
            nest_effect(l, place, s);
        else
            nest_bind(l, place, s->slot,
                      build_binary(&l->build, ops[s->kind], nest_slot(l, place, s->a),
                                   nest_slot(l, place, s->b)));
    }
}

#endif
