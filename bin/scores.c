/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/scores.h"

#include <string.h>

#include "base/memory.h"
#include "graph/marks.h"
#include "graph/walk.h"

/* ---- totals ---- */

/* Collects in *found the marked nodes that any of the fetches depends on. */
static void find_totals(const struct graph *graph, const struct edge *fetches, size_t n,
                        struct node_list *found)
{
    struct arena memory = ARENA_INIT;
    struct graph_walk walk = graph_walk_new(&memory, graph);
    const struct node *node;
    for (size_t i = 0; i < n; i++)
        graph_walk_to(&walk, fetches[i].node);
    while ((node = graph_walk_next(&walk, graph))) {
        if (node_attr(node, TOTAL))
            vec_push(found, node->id);
        else
            graph_walk_inputs(&walk, node);
    }
    arena_release(&memory);
}

bool scores_are_fetched(const struct driver *driver)
{
    struct node_list found = {0};
    find_totals(driver->graph, driver->request.fetches.items, driver->request.fetches.n, &found);
    bool are = found.n;
    vec_release(&found);
    return are;
}

static int add_total(struct scores *s, struct edge edge, enum total_kind kind)
{
    struct score_total total = {.edge = edge, .kind = kind};
    for (size_t i = 0; i < s->totals.n; i++)
        if (edge_equal(s->totals.items[i].edge, edge))
            return (int)i;
    vec_push(&s->totals, total);
    return (int)s->totals.n - 1;
}

static int add_mean(struct scores *s, struct score *score, struct error *err)
{
    const struct node *node = graph_node(s->driver->graph, score->edge.node);
    const struct node_output *output = &node->outputs[score->edge.slot];
    if (output->shape.rank <= 0 && DTYPE_BIT(output->type) & DTYPES_REAL) {
        score->mean = add_total(s, score->edge, TOTAL_IS_MEAN);
        return 0;
    }
    struct str text = STR_INIT;
    shape_print_typed(&text, output->type, &output->shape);
    error_set(err, ERR_USAGE, "%s: '%s' is %s, neither a score (metric...) nor a number",
              s->driver->name, score->name, str_text(&text));
    str_release(&text);
    return err->code;
}

static int add_score(struct scores *s, struct edge edge, const char *name, struct error *err)
{
    const struct graph *graph = s->driver->graph;
    struct score score = {.name = name, .edge = edge, .mean = -1};
    struct node_list found = {0};
    find_totals(graph, &edge, 1, &found);
    for (size_t i = 0; !err->code && i < found.n; i++) {
        const struct node *node = graph_node(graph, found.items[i]);
        bool is_rows = !strcmp(node_attr(node, TOTAL)->s, TOTAL_ROWS);
        if (!is_rows && node->outputs[0].type != FLOAT64)
            error_set(err, ERR_DATA, "%s: %s: a total is of float64", s->driver->name,
                      node_text(node));
        add_total(s, (struct edge){node->id, 0}, is_rows ? TOTAL_IS_ROWS : TOTAL_IS_SUM);
    }
    if (!err->code && !found.n)
        add_mean(s, &score, err);
    vec_release(&found);
    vec_push(&s->items, score);
    return err->code;
}

/* ---- a step ---- */

/* Makes room for `count` elements in all, and keeps those that there are. */
static int grow_total(struct score_total *total, const struct tensor *part, int64_t count,
                      struct error *err)
{
    struct tensor larger;
    struct shape shape = {.rank = 1, .dims = {2 * count}};
    if (count <= total->capacity)
        return 0;
    if (tensor_alloc(&larger, part->type, &shape, err))
        return err->code;
    if (total->capacity)
        memcpy(larger.data, total->value.data, tensor_bytes(&total->value));
    larger.shape = total->capacity ? total->value.shape : part->shape;
    larger.shape.dims[0] = total->capacity ? larger.shape.dims[0] : 0;
    tensor_release(&total->value);
    total->value = larger;
    total->capacity = shape.dims[0];
    return 0;
}

static int add_rows(struct score_total *total, const struct tensor *part, struct error *err)
{
    int64_t before = total->capacity ? tensor_count(&total->value) : 0;
    int64_t more = tensor_count(part);
    if (part->shape.rank < 1 || part->type == STRING)
        return error_set(err, ERR_DATA, "metric.rows: a scalar, or texts, are not kept");
    if (grow_total(total, part, before + more + 1, err))
        return err->code;
    struct shape *shape = &total->value.shape;
    for (int i = 1; i < shape->rank; i++)
        if (shape->rank != part->shape.rank || shape->dims[i] != part->shape.dims[i])
            return error_set(err, ERR_DATA, "metric.rows: rows of batches differ in shape");
    memcpy((char *)total->value.data + before * (int64_t)dtype_bytes(part->type), part->data,
           tensor_bytes(part));
    shape->dims[0] += part->shape.dims[0];
    return 0;
}

