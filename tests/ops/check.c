/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/check.h"
#include "tests/ops/files.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "graph/text.h"
#include "ops/ops.h"
#include "tests/ops/coverage.h"

struct session *check_session(const struct checker *checker, const struct graph *graph,
                              bool dynamic)
{
    struct session_options options = {.plan = {.kernels = ops_kernels(),
                                               .device = checker->device,
                                               .cut = dynamic ? CUT_REGIONS : CUT_WHOLE}};
    struct session *session = session_new(graph, &options);
    variable_store_set_files(session_variables(session), case_files());
    return session;
}

struct step check_step(int64_t number)
{
    return (struct step){.number = number, .seed = 0};
}

static double tolerance_of(enum dtype type)
{
    switch (type) {
    case FLOAT64:
        return 1e-12;
    case FLOAT32:
        return 2e-6;
    case FLOAT16:
        return 1e-3;
    case BFLOAT16:
        return 1e-2;
    default:
        return 0;
    }
}

static bool close_enough(double got, double expected, double tolerance)
{
    if (isnan(expected) || isnan(got))
        return isnan(expected) && isnan(got);
    if (isinf(expected) || isinf(got))
        return got == expected;
    return fabs(got - expected) <= tolerance * fmax(1, fabs(expected));
}

static int differ(const struct tensor *got, const struct tensor *expected, int64_t index,
                  struct error *err)
{
    struct str a = STR_INIT, b = STR_INIT;
    tensor_print_element(&a, got, index);
    tensor_print_element(&b, expected, index);
    error_set(err, ERR_DATA, "element %lld is %s, not %s", (long long)index, str_text(&a),
              str_text(&b));
    str_release(&a);
    str_release(&b);
    return err->code;
}

int check_tensor(const struct tensor *got, const struct case_value *expected, double tolerance,
                 struct error *err)
{
    const struct tensor *e = &expected->tensor;
    if (expected->any)
        return 0;
    if (got->type != e->type || !shape_equal(&got->shape, &e->shape))
        return error_set(err, ERR_DATA, "got %s, not %s", shape_text_typed(got->type, &got->shape),
                         shape_text_typed(e->type, &e->shape));
    if (!dtype_is_floating(e->type)) {
        if (tensor_equal(got, e))
            return 0;
        for (int64_t i = 0; e->type != STRING && i < tensor_count(e); i++)
            if (memcmp((char *)got->data + (size_t)i * dtype_bytes(e->type),
                       (char *)e->data + (size_t)i * dtype_bytes(e->type), dtype_bytes(e->type)))
                return differ(got, e, i, err);
        return error_set(err, ERR_DATA, "strings differ");
    }
    if (tolerance < 0)
        tolerance = tolerance_of(e->type);
    for (int64_t i = 0; i < tensor_count(e); i++)
        if (!close_enough(tensor_get_float64(got, i), tensor_get_float64(e, i), tolerance))
            return differ(got, e, i, err);
    return 0;
}

bool check_message(const char *wanted, const char *message)
{
    char part[256];
    while (*wanted) {
        size_t n = strcspn(wanted, "|");
        snprintf(part, sizeof part, "%.*s", (int)n, wanted);
        if (strstr(message, part))
            return true;
        wanted += n + (wanted[n] == '|');
    }
    return false;
}

/* The edges of a step's values. */
static int find_edges(const struct graph *graph, const struct case_value *values, size_t n,
                      struct edge *edges, struct error *err)
{
    for (size_t i = 0; i < n; i++)
        if (graph_parse_edge(graph, values[i].edge, &edges[i], err))
            return err->code;
    return 0;
}

static int find_targets(const struct graph *graph, const char *targets, int *ids, int *n,
                        struct error *err)
{
    char name[256];
    int used;
    *n = 0;
    while (sscanf(targets, "%255s %n", name, &used) == 1) {
        const struct node *node = graph_find(graph, name);
        if (!node || *n == CASE_INPUTS_MAX)
            return error_set(err, ERR_DATA, "no node '%s' to run", name);
        ids[(*n)++] = node->id;
        targets += used;
    }
    return 0;
}

static int compare_fetches(const struct test_case *test, const struct case_step *step,
                           struct tensor *got, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < step->fetches.n; i++) {
        const struct case_value *expected = &step->fetches.items[i];
        if (!result && check_tensor(&got[i], expected, test->tolerance, err))
            result = error_prefix(err, "%s: ", expected->edge);
        tensor_release(&got[i]);
    }
    return result;
}

static int run_step(const struct test_case *test, const struct graph *graph,
                    struct session *session, size_t number, struct error *err)
{
    const struct case_step *step = &test->steps.items[number];
    struct edge feeds[CASE_INPUTS_MAX], fetches[CASE_INPUTS_MAX];
    struct tensor values[CASE_INPUTS_MAX], got[CASE_INPUTS_MAX] = {TENSOR_INIT};
    int targets[CASE_INPUTS_MAX], n_targets;
    if (find_edges(graph, step->feeds.items, step->feeds.n, feeds, err) ||
        find_edges(graph, step->fetches.items, step->fetches.n, fetches, err) ||
        find_targets(graph, step->targets, targets, &n_targets, err))
        return err->code;
    for (size_t i = 0; i < step->feeds.n; i++)
        values[i] = step->feeds.items[i].tensor;
    struct plan_request call = {.feeds = feeds,
                                .feed_values = values,
                                .n_feeds = (int)step->feeds.n,
                                .fetches = fetches,
                                .n_fetches = (int)step->fetches.n,
                                .targets = targets,
                                .n_targets = n_targets};
    struct step run = check_step((int64_t)number + 1);
    int failed = session_run(session, &call, &run, got, err);
    if (!step->error)
        return failed ? failed : compare_fetches(test, step, got, err);
    if (!failed) {
        for (size_t i = 0; i < step->fetches.n; i++)
            tensor_release(&got[i]);
        return error_set(err, ERR_DATA, "no error, expected '%s'", step->error);
    }
    if (!check_message(step->error, err->text))
        return error_prefix(err, "expected '%s', got: ", step->error);
    error_clear(err);
    return 0;
}

/* What a graph case covers: the ops that are named, or all. */
static void cover_graph(const struct checker *checker, const struct test_case *test,
                        const struct graph *graph, bool failed)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const struct node *node = graph->nodes.items[i];
        if (!test->ops || case_lists(test->ops, node->op->def->name))
            coverage_note(checker->coverage, node, failed ? COVERAGE_ERROR : COVERAGE_VALUE);
    }
}

int check_graph(const struct checker *checker, const struct test_case *test, bool dynamic,
                struct error *err)
{
    struct graph *graph;
    if (graph_parse_text(test->graph, strlen(test->graph), "graph", ops_registry(), &graph, err)) {
        if (!test->error || !check_message(test->error, err->text))
            return err->code;
        error_clear(err);
        if (test->ops)
            coverage_note_name(checker->coverage, test->ops, COVERAGE_ERROR);
        return 0;
    }
    struct session *session = check_session(checker, graph, dynamic);
    int result = 0;
    for (size_t i = 0; i < test->steps.n && !result; i++) {
        result = run_step(test, graph, session, i, err);
        if (result)
            error_prefix(err, "step %zu: ", i + 1);
        else
            cover_graph(checker, test, graph, test->steps.items[i].error);
    }
    session_free(session);
    graph_free(graph);
    return result;
}
