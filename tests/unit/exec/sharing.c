/* SPDX-License-Identifier: Apache-2.0
 *
 * Who keeps a variable's value shares its memory; a writer leaves it to whoever has it, and writes
 * where it is when nobody does.
 */
#include "exec/state/mark.h"

#include <math.h>

#include "lib/session.h"

/* clang-format off */
static const char graph_text[] =
    "v = Variable() {dtype=float32, shape=[]}\n"
    "one = Const() {dtype=float32, value=1}\n"
    "two = Const() {dtype=float32, value=2}\n"
    "set = Assign(v, one)\n"
    "add = AssignAdd(v, one)\n"
    "twice = AssignAdd(v, v)\n"
    "h = Stack() {elem_type=float32}\n"
    "pushed = StackPush(h, v)\n"
    "other = Assign(v, two, ^pushed)\n"
    "popped = StackPop(h, ^other) {elem_type=float32, shape=[]}\n"
    "any = StackPop(h, ^other) {elem_type=float32}\n";
/* clang-format on */

static struct variable *variable_of(const struct fixture *f)
{
    struct variable *v = variable_store_next(session_variables(f->session), NULL);
    assert_non_null(v);
    return v;
}

static double value_of(struct fixture *f)
{
    struct tensor value;
    assert_int_equal(variable_get_value(variable_of(f), &value, &f->err), 0);
    double number = tensor_get_float64(&value, 0);
    tensor_release(&value);
    return number;
}

static void what_was_pushed_stays(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, graph_text, dynamic);
        fixture_do(&f, "^set");
        assert_float_equal(fixture_get(&f, "popped", NAN), 1, 0);
        fixture_do(&f, "^set");
        assert_float_equal(fixture_get(&f, "any", NAN), 1, 0);
        assert_float_equal(value_of(&f), 2, 0);
        fixture_close(&f);
    }
}

static void a_writer_moves_only_if_others_have_it(void **state)
{
    struct fixture f;
    struct tensor kept;
    (void)state;
    if (!fixture_device()->is_host)
        return;
    fixture_open(&f, graph_text, false);
    fixture_do(&f, "^set");
    struct variable *v = variable_of(&f);
    const void *before = v->value.data;
    fixture_do(&f, "^add");
    assert_ptr_equal(v->value.data, before);
    assert_int_equal(variable_get_value(v, &kept, &f.err), 0);
    fixture_do(&f, "^add");
    assert_ptr_not_equal(v->value.data, before);
    assert_ptr_equal(kept.data, before);
    assert_float_equal(*(const float *)kept.data, 2, 0);
    assert_float_equal(*(const float *)v->value.data, 3, 0);
    assert_null(v->left.data);
    tensor_release(&kept);
    before = v->value.data;
    fixture_do(&f, "^twice");
    assert_ptr_equal(v->value.data, before);
    assert_float_equal(*(const float *)v->value.data, 6, 0);
    fixture_close(&f);
}

/* It reads its own variable, of which somebody keeps the value. */
static void a_writer_reads_what_it_has_left(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        struct tensor kept;
        fixture_open(&f, graph_text, dynamic);
        fixture_do(&f, "^set");
        assert_int_equal(variable_get_value(variable_of(&f), &kept, &f.err), 0);
        fixture_do(&f, "^twice");
        assert_float_equal(*(const float *)kept.data, 1, 0);
        tensor_release(&kept);
        assert_float_equal(value_of(&f), 2, 0);
        fixture_close(&f);
    }
}

/* Marking costs no copy, and writers do not change what was marked. */
static void marks_share(void **state)
{
    struct fixture f;
    variable_vec variables = VEC_INIT;
    struct variable_marks marks;
    (void)state;
    fixture_open(&f, graph_text, false);
    fixture_do(&f, "^set");
    struct variable *v = variable_of(&f);
    vec_push(&variables, v);
    variable_marks_place(&variables, &marks);
    if (variable_is_shared(v))
        assert_ptr_equal(marks.items[0].value.data, v->value.data);
    fixture_do(&f, "^add");
    assert_int_equal(variable_marks_collect(&marks, &f.err), 0);
    assert_float_equal(*(const float *)marks.items[0].value.data, 1, 0);
    variable_marks_release(&marks);
    vec_release(&variables);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_pushed_stays),
        cmocka_unit_test(a_writer_moves_only_if_others_have_it),
        cmocka_unit_test(a_writer_reads_what_it_has_left),
        cmocka_unit_test(marks_share),
    };
    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
