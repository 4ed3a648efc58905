/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: computes the result of a step of a model (tests/lib/order_model.h).
 */
#ifndef TF_TESTS_LIB_ORDER_RUN_H
#define TF_TESTS_LIB_ORDER_RUN_H

#include "lib/order_model.h"

struct model_run {
    const struct model *m;
    bool needed[MODEL_NODES];
    bool path[MODEL_NODES][MODEL_NODES];
    int n; /* vertices: nodes, then the points of inputs 0, 1 and 2 of each */
    bool before[MODEL_VERTICES][MODEL_VERTICES];
    int order[MODEL_VERTICES];
    double state[MODEL_VARIABLES], value[MODEL_NODES], seen[MODEL_VERTICES];
    bool is_alive[MODEL_NODES];
};

static inline bool model_is_read(const struct model *m, int node, int k)
{
    return k < m->nodes[node].n_in && model_variable(m, m->nodes[node].in[k]) >= 0 &&
           !model_takes_ref(&m->nodes[node], k);
}

/* A loop sees a variable while it runs, without a point before. */
static inline bool model_has_point(const struct model *m, int node, int k)
{
    return model_is_read(m, node, k) && !(m->nodes[node].op == M_LOOP && k == 2);
}

static inline bool model_writes(const struct model *m, int node, int variable)
{
    bool writes = false;
    for (int k = 0; k < m->nodes[node].n_in; k++)
        writes |= model_takes_ref(&m->nodes[node], k) &&
                  model_variable(m, m->nodes[node].in[k]) == variable;
    return writes;
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

static inline void model_find_paths(struct model_run *r)
{
    const struct model *m = r->m;
    for (int i = 0; i < m->n; i++)
        if (m->nodes[i].op == M_FETCH || m->nodes[i].is_target)
            model_need(r, i);
    for (int i = 0; i < m->n; i++)
        memcpy(r->before[i], r->path[i], sizeof r->path[i]);
    for (int via = 0; via < m->n; via++)
        for (int a = 0; a < m->n; a++)
            for (int b = 0; b < m->n && r->path[a][via]; b++)
                r->path[a][b] |= r->path[via][b];
}

/* The point of a read, or the loop that has none, among the writes of the variable. */
static inline void model_put_read(struct model_run *r, int i, int k)
{
    const struct model *m = r->m;
    int variable = model_variable(m, m->nodes[i].in[k]);
    int point = model_has_point(m, i, k) ? m->n + MODEL_INPUTS * i + k : i;
    r->before[point][i] |= point != i;
    for (int w = 0; w < m->n; w++) {
        if (!r->needed[w] || w == point || !model_writes(m, w, variable) ||
            model_contradicts(m->nodes[w].needs | m->nodes[i].needs))
            continue;
        r->before[r->path[w][i] ? w : point][r->path[w][i] ? point : w] = true;
    }
}

/* Nodes that do not write go first, then writes by name. */
static inline bool model_goes_first(const struct model *m, int a, int b)
{
    bool a_writes = a < m->n && model_is_write(&m->nodes[a]);
    bool b_writes = b < m->n && model_is_write(&m->nodes[b]);
    if (a_writes != b_writes)
        return b_writes;
    return a_writes ? strcmp(m->nodes[a].name, m->nodes[b].name) < 0 : a < b;
}

/* Sorts the vertices; returns false if there is no order. */
static inline bool model_sort(struct model_run *r)
{
    int waits[MODEL_VERTICES] = {0};
    bool done[MODEL_VERTICES] = {false};
    for (int a = 0; a < r->n; a++)
        for (int b = 0; b < r->n; b++)
            waits[b] += r->before[a][b];
    for (int n = 0; n < r->n; n++) {
        int next = -1;
        for (int b = 0; b < r->n; b++)
            if (!done[b] && !waits[b] && (next < 0 || model_goes_first(r->m, b, next)))
                next = b;
        if (next < 0)
            return false;
        done[next] = true;
        r->order[n] = next;
        for (int b = 0; b < r->n; b++)
            waits[b] -= r->before[next][b];
    }
    return true;
}

static inline double model_input(const struct model_run *r, int i, int k)
{
    const struct model *m = r->m;
    if (model_has_point(m, i, k))
        return r->seen[m->n + MODEL_INPUTS * i + k];
    if (model_is_read(m, i, k))
        return r->state[model_variable(m, m->nodes[i].in[k])];
    return r->value[m->nodes[i].in[k]];
}

static inline bool model_runs(const struct model_run *r, int i)
{
    const struct model_node *node = &r->m->nodes[i];
    bool alive = r->needed[i], any = false;
    for (int k = 0; k < node->n_in; k++) {
        any |= r->is_alive[node->in[k]];
        alive &= r->is_alive[node->in[k]] || node->op == M_MERGE;
    }
    for (int k = 0; k < node->n_controls; k++)
        alive &= r->is_alive[node->controls[k]];
    if (node->op == M_PASS)
        alive &= r->m->predicates[node->predicate] == node->branch;
    return alive && (any || node->op != M_MERGE);
}

static inline void model_write(struct model_run *r, int i, const double *in)
{
    const struct model_node *node = &r->m->nodes[i];
    double *to = &r->state[model_variable(r->m, i)];
    if (node->op == M_MOMENTUM) {
        double *sum = &r->state[model_variable(r->m, node->in[1])];
        *sum = 0.25 * *sum + in[2];
        *to -= 0.5 * in[2] + 0.5 * 0.25 * *sum;
    } else {
        *to = node->op == M_ASSIGN ? in[1] : *to + in[1];
    }
}

static inline void model_run_node(struct model_run *r, int i)
{
    const struct model_node *node = &r->m->nodes[i];
    double in[MODEL_INPUTS] = {0};
    r->is_alive[i] = model_runs(r, i);
    if (!r->is_alive[i])
        return;
    for (int k = 0; k < node->n_in; k++)
        if (!model_takes_ref(node, k))
            in[k] = model_input(r, i, k);
    r->value[i] = in[0];
    if (node->op == M_FEED)
        r->value[i] = MODEL_FED;
    else if (node->op == M_NEG)
        r->value[i] = -in[0];
    else if (node->op == M_ADD || node->op == M_SUB)
        r->value[i] = node->op == M_ADD ? in[0] + in[1] : in[0] - in[1];
    else if (node->op == M_MERGE)
        r->value[i] = in[r->is_alive[node->in[1]]];
    else if (node->op == M_LOOP)
        r->value[i] = in[0] + 3 * (node->n_in > 2 ? in[1] + in[2] + in[1] : in[1]);
    else if (model_is_write(node))
        model_write(r, i, in);
}

/* Runs the model; returns false if reads and writes contradict each other. */
static inline bool model_execute(const struct model *m, struct model_result *result)
{
    struct model_run *r = calloc(1, sizeof *r);
    r->m = m;
    r->n = (1 + MODEL_INPUTS) * m->n;
    model_find_paths(r);
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < m->nodes[i].n_in; k++)
            if (r->needed[i] && model_is_read(m, i, k))
                model_put_read(r, i, k);
    bool can = model_sort(r);
    for (int v = 0; v < MODEL_VARIABLES; v++)
        r->state[v] = v + 1;
    for (int at = 0; can && at < r->n; at++) {
        int i = r->order[at], node = (i - m->n) / MODEL_INPUTS, k = (i - m->n) % MODEL_INPUTS;
        if (i < m->n)
            model_run_node(r, i);
        else if (model_has_point(m, node, k))
            r->seen[i] = r->state[model_variable(m, m->nodes[node].in[k])];
    }
    for (int i = 0; i < m->n_fetches; i++)
        result->values[i] = r->value[m->n - m->n_fetches + i];
    for (int v = 0; v < MODEL_VARIABLES; v++)
        result->values[m->n_fetches + v] = r->state[v];
    result->n = m->n_fetches + MODEL_VARIABLES;
    free(r);
    return can;
}

#endif
