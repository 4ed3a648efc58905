/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: small random graphs of reads and writes with branches, loops, optimizers, scatters and
 * groups, and the result of a step. The model knows the rule of graph/access.h for pairs of nodes,
 * and nothing of how plans are made. It orders everything so that each read has a point before it,
 * which comes after the writes with a path to the read and before the others, and then runs the
 * graph one node at a time.
 */
#ifndef TF_TESTS_LIB_ORDER_MODEL_H
#define TF_TESTS_LIB_ORDER_MODEL_H

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "lib/unit.h"

#define MODEL_VARIABLES 3
#define MODEL_NODES 64 /* with variables, the feed and fetches */
#define MODEL_INPUTS 3
#define MODEL_VERTICES ((1 + MODEL_INPUTS) * MODEL_NODES)
#define MODEL_PREDICATES 2
#define MODEL_FED 10.0

enum model_op {
    M_VARIABLE,
    M_FEED,
    M_IDENTITY,
    M_NEG,
    M_ADD,
    M_SUB,
    M_SWITCH, /* of a predicate, for two M_PASS */
    M_PASS,   /* one side of it */
    M_MERGE,  /* of a true one and a false one */
    M_ENTER,  /* for an M_LOOP */
    M_LOOP,   /* three times input 0 += input 1, and the variable that it `sees` */
    M_GROUP,
    M_ASSIGN,
    M_ASSIGN_ADD,
    M_SCATTER_ADD,
    M_MOMENTUM, /* of nesterov, with a rate of 1/2 and a momentum of 1/4 */
    M_FETCH
};

struct model_node {
    enum model_op op;
    char name[8];
    int in[MODEL_INPUTS], n_in; /* an M_LOOP that sees a variable has it as the last */
    int controls[3], n_controls;
    int predicate, branch; /* of what belongs to a branch */
    int loop;              /* of an M_ENTER */
    unsigned needs;        /* bit 2 p + b: it runs only where predicate p is b */
    bool is_target;
};

struct model {
    struct model_node nodes[MODEL_NODES];
    int n;         /* with fetches, which come last */
    int n_fetches; /* first of all of `values` */
    bool predicates[MODEL_PREDICATES];
};

/* What is fetched, then each variable after the step. */
struct model_result {
    double values[MODEL_NODES];
    int n;
};

/* ---- random ---- */

static inline int model_below(uint64_t *state, int n)
{
    return (int)(unit_random(state) % (uint64_t)n);
}

static inline bool model_is_write(const struct model_node *node)
{
    return node->op >= M_ASSIGN && node->op <= M_MOMENTUM;
}

static inline bool model_takes_ref(const struct model_node *node, int k)
{
    return model_is_write(node) && (k == 0 || (node->op == M_MOMENTUM && k == 1));
}

/* Returns the variable that a node is, or whose reference it passes on; -1. */
static inline int model_variable(const struct model *m, int node)
{
    while (model_is_write(&m->nodes[node]))
        node = m->nodes[node].in[0];
    return m->nodes[node].op == M_VARIABLE ? node : -1;
}

static inline bool model_has_value(const struct model_node *node)
{
    return node->op != M_SWITCH && node->op != M_ENTER && node->op != M_GROUP;
}

static inline bool model_contradicts(unsigned needs)
{
    return needs & (needs >> 1) & 0x5;
}

/* Picks a node that others may use; `always`: one without a condition. */
static inline int model_pick(const struct model *m, uint64_t *state, bool always)
{
    for (;;) {
        int i = model_below(state, m->n);
        if (model_has_value(&m->nodes[i]) && !(always && m->nodes[i].needs))
            return i;
    }
}

static inline int model_pick_ref(const struct model *m, uint64_t *state)
{
    int i = model_pick(m, state, false);
    for (int tries = 0; model_variable(m, i) < 0 && tries < 50; tries++)
        i = model_pick(m, state, false);
    return i;
}

static inline void model_add_controls(const struct model *m, uint64_t *state, int density,
                                      bool always, struct model_node *node)
{
    for (int k = 0; k < 3; k++) {
        int i = model_pick(m, state, always);
        if (model_below(state, 100) < density)
            node->controls[node->n_controls++] = i;
    }
}

static inline bool model_push(struct model *m, struct model_node node)
{
    for (int k = 0; k < node.n_in && node.op != M_MERGE; k++)
        node.needs |= m->nodes[node.in[k]].needs;
    for (int k = 0; k < node.n_controls; k++)
        node.needs |= m->nodes[node.controls[k]].needs;
    if (model_contradicts(node.needs) || m->n == MODEL_NODES - 4)
        return false;
    m->nodes[m->n++] = node;
    return true;
}

