/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutional nets with the layouts that kernels choose and without: a training step's loss and
 * gradients must agree, and layouts must in fact have been kept between the ops.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/session/session.h"
#include "graph/build.h"
#include "lib/plan_items.h"
#include "ops/ops.h"
#include "pass/gradient/grad.h"

enum { LOSS, IMAGE, FILTER_1, BIAS_1, FILTER_2, N_RESULTS };

struct net {
    struct graph *graph;
    struct build b;
    struct error err;
    bool nchw;
    struct edge results[N_RESULTS];
};

/* Values in [-0.5, 0.5) that differ from element to element. */
static struct edge values(struct net *net, int rank, const int64_t *dims)
{
    struct shape shape = shape_of(rank, dims);
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, FLOAT32, &shape, &net->err), 0);
    for (int64_t i = 0; i < tensor_count(&t); i++)
        tensor_set_float64(&t, i, (double)(i * 7919 % 1009) / 1009 - 0.5);
    struct edge edge = build_const(&net->b, &t);
    tensor_release(&t);
    /* Makes it no constant, so that nothing is computed at plan time. */
    return build_unary(&net->b, "Identity", edge);
}

static struct edge placeholder(struct net *net, int rank, const int64_t *dims)
{
    struct shape shape = shape_of(rank, dims);
    const struct attr attrs[] = {{"dtype", attr_type(FLOAT32)}, {"shape", attr_shape(&shape)}};
    return build_op(&net->b, "Placeholder", NULL, 0, attrs, 2);
}

static struct edge with_window(struct net *net, const char *op, struct edge *in, int n,
                               int64_t stride, int64_t ksize)
{
    int64_t h = net->nchw ? 2 : 1, strides[4] = {1, 1, 1, 1}, sizes[4] = {1, 1, 1, 1};
    strides[h] = strides[h + 1] = stride;
    sizes[h] = sizes[h + 1] = ksize;
    const struct attr attrs[] = {{"padding", attr_string("SAME")},
                                 {"data_format", attr_string(net->nchw ? "NCHW" : "NHWC")},
                                 {"strides", attr_ints(strides, 4)},
                                 {"ksize", attr_ints(sizes, 4)}};
    return build_op(&net->b, op, in, n, attrs, ksize ? 4 : 3);
}

static struct edge add_bias(struct net *net, struct edge x, struct edge bias)
{
    const struct attr format = {"data_format", attr_string(net->nchw ? "NCHW" : "NHWC")};
    return build_op(&net->b, "BiasAdd", (struct edge[]){x, bias}, 2, &format, 1);
}

static void build_net(struct net *net, struct edge inputs[4])
{
    struct build *b = &net->b;
    struct edge h = with_window(net, "Conv2D", (struct edge[]){inputs[0], inputs[1]}, 2, 1, 0);
    h = build_unary(b, "Relu", add_bias(net, h, inputs[2]));
    h = with_window(net, "MaxPool", &h, 1, 2, 3);
    h = with_window(net, "Conv2D", (struct edge[]){h, inputs[3]}, 2, 2, 0);
    h = build_unary(b, "Relu", h);
    h = with_window(net, "AvgPool", &h, 1, 1, 2);
    struct edge loss = build_unary(b, "L2Loss", h);
    struct gradient gradients[4];
    struct gradients_options options = {0};
    assert_false(b->err->code);
    if (gradients_add(net->graph, &loss, NULL, 1, inputs, 4, &options, gradients, &net->err))
        fail_msg("%s", net->err.text);
    net->results[LOSS] = loss;
    for (int i = 0; i < 4; i++)
        net->results[IMAGE + i] = gradients[i].values;
}

/* Each relayout has a consumer; an op that only asks for the shape is none. */
static int count_relayouts(struct plan *plan)
{
    vec_each(item, &plan->items) {
        if (!item->removed && !strcmp(item->kernel, "relayout"))
            assert_true(plan->values.items[item->out[0]].live_to > item->position);
    }
    return plan_count_kernels(plan, "relayout");
}

static void run(struct net *net, struct device *device, const struct plan_request *call,
                bool no_layouts, struct tensor results[N_RESULTS], int *relayouts)
{
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = device, .no_layouts = no_layouts}};
    struct session *session = session_new(net->graph, &options);
    struct step step = {.number = 1};
    struct plan *const *plans = NULL;
    int n_plans = 0;
    if (session_run(session, call, &step, results, &net->err) ||
        session_plans(session, call, &plans, &n_plans, &net->err))
        fail_msg("%s", net->err.text);
    *relayouts = count_relayouts(plans[0]);
    session_free(session);
}

static void compare(const struct tensor *a, const struct tensor *b, int which)
{
    double error = 0, size = 0;
    assert_true(shape_equal(&a->shape, &b->shape));
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double x = tensor_get_float64(a, i), y = tensor_get_float64(b, i);
        error = fmax(error, fabs(x - y));
        size = fmax(size, fabs(y));
    }
    if (!(error <= 1e-4 * size))
        fail_msg("result %d differs by %g of %g", which, error, size);
}

static void check_net(bool nchw, int64_t channels_1, int64_t channels_2)
{
    struct net net = {.nchw = nchw, .graph = graph_new(ops_registry())};
    net.b = (struct build){.graph = net.graph, .scope = "", .device = "", .err = &net.err};
    struct device_options options = {.threads = 2};
    struct device *device = device_open("CPU", 0, &options, &net.err);
    if (!device)
        fail_msg("%s", net.err.text);
    int64_t image[] = {2, nchw ? 34 : 12, nchw ? 12 : 11, nchw ? 11 : 34};
    struct edge inputs[] = {
        placeholder(&net, 4, image), values(&net, 4, (int64_t[]){3, 3, 34, channels_1}),
        values(&net, 1, &channels_1), values(&net, 4, (int64_t[]){2, 3, channels_1, channels_2})};
    build_net(&net, inputs);
    struct tensor feed = TENSOR_INIT, with[N_RESULTS], without[N_RESULTS];
    struct shape shape = shape_of(4, image);
    assert_int_equal(tensor_alloc(&feed, FLOAT32, &shape, &net.err), 0);
    for (int64_t i = 0; i < tensor_count(&feed); i++)
        tensor_set_float64(&feed, i, (double)(i * 104729 % 2003) / 2003 - 0.5);
    struct plan_request call = {.feeds = inputs,
                                .feed_values = &feed,
                                .n_feeds = 1,
                                .fetches = net.results,
                                .n_fetches = N_RESULTS};
    int relayouts, none;
    run(&net, device, &call, false, with, &relayouts);
    run(&net, device, &call, true, without, &none);
    assert_int_equal(none, 0);
    /* at most those for a fetched image and for a loss over all elements */
    assert_in_range(relayouts, 1, 4);
    for (int i = 0; i < N_RESULTS; i++) {
        compare(&with[i], &without[i], i);
        tensor_release(&with[i]);
        tensor_release(&without[i]);
    }
    tensor_release(&feed);
    device_free(device);
    graph_free(net.graph);
}

static void test_nhwc(void **state)
{
    (void)state;
    check_net(false, 32, 16);
}

static void test_nchw(void **state)
{
    (void)state;
    check_net(true, 32, 16);
}

static void test_odd_channels(void **state)
{
    (void)state;
    check_net(false, 33, 7);
    check_net(true, 35, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nhwc), cmocka_unit_test(test_nchw),
                                       cmocka_unit_test(test_odd_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
