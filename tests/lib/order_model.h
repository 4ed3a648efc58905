/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: small random graphs of reads, writes and control edges, and what they may compute. The
 * model knows the rule of graph/access.h and nothing of how a plan is made: it tries every order of
 * the writes of each variable, and runs the graph one node at a time in an order in which each read
 * has a point before it that comes after the writes with a path to the read and before the others.
 */
#ifndef TF_TESTS_LIB_ORDER_MODEL_H
#define TF_TESTS_LIB_ORDER_MODEL_H

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "lib/unit.h"

#define MODEL_VARIABLES 3
#define MODEL_NODES 24 /* with variables, the feed and fetches */
#define MODEL_VERTICES (3 * MODEL_NODES)
#define MODEL_WRITES 4 /* of one variable */
#define MODEL_FED 10.0

enum model_op {
    M_VARIABLE,
    M_FEED,
    M_IDENTITY,
    M_NEG,
    M_ADD,
    M_SUB,
    M_ASSIGN,
    M_ASSIGN_ADD,
    M_FETCH
};

struct model_node {
    enum model_op op;
    char name[8];
    int in[2], n_in;
    int controls[3], n_controls;
    bool is_target;
};

struct model {
    struct model_node nodes[MODEL_NODES];
    int n;         /* with fetches, which come last */
    int n_fetches; /* first of all of `values` */
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
    return node->op == M_ASSIGN || node->op == M_ASSIGN_ADD;
}

/* The variable that a node is, or whose reference it hands on; -1. */
static inline int model_variable(const struct model *m, int node)
{
    while (model_is_write(&m->nodes[node]))
        node = m->nodes[node].in[0];
    return m->nodes[node].op == M_VARIABLE ? node : -1;
}

static inline void model_add(struct model *m, uint64_t *state, int density, int *n_writes)
{
    static const enum model_op ops[] = {M_IDENTITY, M_IDENTITY, M_IDENTITY, M_NEG,        M_ADD,
                                        M_SUB,      M_ASSIGN,   M_ASSIGN,   M_ASSIGN_ADD, M_ADD};
    struct model_node node = {.op = ops[model_below(state, 10)], .n_in = 1};
    int id = m->n;
    if (node.op >= M_ADD)
        node.n_in = 2;
    for (int k = 0; k < node.n_in; k++)
        node.in[k] = model_below(state, id);
    if (model_is_write(&node)) {
        int tries = 0;
        while (model_variable(m, node.in[0]) < 0 && tries++ < 50)
            node.in[0] = model_below(state, id);
        int variable = model_variable(m, node.in[0]);
        if (variable < 0 || ++n_writes[variable] > MODEL_WRITES)
            return;
    }
    for (int k = 0; k < 3; k++)
        if (model_below(state, 100) < density)
            node.controls[node.n_controls++] = model_below(state, id);
    m->nodes[m->n++] = node;
}

/* Names say nothing of the order in which nodes were made. */
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
    int n_writes[MODEL_NODES] = {0}, density = 10 + 10 * (int)(seed % 4);
    int n = MODEL_VARIABLES + 1 + 3 + model_below(&state, 13);
    memset(m, 0, sizeof *m);
    for (int i = 0; i < MODEL_VARIABLES; i++)
        m->nodes[m->n++].op = M_VARIABLE;
    m->nodes[m->n++].op = M_FEED;
    for (int tries = 0; m->n < n && tries < 100; tries++)
        model_add(m, &state, density, n_writes);
    model_name(m, &state);
    int n_nodes = m->n;
    for (int i = 0; i < 3; i++)
        m->nodes[MODEL_VARIABLES + 1 + model_below(&state, n_nodes - MODEL_VARIABLES - 1)]
            .is_target = true;
    m->n_fetches = 1 + model_below(&state, 3);
    for (int i = 0; i < m->n_fetches; i++) {
        struct model_node fetch = {.op = M_FETCH, .n_in = 1};
        fetch.in[0] = model_below(&state, n_nodes);
        m->nodes[m->n++] = fetch;
    }
}

/* ---- the graph, its nodes in another order ---- */

