/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: random graphs in text form that update many variables, by rules and scalars that many
 * of them share: with variables that are read between updates, updated twice, or known by two
 * names, with updates that wait for each other, and with indices that are sometimes out of range.
 * Node `init` initializes; `done` is a step, to which `x` is fed.
 */
#ifndef TF_TESTS_LIB_RANDOM_UPDATES_H
#define TF_TESTS_LIB_RANDOM_UPDATES_H

#include "base/str.h"
#include "lib/unit.h"

#define UPDATES_LENGTH 4
#define UPDATES_VARIABLES 12

struct updates_graph {
    struct str *text;
    uint64_t random;
    int n; /* nodes that are values: n0, n1, ... */
    int n_updates;
    int rule;                    /* of most of them */
    int same[UPDATES_VARIABLES]; /* the first name of the variable */
    int last[UPDATES_VARIABLES]; /* by first name: the last update, and one; 0: none */
    const char *type;
    bool races; /* names order some writes of one variable */
};

static inline int updates_below(struct updates_graph *u, int n)
{
    return (int)(unit_random(&u->random) % (uint64_t)n);
}

static inline void updates_add_variables(struct updates_graph *u)
{
    for (int i = 0; i < UPDATES_VARIABLES; i++) {
        static const char *const kinds[] = {"v", "m", "s"};
        for (int k = 0; k < 3; k++) {
            str_printf(u->text, "%s%d = Variable() {dtype=%s, shape=[4]", kinds[k], i, u->type);
            if (!k)
                u->same[i] = i && !updates_below(u, 16) ? u->same[updates_below(u, i)] : i;
            if (!k && u->same[i] != i)
                str_printf(u->text, ", shared_name=\"v%d\"", u->same[i]);
            str_printf(u->text, "}\ninit_%s%d = Assign(%s%d, start)\n", kinds[k], i, kinds[k], i);
        }
    }
    str_append(u->text, "init = NoOp(^init_rate");
    for (int i = 0; i < UPDATES_VARIABLES; i++)
        str_printf(u->text, ", ^init_v%d, ^init_m%d, ^init_s%d", i, i, i);
    str_append(u->text, ")\n");
}

static inline void updates_add_value(struct updates_graph *u)
{
    static const char *const binary[] = {"Add", "Sub", "Maximum", "Mul"};
    int a = updates_below(u, u->n), b = updates_below(u, u->n), n = u->n++;
    switch (updates_below(u, 8)) {
    case 0:
        str_printf(u->text, "n%d = Gather(table, x)\n", n);
        break;
    case 1:
    case 2:
        str_printf(u->text, "n%d = Identity(v%d", n, updates_below(u, UPDATES_VARIABLES));
        if (u->n_updates && !updates_below(u, 4))
            str_printf(u->text, ", ^u%d", updates_below(u, u->n_updates));
        str_append(u->text, ")\n");
        break;
    case 3:
        str_printf(u->text, "n%d = Tanh(n%d)\n", n, a);
        break;
    default:
        str_printf(u->text, "n%d = %s(n%d, n%d)\n", n, binary[updates_below(u, 4)], a, b);
    }
}

/* Updates the next variable, or now and then one that was updated before. */
static inline void updates_add_update(struct updates_graph *u, int variable)
{
    static const char *const rates[] = {"c1", "rate/read", "rate", "c0"};
    int kind = updates_below(u, 12);
    const char *rate = rates[kind < 3 ? kind : 3];
    int v = updates_below(u, 10) ? variable : updates_below(u, UPDATES_VARIABLES);
    int gradient = updates_below(u, u->n), *last = &u->last[u->same[v]];
    const char *nesterov = "";
    str_printf(u->text, "u%d = ", u->n_updates);
    switch (updates_below(u, 4) ? u->rule : updates_below(u, 3)) {
    case 0:
        str_printf(u->text, "ApplyAdam(v%d, m%d, s%d, c1, c1, %s, c1, c1, c0, n%d", v, v, v, rate,
                   gradient);
        break;
    case 1:
        str_printf(u->text, "ApplyMomentum(v%d, m%d, %s, n%d, c1", v, v, rate, gradient);
        nesterov = " {use_nesterov=true}";
        break;
    default:
        str_printf(u->text, "ApplyGradientDescent(v%d, %s, n%d", v, rate, gradient);
    }
    if (u->n_updates && !updates_below(u, 16))
        str_printf(u->text, ", ^u%d", updates_below(u, u->n_updates));
    if (*last && updates_below(u, 16))
        str_printf(u->text, ", ^u%d", *last - 1);
    else
        u->races |= *last != 0;
    str_printf(u->text, ")%s\n", nesterov);
    *last = ++u->n_updates;
}

/* Returns whether only names order some writes of one variable, which devices need not agree on. */
static inline bool random_updates(struct str *text, uint64_t seed)
{
    struct updates_graph u = {.text = text, .random = seed, .n = 1};
    u.rule = updates_below(&u, 3);
    u.type = updates_below(&u, 4) ? "float32" : "float64";
    str_printf(text,
               "x = Placeholder() {dtype=int32, shape=[4]}\n"
               "table = Const() {dtype=%s, value=[0.5,-1,2,0.25]}\n"
               "start = Const() {dtype=%s, value=[1,2,3,4]}\n"
               "c0 = Const() {dtype=%s, value=0.125}\nc1 = Const() {dtype=%s, value=0.75}\n"
               "rate = Variable() {dtype=%s, shape=[]}\ninit_rate = Assign(rate, c1)\n"
               "rate/read = Identity(rate)\nn0 = Identity(table)\n",
               u.type, u.type, u.type, u.type, u.type);
    updates_add_variables(&u);
    for (int i = 0; i < UPDATES_VARIABLES; i++) {
        for (int k = updates_below(&u, 3); k > 0; k--)
            updates_add_value(&u);
        updates_add_update(&u, i);
        if (!updates_below(&u, 12)) {
            str_printf(text, "w%d = AssignSub(rate, c0)\nn%d = Neg(n%d, ^w%d)\n", i, u.n,
                       updates_below(&u, u.n), i);
            u.n++;
        }
    }
    str_append(text, "done = NoOp(^u0");
    for (int i = 1; i < u.n_updates; i++)
        str_printf(text, ", ^u%d", i);
    str_append(text, ")\nentry init = ^init\nentry done = ^done\n");
    return u.races;
}

#endif
