/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement: constraints, colocation and kernels, and the errors when they contradict each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unit.h"

#include "graph/text.h"
#include "ops/ops.h"
#include "pass/place/place.h"

/* A machine with an accelerator that knows few ops. */
static const struct kernel_row rows[] = {
    {.op = "Placeholder", .device = "CPU"},  {.op = "Variable", .device = "CPU"},
    {.op = "Neg", .device = "CPU"},          {.op = "Exp", .device = "CPU"},
    {.op = "Assign", .device = "CPU"},       {.op = "Variable", .device = "CUDA"},
    {.op = "Assign", .device = "CUDA"},      {.op = "Neg", .device = "CUDA", .types = "T=float32"},
    {.op = "Placeholder", .device = "CUDA"}, {.op = "Abs", .device = "CUDA"},
    {.op = "Stack", .device = "CPU"},        {.op = "StackPush", .device = "CPU"},
};
static const struct kernel_table kernels = {rows, sizeof rows / sizeof *rows};

struct fetch_place {
    struct graph *graph;
    struct placement placement;
    struct error err;
    char reasons[1024], moved[1024];
    bool soft;
};

static void add_line(char lines[static 1024], const struct node *node, const char *reason)
{
    size_t n = strlen(lines);
    snprintf(lines + n, 1024 - n, "%s: %s\n", node->name, reason);
}

static void note(void *context, const struct node *node, const char *reason)
{
    add_line(((struct fetch_place *)context)->reasons, node, reason);
}

static void note_moved(void *context, const struct node *node, const char *reason)
{
    add_line(((struct fetch_place *)context)->moved, node, reason);
}

static void open_graph(struct fetch_place *p, const char *devices, const char *text)
{
    char *copy = strdup(devices), *rest = copy, *device;
    memset(p, 0, sizeof *p);
    while ((device = strsep(&rest, ",")))
        if (placement_add(&p->placement, device, &p->err))
            fail_msg("%s", p->err.text);
    free(copy);
    if (graph_parse_text(text, strlen(text), "m", ops_registry(), &p->graph, &p->err))
        fail_msg("%s", p->err.text);
}

static int place(struct fetch_place *p)
{
    struct place_options options = {.placement = &p->placement,
                                    .kernels = &kernels,
                                    .soft = p->soft,
                                    .note = note,
                                    .moved = note_moved,
                                    .context = p};
    return place_graph(p->graph, &options, &p->err);
}

static void finish(struct fetch_place *p)
{
    placement_release(&p->placement);
    graph_free(p->graph);
}

#define HERE "/job:localhost/task:0/device:"
#define X "x = Placeholder() {dtype=float32, shape=[2]}\n"
#define V "v = Variable() {dtype=float32, shape=[2]}"
#define PS0 "/job:ps/task:0/device:CPU:0"
#define PS1 "/job:ps/task:1/device:CPU:0"

/* `want`: "name=DEVICE" of each node, in order, separated by blanks. */
static void check_places(const struct fetch_place *p, const char *want)
{
    struct str got = STR_INIT;
    for (size_t i = 0; i < p->graph->nodes.n; i++) {
        const struct node *node = graph_node(p->graph, (int)i);
        str_printf(&got, "%s%s=%s", i ? " " : "", node->name,
                   str_starts(node->assigned, HERE) ? node->assigned + strlen(HERE)
                                                    : node->assigned);
    }
    assert_string_equal(str_text(&got), want);
    str_release(&got);
}

static void check(const char *devices, const char *text, const char *want)
{
    struct fetch_place p;
    open_graph(&p, devices, text);
    if (place(&p))
        fail_msg("%s", p.err.text);
    check_places(&p, want);
    assert_string_equal(p.moved, "");
    finish(&p);
}

/* The same with soft placement; `moved`: the lines about nodes that gave way. */
static void check_soft(const char *devices, const char *text, const char *want, const char *moved)
{
    struct fetch_place p;
    open_graph(&p, devices, text);
    p.soft = true;
    if (place(&p))
        fail_msg("%s", p.err.text);
    check_places(&p, want);
    assert_string_equal(p.moved, moved);
    finish(&p);
}

static void check_fails(const char *devices, const char *text, const char *message)
{
    struct fetch_place p;
    open_graph(&p, devices, text);
    int code = place(&p);
    unit_assert_error(code, p.err, ERR_DATA, message);
    for (size_t i = 0; i < p.graph->nodes.n; i++) /* the graph is unchanged */
        assert_string_equal(graph_node(p.graph, (int)i)->assigned, "");
    finish(&p);
}

static void test_constraints(void **state)
{
    (void)state;
    check("CPU:0", X "y = Neg(x)\n", "x=CPU:0 y=CPU:0");
    check("CPU:0,CPU:1", X "y = Neg(x) @?/device:CPU:1\n", "x=CPU:0 y=CPU:1");
    check("CPU:0,CPU:1", X "y = Neg(x) @?/job:localhost\nz = Neg(x) @?/task:0/cpu:1\n",
          "x=CPU:0 y=CPU:0 z=CPU:1");
    check(PS0 "," PS1, X "y = Neg(x) @?/task:1\n", "x=" PS0 " y=" PS1);
}

