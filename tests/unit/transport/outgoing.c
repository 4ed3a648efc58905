/* SPDX-License-Identifier: Apache-2.0
 *
 * Which values of a step are in the memory for values that leave the process.
 */
#include "exec/step/outgoing.h"

#include "exec/state/variable.h"
#include "exec/step/rendezvous.h"
#include "lib/session.h"

#define HERE " @/job:worker/task:0/device:CPU:0\n"
#define SEND(name, value, to)                                                                      \
    name " = Send(" value ") {tensor_name=\"" name "\", recv_device=\"" to                         \
         "\", send_device=\"/job:worker/task:0/device:CPU:0\"}" HERE
#define SHARD "/job:ps/task:0/device:CPU:0"
#define LEAST 64 /* least that this memory takes */

/* ---- the memory, and where values are sent ---- */

struct memory {
    struct outgoing_memory outgoing; /* must be first */
    bool is_full;
    int n_out;
};

static void give_back(struct buffer *buffer)
{
    ((struct memory *)buffer->owner)->n_out--;
    free(buffer);
}

static bool is_mapped; /* by another process */

static bool is_read(const struct buffer *buffer)
{
    (void)buffer;
    return is_mapped;
}

static struct buffer *alloc(struct outgoing_memory *outgoing, enum dtype type, size_t bytes)
{
    struct memory *memory = (struct memory *)outgoing;
    if (memory->is_full || type == STRING || bytes < LEAST)
        return NULL;
    struct buffer *buffer = aligned_alloc(64, 64 + (bytes + 63) / 64 * 64);
    atomic_init(&buffer->holders, 1);
    buffer->bytes = bytes;
    buffer->data = (char *)buffer + 64;
    buffer->free = give_back;
    buffer->owner = memory;
    buffer->is_read = is_read;
    memory->n_out++;
    return buffer;
}

static bool copies(struct outgoing_memory *outgoing, const struct tensor *value)
{
    return value->buffer->owner != outgoing;
}

struct sent {
    struct rendezvous rendezvous; /* must be first */
    struct memory *memory;
    struct tensor value;
    bool is_outgoing;
};

static int take(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                struct rendezvous_value *value, struct error *err)
{
    struct sent *sent = (struct sent *)rendezvous;
    (void)key;
    (void)err;
    sent->value = value->tensor;
    value->tensor = (struct tensor)TENSOR_INIT;
    sent->is_outgoing = sent->value.buffer->owner == sent->memory;
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

/* ---- a step of the graph, which sends one value ---- */

static const char graph_text[] =
    "n = Const() {dtype=int32, value=[64]}" HERE "few = Const() {dtype=int32, value=[2]}" HERE
    "square = Const() {dtype=int32, value=[8,8]}" HERE "two = Const() {dtype=float32, value=2}" HERE
    "x = Placeholder() {dtype=float32, shape=[64]}" HERE
    "v = Variable() {dtype=float32, shape=[64]}" HERE "twos = Fill(n, two)" HERE
    "set = Assign(v, twos)" HERE "double_v = AssignAdd(v, v)" HERE "read = Identity(v)" HERE
    "double = Add(x, x)" HERE "view = Reshape(double, square)" HERE "same = Identity(view)" HERE
    "little = Fill(few, two)" HERE "yes = Const() {dtype=bool, value=true}" HERE
    "branch = Switch(double, yes)" HERE
    "merged = Merge(branch:0, branch:1)" HERE SEND("computed", "double", SHARD)
        SEND("aliased", "same", SHARD) SEND("fed", "x", SHARD) SEND("variable", "v", SHARD)
            SEND("copied", "read", SHARD) SEND("small", "little", SHARD)
                SEND("chosen", "merged", SHARD) SEND("taken", "branch:1", SHARD)
                    SEND("inside", "double", "/job:worker/task:0/device:CPU:1");

struct lab {
    struct graph *graph;
    struct session *session;
    struct memory memory;
};

static void step_of(struct lab *lab, const char *target, struct sent *sent)
{
    struct error err = ERROR_INIT;
    struct edge feed = {graph_find(lab->graph, "x")->id, 0};
    float ones[64];
    struct shape shape = shape_vector(64);
    struct tensor value = tensor_borrow(FLOAT32, &shape, ones);
    int id = graph_find(lab->graph, target)->id;
    struct plan_request call = {
        .feeds = &feed, .feed_values = &value, .n_feeds = 1, .targets = &id, .n_targets = 1};
    struct step step = {.number = 1, .rendezvous = &sent->rendezvous};
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    *sent = (struct sent){.rendezvous = {.send = take, .abort = ignore, .aborted = not_aborted},
                          .memory = &lab->memory};
    if (session_run(lab->session, &call, &step, NULL, &err))
        fail_msg("%s: %s", target, err.text);
    memset(ones, 0, sizeof ones); /* the step may not use the feed any more */
}

static void open_lab(struct lab *lab)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    struct sent none;
    memset(lab, 0, sizeof *lab);
    lab->memory.outgoing = (struct outgoing_memory){alloc, copies};
    if (graph_parse_text(graph_text, strlen(graph_text), "test", ops_registry(), &lab->graph, &err))
        fail_msg("%s", err.text);
    if (!device)
        device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    assert_non_null(device);
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = device,
                                               .outgoing = &lab->memory.outgoing,
                                               .threads = 1}};
    lab->session = session_new(lab->graph, &options);
    step_of(lab, "set", &none);
}

