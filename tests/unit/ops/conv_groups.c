/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of groups of channels and their gradients, compared with plain loops: groups of one
 * channel, of a few and of whole vectors; random sizes, strides, dilations and paddings, both
 * formats, each type, shapes known to the plan or not. CONVOLUTIONS: number of cases.
 */
#include "lib/session.h"

#include "base/memory.h"
#include "base/str.h"
#include "lib/random.h"

struct extent {
    int in, size, stride, dilation, before, after, out;
};

struct geometry {
    enum dtype type;
    bool nchw;
    int batch, groups, in, out; /* in, out: channels of a group */
    struct extent y, x;
};

static int one_of(uint64_t *random, const int *values, int n)
{
    return values[unit_random(random) % (uint64_t)n];
}

static struct extent any_extent(uint64_t *random)
{
    struct extent e = {.size = (int)random_between(random, 1, 4),
                       .stride = (int)random_between(random, 1, 3),
                       .dilation = unit_random(random) % 3 ? 1 : 2,
                       .before = (int)random_between(random, 0, 2),
                       .after = (int)random_between(random, 0, 3)};
    int span = (e.size - 1) * e.dilation + 1;
    e.in = span + (int)random_between(random, 0, 6);
    e.out = (e.in + e.before + e.after - span) / e.stride + 1;
    return e;
}

static struct geometry any_geometry(uint64_t *random)
{
    static const int types[] = {FLOAT32, FLOAT32, FLOAT64, FLOAT16, BFLOAT16};
    static const int groups[] = {1, 2, 3, 4, 8, 16, 32}, ins[] = {1, 1, 2, 3, 4, 8, 16};
    static const int outs[] = {1, 1, 2, 3, 4, 5, 8, 16};
    struct geometry g = {.type = (enum dtype)one_of(random, types, 5),
                         .nchw = unit_random(random) % 2,
                         .batch = (int)random_between(random, 1, 3),
                         .groups = one_of(random, groups, 7),
                         .in = one_of(random, ins, 7),
                         .out = one_of(random, outs, 8)};
    g.y = any_extent(random);
    g.x = any_extent(random);
    return g;
}

/* ---- loops ---- */

enum { IMAGE, FILTER, OUTPUT, N_OPERANDS };

/* Returns the shape of an operand, which its gradient shares. */
static struct shape operand_shape(const struct geometry *g, int operand)
{
    struct shape s = {.rank = 4, .dims = {g->y.size, g->x.size, g->in, g->groups * g->out}};
    bool is_image = operand == IMAGE;
    int64_t height = is_image ? g->y.in : g->y.out, width = is_image ? g->x.in : g->x.out;
    int64_t channels = g->groups * (is_image ? g->in : g->out);
    struct shape nchw = {.rank = 4, .dims = {g->batch, channels, height, width}};
    struct shape nhwc = {.rank = 4, .dims = {g->batch, height, width, channels}};
    return operand == FILTER ? s : g->nchw ? nchw : nhwc;
}

static int64_t place_of(const struct geometry *g, const struct shape *s, const int at[4])
{
    const int64_t *d = s->dims;
    return g->nchw ? ((at[0] * d[1] + at[3]) * d[2] + at[1]) * d[3] + at[2]
                   : ((at[0] * d[1] + at[1]) * d[2] + at[2]) * d[3] + at[3];
}

/* Adds one product to the element of each of the three sums to which it belongs. */
static void add_term(const struct geometry *g, const int at[7], double *const x[], double *sums[])
{
    const struct shape shapes[] = {operand_shape(g, IMAGE), operand_shape(g, FILTER),
                                   operand_shape(g, OUTPUT)};
    int b = at[0], oy = at[1], ox = at[2], ky = at[3], kx = at[4], c = at[5], k = at[6];
    int y = oy * g->y.stride + ky * g->y.dilation - g->y.before;
    int w = ox * g->x.stride + kx * g->x.dilation - g->x.before;
    if (y < 0 || y >= g->y.in || w < 0 || w >= g->x.in)
        return;
    int64_t image = place_of(g, &shapes[IMAGE], (int[]){b, y, w, k / g->out * g->in + c});
    int64_t output = place_of(g, &shapes[OUTPUT], (int[]){b, oy, ox, k});
    int64_t filter = ((ky * g->x.size + kx) * g->in + c) * g->groups * g->out + k;
    sums[OUTPUT][output] += x[IMAGE][image] * x[FILTER][filter];
    sums[IMAGE][image] += x[OUTPUT][output] * x[FILTER][filter];
    sums[FILTER][filter] += x[IMAGE][image] * x[OUTPUT][output];
}

static void loop(const struct geometry *g, double *const x[], double *sums[])
{
    int ends[7] = {g->batch, g->y.out, g->x.out, g->y.size, g->x.size, g->in, g->groups * g->out},
        at[7] = {0};
    for (int i = 0; i >= 0;) { /* counts like an odometer */
        add_term(g, at, x, sums);
        for (i = 6; i >= 0 && ++at[i] == ends[i]; i--)
            at[i] = 0;
    }
}

/* ---- the ops ---- */

