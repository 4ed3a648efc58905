/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients against central differences in float64. The loss is the sum of the outputs' elements
 * times fixed weights, so that no element's error hides behind another's.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "graph/build.h"
#include "ops/ops.h"
#include "pass/gradient/grad.h"
#include "tests/ops/check.h"
#include "tests/ops/coverage.h"

#define STEP 1e-6
#define GRADIENT_TOLERANCE 2e-6
#define ELEMENTS_MAX 48 /* of an input that are varied, spread evenly */

/* What the gradient functions are told when the gradients are added. */
enum knowledge {
    KNOWN,        /* shapes, and the values of what is not differentiated */
    UNKNOWN_DIMS, /* ranks and these values */
    UNKNOWN,      /* ranks only */
    UNKNOWN_RANK, /* nothing */
    KNOWLEDGES,
};

struct gradient_check {
    const struct test_case *test;
    enum knowledge knowledge;
    struct graph *graph;
    struct session *session;
    struct edge inputs[CASE_INPUTS_MAX];
    struct tensor values[CASE_INPUTS_MAX]; /* own copies, to be varied */
    struct edge loss;
    int chosen[CASE_INPUTS_MAX], n_chosen; /* inputs whose gradients are checked */
    struct edge gradients[CASE_INPUTS_MAX];
};

static bool all_finite(const struct case_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int64_t e = 0; !values[i].any && values[i].tensor.type != STRING &&
                            e < tensor_count(&values[i].tensor);
             e++)
            if (!isfinite(tensor_get_float64(&values[i].tensor, e)))
                return false;
    return true;
}

static bool has_float64(const struct case_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!values[i].any && values[i].tensor.type == FLOAT64)
            return true;
    return false;
}

/* The inputs that the case names, or all of float64. None: nothing to check. */
static void choose(struct gradient_check *check)
{
    const struct test_case *test = check->test;
    char number[24];
    for (size_t i = 0; i < test->in.n; i++) {
        snprintf(number, sizeof number, "%zu", i);
        if (test->in.items[i].tensor.type == FLOAT64 &&
            (!test->grad || case_lists(test->grad, number)))
            check->chosen[check->n_chosen++] = (int)i;
    }
}

/* A fixed value in [0.5, 1.5) for element i. */
static double weight(int64_t i, int salt)
{
    uint64_t key[] = {(uint64_t)i, (uint64_t)salt};
    return 0.5 + (double)(hash_bytes(key, sizeof key, 0) >> 11) * 0x1p-53;
}