/* Everything that was allocated has been released. */
static void close_lab(struct lab *lab)
{
    session_free(lab->session);
    assert_int_equal(lab->memory.n_out, 0);
    graph_free(lab->graph);
}

static void check(struct lab *lab, const char *target, bool is_outgoing)
{
    struct sent sent;
    step_of(lab, target, &sent);
    if (sent.is_outgoing != is_outgoing)
        fail_msg("%s: %s", target, is_outgoing ? "was to be copied" : "is in scarce memory");
    for (int i = 0; i < (int)tensor_count(&sent.value); i++)
        assert_float_equal(tensor_get_float64(&sent.value, i), strcmp(target, "fed") ? 2 : 1, 0);
    assert_int_equal(lab->memory.n_out, is_outgoing); /* the value, and no other */
    tensor_release(&sent.value);
}

static void test_what_leaves(void **state)
{
    static const char *const targets[] = {"computed", "aliased", "fed", "variable", "copied"};
    struct lab lab;
    (void)state;
    open_lab(&lab);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        check(&lab, targets[i], true);
    check(&lab, "taken", true); /* Switch is a view, too */
    close_lab(&lab);
}

static void test_what_stays(void **state)
{
    struct lab lab;
    (void)state;
    open_lab(&lab);
    check(&lab, "inside", false);
    check(&lab, "small", false);
    check(&lab, "chosen", false);
    close_lab(&lab);
}

static void test_without_room(void **state)
{
    static const char *const targets[] = {"computed", "aliased", "fed", "variable", "copied"};
    struct lab lab;
    (void)state;
    open_lab(&lab);
    lab.memory.is_full = true;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        check(&lab, targets[i], false);
    close_lab(&lab);
}

/* ---- variables that other processes read in place ---- */

static struct variable *only_variable(const struct lab *lab)
{
    return variable_store_next(session_variables(lab->session), NULL);
}

static void send_from_memory(struct lab *lab)
{
    variable_store_send_from(session_variables(lab->session), &lab->memory.outgoing);
}

/* A variable that has memory already is moved by its next write. */
static void test_a_variable_is_sent_where_it_is(void **state)
{
    static const char *const targets[] = {"variable", "copied"};
    struct lab lab;
    struct sent sent;
    (void)state;
    open_lab(&lab);
    send_from_memory(&lab);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        step_of(&lab, "set", &sent);
        const void *there = only_variable(&lab)->value.data;
        assert_int_equal(lab.memory.n_out, 1);
        step_of(&lab, targets[i], &sent);
        assert_ptr_equal(sent.value.data, there);
        assert_int_equal(lab.memory.n_out, 1);
        tensor_release(&sent.value);
        step_of(&lab, "set", &sent);
        assert_ptr_equal(only_variable(&lab)->value.data, there);
    }
    variable_store_send_from(session_variables(lab.session), NULL);
    step_of(&lab, "set", &sent);
    assert_int_equal(lab.memory.n_out, 1);
    close_lab(&lab);
}

static void write_and_check(struct lab *lab, const struct sent *sent, bool moves)
{
    struct sent none;
    const void *before = only_variable(lab)->value.data;
    step_of(lab, "double_v", &none);
    assert_int_equal(only_variable(lab)->value.data != before, moves);
    for (int i = 0; sent && i < 64; i++)
        assert_float_equal(tensor_get_float64(&sent->value, i), 2, 0);
}

/* Read by this process, or by another one that maps it. */
static void test_a_variable_leaves_what_is_read(void **state)
{
    struct lab lab;
    struct sent sent;
    (void)state;
    open_lab(&lab);
    send_from_memory(&lab);
    step_of(&lab, "set", &sent);
    step_of(&lab, "variable", &sent);
    write_and_check(&lab, &sent, true);
    assert_int_equal(lab.memory.n_out, 2);
    tensor_release(&sent.value);
    write_and_check(&lab, NULL, false);
    is_mapped = true;
    write_and_check(&lab, NULL, true);
    lab.memory.is_full = true; /* then any memory will do */
    write_and_check(&lab, NULL, true);
    is_mapped = false;
    assert_int_equal(lab.memory.n_out, 0);
    lab.memory.is_full = false;
    write_and_check(&lab, NULL, true);
    write_and_check(&lab, NULL, false);
    assert_int_equal(lab.memory.n_out, 1);
    assert_float_equal(tensor_get_float64(&only_variable(&lab)->value, 63), 128, 0);
    close_lab(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_leaves),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_without_room),
        cmocka_unit_test(test_a_variable_is_sent_where_it_is),
        cmocka_unit_test(test_a_variable_leaves_what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