static inline void model_add_branches(struct model *m, uint64_t *state, int density)
{
    int predicate = model_below(state, MODEL_PREDICATES), first = m->n;
    struct model_node merge = {.op = M_MERGE, .n_in = 2};
    if (m->n > MODEL_NODES - 12)
        return;
    for (int b = 0; b < 2; b++) {
        struct model_node fork = {.op = M_SWITCH, .n_in = 1, .predicate = predicate};
        fork.in[0] = model_pick(m, state, true);
        model_push(m, fork);
    }
    for (int b = 0; b < 2; b++) {
        struct model_node pass = {.op = M_PASS, .n_in = 1, .predicate = predicate, .branch = b};
        pass.in[0] = first + b;
        pass.needs = 1u << (2 * predicate + b);
        model_add_controls(m, state, 2 * density, true, &pass);
        merge.in[b] = m->n;
        model_push(m, pass);
    }
    model_push(m, merge);
}

static inline void model_add_loop(struct model *m, uint64_t *state, int density)
{
    struct model_node loop = {.op = M_LOOP, .n_in = 2};
    int at = m->n + 2;
    if (m->n > MODEL_NODES - 10)
        return;
    for (int k = 0; k < 2; k++) {
        struct model_node enter = {.op = M_ENTER, .n_in = 1, .loop = at, .branch = k};
        enter.in[0] = model_pick(m, state, true);
        model_add_controls(m, state, density / 2, true, &enter);
        loop.in[k] = m->n;
        model_push(m, enter);
    }
    if (model_below(state, 2))
        loop.in[loop.n_in++] = model_below(state, MODEL_VARIABLES);
    model_push(m, loop);
}

static inline void model_add(struct model *m, uint64_t *state, int density)
{
    static const enum model_op ops[] = {
        M_IDENTITY, M_IDENTITY,   M_NEG,         M_ADD,      M_SUB,    M_GROUP, M_ASSIGN,
        M_ASSIGN,   M_ASSIGN_ADD, M_SCATTER_ADD, M_MOMENTUM, M_SWITCH, M_LOOP,  M_IDENTITY};
    static const int n_in[] = {
        [M_IDENTITY] = 1,   [M_NEG] = 1,      [M_ADD] = 2,         [M_SUB] = 2,  [M_ASSIGN] = 2,
        [M_ASSIGN_ADD] = 2, [M_MOMENTUM] = 3, [M_SCATTER_ADD] = 2, [M_FETCH] = 0};
    struct model_node node = {.op = ops[model_below(state, 14)]};
    if (node.op == M_SWITCH || node.op == M_LOOP) {
        if (node.op == M_SWITCH)
            model_add_branches(m, state, density);
        else
            model_add_loop(m, state, density);
        return;
    }
    node.n_in = n_in[node.op];
    for (int k = 0; k < node.n_in; k++) {
        bool is_ref = model_takes_ref(&node, k);
        node.in[k] = is_ref ? model_pick_ref(m, state) : model_pick(m, state, false);
        if (is_ref && model_variable(m, node.in[k]) < 0)
            return;
    }
    if (node.op == M_MOMENTUM && model_variable(m, node.in[0]) == model_variable(m, node.in[1]))
        return;
    model_add_controls(m, state, density, false, &node);
    if (node.op != M_GROUP || node.n_controls)
        model_push(m, node);
}

/* Names a node at random: names must not show the order in which nodes were made. */
static inline void model_name(struct model *m, uint64_t *state)
{
    bool used[100] = {false};
    for (int i = 0; i < m->n; i++) {
        int number = model_below(state, 100);
        while (used[number])
            number = (number + 1) % 100;
        used[number] = true;
        snprintf(m->nodes[i].name, sizeof m->nodes[i].name, "n%02d", number);
    }
}

static inline void model_make(struct model *m, uint64_t seed)
{
    uint64_t state = seed;
    int density = 10 + 10 * (int)(seed % 4);
    int n = MODEL_VARIABLES + 1 + 3 + model_below(&state, seed % 3 ? 13 : 40);
    memset(m, 0, sizeof *m);
    for (int i = 0; i < MODEL_VARIABLES; i++)
        m->nodes[m->n++].op = M_VARIABLE;
    m->nodes[m->n++].op = M_FEED;
    for (int p = 0; p < MODEL_PREDICATES; p++)
        m->predicates[p] = model_below(&state, 2);
    for (int tries = 0; m->n < n && tries < 100; tries++)
        model_add(m, &state, density);
    model_name(m, &state);
    int n_nodes = m->n;
    for (int i = 0; i < 3; i++) {
        int target = MODEL_VARIABLES + 1 + model_below(&state, n_nodes - MODEL_VARIABLES - 1);
        m->nodes[target].is_target = m->nodes[target].op != M_ENTER;
    }
    m->n_fetches = 1 + model_below(&state, 3);
    for (int i = 0; i < m->n_fetches; i++) {
        struct model_node fetch = {.op = M_FETCH, .n_in = 1};
        do
            fetch.in[0] = model_below(&state, n_nodes);
        while (!model_has_value(&m->nodes[fetch.in[0]]) || m->nodes[fetch.in[0]].needs);
        m->nodes[m->n++] = fetch;
    }
}

#endif
