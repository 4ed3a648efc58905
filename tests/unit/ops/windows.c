/* SPDX-License-Identifier: Apache-2.0
 *
 * The windows that ops declare (op_def.window), with random geometry: rows and columns of the input
 * are changed one at a time, and exactly the outputs whose windows contain them change. WINDOWS:
 * number of cases per op.
 */
#include "lib/session.h"
#include "lib/unit.h"

#include "base/memory.h"
#include "base/str.h"
#include "graph/index_rule.h"

#define BATCH 2
#define LONGEST 64 /* exceeds all heights, widths and outputs here */

struct extent {
    int in, size, stride, dilation, before, after;
};

struct geometry {
    const char *op;
    struct extent y, x;
    int channels, depth; /* of the image; of the filter */
    bool nchw;
    const char *padding;
};

static const struct kind {
    const char *op;
    bool has_filter, has_window, dilates, pads, formats;
    bool has_mean; /* each window needs a cell of the image */
} kinds[] = {
    {"Conv2D", .has_filter = true, .dilates = true, .pads = true, .formats = true},
    {"LocallyConnected2D", .has_filter = true, .pads = true, .formats = true},
    {"MaxPool", .has_window = true, .pads = true, .formats = true},
    {"AvgPool", .has_window = true, .pads = true, .formats = true, .has_mean = true},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static int up_to(uint64_t *random, int most)
{
    return (int)(unit_random(random) % (uint64_t)(most + 1));
}

static struct extent any_extent(const struct kind *kind, bool explicit, uint64_t *random)
{
    struct extent e = {.size = 1, .stride = 1, .dilation = 1};
    if (kind->has_filter || kind->has_window) {
        e.size = 1 + up_to(random, 4);
        e.stride = 1 + up_to(random, 3);
    }
    if (kind->dilates && up_to(random, 2) == 0)
        e.dilation = 1 + up_to(random, 2);
    int span = (e.size - 1) * e.dilation + 1, most = span < 4 ? span - 1 : 3;
    if (explicit) { /* the first window has a cell of the image */
        e.before = up_to(random, most);
        e.after = up_to(random, kind->has_mean ? most : 3);
    }
    e.in = span + up_to(random, 8);
    return e;
}

static struct geometry any_geometry(const struct kind *kind, uint64_t *random)
{
    static const char *const paddings[] = {"SAME", "VALID", "EXPLICIT"};
    struct geometry g = {.op = kind->op, .padding = paddings[up_to(random, kind->pads ? 2 : 1)]};
    bool explicit = !strcmp(g.padding, "EXPLICIT");
    g.y = any_extent(kind, explicit, random);
    g.x = any_extent(kind, explicit, random);
    g.channels = 1 + up_to(random, 2);
    g.depth = kind->dilates && g.channels == 2 && up_to(random, 1) ? 1 : g.channels;
    g.nchw = kind->formats && up_to(random, 1);
    return g;
}

static int outputs_of(const struct geometry *g, const struct extent *e)
{
    int span = (e->size - 1) * e->dilation + 1;
    if (!strcmp(g->padding, "SAME"))
        return (e->in + e->stride - 1) / e->stride;
    return (e->in + e->before + e->after - span) / e->stride + 1;
}

static void write_pair(struct str *text, const struct geometry *g, const char *name, int y, int x)
{
    str_printf(text, g->nchw ? ", %s=[1,1,%d,%d]" : ", %s=[1,%d,%d,1]", name, y, x);
}

static void write_filter(struct str *text, const struct geometry *g)
{
    str_append(text, "half = Const() {dtype=float64, value=0.5}\n"
                     "filter_shape = Const() {dtype=int32, value=[");
    if (!strcmp(g->op, "LocallyConnected2D"))
        str_printf(text, "%d,%d,", outputs_of(g, &g->y), outputs_of(g, &g->x));
    str_printf(text, "%d,%d,%d,2]}\n", g->y.size, g->x.size, g->depth);
    str_append(text, "filter = Fill(filter_shape, half)\n");
}

static void write_attrs(struct str *text, const struct kind *kind, const struct geometry *g)
{
    const char *edges = g->nchw ? ", explicit_paddings=[0,0,0,0,%d,%d,%d,%d]"
                                : ", explicit_paddings=[0,0,%d,%d,%d,%d,0,0]";
    str_append(text, " {T=float64");
    if (kind->formats)
        str_printf(text, ", data_format=\"%s\"", g->nchw ? "NCHW" : "NHWC");
    if (kind->has_filter || kind->has_window) {
        write_pair(text, g, "strides", g->y.stride, g->x.stride);
        str_printf(text, ", padding=\"%s\"", g->padding);
    }
    if (kind->has_window)
        write_pair(text, g, "ksize", g->y.size, g->x.size);
    if (kind->dilates)
        write_pair(text, g, "dilations", g->y.dilation, g->x.dilation);
    if (!strcmp(g->padding, "EXPLICIT"))
        str_printf(text, edges, g->y.before, g->y.after, g->x.before, g->x.after);
    str_append(text, "}\n");
}

static void write_graph(struct str *text, const struct kind *kind, const struct geometry *g)
{
    str_printf(text,
               g->nchw ? "x = Placeholder() {dtype=float64, shape=[%d,%d,%d,%d]}\n"
                       : "x = Placeholder() {dtype=float64, shape=[%1$d,%3$d,%4$d,%2$d]}\n",
               BATCH, g->channels, g->y.in, g->x.in);
    if (kind->has_filter)
        write_filter(text, g);
    str_printf(text, kind->has_filter ? "y = %s(x, filter)" : "y = %s(x)", g->op);
    write_attrs(text, kind, g);
}

static struct tensor run(struct fixture *f, const struct tensor *x)
{
    struct tensor y;
    if (fixture_run(f, "y", "x", x, &y))
        fail_msg("%s", f->err.text);
    return y;
}

/* The index of element i along an axis. */
static int along(const struct tensor *t, int axis, int64_t i)
{
    int64_t steps[SHAPE_RANK_MAX];
    shape_strides(&t->shape, steps);
    return (int)(i / steps[axis] % t->shape.dims[axis]);
}

/* Makes all elements at `index` of the axis far larger; -1: none. */
static void fill(struct tensor *x, int axis, int index)
{
    for (int64_t i = 0; i < tensor_count(x); i++)
        ((double *)x->data)[i] =
            (double)(i * 7919 % 101) / 101 + (along(x, axis, i) == index ? 1000 : 0);
}

/* Finds the outputs along an axis that change with input `index` along it. */
static void change(struct fixture *f, struct tensor *x, const struct tensor *before, int axis,
                   int index, bool changes[LONGEST])
{
    memset(changes, 0, LONGEST * sizeof *changes);
    fill(x, axis, index);
    struct tensor after = run(f, x);
    for (int64_t i = 0; i < tensor_count(&after); i++)
        if (((double *)after.data)[i] != ((double *)before->data)[i])
            changes[along(&after, axis, i)] = true;
    tensor_release(&after);
}

/* Whether output `out` must change with input `in`, where the window's cells are `apart`. */
static bool is_declared(const struct op_window_axis *a, int apart, int out, int in)
{
    int64_t cell = in - (out * a->stride - a->before);
    return cell >= 0 && cell < a->size && cell % apart == 0;
}

static void check_axis(struct fixture *f, struct tensor *x, const struct op_window_axis *a,
                       const struct extent *e, const char *text)
{
    fill(x, a->axis, -1);
    struct tensor before = run(f, x);
    int64_t n = before.shape.dims[a->axis];
    bool changes[LONGEST];
    assert_true(n <= LONGEST);
    if ((n - 1) * a->stride - a->before + a->size > x->shape.dims[a->axis] + a->after)
        fail_msg("windows end behind the padding of\n%s", text);
    for (int in = 0; in < e->in; in++) {
        change(f, x, &before, a->axis, in, changes);
        for (int out = 0; out < n; out++)
            if (changes[out] != is_declared(a, e->dilation, out, in))
                fail_msg("output %d and input %d of axis %d of\n%s", out, in, a->axis, text);
    }
    tensor_release(&before);
}

static bool find_window(const struct fixture *f, const char *name, struct op_window *window)
{
    struct bound_rule rule;
    return rule_bind(f->graph, graph_find(f->graph, name), &rule) && rule_window(&rule, window);
}

static void check(const struct kind *kind, const struct geometry *g)
{
    struct str text = STR_INIT;
    struct fixture f;
    struct op_window window;
    struct tensor x;
    write_graph(&text, kind, g);
    fixture_open(&f, str_text(&text), false);
    if (!find_window(&f, "y", &window))
        fail_msg("no window of\n%s", str_text(&text));
    assert_int_equal(window.y.axis, g->nchw ? 2 : 1);
    assert_int_equal(window.x.axis, g->nchw ? 3 : 2);
    assert_int_equal(tensor_alloc(&x, FLOAT64, &graph_find(f.graph, "x")->outputs[0].shape, &f.err),
                     0);
    check_axis(&f, &x, &window.y, &g->y, str_text(&text));
    check_axis(&f, &x, &window.x, &g->x, str_text(&text));
    tensor_release(&x);
    fixture_close(&f);
    str_release(&text);
}

static void test_windows_are_what_outputs_depend_on(void **state)
{
    const char *more = getenv("WINDOWS");
    int n = more ? atoi(more) : 25;
    uint64_t random = 1;
    (void)state;
    for (size_t k = 0; k < N_KINDS; k++)
        for (int i = 0; i < n; i++) {
            struct geometry g = any_geometry(&kinds[k], &random);
            check(&kinds[k], &g);
        }
}

static void test_all_that_declare_one_are_here(void **state)
{
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op_def *def = registry_at(ops_registry(), i)->def;
        n += def->window && !strstr(def->name, "Grad") && !strstr(def->name, "Backprop");
    }
    assert_int_equal(n, N_KINDS);
}