/* sum(x * weights), a scalar. */
static struct edge weigh(struct build *b, struct edge x, const struct shape *shape, int salt)
{
    struct error err = ERROR_INIT;
    struct tensor weights = TENSOR_INIT;
    if (b->err->code || tensor_alloc(&weights, FLOAT64, shape, &err))
        return EDGE_NONE;
    for (int64_t i = 0; i < tensor_count(&weights); i++)
        tensor_set_float64(&weights, i, weight(i, salt));
    struct edge product = build_binary(b, "Mul", x, build_const(b, &weights));
    tensor_release(&weights);
    struct shape flat = shape_vector(shape->rank);
    int32_t axes[SHAPE_RANK_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct tensor indices = tensor_borrow(INT32, &flat, axes);
    return build_binary(b, "Sum", product, build_const(b, &indices));
}

static struct edge add_to(struct build *b, struct edge sum, struct edge term)
{
    return edge_exists(sum) ? build_binary(b, "Add", sum, term) : term;
}

static struct edge output_loss(struct build *b, const struct test_case *test,
                               const struct node *node)
{
    struct edge loss = EDGE_NONE;
    for (int k = 0; k < node->n_outputs; k++)
        if (node->outputs[k].type == FLOAT64 && !test->out.items[k].any)
            loss = add_to(
                b, loss, weigh(b, (struct edge){node->id, k}, &test->out.items[k].tensor.shape, k));
    return loss;
}

/* Gradients of the loss with respect to the chosen inputs; zeros where there is none. */
static int add_gradients(struct gradient_check *check, struct build *b, struct error *err)
{
    struct edge xs[CASE_INPUTS_MAX];
    struct gradient result[CASE_INPUTS_MAX];
    struct gradients_options options = {.allow_missing = true};
    for (int i = 0; i < check->n_chosen; i++)
        xs[i] = check->inputs[check->chosen[i]];
    if (gradients_add(check->graph, &check->loss, NULL, 1, xs, check->n_chosen, &options, result,
                      err))
        return err->code;
    for (int i = 0; i < check->n_chosen; i++)
        check->gradients[i] = edge_exists(result[i].values) ? gradient_dense(b, &result[i], xs[i])
                                                            : build_unary(b, "ZerosLike", xs[i]);
    return err->code;
}

static struct edge add_input(struct gradient_check *check, struct build *b,
                             const struct tensor *value, struct error *err)
{
    struct shape shape = value->shape;
    if (check->knowledge == UNKNOWN_RANK)
        shape.rank = SHAPE_UNKNOWN;
    for (int i = 0; check->knowledge != KNOWN && i < shape.rank; i++)
        shape.dims[i] = SHAPE_UNKNOWN;
    if (value->type != FLOAT64 && check->knowledge < UNKNOWN)
        return build_const(b, value);
    return check_add_placeholder(check->graph, value->type, &shape, err);
}

static int build_graph(struct gradient_check *check, struct build *b, struct error *err)
{
    const struct test_case *test = check->test;
    for (size_t i = 0; i < test->in.n; i++) {
        const struct tensor *value = &test->in.items[i].tensor;
        check->inputs[i] = add_input(check, b, value, err);
        if (!edge_exists(check->inputs[i]))
            return err->code;
        if (tensor_copy(&check->values[i], value, err))
            return err->code;
    }
    const struct node *node = check_add_op(check->graph, test, check->inputs, err);
    if (!node)
        return err->code;
    check->loss = output_loss(b, test, node);
    return err->code;
}

static int evaluate(struct gradient_check *check, const struct edge *fetches, int n,
                    struct tensor *got, struct error *err)
{
    struct edge feeds[CASE_INPUTS_MAX];
    struct tensor values[CASE_INPUTS_MAX];
    int n_feeds = 0;
    for (size_t i = 0; i < check->test->in.n; i++) {
        if (check->values[i].type != FLOAT64 && check->knowledge < UNKNOWN)
            continue;
        feeds[n_feeds] = check->inputs[i];
        values[n_feeds++] = check->values[i];
    }
    struct plan_request call = {.feeds = feeds,
                                .feed_values = values,
                                .n_feeds = n_feeds,
                                .fetches = fetches,
                                .n_fetches = n};
    struct step step = check_step(1);
    return session_run(check->session, &call, &step, got, err);
}

static int loss_at(struct gradient_check *check, double *loss, struct error *err)
{
    struct tensor got = TENSOR_INIT;
    if (evaluate(check, &check->loss, 1, &got, err))
        return err->code;
    *loss = tensor_get_float64(&got, 0);
    tensor_release(&got);
    return 0;
}

/* The same element, or of symmetric matrices its mirror image. */
static int64_t mirrored(const struct gradient_check *check, const struct shape *shape, int64_t i)
{
    if (!check->test->symmetric || shape->rank < 2)
        return i;
    int64_t n = shape->dims[shape->rank - 1], row = i / n % n, column = i % n;
    return i - row * n - column + column * n + row;
}

static int loss_beside(struct gradient_check *check, int input, int64_t element, double value,
                       double *loss, struct error *err)
{
    struct tensor *x = &check->values[input];
    int64_t mirror = mirrored(check, &x->shape, element);
    double at = tensor_get_float64(x, element), beside = tensor_get_float64(x, mirror);
    tensor_set_float64(x, mirror, value);
    tensor_set_float64(x, element, value);
    int result = loss_at(check, loss, err);
    tensor_set_float64(x, mirror, beside);
    tensor_set_float64(x, element, at);
    return result;
}

static int compare_element(struct gradient_check *check, int input, int64_t element, double exact,
                           struct error *err)
{
    double at = tensor_get_float64(&check->values[input], element);
    double step = STEP * fmax(1, fabs(at)), up, down;
    if (loss_beside(check, input, element, at + step, &up, err) ||
        loss_beside(check, input, element, at - step, &down, err))
        return err->code;
    double estimate = (up - down) / (2 * step);
    double noise = fmax(fabs(up), fabs(down)) * 1e-15 / step; /* digits lost in the difference */
    if (fabs(estimate - exact) <= GRADIENT_TOLERANCE * fmax(1, fabs(exact)) + noise)
        return 0;
    return error_set(err, ERR_DATA,
                     "gradient of input %d, element %lld: %.10g, by differences %.10g", input,
                     (long long)element, exact, estimate);
}

static int compare_input(struct gradient_check *check, int i, const struct tensor *gradient,
                         struct error *err)
{
    int input = check->chosen[i];
    const struct shape *shape = &check->values[input].shape;
    int64_t n = tensor_count(&check->values[input]);
    int64_t stride = n > ELEMENTS_MAX ? n / ELEMENTS_MAX : 1;
    if (!shape_equal(&gradient->shape, shape))
        return error_set(err, ERR_DATA, "gradient of input %d is %s", input,
                         shape_text(&gradient->shape));
    for (int64_t e = 0; e < n; e += stride) {
        int64_t mirror = mirrored(check, shape, e);
        double exact = tensor_get_float64(gradient, e);
        if (mirror != e)
            exact += tensor_get_float64(gradient, mirror);
        if (compare_element(check, input, e, exact, err))
            return err->code;
    }
    return 0;
}

static int compare_all(struct gradient_check *check, struct error *err)
{
    struct tensor got[CASE_INPUTS_MAX] = {TENSOR_INIT};
    int result = evaluate(check, check->gradients, check->n_chosen, got, err);
    for (int i = 0; i < check->n_chosen && !result; i++)
        result = compare_input(check, i, &got[i], err);
    for (int i = 0; i < check->n_chosen; i++)
        tensor_release(&got[i]);
    return result;
}

/* The gradients' own gradients: a new loss made of them. */
static int second_order(struct gradient_check *check, struct build *b, struct error *err)
{
    struct edge loss = EDGE_NONE;
    for (int i = 0; i < check->n_chosen; i++)
        loss =
            add_to(b, loss,
                   weigh(b, check->gradients[i], &check->values[check->chosen[i]].shape, 100 + i));
    check->loss = loss;
    if (b->err->code || add_gradients(check, b, err) || compare_all(check, err))
        return error_prefix(err, "second order: ");
    return 0;
}

static int run_check(struct gradient_check *check, struct error *err)
{
    struct build b = {.graph = check->graph, .scope = "check", .err = err};
    if (build_graph(check, &b, err))
        return err->code;
    if (add_gradients(check, &b, err) || compare_all(check, err))
        return err->code;
    return check->test->grad2 && check->knowledge == KNOWN ? second_order(check, &b, err) : 0;
}

static int check_with(const struct checker *checker, struct gradient_check *check,
                      struct error *err)
{
    static const char *const names[] = {
        "", "unknown dimensions: ", "unknown values: ", "unknown ranks: "};
    check->graph = graph_new(ops_registry());
    check->session = check_session(checker, check->graph, false);
    int result = run_check(check, err);
    session_free(check->session);
    for (size_t i = 0; i < check->test->in.n; i++)
        tensor_release(&check->values[i]);
    graph_free(check->graph);
    return result ? error_prefix(err, "%s", names[check->knowledge]) : 0;
}

int check_gradient(const struct checker *checker, const struct test_case *test, bool *checked,
                   struct error *err)
{
    struct gradient_check check = {.test = test};
    const struct op *op = registry_find(ops_registry(), test->ops);
    *checked = false;
    choose(&check);
    if (!op || !op->def->gradient || !has_float64(test->out.items, test->out.n) || test->nograd ||
        test->error || !check.n_chosen || !all_finite(test->in.items, test->in.n) ||
        !all_finite(test->out.items, test->out.n))
        return 0;
    for (int k = 0; k < KNOWLEDGES; k++) {
        check.knowledge = (enum knowledge)k;
        if (check_with(checker, &check, err))
            return err->code;
    }
    *checked = true;
    coverage_note_name(checker->coverage, test->ops, COVERAGE_GRADIENT);
    return 0;
}
