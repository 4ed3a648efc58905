/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: plans of graphs in text form, and steps of them that run asynchronously.
 */
#ifndef TF_TESTS_LIB_STARTED_H
#define TF_TESTS_LIB_STARTED_H

#include <pthread.h>
#include <unistd.h>

#include "lib/session.h"

#include "exec/plan/plan.h"
#include "exec/step/rendezvous.h"
#include "exec/step/step.h"

#define RECV_SHAPED(name, shape)                                                                   \
    name " = Recv() {tensor_type=float32, tensor_name=\"" name "\", send_device=\"a\", "           \
         "recv_device=\"b\", shape=" shape "}\n"
#define RECV(name) RECV_SHAPED(name, "[]")

/* v and w; steps that add one to both, what comes to both, or read them. */
#define COUNTERS                                                                                   \
    "v = Variable() {dtype=float32, shape=[]}\n"                                                   \
    "w = Variable() {dtype=float32, shape=[]}\n"                                                   \
    "zero = Const() {dtype=float32, value=0}\n"                                                    \
    "one = Const() {dtype=float32, value=1}\n"                                                     \
    "init_v = Assign(v, zero)\n"                                                                   \
    "init_w = Assign(w, zero)\n"                                                                   \
    "init = NoOp(^init_v, ^init_w)\n" RECV("x") RECV("y") "add_v = AssignAdd(v, one)\n"            \
                                                          "add_w = AssignAdd(w, one)\n"            \
                                                          "both = NoOp(^add_v, ^add_w)\n"          \
                                                          "add_x = AssignAdd(v, x)\n"              \
                                                          "add_y = AssignAdd(w, y, ^add_x)\n"      \
                                                          "read_v = Identity(v)\n"                 \
                                                          "read_w = Identity(w)\n"                 \
                                                          "sum = Add(read_v, read_w)\n"

struct planned {
    struct graph *graph;
    struct variable_store *variables;
    struct plan_options options;
    bool adds_kernel;
    const struct kernel_table *kernels; /* then: the device's before */
    struct error err;
};

static inline void planned_open(struct planned *p, const char *text)
{
    memset(p, 0, sizeof *p);
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &p->graph, &p->err))
        fail_msg("%s", p->err.text);
    p->variables = variable_store_new();
    p->options = (struct plan_options){.kernels = ops_kernels(),
                                       .device = fixture_device(),
                                       .variables = p->variables,
                                       .threads = 2};
}

/* Kernels of the test's own go with the plans. */
static inline void planned_close(struct planned *p)
{
    if (p->adds_kernel)
        fixture_device()->kernels = p->kernels;
    variable_store_free(p->variables);
    graph_free(p->graph);
}

/* Adds a kernel for all nodes of the op, on the device of the tests; for one struct planned at a
 * time. */
static inline void planned_add_kernel(struct planned *p, const char *op,
                                      const struct kernel_code *code, unsigned flags)
{
    static struct kernel_row rows[1000];
    static struct kernel_table table = {rows, 0};
    struct device *device = fixture_device();
    const struct kernel_table *all = device->kernels ? device->kernels : ops_kernels();
    assert_true(all->n < sizeof rows / sizeof *rows);
    rows[0] = (struct kernel_row){
        .op = op, .device = device->type, .code = "own", .flags = flags, .own = code};
    memcpy(rows + 1, all->rows, all->n * sizeof *rows);
    table.n = all->n + 1;
    p->adds_kernel = true;
    p->kernels = device->kernels;
    device->kernels = &table;
}

/* Makes a plan that fetches a tensor; "^name": that runs a node. */
static inline struct plan *planned_new(struct planned *p, const char *what)
{
    struct edge edge;
    struct plan *plan = NULL;
    if (graph_parse_edge(p->graph, what, &edge, &p->err))
        fail_msg("%s", p->err.text);
    bool run_only = edge.slot == CONTROL_SLOT;
    struct plan_request request = {.fetches = &edge,
                                   .n_fetches = run_only ? 0 : 1,
                                   .targets = &edge.node,
                                   .n_targets = run_only ? 1 : 0};
    if (plan_new(p->graph, &p->options, &request, &plan, &p->err))
        fail_msg("%s", p->err.text);
    return plan;
}

/* Runs such a plan once; returns the first element, if it is fetched. */
static inline double planned_get(struct planned *p, const char *what)
{
    struct plan *plan = planned_new(p, what);
    struct step step = {.number = 1};
    struct tensor value = TENSOR_INIT;
    if (plan_run(plan, &step, NULL, &value, &p->err))
        fail_msg("%s", p->err.text);
    double number = value.data ? tensor_get_float64(&value, 0) : 0;
    tensor_release(&value);
    plan_free(plan);
    return number;
}

/* A step with its own rendezvous. */
struct started {
    struct step_done done; /* first */
    struct step step;
    struct tensor value;
    pthread_t ended_by;
    atomic_int n_ends;
    int code;
    struct error err;
};

static inline void started_over(struct step_done *done, int code, const struct error *err)
{
    struct started *s = (struct started *)done;
    s->code = code;
    if (code)
        s->err = *err;
    s->ended_by = pthread_self();
    atomic_fetch_add(&s->n_ends, 1);
}

static inline void started_open(struct started *s, int64_t number)
{
    memset(s, 0, sizeof *s);
    s->done.done = started_over;
    s->step.number = number;
    s->step.rendezvous = rendezvous_local_new(0);
}

static inline void started_close(struct started *s)
{
    assert_int_equal(atomic_load(&s->n_ends), 1);
    s->step.rendezvous->free(s->step.rendezvous);
    tensor_release(&s->value);
}

/* Sends a value; returns false if the step is over and accepts no more. */
static inline bool started_send_shaped(struct started *s, const char *tensor, float number,
                                       const struct shape *shape)
{
    struct error err = ERROR_INIT;
    struct rendezvous_key key = {.tensor_name = tensor, .send_device = "a", .recv_device = "b"};
    struct rendezvous_value value = {.tensor = TENSOR_INIT};
    if (tensor_alloc(&value.tensor, FLOAT32, shape, &err))
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < shape_count(shape); i++)
        ((float *)value.tensor.data)[i] = number;
    return !s->step.rendezvous->send(s->step.rendezvous, &key, &value, &err);
}

static inline bool started_send(struct started *s, const char *tensor, float number)
{
    return started_send_shaped(s, tensor, number, &SHAPE_SCALAR);
}

static inline void started_wait(struct started *s)
{
    for (int i = 0; i < 30000 && !atomic_load(&s->n_ends); i++)
        usleep(1000);
    assert_int_equal(atomic_load(&s->n_ends), 1);
}

#endif
