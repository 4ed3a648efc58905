/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of values that leave the process: memory that came back is released before the next such
 * value is made, the largest value is made late, and a value that is given away has no other
 * holder.
 */
#include "exec/plan/fuse.h"
#include "exec/plan/plan.h"
#include "exec/state/variable.h"
#include "exec/step/collective.h"
#include "exec/step/outgoing.h"
#include "lib/plan_items.h"
#include "lib/session.h"

#define LEAST ((size_t)1 << 20)
#define LARGE ((size_t)4 << 20)

/* Gradients of 2 and 4 MiB, which wait for nothing, followed by work that needs neither. */
/* clang-format off */
static const char graph_text[] =
    "init = Const() {dtype=float32, value=0.5}\n"
    "few = Const() {dtype=int32, value=[8, 512]}\n"
    "many = Const() {dtype=int32, value=[8, 1024]}\n"
    "square = Const() {dtype=int32, value=[200, 200]}\n"
    "p = Placeholder() {dtype=float32, shape=[]}\n"
    "f = Fill(few, p)\n"
    "m = Fill(many, p)\n"
    "w0 = Fill(square, p)\n"
    "w1 = MatMul(w0, w0)\n"
    "w2 = MatMul(w1, w0)\n"
    "w3 = MatMul(w2, w0)\n"
    "w4 = MatMul(w3, w0)\n"
    "g1 = MatMul(f, m) {transpose_a=true}\n"
    "g2 = MatMul(m, m) {transpose_a=true}\n"
    "h2 = Identity(g2)\n"
    "r1 = AllReduce(g1) {reductions=[\"sum\"]}\n"
    "r2 = AllReduce(h2) {reductions=[\"sum\"]}\n"
    "v1 = Variable() {dtype=float32, shape=[512, 1024]}\n"
    "v2 = Variable() {dtype=float32, shape=[1024, 1024]}\n"
    "s1 = Const() {dtype=int32, value=[512, 1024]}\n"
    "s2 = Const() {dtype=int32, value=[1024, 1024]}\n"
    "f1 = Fill(s1, init)\n"
    "f2 = Fill(s2, init)\n"
    "i1 = Assign(v1, f1)\n"
    "i2 = Assign(v2, f2)\n"
    "set = NoOp(^i1, ^i2)\n"
    "u1 = AssignSub(v1, r1)\n"
    "u2 = AssignSub(v2, r2)\n"
    "axes = Const() {dtype=int32, value=[0, 1]}\n"
    "y = Sum(w4, axes)\n"
    "train = Identity(y, ^u1, ^u2)\n";
/* clang-format on */

struct memory {
    struct outgoing_memory outgoing; /* must be first */
    size_t bytes, most;
};

static void give_back(struct buffer *buffer)
{
    struct memory *memory = buffer->owner;
    memory->bytes -= buffer->bytes;
    free(buffer);
}

static struct buffer *alloc(struct outgoing_memory *outgoing, enum dtype type, size_t bytes)
{
    struct memory *memory = (struct memory *)outgoing;
    if (type != FLOAT32 || bytes < LEAST)
        return NULL;
    struct buffer *buffer = aligned_alloc(64, 64 + (bytes + 63) / 64 * 64);
    *buffer = (struct buffer){
        .bytes = bytes, .data = (char *)buffer + 64, .free = give_back, .owner = memory};
    atomic_init(&buffer->holders, 1);
    memory->bytes += bytes;
    memory->most = memory->bytes > memory->most ? memory->bytes : memory->most;
    return buffer;
}

static bool copies(struct outgoing_memory *outgoing, const struct tensor *value)
{
    return value->buffer && value->buffer->owner != outgoing;
}

_Static_assert(sizeof(struct buffer) <= 64, "a buffer fits before its data");

/* Answers at once with the value that it was given. */
static void reduce(struct collective *collective, const struct collective_call *call,
                   struct collective_waiter *waiter)
{
    struct tensor result;
    (void)collective;
    assert_int_equal(call->n, 1);
    assert_true(call->yields);
    assert_true(buffer_is_sole(call->values[0].buffer));
    tensor_share(&result, &call->values[0]);
    waiter->done(waiter, &(struct collective_results){.values = &result, .members = 2}, NULL);
    tensor_release(&result);
}

static bool cancel(struct collective *collective, struct collective_waiter *waiter)
{
    (void)collective;
    (void)waiter;
    return false;
}

struct lab {
    struct graph *graph;
    struct session *session;
    struct memory memory;
};

static struct device *one_thread(void)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    if (!device)
        device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    assert_non_null(device);
    return device;
}

