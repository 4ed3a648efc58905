/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops declare of themselves is what their kernels do.
 */
#include "lib/session.h"
#include "lib/unit.h"

static bool may_wait(const char *op)
{
    const struct kernel_table *table = ops_kernels();
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op) && table->rows[i].flags & KERNEL_ASYNC)
            return true;
    return false;
}

static void test_ops_of_waiting_kernels_say_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        const struct op_def *def = registry_at(ops_registry(), i)->def;
        if (may_wait(def->name) != !!(def->flags & OP_ASYNC))
            fail_msg("%s: OP_ASYNC and KERNEL_ASYNC disagree", def->name);
    }
}

/* The kernel of StackPush, which keeps its element, under an op that does not say so. */
static void test_who_keeps_an_input_declares_it(void **state)
{
    (void)state;
    struct op_def silent = *registry_find(ops_registry(), "StackPush")->def;
    const struct op_def *ops[] = {registry_find(ops_registry(), "Const")->def,
                                  registry_find(ops_registry(), "Stack")->def, &silent};
    static const char text[] = "s = Stack() {elem_type=float32}\n"
                               "x = Const() {dtype=float32, value=[1,2]}\n"
                               "y = StackPush(s, x)\n";
    struct registry *registry = registry_new();
    struct fixture f = {.err = ERROR_INIT};
    silent.keeps = 0;
    assert_int_equal(registry_add(registry, ops, 3, &f.err), 0);
    assert_int_equal(graph_parse_text(text, strlen(text), "test", registry, &f.graph, &f.err), 0);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device()}};
    f.session = session_new(f.graph, &options);
    assert_int_equal(fixture_run(&f, "^y", NULL, NULL, NULL), ERR_INTERNAL);
    assert_non_null(strstr(f.err.text, "not declared that input 1 is kept"));
    fixture_close(&f);
    registry_free(registry);
}

static void test_arguments_of_inputs(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f,
                 "c = Const() {dtype=bool, value=true}\n"
                 "x = Const() {dtype=float32, value=[1,2]}\n"
                 "a = Assert(c, x, x, c)\n"
                 "p = AggregatorPush(x, c) {aggregator=\"a\"}\n"
                 "i = Const() {dtype=int32, value=[0,1]}\n"
                 "d = DynamicStitch(i, i, x, x)\n",
                 false);
    const struct node *d = graph_find(f.graph, "d"), *push = graph_find(f.graph, "p");
    int i = 3;
    assert_int_equal(node_argument(d, d->op->inputs, &i), 1);
    assert_int_equal(i, 1);
    assert_true(node_keeps(push, 0) && node_keeps(push, 1));
    assert_false(node_keeps(d, 0) || node_keeps(graph_find(f.graph, "a"), 2));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_of_waiting_kernels_say_so),
        cmocka_unit_test(test_who_keeps_an_input_declares_it),
        cmocka_unit_test(test_arguments_of_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