static void test_kernels(void **state)
{
    (void)state;
    /* An accelerator is preferred, in any order, if it has a kernel for the types. */
    check("CPU:0,CUDA:0", X "y = Neg(x)\nz = Exp(y)\na = Abs(x)\n",
          "x=CUDA:0 y=CUDA:0 z=CPU:0 a=CUDA:0");
    check("CUDA:0,CPU:0", "x = Placeholder() {dtype=int32, shape=[2]}\ny = Neg(x)\n",
          "x=CUDA:0 y=CPU:0");
    check("CPU:0,CUDA:0", X "y = Neg(x) @?/device:CPU:0\n", "x=CUDA:0 y=CPU:0");
}

static void test_colocation(void **state)
{
    (void)state;
    check("CPU:0,CPU:1",
          X "a = Neg(x) @?/device:CPU:1\nb = Neg(a) {_class=[\"loc:@a\"]}\n"
            "c = Neg(x) {_class=[\"loc:@b\"]}\nd = Neg(c)\n",
          "x=CPU:0 a=CPU:1 b=CPU:1 c=CPU:1 d=CPU:0");
    /* Partial requests of a group are combined; one node may join two groups. */
    check(PS0 "," PS1 ",CPU:0",
          X "a = Neg(x) @?/job:ps\nb = Neg(x) @?/task:1\n"
            "c = Neg(x) {_class=[\"loc:@a\",\"loc:@b\"]}\n",
          "x=" PS0 " a=" PS1 " b=" PS1 " c=" PS1);
    /* A group goes where all its nodes have kernels. */
    check("CPU:0,CUDA:0", X "a = Neg(x)\nb = Exp(x) {_class=[\"loc:@a\"]}\n",
          "x=CUDA:0 a=CPU:0 b=CPU:0");
}

static void test_references(void **state)
{
    (void)state;
    check("CPU:0,CPU:1", V " @?/device:CPU:1\n" X "u = Assign(v, x)\ny = Neg(v)\n",
          "v=CPU:1 x=CPU:0 u=CPU:1 y=CPU:0");
}

static void test_places_are_kept(void **state)
{
    (void)state;
    check("CPU:0,CPU:1", X "y = Neg(x) @" HERE "CPU:1\nz = Neg(y) {_class=[\"loc:@y\"]}\n",
          "x=CPU:0 y=CPU:1 z=CPU:1");
    /* An assigned device that is gone, or that contradicts the current request. */
    check("CPU:0", X "y = Neg(x) @" HERE "CPU:1\n", "x=CPU:0 y=CPU:0");
    check("CPU:0,CPU:1", X "y = Neg(x) @?/device:CPU:0 @" HERE "CPU:1\n", "x=CPU:0 y=CPU:0");
}

static void test_reasons(void **state)
{
    (void)state;
    struct fetch_place p;
    open_graph(&p, "CPU:0,CPU:1,CUDA:0",
               V "\n" X "u = Assign(v, x)\ny = Neg(x) @?/device:CPU:1\nz = Abs(y)\n"
                 "w = Neg(x) @" HERE "CPU:0\n");
    if (place(&p))
        fail_msg("%s", p.err.text);
    assert_string_equal(p.reasons, "v: variable\nx: first device with a kernel\nu: with v\n"
                                   "y: asked for /device:CPU:1\nz: only device with a kernel\n"
                                   "w: placed there before\n");
    finish(&p);
}

static void test_conflict_names_the_shortest_chain(void **state)
{
    (void)state;
    check_fails(PS0 "," PS1,
                "W = Variable() {dtype=float32, shape=[2]} @?/job:ps/task:0 at m.lua:3\n" X
                "W/slot = Neg(x) {_class=[\"loc:@W\"]} at m.lua:5\n"
                "far = Neg(x) {_class=[\"loc:@W/slot\"]}\n"
                "farther = Neg(x) {_class=[\"loc:@far\",\"loc:@m\"]}\n"
                "m = Neg(x) {_class=[\"loc:@W/slot\"]} @?/job:ps/task:1 at m.lua:8\n",
                "'W' on /job:ps/task:0 (m.lua:3) and 'm' on /job:ps/task:1 (m.lua:8) must share a "
                "device: W -> W/slot -> m");
    check_fails(PS0 "," PS1, V " @?/task:0\n" X "u = Assign(v, x) @?/task:1\n",
                "'v' on /task:0 and 'u' on /task:1 must share a device: v -> u");
    check_fails(PS0 "," PS1,
                "h = Stack() {elem_type=float32} @?/task:0\n" X "p = StackPush(h, x) @?/task:1\n",
                "'h' on /task:0 and 'p' on /task:1 must share a device: h -> p");
}

