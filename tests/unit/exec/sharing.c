/* SPDX-License-Identifier: Apache-2.0
 *
 * A kept value shares its variable's memory; a writer then takes other memory, and overwrites in
 * place when no holder is left.
 */
#include "exec/state/variable.h"

#include <math.h>
#include <pthread.h>

#include "exec/step/collective.h"
#include "exec/step/rendezvous.h"
#include "lib/local_collective.h"
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
    "any = StackPop(h, ^other) {elem_type=float32}\n"
    "push = AggregatorPush(v) {aggregator=\"sums\"}\n"
    "after_push = Assign(v, two, ^push)\n"
    "members = Const() {dtype=int64, value=[[0, 0, 1]]}\n"
    "dropped = Fill(none, zero)\n"
    "none = Const() {dtype=int32, value=[0, 3]}\n"
    "zero = Const() {dtype=int64, value=0}\n"
    "taken = AggregatorTake(members, dropped)"
    " {T=[float32], aggregator=\"sums\", shapes=[[]], reductions=[\"sum\"]}\n"
    "send = Send(v) {tensor_name=\"v\", send_device=\"a\", recv_device=\"b\"}\n"
    "after_send = Assign(v, two, ^send)\n"
    "received = Recv(^after_send)"
    " {tensor_type=float32, tensor_name=\"v\", send_device=\"a\", recv_device=\"b\"}\n"
    "reduced = AllReduce(v) {reductions=[\"first\"]}\n"
    "after_reduced = Assign(v, two, ^reduced)\n"
    "late = Identity(reduced, ^after_reduced)\n"
    "summed = AllReduce(v) {reductions=[\"sum\"]}\n"
    "read = Identity(v)\n"
    "summed_read = AllReduce(read) {reductions=[\"sum\"]}\n";
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

/* In a step after the one that pushed it and then wrote. */
static void what_was_prefetched_stays(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, graph_text, dynamic);
        fixture_do(&f, "^set");
        fixture_do(&f, "^after_push");
        assert_float_equal(value_of(&f), 2, 0);
        assert_float_equal(fixture_get(&f, "taken", NAN), 1, 0);
        fixture_close(&f);
    }
}

/* Returns a member's fetch in a step that may have a rendezvous or a collective. */
static double fetch_of(struct fixture *f, const char *fetch, struct rendezvous *rendezvous,
                       struct collective *collective)
{
    struct edge edge;
    struct tensor result;
    struct error err = ERROR_INIT; /* several members fetch at once */
    struct step step = {.number = 1, .rendezvous = rendezvous, .collective = collective};
    struct plan_request call = {.fetches = &edge, .n_fetches = 1};
    if (graph_parse_edge(f->graph, fetch, &edge, &err) ||
        session_run(f->session, &call, &step, &result, &err))
        fail_msg("%s", err.text);
    double number = tensor_get_float64(&result, 0);
    tensor_release(&result);
    return number;
}

static void what_was_sent_stays(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        struct rendezvous *rendezvous = rendezvous_local_new(0);
        fixture_open(&f, graph_text, dynamic);
        fixture_do(&f, "^set");
        assert_float_equal(fetch_of(&f, "received", rendezvous, NULL), 1, 0);
        assert_float_equal(value_of(&f), 2, 0);
        rendezvous->free(rendezvous);
        fixture_close(&f);
    }
}

struct reducer {
    struct fixture fixture;
    struct collective *collective;
    const char *fetch;
    double fetched;
};

static void *reduce(void *argument)
{
    struct reducer *r = argument;
    r->fetched = fetch_of(&r->fixture, r->fetch, NULL, r->collective);
    return NULL;
}

/* Two members start with 1 and 4; checks what each fetches, and its variable then. */
static void check_reduced(const char *fetch, bool dynamic, const double fetched[2],
                          const double left[2])
{
    struct reducer members[2];
    struct collective *collectives[2];
    pthread_t threads[2];
    collective_local_new(2, collectives);
    for (int k = 0; k < 2; k++) {
        members[k].collective = collectives[k];
        members[k].fetch = fetch;
        fixture_open(&members[k].fixture, graph_text, dynamic);
        fixture_do(&members[k].fixture, "^set");
    }
    fixture_do(&members[1].fixture, "^twice");
    fixture_do(&members[1].fixture, "^twice");
    for (int k = 0; k < 2; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, reduce, &members[k]), 0);
    for (int k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
    for (int k = 0; k < 2; k++) {
        assert_float_equal(members[k].fetched, fetched[k], 0);
        assert_float_equal(value_of(&members[k].fixture), left[k], 0);
        fixture_close(&members[k].fixture);
        collectives[k]->free(collectives[k]);
    }
}

static void what_was_reduced_stays(void **state)
{
    (void)state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct fixture f;
        fixture_open(&f, graph_text, dynamic); /* a worker alone */
        fixture_do(&f, "^set");
        assert_float_equal(fixture_get(&f, "late", NAN), 1, 0);
        assert_float_equal(value_of(&f), 2, 0);
        fixture_close(&f);
        check_reduced("late", dynamic, (double[]){1, 1}, (double[]){2, 2});
        check_reduced("summed", dynamic, (double[]){5, 5}, (double[]){1, 4});
        check_reduced("summed_read", dynamic, (double[]){5, 5}, (double[]){1, 4});
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

/* The writer reads its own variable, whose value is kept elsewhere. */
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

/* A snapshot costs no copy, and writers do not change it. */
static void snapshots_share(void **state)
{
    struct fixture f;
    variable_vec variables = VEC_INIT;
    struct variable_snapshots snapshots;
    (void)state;
    fixture_open(&f, graph_text, false);
    fixture_do(&f, "^set");
    struct variable *v = variable_of(&f);
    vec_push(&variables, v);
    variable_snapshots_place(&variables, &snapshots);
    if (variable_is_shared(v))
        assert_ptr_equal(snapshots.items[0].value.data, v->value.data);
    fixture_do(&f, "^add");
    assert_int_equal(variable_snapshots_collect(&snapshots, &f.err), 0);
    assert_float_equal(*(const float *)snapshots.items[0].value.data, 1, 0);
    variable_snapshots_release(&snapshots);
    vec_release(&variables);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_pushed_stays),
        cmocka_unit_test(what_was_prefetched_stays),
        cmocka_unit_test(what_was_sent_stays),
        cmocka_unit_test(what_was_reduced_stays),
        cmocka_unit_test(a_writer_moves_only_if_others_have_it),
        cmocka_unit_test(a_writer_reads_what_it_has_left),
        cmocka_unit_test(snapshots_share),
    };
    return cmocka_run_group_tests_name("sharing", tests, NULL, NULL);
}
