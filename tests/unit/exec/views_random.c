/* SPDX-License-Identifier: Apache-2.0
 *
 * Views that a plan resolves change no bit: random graphs are compared with plans in which the
 * views run. VIEWS is how many (default 200), VIEWS_SEED the first one's seed.
 */
#include "lib/session.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "exec/plan/fuse.h"
#include "lib/unit.h"

#define N_FORMS 5

static const struct form {
    const char *dims;
    int last_axis;
} forms[N_FORMS] = {{"[3,5]", 1}, {"[5,3]", 1}, {"[15]", 0}, {"[1,15]", 1}, {"[3,1,5]", 2}};

struct writer {
    struct str *text;
    uint64_t state;
    int n;
    int form[64]; /* of n0, n1, ... */
};

static int below(struct writer *w, int n)
{
    return (int)(unit_random(&w->state) % (uint64_t)n);
}

/* Chooses recent ones most often. */
static int earlier(struct writer *w)
{
    return below(w, 4) ? w->n - 1 - below(w, w->n < 4 ? w->n : 4) : below(w, w->n);
}

static int add(struct writer *w, int form)
{
    w->form[w->n] = form;
    return w->n++;
}

/* Returns a value of that form: `a` itself, or one made from it. */
static int in_form(struct writer *w, int a, int form)
{
    if (w->form[a] == form)
        return a;
    int n = add(w, form);
    str_printf(w->text, "n%d = Reshape(n%d, f%d)\n", n, a, form);
    return n;
}

static const char *wait(struct writer *w)
{
    static char text[16];
    if (below(w, 10))
        return "";
    snprintf(text, sizeof text, ", ^n%d", earlier(w));
    return text;
}

static void add_view(struct writer *w, int a)
{
    int kind = below(w, 6), form = below(w, N_FORMS);
    if (kind < 3)
        str_printf(w->text, "n%d = %s(n%d%s)\n", w->n, kind ? "Identity" : "StopGradient", a,
                   wait(w));
    else if (kind == 3 && w->form[a] == 3)
        str_printf(w->text, "n%d = Squeeze(n%d%s)\n", w->n, a, wait(w));
    else if (kind == 3 && w->form[a] == 2)
        str_printf(w->text, "n%d = ExpandDims(n%d, zero%s)\n", w->n, a, wait(w));
    else
        str_printf(w->text, "n%d = Reshape(n%d, f%d%s)\n", w->n, a, form, wait(w));
    if (kind < 3)
        form = w->form[a];
    else if (kind == 3 && (w->form[a] == 3 || w->form[a] == 2))
        form = 5 - w->form[a];
    add(w, form);
}

/* Some ops also depend on the shape of their inputs. */
static void add_op(struct writer *w, int a)
{
    static const char *const unary[] = {"Neg", "Tanh", "Softmax", "Square"};
    int kind = below(w, 7);
    if (kind < 4) {
        if (kind == 2)
            a = in_form(w, a, below(w, 2));
        str_printf(w->text, "n%d = %s(n%d%s)\n", w->n, unary[kind], a, wait(w));
        add(w, w->form[a]);
    } else if (kind < 6) {
        int b = in_form(w, earlier(w), w->form[a]);
        str_printf(w->text, "n%d = %s(n%d, n%d%s)\n", w->n, kind == 4 ? "Add" : "Maximum", a, b,
                   wait(w));
        add(w, w->form[a]);
    } else {
        int b = in_form(w, a, 0);
        str_printf(w->text, "n%d = Transpose(n%d, swap%s)\n", w->n, b, wait(w));
        add(w, 1);
    }
}

static void add_write(struct writer *w, int a)
{
    int b = in_form(w, a, 0), n = w->n;
    str_printf(w->text, "w%d = %s(v, n%d%s)\n", n, below(w, 2) ? "Assign" : "AssignAdd", b,
               wait(w));
    str_printf(w->text, "n%d = Neg(n%d, ^w%d)\n", n, b, n);
    add(w, 0);
}

static void add_read(struct writer *w)
{
    str_printf(w->text, "n%d = %s(v%s)\n", w->n, below(w, 4) ? "Identity" : "Neg", wait(w));
    add(w, 0);
}

static void add_branch(struct writer *w, int a)
{
    int n = w->n, form = w->form[a];
    str_printf(w->text, "s%d = Switch(n%d, p)\nt%d = Identity(s%d:1)\n", n, a, n, n);
    str_printf(w->text, "u%d = Reshape(t%d, f%d)\nh%d = Softmax(u%d)\n", n, n, below(w, 2), n, n);
    str_printf(w->text, "k%d = Reshape(h%d, f%d)\n", n, n, form);
    str_printf(w->text, "e%d = Identity(s%d:0)\ng%d = %s(e%d)\n", n, n, n,
               below(w, 2) ? "Neg" : "Identity", n);
    str_printf(w->text, "m%d = Merge(k%d, g%d)\nn%d = Identity(m%d)\n", n, n, n, n, n);
    add(w, form);
}

