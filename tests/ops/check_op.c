/* SPDX-License-Identifier: Apache-2.0
 *
 * One op, its inputs fed, constant, or of unknown shape.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/infer.h"
#include "ops/ops.h"
#include "tests/ops/check.h"
#include "tests/ops/coverage.h"

struct edge check_add_placeholder(struct graph *graph, enum dtype type, const struct shape *shape,
                                  struct error *err)
{
    struct attr attrs[] = {{"dtype", attr_type(type)}, {"shape", attr_shape(shape)}};
    struct node_spec spec = {.op = "Placeholder", .attrs = attrs, .n_attrs = 2};
    struct node *node = graph_add(graph, &spec, err);
    return node ? (struct edge){node->id, 0} : EDGE_NONE;
}

static struct edge add_constant(struct graph *graph, const struct tensor *value, struct error *err)
{
    struct attr attrs[] = {{"dtype", attr_type(value->type)}, {"value", attr_tensor(value)}};
    struct node_spec spec = {.op = "Const", .attrs = attrs, .n_attrs = 2};
    struct node *node = graph_add(graph, &spec, err);
    return node ? (struct edge){node->id, 0} : EDGE_NONE;
}

/* Reshape(flat placeholder, shape placeholder) */
static struct edge add_reshaped(struct graph *graph, struct edge flat, struct edge shape,
                                struct error *err)
{
    struct edge inputs[] = {flat, shape};
    struct node_spec spec = {.op = "Reshape", .inputs = inputs, .n_inputs = 2};
    struct node *node = graph_add(graph, &spec, err);
    return node ? (struct edge){node->id, 0} : EDGE_NONE;
}

static int parse_attrs(struct graph *graph, const struct test_case *test, struct attr *attrs,
                       struct error *err)
{
    const struct op *op = registry_find(graph->registry, test->ops);
    if (!op)
        return error_set(err, ERR_DATA, "no op '%s'", test->ops);
    for (size_t i = 0; i < test->attrs.n; i++) {
        const struct case_attr *attr = &test->attrs.items[i];
        int index = op_find_attr(op, attr->name);
        if (index < 0)
            return error_set(err, ERR_DATA, "%s has no attribute '%s'", test->ops, attr->name);
        attrs[i].name = attr->name;
        if (!attr_parse(&graph->arena, attr->text, op->attrs[index].kind, DTYPE_INVALID,
                        &attrs[i].value, err))
            return error_prefix(err, "attribute '%s': ", attr->name);
    }
    return 0;
}

struct node *check_add_op(struct graph *graph, const struct test_case *test,
                          const struct edge *inputs, struct error *err)
{
    struct attr attrs[CASE_INPUTS_MAX];
    if (parse_attrs(graph, test, attrs, err))
        return NULL;
    struct node_spec spec = {.op = test->ops,
                             .name = "tested",
                             .inputs = inputs,
                             .n_inputs = (int)test->in.n,
                             .attrs = attrs,
                             .n_attrs = (int)test->attrs.n};
    return graph_add(graph, &spec, err);
}

struct run_op {
    struct graph *graph;
    struct node *node;
    struct edge inputs[CASE_INPUTS_MAX];
    struct edge feeds[2 * CASE_INPUTS_MAX];
    struct tensor values[2 * CASE_INPUTS_MAX];
    int32_t shapes[CASE_INPUTS_MAX][SHAPE_RANK_MAX];
    int n_feeds;
};

static void feed(struct run_op *run, struct edge edge, struct tensor value)
{
    run->feeds[run->n_feeds] = edge;
    run->values[run->n_feeds++] = value;
}

static struct edge add_unknown(struct run_op *run, int index, const struct tensor *value,
                               struct error *err)
{
    struct shape any = SHAPE_ANY, length = shape_vector(tensor_count(value));
    struct shape rank = shape_vector(value->shape.rank);
    struct edge flat = check_add_placeholder(run->graph, value->type, &any, err);
    struct edge shape = check_add_placeholder(run->graph, INT32, &any, err);
    if (!edge_exists(flat) || !edge_exists(shape))
        return EDGE_NONE;
    struct tensor flat_value = *value;
    flat_value.shape = length;
    for (int i = 0; i < value->shape.rank; i++)
        run->shapes[index][i] = (int32_t)value->shape.dims[i];
    feed(run, flat, flat_value);
    feed(run, shape, tensor_borrow(INT32, &rank, run->shapes[index]));
    return add_reshaped(run->graph, flat, shape, err);
}

static int add_inputs(struct run_op *run, const struct test_case *test, enum check_mode mode,
                      struct error *err)
{
    for (size_t i = 0; i < test->in.n; i++) {
        const struct tensor *value = &test->in.items[i].tensor;
        if (mode == CHECK_CONSTANTS) {
            run->inputs[i] = add_constant(run->graph, value, err);
        } else if (mode == CHECK_UNKNOWN) {
            run->inputs[i] = add_unknown(run, (int)i, value, err);
        } else {
            run->inputs[i] = check_add_placeholder(run->graph, value->type, &value->shape, err);
            feed(run, run->inputs[i], *value);
        }
        if (!edge_exists(run->inputs[i]))
            return err->code;
    }
    return 0;
}