static void open_lab(struct lab *lab, bool by_item)
{
    struct error err = ERROR_INIT;
    memset(lab, 0, sizeof *lab);
    lab->memory.outgoing = (struct outgoing_memory){alloc, copies};
    if (graph_parse_text(graph_text, strlen(graph_text), "test", ops_registry(), &lab->graph, &err))
        fail_msg("%s", err.text);
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = one_thread(),
                                               .outgoing = &lab->memory.outgoing,
                                               .cut = by_item ? CUT_ITEMS : CUT_WHOLE,
                                               .threads = 1}};
    lab->session = session_new(lab->graph, &options);
}

static void close_lab(struct lab *lab)
{
    session_free(lab->session);
    assert_int_equal(lab->memory.bytes, 0);
    graph_free(lab->graph);
}

static float run(struct lab *lab, const char *name)
{
    struct collective collective = {.size = 2, .reduce = reduce, .cancel = cancel};
    struct step step = {.number = 1, .collective = &collective};
    struct error err = ERROR_INIT;
    struct tensor result = TENSOR_INIT;
    float p = 0.01f;
    struct tensor value = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &p);
    struct edge feed = {graph_find(lab->graph, "p")->id, 0};
    int id = graph_find(lab->graph, name)->id;
    struct edge fetch = {id, 0};
    bool fetches = graph_node(lab->graph, id)->n_outputs > 0;
    struct plan_request call = {.feeds = &feed,
                                .feed_values = &value,
                                .n_feeds = 1,
                                .fetches = &fetch,
                                .n_fetches = fetches,
                                .targets = &id,
                                .n_targets = !fetches};
    if (session_run(lab->session, &call, &step, &result, &err))
        fail_msg("%s: %s", name, err.text);
    float number = fetches ? ((float *)result.data)[0] : 0;
    tensor_release(&result);
    return number;
}

static void only_the_largest_has_memory(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab, false);
    run(&lab, "set");
    for (int i = 0; i < 3; i++) {
        run(&lab, "train");
        assert_int_equal(lab.memory.bytes, 0);
        assert_int_equal(lab.memory.most, LARGE);
    }
    close_lab(&lab);
}

static int position(const struct plan *plan, const char *name)
{
    const struct item *item = plan_item_named(plan, name);
    assert_non_null(item);
    return item->position;
}

/* It is made when half of the remaining work is done; ops that only read it come then, too. */
static void the_largest_is_made_late(void **state)
{
    struct lab lab;
    struct error err = ERROR_INIT;
    struct plan *plan;
    (void)state;
    open_lab(&lab, false);
    struct plan_options options = {.kernels = ops_kernels(),
                                   .device = one_thread(),
                                   .variables = session_variables(lab.session),
                                   .outgoing = &lab.memory.outgoing,
                                   .without = 1 << DEVICE_PASS_VIEWS,
                                   .threads = 1};
    struct edge fetch = {graph_find(lab.graph, "train")->id, 0};
    struct edge feed = {graph_find(lab.graph, "p")->id, 0};
    struct tensor value = {.type = FLOAT32, .shape = SHAPE_SCALAR};
    struct plan_request request = {
        .feeds = &feed, .feed_values = &value, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
    if (plan_new(lab.graph, &options, &request, &plan, &err))
        fail_msg("%s", err.text);
    assert_true(position(plan, "g1") < position(plan, "w1"));
    assert_int_equal(position(plan, "g2"), position(plan, "w2") + 1);
    assert_int_equal(position(plan, "h2"), position(plan, "g2") + 1);
    plan_free(plan);
    close_lab(&lab);
}

static double sum_of_variables(const struct lab *lab)
{
    double sum = 0;
    struct variable_store *store = session_variables(lab->session);
    for (struct variable *v = variable_store_next(store, NULL); v;
         v = variable_store_next(store, v))
        for (int64_t i = 0; i < tensor_count(&v->value); i++)
            sum += ((const float *)v->value.data)[i] * (double)(i % 97);
    return sum;
}

static void no_bit_changes(void **state)
{
    double sums[2];
    float y[2];
    (void)state;
    for (int by_item = 0; by_item < 2; by_item++) {
        struct lab lab;
        open_lab(&lab, by_item);
        run(&lab, "set");
        run(&lab, "train");
        y[by_item] = run(&lab, "train");
        sums[by_item] = sum_of_variables(&lab);
        close_lab(&lab);
    }
    assert_true(y[0] == y[1]);
    assert_true(sums[0] == sums[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_largest_has_memory),
        cmocka_unit_test(the_largest_is_made_late),
        cmocka_unit_test(no_bit_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
