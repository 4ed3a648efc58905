/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: random graphs in text form, with reads and updates of variables, noise, and indices
 * that are sometimes out of range.
 */
#ifndef TF_TESTS_LIB_RANDOM_TRAINING_H
#define TF_TESTS_LIB_RANDOM_TRAINING_H

#include "base/str.h"
#include "lib/unit.h"

#define TRAINING_VARIABLES 3
#define TRAINING_LENGTH 4

struct training {
    struct str text;
    uint64_t random;
    int n;                          /* nodes that are values: n0, n1, ... */
    int update[TRAINING_VARIABLES]; /* the last one; -1: none */
    int n_updates;
};

static inline int training_below(struct training *m, int n)
{
    return (int)(unit_random(&m->random) % (uint64_t)n);
}

static inline int training_any(struct training *m)
{
    return training_below(m, 2) ? m->n - 1 : training_below(m, m->n);
}

static inline void training_add_update(struct training *m, int v)
{
    static const char *const ops[] = {"AssignAdd", "AssignSub", "Assign"};
    str_printf(&m->text, "u%d = %s(v%d, n%d", m->n_updates, ops[training_below(m, 3)], v,
               training_any(m));
    if (m->update[v] >= 0)
        str_printf(&m->text, ", ^u%d", m->update[v]);
    str_append(&m->text, ")\n");
    m->update[v] = m->n_updates++;
}

static inline void training_add_read(struct training *m, int v)
{
    str_printf(&m->text, "n%d = Identity(v%d", m->n, v);
    if (m->update[v] >= 0)
        str_printf(&m->text, ", ^u%d", m->update[v]);
    str_append(&m->text, ")\n");
    m->n++;
}

static inline void training_add_value(struct training *m)
{
    static const char *const binary[] = {"Add", "Sub", "Maximum", "Minimum", "Mul"};
    static const char *const unary[] = {"Neg", "Abs", "Tanh", "Sigmoid", "Identity"};
    int a = training_any(m), b = training_any(m), n = m->n;
    switch (training_below(m, 8)) {
    case 0:
        str_printf(&m->text, "n%d = RandomUniform(length) {dtype=float32, seed2=%d}\n", n, n + 1);
        break;
    case 1:
        str_printf(&m->text, "s%d = Reshape(n%d, square)\nt%d = Neg(s%d)\n", n, a, n, n);
        str_printf(&m->text, "n%d = Reshape(t%d, length)\n", n, n);
        break;
    case 2:
        str_printf(&m->text, "i%d = Cast(x) {SrcT=float32, DstT=int32}\n", n);
        str_printf(&m->text, "n%d = Gather(table, i%d)\n", n, n);
        break;
    case 3:
    case 4:
        str_printf(&m->text, "n%d = %s(n%d)\n", n, unary[training_below(m, 5)], a);
        break;
    default:
        str_printf(&m->text, "n%d = %s(n%d, n%d)\n", n, binary[training_below(m, 5)], a, b);
    }
    m->n++;
}

/* The last line fetches, after all updates. */
static inline void training_make(struct training *m)
{
    str_append(&m->text, "x = Placeholder() {dtype=float32, shape=[4]}\n"
                         "length = Const() {dtype=int32, value=[4]}\n"
                         "square = Const() {dtype=int32, value=[2,2]}\n"
                         "table = Const() {dtype=float32, value=[3,1,4,1,5,9,2,6]}\n"
                         "start = Const() {dtype=float32, value=[1,2,3,4]}\n"
                         "n0 = Identity(x)\n");
    for (int v = 0; v < TRAINING_VARIABLES; v++) {
        str_printf(&m->text, "v%d = Variable() {dtype=float32, shape=[4]}\n", v);
        str_printf(&m->text, "init%d = Assign(v%d, start)\n", v, v);
        m->update[v] = -1;
    }
    m->n = 1;
    for (int i = 4 + training_below(m, 16); i > 0; i--) {
        int what = training_below(m, 6), v = training_below(m, TRAINING_VARIABLES);
        if (what == 0)
            training_add_update(m, v);
        else if (what == 1)
            training_add_read(m, v);
        else
            training_add_value(m);
    }
    str_append(&m->text, "init = NoOp(^init0, ^init1, ^init2)\n");
    str_printf(&m->text, "y = Add(n%d, n%d", training_any(m), training_any(m));
    for (int v = 0; v < TRAINING_VARIABLES; v++)
        if (m->update[v] >= 0)
            str_printf(&m->text, ", ^u%d", m->update[v]);
    str_append(&m->text, ")\n");
}

#endif
