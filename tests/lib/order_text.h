/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a model of tests/lib/order_model.h as a graph in text form, its nodes in any order.
 */
#ifndef TF_TESTS_LIB_ORDER_TEXT_H
#define TF_TESTS_LIB_ORDER_TEXT_H

#include "lib/order_model.h"

static inline void model_print_inputs(const struct model *m, const struct model_node *node,
                                      struct str *text)
{
    for (int k = 0; k < node->n_in; k++) {
        bool scatters = node->op == M_SCATTER_ADD && k == 0;
        str_printf(text, "%s%s%s", k ? ", " : "", m->nodes[node->in[k]].name,
                   scatters ? ", at" : "");
        if (node->op == M_MOMENTUM && k)
            str_append(text, k == 1 ? ", lr" : ", mu");
        if (node->op == M_PASS)
            str_printf(text, ":%d", node->branch);
    }
    if (node->op == M_SWITCH)
        str_printf(text, ", p%d", node->predicate);
    for (int k = 0; k < node->n_controls; k++)
        str_printf(text, "%s^%s", k || node->n_in ? ", " : "", m->nodes[node->controls[k]].name);
}

/* Three iterations; N_... are its nodes. */
static inline void model_print_loop(const struct model *m, const struct model_node *node,
                                    struct str *text)
{
    const char *n = node->name;
    str_printf(text, "%s_e = Enter(zero) {frame_name=\"%s\"}\n", n, n);
    str_printf(text, "%s_m = Merge(%s_e, %s_n)\n", n, n, n);
    str_printf(text, "%s_a = Merge(%s, %s_b)\n", n, m->nodes[node->in[0]].name, n);
    str_printf(text, "%s_3 = Const(^%s_m) {dtype=int32, value=3}\n", n, n);
    str_printf(text, "%s_l = Less(%s_m, %s_3)\n%s_c = LoopCond(%s_l)\n", n, n, n, n, n);
    str_printf(text, "%s_s = Switch(%s_m, %s_c)\n%s_t = Switch(%s_a, %s_c)\n", n, n, n, n, n, n);
    str_printf(text, "%s_i = Identity(%s_s:1)\n%s_1 = Const(^%s_i) {dtype=int32, value=1}\n", n, n,
               n, n);
    str_printf(text, "%s_j = Add(%s_i, %s_1)\n%s_n = NextIteration(%s_j)\n", n, n, n, n, n);
    str_printf(text, "%s_u = Add(%s_t:1, %s)\n", n, n, m->nodes[node->in[1]].name);
    if (node->n_in > 2)
        str_printf(text, "%s_v = Add(%s, %s)\n%s_w = Add(%s_u, %s_v)\n", n,
                   m->nodes[node->in[2]].name, m->nodes[node->in[1]].name, n, n, n);
    str_printf(text, "%s_b = NextIteration(%s_%s)\n", n, n, node->n_in > 2 ? "w" : "u");
    str_printf(text, "%s = Exit(%s_t)\n", n, n);
}

static inline void model_print_node(const struct model *m, int i, struct str *text)
{
    static const char *const ops[] = {"Variable", "Placeholder", "Identity",   "Neg",
                                      "Add",      "Sub",         "Switch",     "Identity",
                                      "Merge",    "Enter",       "",           "NoOp",
                                      "Assign",   "AssignAdd",   "ScatterAdd", "ApplyMomentum"};
    const struct model_node *node = &m->nodes[i];
    if (node->op == M_LOOP) {
        model_print_loop(m, node, text);
        return;
    }
    str_printf(text, "%s = %s(", node->name, ops[node->op]);
    model_print_inputs(m, node, text);
    str_append(text, ")");
    if (node->op <= M_FEED)
        str_append(text, " {dtype=float64, shape=[1]}");
    else if (node->op == M_ENTER)
        str_printf(text, " {frame_name=\"%s\", is_constant=%s}", m->nodes[node->loop].name,
                   node->branch ? "true" : "false");
    else if (node->op == M_MOMENTUM)
        str_append(text, " {use_nesterov=true}");
    str_append(text, "\n");
}

static inline bool model_is_printable(const struct model *m, const struct model_node *node,
                                      const bool *printed)
{
    bool ready = true;
    for (int k = 0; k < node->n_in; k++)
        ready = ready && printed[node->in[k]];
    for (int k = 0; k < node->n_controls; k++)
        ready = ready && printed[node->controls[k]];
    (void)m;
    return ready;
}

/* Also init, which gives variable i the value i + 1. */
static inline void model_print(const struct model *m, uint64_t order, struct str *text)
{
    bool printed[MODEL_NODES] = {false};
    int n = m->n - m->n_fetches;
    for (int p = 0; p < MODEL_PREDICATES; p++)
        str_printf(text, "p%d = Placeholder() {dtype=bool, shape=[]}\n", p);
    str_append(text,
               "at = Const() {dtype=int32, value=[0]}\nzero = Const() {dtype=int32, value=0}\n"
               "lr = Const() {dtype=float64, value=0.5}\n"
               "mu = Const() {dtype=float64, value=0.25}\n");
    for (int done = 0; done < n;) {
        int i = model_below(&order, n);
        if (printed[i] || !model_is_printable(m, &m->nodes[i], printed))
            continue;
        model_print_node(m, i, text);
        printed[i] = true;
        done++;
    }
    for (int i = 0; i < MODEL_VARIABLES; i++)
        str_printf(text, "k%d = Const() {dtype=float64, value=[%d]}\ninit%d = Assign(%s, k%d)\n", i,
                   i + 1, i, m->nodes[i].name, i);
}

#endif