static inline void model_print_node(const struct model *m, int i, struct str *text)
{
    static const char *const ops[] = {"Variable", "Placeholder", "Identity", "Neg",
                                      "Add",      "Sub",         "Assign",   "AssignAdd"};
    const struct model_node *node = &m->nodes[i];
    str_printf(text, "%s = %s(", node->name, ops[node->op]);
    for (int k = 0; k < node->n_in; k++)
        str_printf(text, "%s%s", k ? ", " : "", m->nodes[node->in[k]].name);
    for (int k = 0; k < node->n_controls; k++)
        str_printf(text, "%s^%s", k || node->n_in ? ", " : "", m->nodes[node->controls[k]].name);
    str_printf(text, ")%s\n", node->op <= M_FEED ? " {dtype=float64, shape=[]}" : "");
}

/* Also init, which gives variable i the value i + 1. */
static inline void model_print(const struct model *m, uint64_t order, struct str *text)
{
    bool printed[MODEL_NODES] = {false};
    int n = m->n - m->n_fetches;
    for (int done = 0; done < n;) {
        int i = model_below(&order, n);
        bool ready = !printed[i];
        for (int k = 0; k < m->nodes[i].n_in; k++)
            ready = ready && printed[m->nodes[i].in[k]];
        for (int k = 0; k < m->nodes[i].n_controls; k++)
            ready = ready && printed[m->nodes[i].controls[k]];
        if (!ready)
            continue;
        model_print_node(m, i, text);
        printed[i] = true;
        done++;
    }
    for (int i = 0; i < MODEL_VARIABLES; i++)
        str_printf(text, "k%d = Const() {dtype=float64, value=%d}\ninit%d = Assign(%s, k%d)\n", i,
                   i + 1, i, m->nodes[i].name, i);
}

/* ---- what it may compute ---- */

struct model_run {
    const struct model *m;
    bool needed[MODEL_NODES];
    bool path[MODEL_NODES][MODEL_NODES];
    int writes[MODEL_VARIABLES][MODEL_WRITES], n_writes[MODEL_VARIABLES];
    int n; /* vertices: nodes, then the points of inputs 0 and 1 of each */
    bool before[MODEL_VERTICES][MODEL_VERTICES];
    struct model_result result; /* what was computed */
    int n_tried;                /* orders that could be */
};

static inline bool model_is_read(const struct model *m, int node, int k)
{
    return k < m->nodes[node].n_in && model_variable(m, m->nodes[node].in[k]) >= 0 &&
           !(model_is_write(&m->nodes[node]) && k == 0);
}

static inline void model_need(struct model_run *r, int i)
{
    const struct model_node *node = &r->m->nodes[i];
    if (r->needed[i])
        return;
    r->needed[i] = true;
    for (int k = 0; k < node->n_in; k++) {
        r->path[node->in[k]][i] = true;
        model_need(r, node->in[k]);
    }
    for (int k = 0; k < node->n_controls; k++) {
        r->path[node->controls[k]][i] = true;
        model_need(r, node->controls[k]);
    }
}

static inline void model_prepare(struct model_run *r, const struct model *m)
{
    memset(r, 0, sizeof *r);
    r->m = m;
    r->n = 3 * m->n;
    for (int i = 0; i < m->n; i++)
        if (m->nodes[i].op == M_FETCH || m->nodes[i].is_target)
            model_need(r, i);
    for (int i = 0; i < m->n; i++)
        memcpy(r->before[i], r->path[i], sizeof r->path[i]);
    for (int via = 0; via < m->n; via++)
        for (int a = 0; a < m->n; a++)
            for (int b = 0; b < m->n; b++)
                r->path[a][b] |= r->path[a][via] && r->path[via][b];
    for (int w = 0; w < m->n; w++) {
        if (!r->needed[w] || !model_is_write(&m->nodes[w]))
            continue;
        int variable = model_variable(m, w);
        r->writes[variable][r->n_writes[variable]++] = w;
    }
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < 2; k++) {
            int point = m->n + 2 * i + k;
            if (!r->needed[i] || !model_is_read(m, i, k))
                continue;
            int variable = model_variable(m, m->nodes[i].in[k]);
            r->before[point][i] = true;
            for (int w = 0; w < r->n_writes[variable]; w++) {
                int write = r->writes[variable][w];
                r->before[r->path[write][i] ? write : point][r->path[write][i] ? point : write] =
                    true;
            }
        }
}