static int add_sum(struct score_total *total, const struct tensor *part, double weight,
                   struct error *err)
{
    int64_t n = tensor_count(part);
    if (!total->value.data) {
        if (tensor_alloc(&total->value, FLOAT64, &part->shape, err))
            return err->code;
        memset(total->value.data, 0, tensor_bytes(&total->value));
    }
    if (!shape_equal(&total->value.shape, &part->shape))
        return error_set(err, ERR_DATA, "metric.total: what steps give differs in shape");
    double *sums = total->value.data;
    for (int64_t i = 0; i < n; i++)
        sums[i] += weight * tensor_get_float64(part, i);
    return 0;
}

static void take_score(void *context, const char *name, const struct tensor *value,
                       const struct request_view *view)
{
    struct scores *s = context;
    struct score_total *total = &s->totals.items[s->next];
    /* Rows fed to the step: of the record's first tensor that is no scalar. */
    const struct feeds *feeds = &s->driver->feeds;
    size_t first = feeds->n_constant;
    while (first < feeds->values.n && feeds->values.items[first].shape.rank <= 0)
        first++;
    double rows = first < feeds->values.n ? (double)feeds->values.items[first].shape.dims[0] : 1;
    (void)name, (void)view;
    s->rows += s->next ? 0 : rows;
    s->next = (s->next + 1) % s->totals.n;
    if (s->failed.code)
        return;
    if (total->kind == TOTAL_IS_ROWS)
        add_rows(total, value, &s->failed);
    else
        add_sum(total, value, total->kind == TOTAL_IS_MEAN ? rows : 1, &s->failed);
}

int scores_begin(struct scores *s, struct driver *driver, struct error *err)
{
    struct request *request = &driver->request;
    s->driver = driver;
    error_clear(err);
    for (size_t i = 0; !err->code && i < request->fetches.n; i++)
        add_score(s, request->fetches.items[i], request->names.items[i], err);
    request->fetches.n = request->names.n = 0;
    for (size_t i = 0; i < s->totals.n; i++) {
        vec_push(&request->fetches, s->totals.items[i].edge);
        vec_push(&request->names, graph_node(driver->graph, s->totals.items[i].edge.node)->name);
    }
    driver->fetched = take_score;
    driver->fetched_context = s;
    return err->code;
}

/* ---- steps of several processes ---- */

void scores_forget_steps(struct scores *s)
{
    vec_each(total, &s->totals) {
        if (total->kind == TOTAL_IS_ROWS && total->capacity)
            total->value.shape.dims[0] = 0;
        else if (total->value.data)
            memset(total->value.data, 0, tensor_bytes(&total->value));
    }
    s->rows = 0;
}

/* Replaces this process' part of a total by the total of all. */
static int gather_total(struct score_total *total, uint64_t number,
                        const struct scores_gather *gather, struct error *err)
{
    struct tensor own = total->value, all = TENSOR_INIT;
    int64_t n = tensor_count(&own);
    if (total->kind != TOTAL_IS_ROWS)
        own.shape = shape_matrix(1, n);
    if (gather->rows(gather->context, number, &own, &all, err))
        return err->code;
    struct tensor part = tensor_borrow(FLOAT64, &total->value.shape, all.data);
    int64_t n_parts = all.shape.dims[0];
    tensor_release(&total->value);
    total->capacity = 0;
    for (int64_t k = 0; total->kind != TOTAL_IS_ROWS && !err->code && k < n_parts; k++) {
        add_sum(total, &part, 1, err);
        part.data = (double *)part.data + n;
    }
    if (total->kind == TOTAL_IS_ROWS)
        add_rows(total, &all, err);
    tensor_release(&all);
    return err->code;
}

