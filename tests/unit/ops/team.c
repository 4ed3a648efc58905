/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of our own kernels are divided among a team, whichever compiler made them, and share one
 * OpenMP runtime with the libraries. Regions are counted where they start: this program's
 * GOMP_parallel hides the runtime's own.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "lib/session.h"

typedef void region(void *data);

void GOMP_parallel(region *body, void *data, unsigned wanted, unsigned flags);

struct metered_function {
    region *body;
    void *data;
    atomic_int *members;
};

static atomic_int most; /* largest team of our kernels since it was last reset */

static void enter(void *data)
{
    const struct metered_function *counted = data;
    atomic_fetch_add(counted->members, 1);
    counted->body(counted->data);
}

static bool is_kernel(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && strstr(info.dli_fname, "/cpu-");
}

void GOMP_parallel(region *body, void *data, unsigned wanted, unsigned flags)
{
    static void (*start)(region *, void *, unsigned, unsigned);
    atomic_int members = 0;
    struct metered_function counted = {body, data, &members};
    if (!start) {
        void *symbol = dlsym(dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD), "GOMP_parallel");
        memcpy(&start, &symbol, sizeof start);
    }
    start(enter, &counted, wanted, flags);
    if (is_kernel(__builtin_return_address(0)) && members > most)
        most = members;
}

/* clang-format off */
static const char graph_text[] =
    "x = Placeholder() {dtype=float32, shape=[512,1024]}\n"
    "k = Placeholder() {dtype=int32, shape=[512,1024]}\n"
    "d = Placeholder() {dtype=float64, shape=[1,64,64,8]}\n"
    "shape = Const() {dtype=int32, value=[512,512]}\n"
    "zero = Const() {dtype=int32, value=0}\n"
    "one = Const() {dtype=int32, value=1}\n"
    "n = Const() {dtype=int32, value=512}\n"
    "i = Range(zero, n, one)\n"
    "turn = Const() {dtype=int32, value=[1,0]}\n"
    "matrices = Const() {dtype=int32, value=[32,128,128]}\n"
    "window = Const() {dtype=int32, value=[3,3,8,4]}\n"
    "half = Const() {dtype=float64, value=0.5}\n"
    "filter = Fill(window, half)\n"
    "m = Reshape(x, matrices)\n"
    "negative = Neg(x)\n"
    "turned = Transpose(x, turn)\n"
    "gathered = Gather(x, i)\n"
    "segments = UnsortedSegmentSum(x, i, n)\n"
    "drawn = RandomUniform(shape) {dtype=float32}\n"
    "products = BatchMatMul(m, m)\n"
    "blocks = MatMul(k, k) {transpose_b=true}\n"
    "convolved = Conv2D(d, filter) {strides=[1,1,1,1], padding=\"SAME\"}\n"
    "windows = Const() {dtype=int32, value=[64,64,3,3,8,4]}\n"
    "filters = Fill(windows, half)\n"
    "local = LocallyConnected2D(d, filters) {strides=[1,1,1,1], padding=\"SAME\"}\n";
/* clang-format on */

static const struct {
    const char *feed, *fetch;
} computed[] = {{"x", "negative"}, {"x", "turned"},    {"x", "gathered"},
                {"x", "segments"}, {"x", "drawn"},     {"x", "products"},
                {"k", "blocks"},   {"d", "convolved"}, {"d", "local"}};

static struct tensor value_of(const struct graph *graph, const char *name)
{
    const struct node *node = graph_find(graph, name);
    const struct shape *shape = node_attr(node, "shape")->shape;
    struct tensor value;
    struct error err = ERROR_INIT;
    if (tensor_alloc(&value, node_type(node, "dtype"), shape, &err))
        fail_msg("%s", err.text);
    memset(value.data, 0, tensor_bytes(&value));
    return value;
}

static void open_with_team(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    if (graph_parse_text(graph_text, strlen(graph_text), "test", ops_registry(), &f->graph,
                         &f->err))
        fail_msg("%s", f->err.text);
    struct session_options options = {
        .plan = {.kernels = ops_kernels(), .device = fixture_device(), .threads = 2}};
    f->session = session_new(f->graph, &options);
}

static void every_loop_has_a_team(void **state)
{
    struct fixture f;
    (void)state;
    open_with_team(&f);
    for (size_t k = 0; k < sizeof computed / sizeof *computed; k++) {
        struct tensor feed = value_of(f.graph, computed[k].feed), result;
        most = 0;
        if (fixture_run(&f, computed[k].fetch, computed[k].feed, &feed, &result))
            fail_msg("%s", f.err.text);
        if (most != 2)
            fail_msg("%s was computed by %d threads, not 2", computed[k].fetch, most);
        tensor_release(&result);
        tensor_release(&feed);
    }
    fixture_close(&f);
}

static void one_runtime_is_loaded(void **state)
{
    char line[4096];
    int others = 0, ours = 0;
    (void)state;
    fixture_device();
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof line, maps)) {
        ours += strstr(line, "/libgomp.so") != NULL;
        others += strstr(line, "/libomp") != NULL || strstr(line, "/libiomp") != NULL;
    }
    fclose(maps);
    assert_true(ours > 0);
    assert_int_equal(others, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loop_has_a_team),
        cmocka_unit_test(one_runtime_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