static void write_shape(struct str *text, const struct geometry *g, int operand)
{
    struct shape s = operand_shape(g, operand);
    str_append(text, shape_text(&s));
}

static void write_graph(struct str *text, const struct geometry *g, bool known)
{
    static const char *const names[] = {"x", "f", "d"};
    for (int i = 0; i < N_OPERANDS; i++) {
        str_printf(text, "%s = Placeholder() {dtype=%s", names[i], dtype_name(g->type));
        if (known) {
            str_append(text, ", shape=");
            write_shape(text, g, i);
        }
        str_append(text, "}\n");
    }
    for (int i = 0; i < OUTPUT; i++) {
        str_printf(text, "s%d = Const() {dtype=int32, value=", i);
        write_shape(text, g, i);
        str_append(text, "}\n");
    }
    static const char *const calls[] = {"Conv2DBackpropInput(s0, f, d)",
                                        "Conv2DBackpropFilter(x, s1, d)", "Conv2D(x, f)"};
    for (int i = 0; i < N_OPERANDS; i++) {
        str_printf(text, "y%d = %s {padding=\"EXPLICIT\", data_format=\"%s\"", i, calls[i],
                   g->nchw ? "NCHW" : "NHWC");
        str_printf(text, g->nchw ? ", strides=[1,1,%d,%d]" : ", strides=[1,%d,%d,1]", g->y.stride,
                   g->x.stride);
        str_printf(text, g->nchw ? ", dilations=[1,1,%d,%d]" : ", dilations=[1,%d,%d,1]",
                   g->y.dilation, g->x.dilation);
        str_printf(text,
                   g->nchw ? ", explicit_paddings=[0,0,0,0,%d,%d,%d,%d]}\n"
                           : ", explicit_paddings=[0,0,%d,%d,%d,%d,0,0]}\n",
                   g->y.before, g->y.after, g->x.before, g->x.after);
    }
}

/* Draws values of a few bits, whose products are exact in every type. */
static void draw(struct tensor *t, enum dtype type, const struct shape *shape, uint64_t *random)
{
    struct error err = ERROR_INIT;
    assert_int_equal(tensor_alloc(t, type, shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(t); i++)
        tensor_set_float64(t, i, (double)random_between(random, -8, 8) / 8);
}

static void compare(const struct tensor *got, const double *sums, const char *text)
{
    static const double tolerance[] = {
        [FLOAT32] = 1e-5, [FLOAT64] = 1e-12, [FLOAT16] = 2e-3, [BFLOAT16] = 2e-2};
    for (int64_t i = 0; i < tensor_count(got); i++) {
        double value = tensor_get_float64(got, i);
        if (!(fabs(value - sums[i]) <= tolerance[got->type] * fmax(1, fabs(sums[i]))))
            fail_msg("element %lld is %.9g, not %.9g, of %s", (long long)i, value, sums[i], text);
    }
}

static void check(const struct geometry *g, bool known, uint64_t *random)
{
    static const char *const names[] = {"x", "f", "d", "y0", "y1", "y2"};
    struct str text = STR_INIT;
    struct fixture f;
    struct edge edges[2 * N_OPERANDS];
    struct tensor in[N_OPERANDS], out[N_OPERANDS];
    double *x[N_OPERANDS], *sums[N_OPERANDS];
    struct step step = {.number = 1};
    write_graph(&text, g, known);
    fixture_open(&f, str_text(&text), false);
    for (int i = 0; i < 2 * N_OPERANDS; i++)
        assert_int_equal(graph_parse_edge(f.graph, names[i], &edges[i], &f.err), 0);
    for (int i = 0; i < N_OPERANDS; i++) {
        struct shape shape = operand_shape(g, i);
        draw(&in[i], g->type, &shape, random);
        x[i] = mem_alloc((size_t)shape_count(&shape) * sizeof *x[i]);
        sums[i] = mem_alloc((size_t)shape_count(&shape) * sizeof *sums[i]);
        for (int64_t k = 0; k < shape_count(&shape); k++)
            x[i][k] = tensor_get_float64(&in[i], k);
    }
    loop(g, x, sums);
    struct plan_request call = {.feeds = edges,
                                .feed_values = in,
                                .n_feeds = N_OPERANDS,
                                .fetches = edges + N_OPERANDS,
                                .n_fetches = N_OPERANDS};
    if (session_run(f.session, &call, &step, out, &f.err))
        fail_msg("%s\n%s", f.err.text, str_text(&text));
    for (int i = 0; i < N_OPERANDS; i++) {
        compare(&out[i], sums[i], str_text(&text));
        tensor_release(&in[i]);
        tensor_release(&out[i]);
        mem_free(x[i]);
        mem_free(sums[i]);
    }
    fixture_close(&f);
    str_release(&text);
}

static void groups_are_those_of_loops(void **state)
{
    const char *more = getenv("CONVOLUTIONS");
    int n = more ? atoi(more) : 150;
    (void)state;
    for (int i = 0; i < n; i++) {
        uint64_t random = (uint64_t)i + 1;
        struct geometry g = any_geometry(&random);
        check(&g, i % 3 > 0, &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_those_of_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
