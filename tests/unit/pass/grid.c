/* SPDX-License-Identifier: Apache-2.0
 *
 * Random nets train the same when their images are partitioned into tiles: convolutions, filters
 * for each position, pooling, normalization and element-wise ops, with random windows, strides,
 * padding and grids. GRIDS: number of nets.
 */
#include "lib/scripts.h"
#include "lib/session.h"

#include <math.h>

#include "base/memory.h"
#include "base/str.h"
#include "pass/grid/grid.h"
#include "pass/simplify/simplify.h"

#define BATCH 2
#define STEPS 3

static int up_to(uint64_t *random, int most)
{
    return (int)(unit_random(random) % (uint64_t)(most + 1));
}

/* ---- random nets ---- */

struct net {
    struct str text;
    uint64_t *random;
    int height, width, channels, rows, columns;
    bool nchw, batch_is_known;
    int n;
};

static int outputs(int in, int size, int stride, bool same)
{
    return same ? (in + stride - 1) / stride : (in - size) / stride + 1;
}

/* Adds a window that fits: sets height and width to those of the output. */
static void add_window(struct net *net, const char *layer, int filters, int size, bool dilates)
{
    int stride = 1 + up_to(net->random, 1);
    int dilation = dilates && stride == 1 && up_to(net->random, 3) == 0 ? 2 : 1;
    int span = (size - 1) * dilation + 1;
    int least = net->height < net->width ? net->height : net->width;
    bool same = span > least || up_to(net->random, 1);
    if (filters)
        str_printf(&net->text, "c = nn.%s(c, %d, %d, {name = \"n%d\", ", layer, filters, size,
                   net->n++);
    else
        str_printf(&net->text, "c = nn.%s(c, %d, {", layer, size);
    if (dilation > 1)
        str_printf(&net->text, "dilation = %d, ", dilation);
    if (dilates && filters % net->channels == 0 && up_to(net->random, 1))
        str_printf(&net->text, "groups = %d, ", net->channels);
    str_printf(&net->text, "stride = %d, padding = \"%s\", layout = \"%s\"})\n", stride,
               same ? "SAME" : "VALID", net->nchw ? "NCHW" : "NHWC");
    net->height = outputs(net->height, span, stride, same);
    net->width = outputs(net->width, span, stride, same);
    net->channels = filters ? filters : net->channels;
}

static void add_layer(struct net *net)
{
    static const int sizes[] = {1, 2, 3, 5, 7};
    int filters = 1 + up_to(net->random, 2);
    switch (up_to(net->random, 9)) {
    case 0:
        add_window(net, "max_pool", 0, 2 + up_to(net->random, 1), false);
        break;
    case 1:
        add_window(net, "avg_pool", 0, 2 + up_to(net->random, 1), false);
        break;
    case 2:
    case 3:
        add_window(net, "locally_connected2d", filters, sizes[up_to(net->random, 3)], false);
        break;
    case 4:
        if (!net->nchw)
            str_append(&net->text, "c = nn.lrn(c, {radius = 1, alpha = 0.5})\n");
        break;
    case 5:
        str_append(&net->text, "c = CheckNumerics(Tanh(c) * 1.5 + c, {message = \"layer\"})\n");
        break;
    case 6:
        str_printf(&net->text, "c = nn.batch_norm(c, {name = \"n%d\", layout = \"%s\"})\n",
                   net->n++, net->nchw ? "NCHW" : "NHWC");
        break;
    default:
        add_window(net, "conv2d", filters, sizes[up_to(net->random, 4)], true);
    }
    if (up_to(net->random, 1))
        str_append(&net->text, "c = Tanh(c)\n");
}

static void write_net(struct net *net)
{
    static const char *const ends[] = {"nn.flatten(c)", "Mean(c, {%d, %d})", "Sum(c, {%d, %d})"};
    static const char *const optimizers[] = {"sgd{rate = 0.01}", "momentum{rate = 0.01}",
                                             "adam{rate = 0.01}"};
    int first = net->nchw ? 2 : 1, end = up_to(net->random, 4);
    str_append(&net->text, "local c\nx = Placeholder{dtype = float64, shape = ");
    str_printf(&net->text,
               net->nchw ? "{%d, %d, %d, %d}}\nc = x\n" : "{%1$d, %3$d, %4$d, %2$d}}\nc = x\n",
               net->batch_is_known ? BATCH : -1, net->channels, net->height, net->width);
    for (int i = 2 + up_to(net->random, 4); i-- > 0;)
        if (net->height >= net->rows && net->width >= net->columns)
            add_layer(net);
    str_append(&net->text, "features = Identity(c)\nlocal f = ");
    str_printf(&net->text, ends[end < 2 ? end + 1 : 0], first, first + 1);
    str_printf(&net->text,
               "\nloss = Mean(Square(nn.dense(f, 3, {name = \"output\"}) - 1), {0, 1})"
               " + 0.01 * L2Loss(c)\n"
               "entry.out = features\nentry.train = minimize(loss, optim.%s)\n",
               optimizers[up_to(net->random, 2)]);
}

/* ---- running ---- */

struct trained {
    struct tensor features[STEPS];
    double loss[STEPS];
};

static struct edge find(struct graph *graph, const char *name)
{
    struct edge edge;
    struct error err = ERROR_INIT;
    if (graph_parse_edge(graph, name, &edge, &err))
        fail_msg("%s", err.text);
    return edge;
}

