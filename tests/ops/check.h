/* SPDX-License-Identifier: Apache-2.0
 *
 * What it takes to run a case and to judge it.
 */
#ifndef TF_TESTS_OPS_CHECK_H
#define TF_TESTS_OPS_CHECK_H

#include "exec/session/session.h"
#include "tests/ops/case.h"

/* How an op's inputs arrive. */
enum check_mode {
    CHECK_FEEDS,     /* fed, shapes known when the plan is made */
    CHECK_CONSTANTS, /* known to shape functions and to prepare */
    CHECK_DYNAMIC,   /* fed, by the executor of dynamic plans */
    CHECK_UNKNOWN,   /* reshaped to a shape that is fed: unknown when the plan is made */
    CHECK_MODES,
};

struct checker {
    struct device *device;
    struct coverage *coverage;
};

struct session *check_session(const struct checker *checker, const struct graph *graph,
                              bool dynamic);
struct step check_step(int64_t number);

/* 0 if the tensors agree: whole numbers exactly, floats within a tolerance relative to
 * max(1, |expected|); < 0 chooses it by type. */
int check_tensor(const struct tensor *got, const struct case_value *expected, double tolerance,
                 struct error *err);

/* Whether the failure is the one that is wanted: substrings separated by |. */
bool check_message(const char *wanted, const char *message);

/* Runs the op of the case in one mode. */
int check_op(const struct checker *checker, const struct test_case *test, enum check_mode mode,
             struct error *err);

/* Holds a case of one op in a wide type against the same in each narrow one that the op has. */
int check_narrow(const struct checker *checker, const struct test_case *test, struct error *err);

/* Runs the graph of the case, step by step. */
int check_graph(const struct checker *checker, const struct test_case *test, bool dynamic,
                struct error *err);

/* An op node of the case in a graph, its inputs placeholders; `inputs` are their edges. */
struct node *check_add_op(struct graph *graph, const struct test_case *test,
                          const struct edge *inputs, struct error *err);
struct edge check_add_placeholder(struct graph *graph, enum dtype type, const struct shape *shape,
                                  struct error *err);

/* Gradients of the case's op against central differences, if it is to be checked. *checked says
 * whether it was. */
int check_gradient(const struct checker *checker, const struct test_case *test, bool *checked,
                   struct error *err);

#endif