/* The last three are fetched. */
static int random_text(uint64_t seed, bool has_branches, struct str *text)
{
    struct writer w = {.text = text, .state = seed};
    int last = 10 + below(&w, 30);
    str_append(text, "n0 = Placeholder() {dtype=float32, shape=[3,5]}\n"
                     "p = Placeholder() {dtype=bool, shape=[]}\n"
                     "v = Variable() {dtype=float32, shape=[3,5]}\n"
                     "zero = Const() {dtype=int32, value=0}\n"
                     "swap = Const() {dtype=int32, value=[1,0]}\n"
                     "first = Const() {dtype=float32, value=1.5}\n");
    for (int i = 0; i < N_FORMS; i++)
        str_printf(text, "f%d = Const() {dtype=int32, value=%s}\n", i, forms[i].dims);
    str_append(text, "full = Fill(f0, first)\ninit = Assign(v, full)\n");
    add(&w, 0);
    while (w.n < last) {
        int kind = below(&w, 20), a = earlier(&w);
        if (kind < 10)
            add_view(&w, a);
        else if (kind < 16)
            add_op(&w, a);
        else if (kind < 17)
            add_write(&w, a);
        else if (kind < 19 || !has_branches)
            add_read(&w);
        else
            add_branch(&w, a);
    }
    return w.n;
}

static struct session *session_of(const struct graph *graph, bool dynamic, unsigned without)
{
    struct error err = ERROR_INIT;
    int init = graph_find(graph, "init")->id;
    struct plan_request call = {.targets = &init, .n_targets = 1};
    struct step step = {.number = 0};
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = fixture_device(),
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE,
                                               .without = without}};
    struct session *session = session_new(graph, &options);
    if (session_run(session, &call, &step, NULL, &err))
        fail_msg("%s", err.text);
    return session;
}

#define N_FETCHES 4 /* the last three, and the variable, at the end or before */

static int run(struct session *session, const struct graph *graph, int last, int64_t number,
               struct tensor *results, struct error *err)
{
    static const struct shape shape = {.rank = 2, .dims = {3, 5}};
    bool yes = number % 2;
    struct tensor fed[2];
    struct edge at[2] = {{graph_find(graph, "n0")->id, 0}, {graph_find(graph, "p")->id, 0}};
    struct edge fetches[N_FETCHES] = {{graph_find(graph, "v")->id, 0}};
    assert_int_equal(tensor_alloc(&fed[0], FLOAT32, &shape, err), 0);
    for (int i = 0; i < 15; i++)
        tensor_set_float64(&fed[0], i, sin(i * 1.7 + (double)number) * 2);
    fed[1] = tensor_borrow(BOOL, &SHAPE_SCALAR, &yes);
    for (int i = 1; i < N_FETCHES; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", last - i);
        fetches[i] = (struct edge){graph_find(graph, name)->id, 0};
    }
    struct step step = {.number = number};
    struct plan_request call = {
        .feeds = at, .feed_values = fed, .n_feeds = 2, .fetches = fetches, .n_fetches = N_FETCHES};
    int code = session_run(session, &call, &step, results, err);
    tensor_release(&fed[0]);
    return code;
}

static void expect_equal(const struct tensor *a, const struct tensor *b, uint64_t seed)
{
    for (int i = 0; i < N_FETCHES; i++)
        if (!shape_equal(&a[i].shape, &b[i].shape) ||
            memcmp(a[i].data, b[i].data, tensor_bytes(&a[i])) != 0)
            fail_msg("VIEWS_SEED=%llu: another value of fetch %d", (unsigned long long)seed, i);
}

/* Returns whether there were values: a graph may ask for an impossible order. */
static bool expect_same(const struct graph *graph, int last, bool dynamic, uint64_t seed)
{
    struct session *sessions[] = {session_of(graph, dynamic, 0),
                                  session_of(graph, dynamic, 1u << DEVICE_PASS_VIEWS)};
    struct error err[2] = {ERROR_INIT, ERROR_INIT};
    int codes[2] = {0, 0};
    struct tensor values[2][N_FETCHES];
    for (int64_t step = 1; step <= 3 && !codes[0]; step++) {
        for (int i = 0; i < 2; i++)
            codes[i] = run(sessions[i], graph, last, step, values[i], &err[i]);
        if (codes[0] != codes[1] || (codes[0] && strcmp(err[0].text, err[1].text) != 0))
            fail_msg("VIEWS_SEED=%llu: %s / %s", (unsigned long long)seed, err[0].text,
                     err[1].text);
        if (codes[0])
            break;
        expect_equal(values[0], values[1], seed);
        for (int i = 0; i < 2 * N_FETCHES; i++)
            tensor_release(&values[i / N_FETCHES][i % N_FETCHES]);
    }
    session_free(sessions[0]);
    session_free(sessions[1]);
    return !codes[0];
}

static void they_change_no_bit(void **state)
{
    struct seed_range seeds = seeds_of("VIEWS", 200);
    int n_values = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        struct str text = STR_INIT;
        struct graph *graph;
        struct error err = ERROR_INIT;
        int last = random_text(seed, seed % 3 == 0, &text);
        if (graph_parse_text(text.data, text.n, "test", ops_registry(), &graph, &err))
            fail_msg("VIEWS_SEED=%llu: %s", (unsigned long long)seed, err.text);
        n_values += expect_same(graph, last, seed % 2, seed);
        graph_free(graph);
        str_release(&text);
    }
    assert_true(seeds.given || n_values > 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