static void test_missing_kernels(void **state)
{
    (void)state;
    check_fails("CPU:0", X "y = Tanh(x) at m.lua:3\n",
                "node 'y' (m.lua:3): no kernel for Tanh on CPU");
    check_fails("CUDA:0", "x = Placeholder() {dtype=int32, shape=[2]}\ny = Neg(x)\n",
                "node 'y': no kernel for Neg on CUDA with T=int32");
    check_fails("CPU:0,CUDA:0", X "y = Exp(x) @?/device:CUDA\n",
                "node 'y': no kernel for Exp on CUDA");
    check_fails("CPU:0,CUDA:0", X "y = Exp(x)\nz = Abs(x) {_class=[\"loc:@y\"]} at m.lua:3\n",
                "'y' on CPU and 'z' on CUDA (m.lua:3) must share a device: y -> z");
}

static void test_unknown_devices(void **state)
{
    (void)state;
    check_fails("CPU:0", X "y = Neg(x) @?/device:CPU:1 at m.lua:3\n",
                "node 'y' (m.lua:3): /device:CPU:1 is not in this cluster: it has " HERE "CPU:0");
    check_fails(PS0 ",CPU:1", X "a = Neg(x) @?/job:ps\nb = Neg(x) {_class=[\"loc:@a\"]} @?/cpu:1\n",
                "node 'a': /job:ps/device:CPU:1 is not in this cluster: it has " PS0 ", " HERE
                "CPU:1");
}

static void test_soft(void **state)
{
    (void)state;
    check_soft("CPU:0,CUDA:0", X "y = Exp(x) @?/device:GPU:0\nz = Neg(y) @?/device:GPU:0\n",
               "x=CUDA:0 y=CPU:0 z=CUDA:0", "y: no kernel for Exp on /device:CUDA:0\n");
    check_soft("CPU:0", X "y = Neg(x) @?/device:GPU:0\n", "x=CPU:0 y=CPU:0",
               "y: there is no /device:CUDA:0\n");
    check_soft("CPU:0,CUDA:0", X "y = Neg(x) @?/device:GPU:1\n", "x=CUDA:0 y=CUDA:0",
               "y: there is no /device:CUDA:1\n");
    /* The task is still respected. */
    check_soft(PS0 "," PS1 ",/job:ps/task:0/device:CUDA:0",
               X "y = Exp(x) @?/task:1/device:GPU:0\nz = Neg(x) @?/task:1/device:GPU:0\n",
               "x=/job:ps/task:0/device:CUDA:0 y=" PS1 " z=" PS1,
               "y: there is no /task:1/device:CUDA:0\nz: there is no /task:1/device:CUDA:0\n");
    /* A node with a kernel goes where another of its group must be. */
    check_soft("CPU:0,CUDA:0",
               X "y = Neg(x) @?/device:GPU:0\nz = Exp(x) {_class=[\"loc:@y\"]} @?/device:GPU:0\n",
               "x=CUDA:0 y=CPU:0 z=CPU:0",
               "y: not all that share a device can have /device:CUDA:0\n"
               "z: no kernel for Exp on /device:CUDA:0\n");
}

/* The device may give way, but not its task; an op without a kernel on any device is an error. */
static void test_soft_has_limits(void **state)
{
    struct fetch_place p;
    (void)state;
    open_graph(&p, "CPU:0,CUDA:0", X "y = Neg(x) @?/job:ps/device:GPU:0\n");
    p.soft = true;
    int code = place(&p);
    unit_assert_error(code, p.err, ERR_DATA,
                      "node 'y': /job:ps/device:CUDA:0 is not in this cluster: it has " HERE
                      "CPU:0, " HERE "CUDA:0");
    finish(&p);
}

static void test_bad_devices(void **state)
{
    (void)state;
    struct placement p = {.arena = ARENA_INIT};
    struct error err = ERROR_INIT;
    assert_int_equal(placement_add(&p, "/job:ps", &err), ERR_DATA);
    assert_string_equal(err.text, "'/job:ps' is not a whole device, as CPU:0 is");
    assert_int_equal(placement_add(&p, "CPU:x", &err), ERR_DATA);
    assert_int_equal(placement_add(&p, "CPU", &err), 0);
    assert_string_equal(p.devices.items[0].text, HERE "CPU:0");
    assert_int_equal(placement_add(&p, "cpu:0", &err), ERR_DATA);
    assert_string_equal(err.text, "device 'cpu:0' is given twice");
    placement_release(&p);
}

static void test_every_op_has_a_place(void **state)
{
    (void)state;
    struct fetch_place p;
    open_graph(&p, "CPU:0", X V "\nu = Assign(v, x)\n");
    struct place_options options = {.placement = &p.placement, .kernels = ops_kernels()};
    assert_int_equal(place_graph(p.graph, &options, &p.err), 0);
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constraints),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_colocation),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_places_are_kept),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_conflict_names_the_shortest_chain),
        cmocka_unit_test(test_missing_kernels),
        cmocka_unit_test(test_unknown_devices),
        cmocka_unit_test(test_soft),
        cmocka_unit_test(test_soft_has_limits),
        cmocka_unit_test(test_bad_devices),
        cmocka_unit_test(test_every_op_has_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
