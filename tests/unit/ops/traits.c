/* SPDX-License-Identifier: Apache-2.0
 *
 * The declared traits on which passes rely hold for the kernels: for each op declared element-wise,
 * commutative, its own inverse or an identity, results show the trait, bit for bit, in every type
 * that it computes in and for special values.
 */
#include <math.h>

#include "lib/kernel_types.h"
#include "lib/session.h"
#include "lib/unit.h"

#define ROWS 4
#define COLUMNS 3
#define COUNT (ROWS * COLUMNS)

struct trial {
    const struct op *op;
    enum dtype type; /* of every type attribute */
};

static struct tensor values(enum dtype type, bool is_second)
{
    static const double any[COUNT] = {0, -0.0, 1, -1, INFINITY, -2.5, NAN, 3, 0.25, 100, -7, 1e-3};
    static const double other[COUNT] = {-0.0, 0, 2, 1, 3, NAN, -1, INFINITY, -0.5, 7, -7, 0};
    static const double whole[COUNT] = {0, 1, -1, 2, -2, 3, 5, 7, -7, 100, -100, 4};
    static const double positive[COUNT] = {1, 2, 3, 5, 1, 2, 3, 4, 2, 1, 3, 2}; /* no error */
    const double *of =
        dtype_is_floating(type) ? (is_second ? other : any) : (is_second ? positive : whole);
    struct tensor t;
    struct error err = ERROR_INIT;
    assert_int_equal(
        tensor_alloc(&t, type, &(struct shape){.rank = 2, .dims = {ROWS, COLUMNS}}, &err), 0);
    for (int i = 0; i < COUNT; i++)
        tensor_set_float64(&t, i, type == BOOL ? (i >> is_second) % 2 : of[i]);
    return t;
}

static struct tensor row_of(const struct tensor *t, int row)
{
    struct shape shape = {.rank = 2, .dims = {1, COLUMNS}};
    return tensor_borrow(t->type, &shape,
                         (char *)t->data + (size_t)row * COLUMNS * dtype_bytes(t->type));
}

static struct edge add_fed(struct fixture *f, const struct tensor *value)
{
    struct attr attrs[] = {{"dtype", attr_type(value->type)}, {"shape", attr_shape(&value->shape)}};
    struct node_spec spec = {.op = "Placeholder", .attrs = attrs, .n_attrs = 2};
    return (struct edge){graph_add(f->graph, &spec, &f->err)->id, 0};
}