static void train(struct graph *graph, const struct tensor *x, struct trained *trained,
                  const char *text)
{
    struct error err = ERROR_INIT;
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    struct session *session = session_new(graph, &options);
    const struct entry *init = graph_entry(graph, "init"), *entry = graph_entry(graph, "train");
    struct edge fetches[] = {find(graph, "features"), find(graph, "loss")}, feed = find(graph, "x");
    int targets[100], n = 0;
    for (; n < init->n_edges; n++)
        targets[n] = init->edges[n].node;
    struct step step = {.number = 1};
    struct plan_request call = {.targets = targets, .n_targets = n};
    if (session_run(session, &call, &step, NULL, &err))
        fail_msg("%s\n%s", err.text, text);
    for (int i = 0; i < STEPS; i++) {
        struct tensor results[2];
        struct step next = {.number = i + 1};
        struct plan_request run = {.feeds = &feed,
                                   .feed_values = x,
                                   .n_feeds = 1,
                                   .fetches = fetches,
                                   .n_fetches = 2,
                                   .targets = &entry->edges[0].node,
                                   .n_targets = 1};
        if (session_run(session, &run, &next, results, &err))
            fail_msg("%s\n%s", err.text, text);
        trained->features[i] = results[0];
        trained->loss[i] = tensor_get_float64(&results[1], 0);
        tensor_release(&results[1]);
    }
    session_free(session);
}

static double distance(const struct tensor *a, const struct tensor *b)
{
    double most = 0;
    assert_true(shape_equal(&a->shape, &b->shape));
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double p = tensor_get_float64(a, i), q = tensor_get_float64(b, i);
        double d = fabs(p - q) / (1 + fabs(p));
        most = d > most ? d : most;
    }
    return most;
}

static int count_on(const struct graph *graph, const char *op, const char *device)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n += (!op || node_is(graph_node(graph, (int)i), op)) &&
             strstr(graph_node(graph, (int)i)->device, device) != NULL;
    return n;
}

/* NULL: there are no images of that size. */
static struct graph *cut(const struct graph *graph, int rows, int columns, const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *to;
    const struct grid_options options = {rows, columns, "/device:CPU:*", NULL};
    if (grid_graph(graph, &options, &to, &err) && !strstr(err.text, "no op with windows"))
        fail_msg("%s\n%s", err.text, text);
    return to;
}

static bool compare(struct graph *graph, struct net *net)
{
    struct error err = ERROR_INIT;
    struct graph *tiles = cut(graph, net->rows, net->columns, str_text(&net->text));
    struct trained a, b;
    struct tensor x;
    if (!tiles)
        return false;
    assert_true(count_on(tiles, NULL, "CPU:1") > 0);
    struct shape shape = graph_find(graph, "x")->outputs[0].shape;
    shape.dims[0] = BATCH;
    assert_int_equal(tensor_alloc(&x, FLOAT64, &shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(&x); i++)
        tensor_set_float64(&x, i, (double)up_to(net->random, 2000) / 1000 - 1);
    train(graph, &x, &a, str_text(&net->text));
    train(tiles, &x, &b, str_text(&net->text));
    bool is_adam = strstr(str_text(&net->text), "adam") != NULL;
    for (int i = 0; i < STEPS; i++) {
        double d = distance(&a.features[i], &b.features[i]);
        double most = i == 0 ? 1e-14 : is_adam ? 1e-9 : 1e-12;
        if (d > most ||
            fabs(a.loss[i] - b.loss[i]) > (is_adam ? 1e-9 : 1e-12) * (1 + fabs(a.loss[i])))
            fail_msg("step %d, %d x %d tiles: features are %g apart, losses %.17g and %.17g\n%s", i,
                     net->rows, net->columns, d, a.loss[i], b.loss[i], str_text(&net->text));
        tensor_release(&a.features[i]);
        tensor_release(&b.features[i]);
    }
    tensor_release(&x);
    graph_free(tiles);
    return true;
}

static bool check(uint64_t *random)
{
    static const int grids[][2] = {{1, 2}, {2, 1}, {2, 2}, {3, 2}, {1, 3}};
    const int *grid = grids[up_to(random, 4)];
    struct net net = {.text = STR_INIT,
                      .random = random,
                      .height = 4 + up_to(random, 8),
                      .width = 4 + up_to(random, 8),
                      .channels = 1 + up_to(random, 2),
                      .rows = grid[0],
                      .columns = grid[1],
                      .nchw = up_to(random, 3) == 0,
                      .batch_is_known = up_to(random, 1)};
    write_net(&net);
    struct graph *graph = scripts_build(str_text(&net.text));
    struct error err = ERROR_INIT;
    const struct pass_options options = {0};
    const struct pass *passes[16];
    struct pass_result optimized;
    for (int i = 0; i < pass_count; i++)
        passes[i] = &pass_list[i];
    if (pass_optimize(graph, passes, pass_count, &options, &optimized, &err))
        fail_msg("%s", err.text);
    bool is_cut = compare(up_to(random, 3) ? optimized.graph : graph, &net);
    pass_result_release(&optimized);
    graph_free(graph);
    str_release(&net.text);
    return is_cut;
}

static void test_tiles_train_as_the_whole(void **state)
{
    const char *more = getenv("GRIDS");
    int n = more ? atoi(more) : 40, n_cut = 0;
    uint64_t random = 1;
    (void)state;
    for (int i = 0; i < n; i++)
        n_cut += check(&random);
    assert_true(n_cut > n / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_train_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