static int run_session(const struct checker *checker, struct run_op *run, enum check_mode mode,
                       struct tensor *got, struct error *err)
{
    struct edge fetches[CASE_INPUTS_MAX];
    struct session *session = check_session(checker, run->graph, mode == CHECK_DYNAMIC);
    for (int k = 0; k < run->node->n_outputs; k++)
        fetches[k] = (struct edge){run->node->id, k};
    struct plan_request call = {.feeds = run->feeds,
                                .feed_values = run->values,
                                .n_feeds = run->n_feeds,
                                .fetches = fetches,
                                .n_fetches = run->node->n_outputs};
    struct step step = check_step(1);
    int result = session_run(session, &call, &step, got, err);
    session_free(session);
    return result;
}

/* What is inferred must not contradict what comes out. */
static int check_inferred(const struct node_output *inferred, const struct tensor *got,
                          struct error *err)
{
    if (inferred->type == got->type && shape_compatible(&inferred->shape, &got->shape))
        return 0;
    return error_set(err, ERR_DATA, "inferred %s but got %s",
                     shape_text_typed(inferred->type, &inferred->shape),
                     shape_text_typed(got->type, &got->shape));
}

static int compare(const struct test_case *test, const struct node *node, const struct tensor *got,
                   struct error *err)
{
    if (test->out.n != (size_t)node->n_outputs)
        return error_set(err, ERR_DATA, "%d outputs, expected %zu", node->n_outputs, test->out.n);
    for (int k = 0; k < node->n_outputs; k++)
        if (check_inferred(&node->outputs[k], &got[k], err) ||
            check_tensor(&got[k], &test->out.items[k], test->tolerance, err))
            return error_prefix(err, "output %d: ", k);
    return 0;
}

/* With constants for inputs all shapes are known in advance, unless the op says that data decide;
 * fed, those of such an op are not. */
static int check_shapes(const struct checker *checker, const struct node *node,
                        enum check_mode mode, struct error *err)
{
    bool known = true;
    for (int k = 0; k < node->n_outputs; k++)
        known &= shape_is_known(&node->outputs[k].shape);
    if (!known && mode == CHECK_FEEDS)
        coverage_note(checker->coverage, node, COVERAGE_UNKNOWN);
    if (known || mode != CHECK_CONSTANTS || node_has(node, OP_SHAPED_BY_DATA | OP_FED))
        return 0;
    return error_set(err, ERR_DATA,
                     "its shape does not follow from constants, which the op "
                     "does not declare (OP_SHAPED_BY_DATA)");
}

/* Elements of 0 and more that the op says it knows of its result are those of the result. */
static int check_value(const struct node *node, const struct graph *graph, const struct tensor *got,
                       struct error *err)
{
    struct shape known;
    if (!node->op->def->value || !graph_constant_shape(graph, (struct edge){node->id, 0}, &known))
        return 0;
    bool agrees = known.rank == tensor_count(got);
    for (int i = 0; agrees && i < known.rank; i++)
        agrees = known.dims[i] < 0 || known.dims[i] == tensor_get_int64(got, i);
    return agrees ? 0 : error_set(err, ERR_DATA, "is said to be %s in advance", shape_text(&known));
}

/* Element by element as input 0. */
static int check_view(const struct test_case *test, const struct node *node,
                      const struct tensor *got, struct error *err)
{
    const struct tensor *in = test->in.n ? &test->in.items[0].tensor : NULL;
    if (!node_has(node, OP_VIEW))
        return 0;
    struct tensor seen = *in;
    if (!node_has(node, OP_PASSES))
        seen.shape = got->shape;
    return tensor_count(in) == tensor_count(got) && tensor_equal(&seen, got)
               ? 0
               : error_set(err, ERR_DATA, "is no view of input 0, as it declares");
}

static int check_declared(const struct checker *checker, const struct test_case *test,
                          const struct run_op *run, enum check_mode mode, const struct tensor *got,
                          struct error *err)
{
    if (check_shapes(checker, run->node, mode, err) || !run->node->n_outputs)
        return err->code;
    return check_value(run->node, run->graph, got, err) || check_view(test, run->node, got, err)
               ? err->code
               : 0;
}

static int build_and_run(const struct checker *checker, const struct test_case *test,
                         struct run_op *run, enum check_mode mode, struct error *err)
{
    struct tensor got[CASE_INPUTS_MAX] = {TENSOR_INIT};
    if (add_inputs(run, test, mode, err))
        return err->code;
    run->node = check_add_op(run->graph, test, run->inputs, err);
    if (!run->node || run_session(checker, run, mode, got, err))
        return err->code;
    int result = test->error ? 0 : compare(test, run->node, got, err);
    if (!result && !test->error)
        result = check_declared(checker, test, run, mode, got, err);
    for (int k = 0; k < run->node->n_outputs; k++)
        tensor_release(&got[k]);
    return result;
}

int check_op(const struct checker *checker, const struct test_case *test, enum check_mode mode,
             struct error *err)
{
    struct run_op run = {.graph = graph_new(ops_registry())};
    int result = build_and_run(checker, test, &run, mode, err);
    if (test->error) {
        if (!result)
            result = error_set(err, ERR_DATA, "no error, expected '%s'", test->error);
        else if (!check_message(test->error, err->text))
            error_prefix(err, "expected '%s', got: ", test->error);
        else
            result = 0, error_clear(err);
    }
    if (!result && test->error)
        coverage_note_name(checker->coverage, test->ops, COVERAGE_ERROR);
    else if (!result)
        coverage_note(checker->coverage, run.node, COVERAGE_VALUE);
    graph_free(run.graph);
    return result;
}