/* Computes output 0 of the op; false: it does not take such inputs. */
static bool run(const struct trial *trial, const struct tensor *in, int n, struct tensor *out)
{
    struct fixture f = {.graph = graph_new(ops_registry())};
    struct edge edges[2], fetch;
    struct attr attrs[4];
    struct node_spec spec = {
        .op = trial->op->def->name, .inputs = edges, .n_inputs = n, .attrs = attrs};
    for (int i = 0; i < n; i++)
        edges[i] = add_fed(&f, &in[i]);
    for (int i = 0; i < trial->op->n_attrs; i++)
        if (trial->op->attrs[i].kind == ATTR_TYPE && !trial->op->attrs[i].inferred)
            attrs[spec.n_attrs++] = (struct attr){trial->op->attrs[i].name, attr_type(trial->type)};
    const struct node *node = graph_add(f.graph, &spec, &f.err);
    bool done = node != NULL;
    if (done) {
        struct session_options options = {
            .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
        fetch = (struct edge){node->id, 0};
        f.session = session_new(f.graph, &options);
        struct plan_request call = {
            .feeds = edges, .feed_values = in, .n_feeds = n, .fetches = &fetch, .n_fetches = 1};
        struct step step = {.number = 1};
        if (session_run(f.session, &call, &step, out, &f.err))
            fail_msg("%s", f.err.text);
    }
    fixture_close(&f);
    return done;
}

static bool same_element(const struct tensor *a, int i, const struct tensor *b, int k)
{
    size_t n = dtype_bytes(a->type);
    if (dtype_is_floating(a->type) && isnan(tensor_get_float64(a, i)))
        return isnan(tensor_get_float64(b, k)); /* any NaN */
    return !memcmp((char *)a->data + (size_t)i * n, (char *)b->data + (size_t)k * n, n);
}

/* `part` must equal the elements of `whole` from `first` on. */
static void check_same(const struct trial *trial, const struct tensor *whole, int first,
                       const struct tensor *part, const char *what)
{
    bool same = whole->type == part->type && tensor_count(part) <= tensor_count(whole) - first;
    for (int i = 0; same && i < tensor_count(part); i++)
        same = same_element(whole, first + i, part, i);
    if (!same)
        fail_msg("%s of %s %s", trial->op->def->name, dtype_name(trial->type), what);
}

/* ---- element by element ---- */

static int check_rows(const struct trial *trial)
{
    bool list = trial->op->n_inputs == 1 && trial->op->inputs[0].number_attr >= 0;
    int n = list ? 2 : trial->op->n_inputs;
    struct tensor in[] = {values(trial->type, false), values(trial->type, true)}, whole;
    bool done = run(trial, in, n, &whole);
    if (done) {
        for (int row = 0; row < ROWS; row++) {
            struct tensor part, of[] = {row_of(&in[0], row), row_of(&in[1], row)};
            assert_true(run(trial, of, n, &part));
            check_same(trial, &whole, row * COLUMNS, &part, "is not computed row by row");
            tensor_release(&part);
        }
        tensor_release(&whole);
    }
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    return done;
}

/* ---- operands ---- */

static int check_swapped(const struct trial *trial)
{
    struct tensor in[] = {values(trial->type, false), values(trial->type, true)};
    struct tensor swapped[] = {in[1], in[0]}, one, other;
    assert_true(run(trial, in, 2, &one) && run(trial, swapped, 2, &other));
    check_same(trial, &one, 0, &other, "is not commutative");
    tensor_release(&one);
    tensor_release(&other);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    return 1;
}

/* Compares where the sum is a number and no integer wraps around. */
static int check_sum(const struct trial *trial)
{
    struct tensor in[] = {values(trial->type, false), values(trial->type, true)}, sum;
    struct tensor expected = values(trial->type, false);
    bool wraps = !dtype_is_floating(trial->type) && trial->type != INT32 && trial->type != INT64;
    assert_true(run(trial, in, 2, &sum));
    for (int i = 0; i < COUNT && !wraps; i++) {
        double total = tensor_get_float64(&in[0], i) + tensor_get_float64(&in[1], i);
        tensor_set_float64(&expected, i, total);
        if (isfinite(total) && !same_element(&expected, i, &sum, i))
            fail_msg("%s of %s is no sum", trial->op->def->name, dtype_name(trial->type));
    }
    tensor_release(&expected);
    tensor_release(&sum);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    return 1;
}

static int check_twice(const struct trial *trial)
{
    bool undoes = trial->op->def->flags & OP_INVOLUTION;
    struct tensor in = values(trial->type, false), once, twice;
    assert_true(run(trial, &in, 1, &once) && run(trial, &once, 1, &twice));
    check_same(trial, undoes ? &in : &once, 0, &twice, "is not what it was once or before");
    tensor_release(&once);
    tensor_release(&twice);
    tensor_release(&in);
    return 1;
}

/* ---- the input itself ---- */

/* Runs with an input 1 that is all `neutral`, of the shape that the op wants. */
static bool run_with(const struct trial *trial, const struct tensor *x, enum dtype type,
                     const struct shape *shape, struct tensor *out)
{
    struct tensor in[] = {*x, {0}};
    struct error err = ERROR_INIT;
    assert_int_equal(tensor_alloc(&in[1], type, shape, &err), 0);
    for (int i = 0; i < tensor_count(&in[1]); i++)
        tensor_set_float64(&in[1], i, trial->op->def->identity.neutral);
    bool done = run(trial, in, 2, out);
    tensor_release(&in[1]);
    return done;
}

static bool run_identity(const struct trial *trial, const struct tensor *x, struct tensor *out)
{
    static const enum dtype types[] = {INT32, BOOL}; /* sizes and axes, or choices */
    const struct shape shapes[] = {shape_vector(2), {.rank = 2, .dims = {2, 2}}};
    const struct shape empty = shape_vector(0);
    switch (trial->op->def->identity.when) {
    case SAME_OPERAND:
        return run_with(trial, x, trial->type, &SHAPE_SCALAR, out);
    case SAME_EMPTY:
        return run_with(trial, x, INT32, &empty, out);
    case SAME_ARGUMENT:
        for (int i = 0; i < 4; i++)
            if (run_with(trial, x, types[i / 2], &shapes[i % 2], out))
                return true;
        return false;
    default:
        return run(trial, x, 1, out);
    }
}

static int check_identity(const struct trial *trial)
{
    dtype_set types = trial->op->def->identity.types;
    struct tensor x = values(trial->type, false), out;
    bool done = (!types || types & DTYPE_BIT(trial->type)) && run_identity(trial, &x, &out);
    if (done) {
        check_same(trial, &x, 0, &out, "is not its input");
        tensor_release(&out);
    }
    tensor_release(&x);
    return done;
}

static int check_reciprocal(const struct trial *trial)
{
    bool floating = trial->type == FLOAT32 || trial->type == FLOAT64;
    const struct trial product = {registry_find(ops_registry(), trial->op->def->by_reciprocal),
                                  trial->type};
    struct tensor in[] = {values(trial->type, false), values(trial->type, true)}, one, other;
    for (int i = 0; i < COUNT; i++)
        tensor_set_float64(&in[1], i, ldexp(1, floating ? i - 5 : 0));
    assert_true(run(trial, in, 2, &one));
    for (int i = 0; i < COUNT; i++)
        tensor_set_float64(&in[1], i, ldexp(1, floating ? 5 - i : 0));
    assert_true(run(&product, in, 2, &other));
    check_same(trial, &one, 0, &other, "is not the product with the reciprocal");
    tensor_release(&one);
    tensor_release(&other);
    tensor_release(&in[0]);
    tensor_release(&in[1]);
    return 1;
}

/* ---- all ops ---- */

/* Calls `check` for each type that the op is computed in; returns the sum of its results. */
static int each_type(const struct op *op, int (*check)(const struct trial *trial))
{
    const struct op_arg *first = &op->inputs[0];
    dtype_set types = first->type_attr < 0
                          ? DTYPE_BIT(first->type)
                          : computed_types(ops_kernels(), op, &op->attrs[first->type_attr], "CPU");
    int n = 0;
    for (int type = 1; type < 32; type++)
        if (types & DTYPE_BIT(type))
            n += check(&(struct trial){op, (enum dtype)type});
    return n;
}

static void test_rows_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        if (op->rows == ROWS_ALIKE && !each_type(op, check_rows))
            fail_msg("%s takes no rows", op->def->name);
    }
}

static void test_operands(void **state)
{
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        if (op->def->flags & OP_COMMUTATIVE)
            each_type(op, check_swapped);
        if (op->def->flags & (OP_INVOLUTION | OP_IDEMPOTENT) && op->n_inputs == 1)
            each_type(op, check_twice);
        if (op->def->flags & OP_SUMS)
            each_type(op, check_sum);
        if (op->def->by_reciprocal)
            each_type(op, check_reciprocal);
    }
}

static void test_identities(void **state)
{
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op *op = registry_at(ops_registry(), i);
        if (op->def->identity.when && !each_type(op, check_identity))
            fail_msg("%s never is its input", op->def->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_alike),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_identities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
