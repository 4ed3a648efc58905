/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel row is an error at plan time if the kernel has no code for its op, or too few slots for
 * its arguments.
 */
#include "exec/device/kernel.h"

#include "lib/session.h"
#include "lib/unit.h"

static const struct op_def unheard = {
    .name = "Unheard", .inputs = "x: T", .outputs = "y: T", .attrs = "T: floating"};

#define APPLY(more) "var: Ref(T), m: Ref(T), v: Ref(T)" more ", grad: T"
static const struct op_def three_slots = {.name = "ApplyAdam",
                                          .inputs = APPLY(", w: Ref(T)"),
                                          .outputs = "out: Ref(T)",
                                          .attrs = "T: floating",
                                          .flags = OP_STATEFUL};
static const struct op_def seven_scalars = {.name = "ApplyFtrl",
                                            .inputs =
                                                APPLY(", a: T, b: T, c: T, d: T, e: T, f: T, g: T"),
                                            .outputs = "out: Ref(T)",
                                            .attrs = "T: floating",
                                            .descent = {.gradient = 10},
                                            .flags = OP_STATEFUL};

static void check(const struct op_def *op, const char *code, const char *text, const char *message)
{
    const struct op_def *ops[] = {op, registry_find(ops_registry(), "Const")->def,
                                  registry_find(ops_registry(), "Variable")->def};
    const struct kernel_row rows[] = {{.op = op->name, .device = "CPU", .code = code},
                                      {.op = "Const", .device = "CPU", .code = "const"},
                                      {.op = "Variable", .device = "CPU", .code = "variable"}};
    const struct kernel_table table = {rows, sizeof rows / sizeof *rows};
    struct registry *registry = registry_new();
    struct fixture f = {.err = ERROR_INIT};
    assert_int_equal(registry_add(registry, ops, 3, &f.err), 0);
    assert_int_equal(graph_parse_text(text, strlen(text), "test", registry, &f.graph, &f.err), 0);
    struct session_options options = {.plan = {.kernels = &table, .device = fixture_device()}};
    f.session = session_new(f.graph, &options);
    assert_int_not_equal(fixture_run(&f, "^y", NULL, NULL, NULL), 0);
    if (!strstr(f.err.text, message))
        fail_msg("%s: '%s'", code, f.err.text);
    fixture_close(&f);
    registry_free(registry);
}

#define X "x = Const() {dtype=float32, value=[[1,2],[3,4]]}\n"
#define VARIABLE(name) name " = Variable() {dtype=float32, shape=[2,2]}\n"
#define SLOTS VARIABLE("a") VARIABLE("b") VARIABLE("c") VARIABLE("d")

static void test_an_op_without_code(void **state)
{
    static const char *const codes[] = {"apply", "pool", "softmax", "activation", "linear"};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        check(&unheard, codes[i], X "y = Unheard(x)\n", " for Unheard");
}

static void test_too_many_arguments(void **state)
{
    (void)state;
    check(&three_slots, "apply", X SLOTS "y = ApplyAdam(a, b, c, d, x)\n", "4 references");
    check(&seven_scalars, "apply", X SLOTS "y = ApplyFtrl(a, b, c, x, x, x, x, x, x, x, x)\n",
          "7 scalars");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_op_without_code),
        cmocka_unit_test(test_too_many_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
