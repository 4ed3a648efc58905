/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op computes in a narrow type is what it computes of the same values in a wide one,
 * rounded or cut once: cases of float32 in both floats of 16 bits, cases of int32 in 8 and 16 bits.
 * A device's library may add in another order in each type: there the wide value may be off, before
 * it is rounded, by the tolerance of the case.
 */
#include <math.h>
#include <string.h>

#include "ops/ops.h"
#include "tests/ops/check.h"

static const enum dtype float_types[] = {FLOAT16, BFLOAT16, DTYPE_INVALID};
static const enum dtype integer_types[] = {INT8, INT16, UINT8, UINT16, DTYPE_INVALID};

static double moved(double value, double by)
{
    return by == 0 || isinf(value) ? value : value + by * fmax(1, fabs(value)); /* -0 stays */
}

/* A copy in another type: floats moved by as much of themselves, or of 1, and rounded to nearest
 * even, integers cut to their lowest bits. */
static int convert(struct tensor *to, enum dtype type, const struct tensor *from, double by,
                   struct error *err)
{
    size_t bytes = dtype_bytes(type), kept = dtype_bytes(from->type);
    if (tensor_alloc(to, type, &from->shape, err))
        return err->code;
    for (int64_t i = 0; i < tensor_count(from); i++) {
        if (dtype_is_floating(type))
            tensor_set_float64(to, i, moved(tensor_get_float64(from, i), by));
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
    struct plan_request call = {.feeds = run->feeds,
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

/* The first element of a float type that does not lie between two others, or how many there are;
 * NaN is NaN, whatever its bits. */
static int64_t find_beside(const struct tensor *low, const struct tensor *high,
                           const struct tensor *got)
{
    int64_t i = 0;
    for (; i < tensor_count(got); i++) {
        double x = tensor_get_float64(got, i), a = tensor_get_float64(low, i),
               b = tensor_get_float64(high, i);
        if (!((a <= x && x <= b) || (x != x && a != a)))
            break;
    }
    return i;
}

static int compare_floats(const struct tensor *wide, const struct tensor *got, double tolerance,
                          struct error *err)
{
    struct tensor low = {0}, high = {0};
    int code = convert(&low, got->type, wide, -tolerance, err);
    if (!code)
        code = convert(&high, got->type, wide, tolerance, err);
    int64_t at = code ? 0 : find_beside(&low, &high, got);
    tensor_release(&low);
    tensor_release(&high);
    if (code || at == tensor_count(got))
        return code;
    return error_set(err, ERR_DATA, "element %lld is %.9g, and %.9g in a wider type", (long long)at,
                     tensor_get_float64(got, at), tensor_get_float64(wide, at));
}

static int compare_output(const struct tensor *wide, const struct tensor *got, double tolerance,
                          struct error *err)
{
    struct tensor expected = {0};
    if (dtype_is_floating(got->type) && shape_equal(&wide->shape, &got->shape))
        return compare_floats(wide, got, tolerance, err);
    int code = convert(&expected, got->type, wide, 0, err);
    if (!code && !tensor_equal(&expected, got))
        code = error_set(err, ERR_DATA, "not what a wider type gives");
    tensor_release(&expected);
    return code;
}

static int compare(const struct narrow_run *wide, const struct narrow_run *narrow, double tolerance,
                   struct error *err)
{
    for (int k = 0; k < narrow->node->n_outputs; k++) {
        if (narrow->got[k].type != STRING &&
            compare_output(&wide->got[k], &narrow->got[k], tolerance, err)) {
            error_prefix(err, "output %d: ", k);
            return err->code;
        }
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
        if (is_cut ? convert(&narrow->values[i], type, in, 0, err) ||
                         convert(&wide->values[i], in->type, &narrow->values[i], 0, err)
                   : tensor_copy(&narrow->values[i], in, err) ||
                         tensor_copy(&wide->values[i], in, err))
            return err->code;
    }
    return 0;
}

static double tolerance_of(const struct checker *checker, const struct test_case *test)
{
    return strcmp(checker->device->type, "CPU") && test->tolerance > 0 ? test->tolerance : 0;
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
            result = compare(&wide, &narrow, tolerance_of(checker, test), err);
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