int scores_gather(struct scores *s, const struct scores_gather *gather, bool *whole,
                  struct error *err)
{
    const struct shape shape = shape_matrix(1, 2);
    struct tensor own, all = TENSOR_INIT;
    *err = s->failed;
    if (err->code || tensor_alloc(&own, FLOAT64, &shape, err))
        return err->code;
    memcpy(own.data, (const double[]){s->rows, *whole}, tensor_bytes(&own));
    gather->rows(gather->context, 0, &own, &all, err);
    s->rows = 0;
    for (int64_t k = 0; !err->code && k < all.shape.dims[0]; k++) {
        s->rows += tensor_get_float64(&all, 2 * k);
        *whole &= tensor_get_float64(&all, 2 * k + 1) != 0;
    }
    for (size_t i = 0; !err->code && *whole && s->rows > 0 && i < s->totals.n; i++)
        gather_total(&s->totals.items[i], 1 + i, gather, err);
    tensor_release(&own);
    tensor_release(&all);
    return err->code;
}

/* ---- the end ---- */

/* Computes the fetches, with the totals fed in place of the values of a step. */
static int compute(struct scores *s, struct error *err)
{
    size_t n = s->items.n + s->totals.n, n_feeds = 0, n_fetches = 0;
    struct edge *edges = mem_array(2 * n + 1, sizeof *edges), *fetches = edges + n;
    struct tensor *feeds = mem_array(2 * n + 1, sizeof *feeds), *values = feeds + n;
    struct driver *driver = s->driver;
    for (size_t i = 0; i < s->totals.n; i++)
        if (s->totals.items[i].kind != TOTAL_IS_MEAN) {
            edges[n_feeds] = s->totals.items[i].edge;
            feeds[n_feeds++] = s->totals.items[i].value;
        }
    for (size_t i = 0; i < s->items.n; i++)
        if (s->items.items[i].mean < 0)
            fetches[n_fetches++] = s->items.items[i].edge;
    const struct plan_request call = {.feeds = edges,
                                      .feed_values = feeds,
                                      .n_feeds = (int)n_feeds,
                                      .fetches = fetches,
                                      .n_fetches = (int)n_fetches};
    int code = 0;
    if (n_fetches)
        code = driver->run ? driver->run(driver->run_context, &call, &driver->at_hand, values, err)
                           : session_run(driver->session, &call, &driver->at_hand, values, err);
    for (size_t i = s->items.n; !code && i-- > 0;)
        if (s->items.items[i].mean < 0)
            s->items.items[i].value = values[--n_fetches];
    mem_free(edges);
    mem_free(feeds);
    return code;
}

static void forget_totals(struct scores *s)
{
    for (size_t i = 0; i < s->totals.n; i++) {
        tensor_release(&s->totals.items[i].value);
        s->totals.items[i].capacity = 0;
    }
    s->rows = 0;
    s->next = 0;
    error_clear(&s->failed);
}

static void forget_values(struct scores *s)
{
    for (size_t i = 0; i < s->items.n; i++)
        tensor_release(&s->items.items[i].value);
}

int scores_end(struct scores *s, struct error *err)
{
    forget_values(s);
    *err = s->failed;
    if (!err->code && !s->totals.items[0].value.data)
        error_set(err, ERR_DATA, "no row was fed");
    for (size_t i = 0; !err->code && i < s->items.n; i++) {
        struct score *score = &s->items.items[i];
        if (score->mean < 0)
            continue;
        const double *sum = s->totals.items[score->mean].value.data;
        if (!tensor_alloc(&score->value, FLOAT64, &SHAPE_SCALAR, err))
            *(double *)score->value.data = *sum / s->rows;
    }
    if (!err->code)
        compute(s, err);
    forget_totals(s);
    return err->code ? error_prefix(err, "%s: %s: ", s->driver->name, s->driver->what) : 0;
}

bool score_number(const struct score *score, double *value)
{
    bool is = score->value.data && tensor_count(&score->value) == 1;
    if (is)
        *value = tensor_get_float64(&score->value, 0);
    return is;
}

int scores_write(struct scores *s, struct stream_writer *writer, int64_t step, int64_t version,
                 struct error *err)
{
    struct named_tensor *named = mem_array(s->items.n + 1, sizeof *named);
    int64_t *versions = mem_array(s->items.n + 1, sizeof *versions);
    for (size_t i = 0; i < s->items.n; i++) {
        named[i] = (struct named_tensor){s->items.items[i].name, s->items.items[i].value};
        versions[i] = version;
    }
    int code = stream_write_fetches(writer, step, versions, named, (int)s->items.n, err);
    mem_free(versions);
    mem_free(named);
    return code;
}

void scores_release(struct scores *s)
{
    forget_values(s);
    forget_totals(s);
    vec_release(&s->items);
    vec_release(&s->totals);
}