/* SAME's padding follows from the height; VALID's does not, but its number of outputs does. */
static void test_unknown_shapes_have_none(void **state)
{
    struct fixture f;
    struct op_window window;
    static const char *const names[] = {"a", "b", "c", "d"};
    (void)state;
    fixture_open(&f,
                 "x = Placeholder() {dtype=float64, shape=[2,?,6,1]}\n"
                 "u = Placeholder() {dtype=float64}\n"
                 "f = Placeholder() {dtype=float64, shape=[3,3,1,1]}\n"
                 "v = Placeholder() {dtype=float64, shape=[?,6,6,1]}\n"
                 "a = Conv2D(x, f) {strides=[1,1,1,1], padding=\"SAME\"}\n"
                 "b = AvgPool(x) {ksize=[1,2,2,1], strides=[1,1,1,1], padding=\"VALID\"}\n"
                 "c = LRN(u)\n"
                 "d = Conv2D(v, u) {strides=[1,1,1,1], padding=\"VALID\"}\n"
                 "e = Conv2D(v, f) {strides=[1,1,1,1], padding=\"SAME\"}\n",
                 false);
    for (int i = 0; i < 4; i++)
        assert_false(find_window(&f, names[i], &window));
    assert_true(find_window(&f, "e", &window));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_are_what_outputs_depend_on),
        cmocka_unit_test(test_all_that_declare_one_are_here),
        cmocka_unit_test(test_unknown_shapes_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
