/* SPDX-License-Identifier: Apache-2.0
 *
 * A received value belongs to its sole holder, which may overwrite it in place. A variable that is
 * assigned it takes its memory; memory shared with another process is copied.
 */
#include "exec/state/variable.h"
#include "exec/step/rendezvous.h"
#include "lib/session.h"

#define N 1000
#define ENDS "tensor_name=\"x\", send_device=\"a\", recv_device=\"b\"}\n"
#define SENT(name) "tensor_name=\"" name "\", send_device=\"b\", recv_device=\"a\"}\n"

/* clang-format off */
static const char graph_text[] =
    "v = Variable() {dtype=float32, shape=[1000]}\n"
    "x = Recv() {tensor_type=float32, " ENDS
    "set = Assign(v, x)\n"
    "add = AssignAdd(v, v)\n"
    "minus = Neg(x)\n"
    "send_minus = Send(minus) {" SENT("minus")
    "root = Sqrt(x)\n"
    "send_root = Send(root) {" SENT("root")
    "both = NoOp(^send_minus, ^send_root)\n"
    "assigned = Send(x) {" SENT("x")
    "kept = NoOp(^set, ^assigned)\n"
    "twice = Add(x, x)\n"
    "send_twice = Send(twice) {" SENT("twice");
/* clang-format on */

/* The peer: gives one value, and keeps those that it gets. */
struct other_end {
    struct rendezvous rendezvous; /* must be first */
    struct tensor given;
    struct tensor minus, root, twice, x;
};

static void receive(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                    struct rendezvous_waiter *waiter)
{
    struct other_end *end = (struct other_end *)rendezvous;
    (void)key;
    struct rendezvous_value value = {.tensor = end->given};
    waiter->arrived(waiter, &value, NULL);
    tensor_release(&end->given);
}

static int take(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                struct rendezvous_value *value, struct error *err)
{
    struct other_end *end = (struct other_end *)rendezvous;
    const char *name = key->tensor_name;
    (void)err;
    *(!strcmp(name, "minus")  ? &end->minus
      : !strcmp(name, "root") ? &end->root
      : !strcmp(name, "x")    ? &end->x
                              : &end->twice) = value->tensor;
    value->tensor = (struct tensor)TENSOR_INIT;
    return 0;
}

static void ignore(struct rendezvous *rendezvous, const struct error *reason)
{
    (void)rendezvous;
    (void)reason;
}

static bool not_aborted(struct rendezvous *rendezvous, struct error *reason)
{
    (void)rendezvous;
    (void)reason;
    return false;
}

static bool in_another_process(const struct buffer *buffer)
{
    (void)buffer;
    return true;
}

/* Runs the node with 4, ... as x; returns the address of x. */
static const void *run(struct fixture *f, const char *target, struct other_end *end,
                       struct tensor *kept, bool is_mapped)
{
    struct shape shape = shape_vector(N);
    struct step step = {.number = 1, .rendezvous = &end->rendezvous};
    int id = graph_find(f->graph, target)->id;
    struct plan_request call = {.targets = &id, .n_targets = 1};
    *end = (struct other_end){
        .rendezvous = {.send = take, .receive = receive, .abort = ignore, .aborted = not_aborted}};
    assert_int_equal(tensor_alloc(&end->given, FLOAT32, &shape, &f->err), 0);
    for (int i = 0; i < N; i++)
        ((float *)end->given.data)[i] = 4;
    if (is_mapped)
        end->given.buffer->is_read = in_another_process;
    if (kept)
        tensor_share(kept, &end->given);
    const void *data = end->given.data;
    if (session_run(f->session, &call, &step, NULL, &f->err))
        fail_msg("%s: %s", target, f->err.text);
    return data;
}

static void check(const struct tensor *t, float value)
{
    assert_int_equal(tensor_count(t), N);
    for (int i = 0; i < N; i++)
        assert_float_equal(((const float *)t->data)[i], value, 0);
}

static void release(struct other_end *end)
{
    tensor_release(&end->minus);
    tensor_release(&end->root);
    tensor_release(&end->twice);
    tensor_release(&end->x);
}

static void the_one_holder_writes_where_it_lies(void **state)
{
    struct fixture f;
    struct other_end end;
    (void)state;
    fixture_open(&f, graph_text, false);
    const void *at = run(&f, "send_minus", &end, NULL, false);
    assert_ptr_equal(end.minus.data, at);
    check(&end.minus, -4);
    release(&end);
    fixture_close(&f);
}

static void what_others_have_is_not_written(void **state)
{
    struct fixture f;
    struct other_end end;
    struct tensor kept;
    (void)state;
    fixture_open(&f, graph_text, false);
    const void *at = run(&f, "send_minus", &end, &kept, false); /* shared within this process */
    assert_ptr_not_equal(end.minus.data, at);
    check(&end.minus, -4);
    check(&kept, 4);
    release(&end);
    tensor_release(&kept);
    at = run(&f, "send_minus", &end, NULL, true); /* shared with another process */
    assert_ptr_not_equal(end.minus.data, at);
    check(&end.minus, -4);
    release(&end);
    at = run(&f, "send_twice", &end, NULL, false); /* the other input is shared */
    check(&end.twice, 8);
    release(&end);
    fixture_close(&f);
}

static void two_consumers_read_the_same(void **state)
{
    struct fixture f;
    struct other_end end;
    (void)state;
    fixture_open(&f, graph_text, false);
    for (int i = 0; i < 50; i++) {
        run(&f, "both", &end, NULL, false);
        check(&end.minus, -4);
        check(&end.root, 2);
        assert_ptr_not_equal(end.minus.data, end.root.data);
        release(&end);
    }
    fixture_close(&f);
}

static const struct tensor *value_of(const struct fixture *f)
{
    return &variable_store_next(session_variables(f->session), NULL)->value;
}

static void a_variable_takes_the_memory(void **state)
{
    struct fixture f;
    struct other_end end;
    struct tensor kept;
    (void)state;
    fixture_open(&f, graph_text, false);
    for (int i = 0; i < 2; i++) { /* a first value and a later one */
        const void *at = run(&f, "set", &end, NULL, false);
        assert_ptr_equal(value_of(&f)->data, at);
        check(value_of(&f), 4);
    }
    const void *at = run(&f, "set", &end, &kept, false);
    assert_ptr_equal(value_of(&f)->data, at);
    fixture_do(&f, "^add"); /* must leave the memory to `kept` */
    check(value_of(&f), 8);
    check(&kept, 4);
    tensor_release(&kept);
    at = run(&f, "set", &end, NULL, true);
    assert_ptr_not_equal(value_of(&f)->data, at);
    run(&f, "kept", &end, NULL, false); /* the value is sent, too */
    fixture_do(&f, "^add");
    check(value_of(&f), 8);
    check(&end.x, 4);
    release(&end);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_holder_writes_where_it_lies),
        cmocka_unit_test(what_others_have_is_not_written),
        cmocka_unit_test(two_consumers_read_the_same),
        cmocka_unit_test(a_variable_takes_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
