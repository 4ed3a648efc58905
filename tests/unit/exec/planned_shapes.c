/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape functions look attributes up by name, so a step whose values have the planned shapes calls
 * none.
 */
#include "lib/session.h"

#include "base/memory.h"
#include "graph/infer.h"

struct counted_op {
    struct op_def def; /* first */
    int (*shape)(struct infer *infer);
};

static int n_calls;

static int count(struct infer *infer)
{
    n_calls++;
    return ((const struct counted_op *)infer->node->op->def)->shape(infer);
}

static const char training[] = "x = Const() {dtype=float32, value=float32[2,3](1)}\n"
                               "labels = Const() {dtype=float32, value=float32[2,4](2)}\n"
                               "rate = Const() {dtype=float32, value=0.1}\n"
                               "one = Const() {dtype=float32, value=float32[3,4](1)}\n"
                               "two = Const() {dtype=float32, value=float32[4](1)}\n"
                               "other = Const() {dtype=float32, value=float32[6](1)}\n"
                               "w = Variable() {dtype=float32, shape=[3,4]}\n"
                               "b = Variable() {dtype=float32, shape=[4]}\n"
                               "init_w = Assign(w, one)\n"
                               "init_b = Assign(b, two)\n"
                               "other_b = Assign(b, other) {validate_shape=false}\n"
                               "product = MatMul(x, w)\n"
                               "value = BiasAdd(product, b)\n"
                               "active = Relu(value)\n"
                               "difference = Sub(active, labels)\n"
                               "gradient = ReluGrad(difference, value)\n"
                               "of_w = MatMul(x, gradient) {transpose_a=true}\n"
                               "of_b = BiasAddGrad(gradient)\n"
                               "larger = Maximum(of_b, b)\n"
                               "update_w = ApplyGradientDescent(w, rate, of_w)\n"
                               "update_b = ApplyGradientDescent(b, rate, larger)\n"
                               "train = NoOp(^update_w, ^update_b)\n";

static void check_steps(bool dynamic)
{
    struct fixture f;
    fixture_open(&f, training, dynamic);
    fixture_do(&f, "^init_w");
    fixture_do(&f, "^init_b");
    fixture_do(&f, "^train");
    n_calls = 0;
    fixture_do(&f, "^train");
    assert_int_equal(n_calls, 0);
    fixture_do(&f, "^other_b");
    n_calls = 0;
    assert_int_equal(fixture_run(&f, "^train", NULL, NULL, NULL), ERR_DATA);
    assert_true(n_calls > 0);
    fixture_close(&f);
}

static void a_step_of_one_order_calls_no_shape_function(void **state)
{
    (void)state;
    check_steps(false);
}

static void a_step_of_regions_calls_no_shape_function(void **state)
{
    (void)state;
    check_steps(true);
}

/* The bounds have the planned shape, and other values than the plan knew. */
static void a_slice_has_the_planned_shape(void **state)
{
    static const char text[] = "v = Variable() {dtype=float32, shape=[2,3]}\n"
                               "x = Placeholder() {dtype=float32, shape=[]}\n"
                               "many = Const() {dtype=int32, value=[64,64]}\n"
                               "large = Fill(many, x)\n"
                               "set = Assign(v, large) {validate_shape=false}\n"
                               "from = Const() {dtype=int32, value=[0,0]}\n"
                               "by = Const() {dtype=int32, value=[1,1]}\n"
                               "n = NoOp()\n"
                               "to = Shape(v, ^n)\n"
                               "part = StridedSlice(large, from, to, by)\n"
                               "y = Neg(part)\n";
    float one = 1;
    struct tensor fed = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &one), y = TENSOR_INIT;
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, text, dynamic);
        if (fixture_run(&f, "^set", "x", &fed, NULL))
            fail_msg("%s", f.err.text);
        assert_int_equal(fixture_run(&f, "y", "x", &fed, &y), ERR_DATA);
        assert_string_equal(f.err.text, "node 'part': StridedSlice: the slice is [64,64], but was "
                                        "planned as [2,3]");
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_one_order_calls_no_shape_function),
        cmocka_unit_test(a_step_of_regions_calls_no_shape_function),
        cmocka_unit_test(a_slice_has_the_planned_shape),
    };
    size_t n = registry_count(ops_registry());
    struct counted_op *counted = mem_array(n, sizeof *counted);
    for (size_t i = 0; i < n; i++) {
        struct op *op = (struct op *)registry_at(ops_registry(), i);
        counted[i] = (struct counted_op){*op->def, op->def->shape};
        if (op->def->shape)
            counted[i].def.shape = count;
        op->def = &counted[i].def;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mem_free(counted);
    return failed;
}