/* One order of everything, with the writes as they are listed; false if there is none. */
static inline bool model_sort(const struct model_run *r, int *order)
{
    bool before[MODEL_VERTICES][MODEL_VERTICES], done[MODEL_VERTICES] = {false};
    memcpy(before, r->before, sizeof before);
    for (int v = 0; v < MODEL_VARIABLES; v++)
        for (int w = 0; w + 1 < r->n_writes[v]; w++)
            before[r->writes[v][w]][r->writes[v][w + 1]] = true;
    for (int n = 0; n < r->n;) {
        int next = -1;
        for (int b = 0; b < r->n && next < 0; b++) {
            bool ready = !done[b];
            for (int a = 0; a < r->n && ready; a++)
                ready = done[a] || !before[a][b];
            if (ready)
                next = b;
        }
        if (next < 0)
            return false;
        done[next] = true;
        order[n++] = next;
    }
    return true;
}

static inline void model_execute(struct model_run *r, const int *order)
{
    const struct model *m = r->m;
    double state[MODEL_VARIABLES], value[MODEL_NODES], seen[MODEL_VERTICES];
    for (int v = 0; v < MODEL_VARIABLES; v++)
        state[v] = v + 1;
    for (int at = 0; at < r->n; at++) {
        int i = order[at];
        if (i >= m->n) {
            int node = (i - m->n) / 2, k = (i - m->n) % 2;
            if (model_is_read(m, node, k))
                seen[i] = state[model_variable(m, m->nodes[node].in[k])];
            continue;
        }
        const struct model_node *node = &m->nodes[i];
        double in[2] = {0, 0};
        if (!r->needed[i])
            continue;
        for (int k = 0; k < node->n_in; k++)
            in[k] = model_is_read(m, i, k) ? seen[m->n + 2 * i + k] : value[node->in[k]];
        int variable = model_variable(m, i);
        value[i] = node->op == M_FEED ? MODEL_FED : in[0];
        if (node->op == M_NEG)
            value[i] = -in[0];
        else if (node->op == M_ADD || node->op == M_SUB)
            value[i] = node->op == M_ADD ? in[0] + in[1] : in[0] - in[1];
        else if (model_is_write(node))
            state[variable] = node->op == M_ASSIGN ? in[1] : state[variable] + in[1];
    }
    for (int i = 0; i < m->n_fetches; i++)
        r->result.values[i] = value[m->n - m->n_fetches + i];
    for (int v = 0; v < MODEL_VARIABLES; v++)
        r->result.values[m->n_fetches + v] = state[v];
    r->result.n = m->n_fetches + MODEL_VARIABLES;
}

/* Tries the orders of the writes from place `at` of `variable` on. */
static inline bool model_try(struct model_run *r, int variable, int at,
                             const struct model_result *wanted)
{
    int order[MODEL_VERTICES];
    if (variable == MODEL_VARIABLES) {
        if (!model_sort(r, order))
            return false;
        r->n_tried++;
        model_execute(r, order);
        return wanted && !memcmp(r->result.values, wanted->values,
                                 (size_t)r->result.n * sizeof *wanted->values);
    }
    if (at >= r->n_writes[variable])
        return model_try(r, variable + 1, 0, wanted);
    int *writes = r->writes[variable];
    for (int i = at; i < r->n_writes[variable]; i++) {
        int first = writes[i];
        writes[i] = writes[at];
        writes[at] = first;
        bool found = model_try(r, variable, at + 1, wanted);
        writes[at] = writes[i];
        writes[i] = first;
        if (found)
            return true;
    }
    return false;
}

/* Whether the step may give that. */
static inline bool model_allows(const struct model *m, const struct model_result *result)
{
    struct model_run r;
    model_prepare(&r, m);
    return model_try(&r, 0, 0, result);
}

/* Whether there is an order at all. */
static inline bool model_is_possible(const struct model *m)
{
    struct model_run r;
    model_prepare(&r, m);
    model_try(&r, 0, 0, NULL);
    return r.n_tried > 0;
}

#endif
