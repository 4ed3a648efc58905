/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/feeds.h"

#include <string.h>

#include "base/memory.h"
#include "exec/plan/plan.h"
#include "wire/npy.h"

static bool is_fed(const struct feeds *feeds, struct edge edge)
{
    int at = edge_map_get(&feeds->places, edge);
    return at >= 0 && (size_t)at < feeds->edges.n &&
           edge_key(feeds->edges.items[at]) == edge_key(edge);
}

static void add(struct feeds *feeds, struct edge edge, struct tensor value)
{
    map_put_number(&feeds->places.map, edge_key(edge), (int64_t)feeds->edges.n);
    vec_push(&feeds->edges, edge);
    vec_push(&feeds->values, value);
}

static int check_type(const struct feeds *feeds, const char *name, struct edge edge,
                      const struct tensor *value, struct error *err)
{
    if (edge.slot == CONTROL_SLOT)
        return error_set(err, ERR_DATA, "feed '%s': not a tensor", name);
    const struct node *node = graph_node(feeds->graph, edge.node);
    return plan_check_fed(node, &node->outputs[edge.slot], value->type, &value->shape, err);
}

int feeds_add_constant(struct feeds *feeds, const char *text, struct error *err)
{
    const char *equals = strchr(text, '=');
    struct edge edge;
    struct tensor value = TENSOR_INIT;
    if (!equals)
        return error_set(err, ERR_USAGE, "--feed %s: neither a file of records nor NAME=VALUE",
                         text);
    char *name = mem_strndup(text, (size_t)(equals - text));
    int code = graph_parse_edge(feeds->graph, name, &edge, err);
    if (!code && edge.slot != CONTROL_SLOT) {
        enum dtype type = graph_node(feeds->graph, edge.node)->outputs[edge.slot].type;
        const char *end;
        if (str_ends(text, ".npy") || feeds_is_path(equals + 1))
            code = npy_read(equals + 1, &value, err);
        else if (!(end = tensor_parse(&value, equals + 1, type, err)))
            code = err->code;
        else if (*end)
            code = error_set(err, ERR_DATA, "unexpected '%.20s'", end);
    }
    if (!code)
        code = check_type(feeds, name, edge, &value, err);
    if (!code && is_fed(feeds, edge))
        code = error_set(err, ERR_USAGE, "it is fed twice");
    if (code) {
        error_prefix(err, "--feed %s: ", name);
        tensor_release(&value);
    } else {
        add(feeds, edge, value);
        feeds->n_constant = feeds->edges.n;
    }
    mem_free(name);
    return code;
}

void feeds_share_constants(struct feeds *feeds, const struct feeds *from)
{
    feeds->graph = from->graph;
    feeds->n_constant = from->n_constant;
    for (size_t i = 0; i < from->n_constant; i++) {
        struct tensor value;
        tensor_share(&value, &from->values.items[i]);
        add(feeds, from->edges.items[i], value);
    }
}

int feeds_add_record(struct feeds *feeds, struct error *err)
{
    for (int i = 0; i < feeds->record.n_tensors; i++) {
        const struct named_tensor *t = &feeds->record.tensors[i];
        struct edge edge;
        struct tensor value;
        if (*t->name == KEPT_MARK) {
            tensor_share(&value, &t->tensor);
            vec_push(&feeds->kept, ((struct named_tensor){mem_strdup(t->name), value}));
            continue;
        }
        int code = graph_parse_edge(feeds->graph, t->name, &edge, err);
        if (!code)
            code = check_type(feeds, t->name, edge, &t->tensor, err);
        if (code)
            return code;
        if (is_fed(feeds, edge))
            return error_set(err, ERR_DATA, "'%s' is fed twice in a step", t->name);
        tensor_share(&value, &t->tensor);
        add(feeds, edge, value);
    }
    return 0;
}

const char *feeds_repeated(const struct feeds *feeds)
{
    const struct record *record = &feeds->record;
    struct error err = ERROR_INIT;
    struct edge edge;
    for (int i = 0; i < record->n_tensors; i++)
        if (!graph_parse_edge(feeds->graph, record->tensors[i].name, &edge, &err) &&
            is_fed(feeds, edge))
            return record->tensors[i].name;
    return NULL;
}

bool feeds_has(const struct feeds *feeds, int node)
{
    return is_fed(feeds, (struct edge){node, 0});
}

bool feeds_complete(const struct feeds *feeds, const struct node_list *needs)
{
    for (size_t i = 0; i < needs->n; i++)
        if (!feeds_has(feeds, needs->items[i]))
            return false;
    return true;
}

void feeds_clear(struct feeds *feeds)
{
    while (feeds->edges.n > feeds->n_constant) {
        tensor_release(&feeds->values.items[feeds->values.n - 1]);
        feeds->values.n--;
        feeds->edges.n--;
    }
    while (feeds->kept.n) {
        struct named_tensor kept = vec_pop(&feeds->kept);
        tensor_release(&kept.tensor);
        mem_free((void *)(uintptr_t)kept.name);
    }
}

void feeds_release(struct feeds *feeds)
{
    feeds->n_constant = 0;
    feeds_clear(feeds);
    vec_release(&feeds->edges);
    vec_release(&feeds->values);
    vec_release(&feeds->kept);
    edge_map_release(&feeds->places);
    record_release(&feeds->record);
}
