/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op computes in a narrow type is what it computes of the same values in a wide one,
 * rounded or cut once: cases of float32 in both floats of 16 bits, cases of int32 in 8 and 16 bits.
 */
#include <string.h>

#include "ops/ops.h"
#include "tests/ops/check.h"

static const enum dtype float_types[] = {FLOAT16, BFLOAT16, DTYPE_INVALID};
static const enum dtype integer_types[] = {INT8, INT16, UINT8, UINT16, DTYPE_INVALID};

/* A copy in another type: rounded to nearest even, integers cut to their lowest bits. */
static int convert(struct tensor *to, enum dtype type, const struct tensor *from, struct error *err)
{
    size_t bytes = dtype_bytes(type), kept = dtype_bytes(from->type);
    if (tensor_alloc(to, type, &from->shape, err))
        return err->code;
    for (int64_t i = 0; i < tensor_count(from); i++) {
        if (dtype_is_floating(type))
            tensor_set_float64(to, i, tensor_get_float64(from, i));
        else if (bytes < kept) /* the lowest come first */
            memcpy((char *)to->data + (size_t)i * bytes, (char *)from->data + (size_t)i * kept,
                   bytes);
        else
            tensor_set_int64(to, i, tensor_get_int64(from, i));
    }
    return 0;
}

struct narrow_run {
    struct graph *graph;
    struct node *node;
    struct edge feeds[CASE_INPUTS_MAX];
    struct tensor values[CASE_INPUTS_MAX], got[CASE_INPUTS_MAX];
};

/* The type attribute of input i, or -1. */
static int attr_of(const struct node *node, int i)
{
    return node->op->inputs[node_argument(node, node->op->inputs, &i)].type_attr;
}

static int run_op(const struct checker *checker, const struct test_case *test,
                  struct narrow_run *run, struct error *err)
{
    struct edge fetches[CASE_INPUTS_MAX];
    int n = (int)test->in.n;
    for (int i = 0; i < n; i++)
        run->feeds[i] =
            check_add_placeholder(run->graph, run->values[i].type, &run->values[i].shape, err);
    run->node = check_add_op(run->graph, test, run->feeds, err);
    if (!run->node)
        return err->code;
    for (int k = 0; k < run->node->n_outputs; k++)
        fetches[k] = (struct edge){run->node->id, k};
    struct session *session = check_session(checker, run->graph, false);
    struct session_call call = {.feeds = run->feeds,
                                .feed_values = run->values,
                                .n_feeds = n,
                                .fetches = fetches,
                                .n_fetches = run->node->n_outputs};
    struct step step = check_step(1);
    int result = session_run(session, &call, &step, run->got, err);
    session_free(session);
    return result;
}

static void close_run(struct narrow_run *run)
{
    for (int i = 0; i < CASE_INPUTS_MAX; i++) {
        tensor_release(&run->values[i]);
        tensor_release(&run->got[i]);
    }
    graph_free(run->graph);
}

/* NaN is NaN, whatever its bits. */
static bool same(const struct tensor *a, const struct tensor *b)
{
    if (!dtype_is_floating(a->type) || a->type != b->type || !shape_equal(&a->shape, &b->shape))
        return tensor_equal(a, b);
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double x = tensor_get_float64(a, i), y = tensor_get_float64(b, i);
        if (!(x == y || (x != x && y != y)))
            return false;
    }
    return true;
}

static int compare(const struct narrow_run *wide, const struct narrow_run *narrow,
                   struct error *err)
{
    for (int k = 0; k < narrow->node->n_outputs; k++) {
        struct tensor expected;
        enum dtype type = narrow->got[k].type;
        if (type == STRING)
            continue;
        if (convert(&expected, type, &wide->got[k], err))
            return err->code;
        bool equal = same(&expected, &narrow->got[k]);
        tensor_release(&expected);
        if (!equal)
            return error_set(err, ERR_DATA, "output %d is not what a wider type gives", k);
    }
    return 0;
}

/* Both have the values that the narrow type has room for. */
static int fill_values(const struct test_case *test, const struct node *node, enum dtype type,
                       struct narrow_run *wide, struct narrow_run *narrow, struct error *err)
{
    int attr = attr_of(node, 0);
    for (size_t i = 0; i < test->in.n; i++) {
        const struct tensor *in = &test->in.items[i].tensor;
        bool is_cut = attr_of(node, (int)i) == attr;
        if (is_cut ? convert(&narrow->values[i], type, in, err) ||
                         convert(&wide->values[i], in->type, &narrow->values[i], err)
                   : tensor_copy(&narrow->values[i], in, err) ||
                         tensor_copy(&wide->values[i], in, err))
            return err->code;
    }
    return 0;
}

/* Where one fails the other has to. */
static int check_type(const struct checker *checker, const struct test_case *test,
                      const struct node *node, enum dtype type, struct error *err)
{
    struct narrow_run wide = {.graph = graph_new(ops_registry())};
    struct narrow_run narrow = {.graph = graph_new(ops_registry())};
    struct error wide_err = ERROR_INIT;
    int result = fill_values(test, node, type, &wide, &narrow, err);
    if (!result) {
        int failed = run_op(checker, test, &wide, &wide_err);
        result = run_op(checker, test, &narrow, err);
        if (failed && result)
            result = 0, error_clear(err);
        else if (failed)
            result = error_set(err, ERR_DATA, "no error, but in a wider type: %s", wide_err.text);
        else if (!result)
            result = compare(&wide, &narrow, err);
    }
    if (result)
        error_prefix(err, "%s: ", dtype_name(type));
    close_run(&wide);
    close_run(&narrow);
    return result;
}

/* Whether the case is one of an attribute that the inputs alone decide. Of no elements a wide type
 * has other extremes. */
static bool is_fit(const struct test_case *test, const struct node *node)
{
    int attr = test->in.n ? attr_of(node, 0) : -1;
    if (attr < 0 || node_has(node, OP_RANDOM))
        return false;
    for (size_t i = 0; i < test->attrs.n; i++)
        if (!strcmp(test->attrs.items[i].name, node->op->attrs[attr].name))
            return false;
    for (size_t i = 0; i < test->in.n; i++)
        if (!tensor_count(&test->in.items[i].tensor))
            return false;
    return true;
}

int check_narrow(const struct checker *checker, const struct test_case *test, struct error *err)
{
    enum dtype wide = test->in.n ? test->in.items[0].tensor.type : DTYPE_INVALID;
    const enum dtype *type = wide == FLOAT32 ? float_types : wide == INT32 ? integer_types : NULL;
    struct narrow_run run = {.graph = graph_new(ops_registry())};
    struct error ignored = ERROR_INIT;
    int result = 0;
    for (size_t i = 0; type && i < test->in.n; i++)
        run.feeds[i] = check_add_placeholder(run.graph, test->in.items[i].tensor.type,
                                             &test->in.items[i].tensor.shape, &ignored);
    run.node = type ? check_add_op(run.graph, test, run.feeds, &ignored) : NULL;
    if (run.node && is_fit(test, run.node))
        for (; *type && !result; type++)
            if (run.node->op->attrs[attr_of(run.node, 0)].types & DTYPE_BIT(*type))
                result = check_type(checker, test, run.node, *type, err);
    graph_free(run.graph);
    return result;
}
