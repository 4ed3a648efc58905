/* SPDX-License-Identifier: Apache-2.0
 *
 * Every node gets a key, "DEVICE\1scope\1...\1name". Sorted by key, nodes of a scope are adjacent;
 * boxes open and close where the common prefix of consecutive keys changes.
 */
#include "graph/dot.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SEPARATOR '\1'

struct drawn {
    const char *key; /* of a box: up to the scope's name */
    bool is_box;
    int node; /* id; of a box: its first node */
};

struct dot_writer {
    struct str *out;
    const struct graph *graph;
    struct drawn *drawn; /* sorted; one per node, several of which may be the same box */
    struct map edges;    /* "from>to" that were drawn */
    struct arena arena;
};

static int by_key(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    if (!order)
        order = x->is_box - y->is_box;
    return order ? order : x->node - y->node;
}

static void print_id(struct str *out, const struct drawn *drawn)
{
    str_append(out, drawn->is_box ? "\"box:" : "\"");
    for (const char *c = drawn->key; *c; c++)
        str_append_char(out, *c == SEPARATOR ? '/' : *c);
    str_append_char(out, '"');
}

static const char *last_name(const char *key)
{
    const char *last = strrchr(key, SEPARATOR);
    return last ? last + 1 : key;
}

/* ---- clusters ---- */

/* Returns the length of the first k components of `key`; 0: it has fewer. */
static size_t component_end(const char *key, int k)
{
    for (size_t i = 0; key[i]; i++)
        if (key[i] == SEPARATOR && --k == 0)
            return i;
    return 0;
}

static void print_nodes(struct dot_writer *d)
{
    const char *previous = "";
    int open = 0;
    for (size_t i = 0, n; i < d->graph->nodes.n; i += n) {
        const struct drawn *drawn = &d->drawn[i];
        for (n = 1; drawn->is_box && i + n < d->graph->nodes.n; n++)
            if (!d->drawn[i + n].is_box || strcmp(d->drawn[i + n].key, drawn->key) != 0)
                break;
        int common = 0, n_components = 0;
        for (size_t j = 0; previous[j] && previous[j] == drawn->key[j]; j++)
            common += previous[j] == SEPARATOR;
        for (const char *c = drawn->key; *c; c++)
            n_components += *c == SEPARATOR;

        for (; open > common; open--)
            str_append(d->out, "}\n");
        while (open < n_components) {
            int level = ++open;
            size_t from = level > 1 ? component_end(drawn->key, level - 1) + 1 : 0;
            size_t to =
                level == 1 && drawn->key[0] == SEPARATOR ? 0 : component_end(drawn->key, level);
            bool nameless = to <= from;
            str_append(d->out, "subgraph \"cluster");
            for (size_t j = 0; j < to; j++)
                str_append_char(d->out, drawn->key[j] == SEPARATOR ? '/' : drawn->key[j]);
            str_printf(d->out, "\" {%s label=\"%.*s\"\n", nameless ? " style=invis" : "",
                       nameless ? 0 : (int)(to - from), drawn->key + from);
        }
        int n_nodes = (int)n;
        const struct node *node = graph_node(d->graph, drawn->node);
        print_id(d->out, drawn);
        if (drawn->is_box)
            str_printf(d->out, " [shape=box3d label=\"%s\\n%d node%s\"]\n", last_name(drawn->key),
                       n_nodes, n_nodes == 1 ? "" : "s");
        else
            str_printf(d->out, " [shape=%s label=\"%s\\n%s\"]\n",
                       node_is(node, "Variable")         ? "box"
                       : node_has(node, OP_SOURCE)       ? "invhouse"
                       : node_has(node, OP_CONTROL_FLOW) ? "diamond"
                                                         : "ellipse",
                       last_name(drawn->key), node->op->def->name);
        previous = drawn->key;
    }
    for (; open > 0; open--)
        str_append(d->out, "}\n");
}

/* ---- edges ---- */

static void print_edge(struct dot_writer *d, const struct drawn *const *of, struct edge from,
                       int to)
{
    const struct drawn *a = of[from.node], *b = of[to];
    if (a->is_box && b->is_box && !strcmp(a->key, b->key))
        return;
    struct str text = STR_INIT;
    print_id(&text, a);
    str_append(&text, " -> ");
    print_id(&text, b);
    if (from.slot == CONTROL_SLOT)
        str_append(&text, " [style=dashed]");
    char *known = arena_strdup(&d->arena, str_text(&text));
    if (!map_get(&d->edges, known, NULL)) {
        map_put(&d->edges, known, 1);
        str_append(d->out, known);
        if (from.slot != CONTROL_SLOT) {
            const struct node_output *o = graph_output(d->graph, from);
            str_append(d->out, " [label=\"");
            shape_print_typed(d->out, o->type, &o->shape);
            str_append(d->out, "\"]");
        }
        str_append_char(d->out, '\n');
    }
    str_release(&text);
}

void graph_print_dot(struct str *out, const struct graph *graph, int depth)
{
    size_t n = graph->nodes.n;
    struct dot_writer d = {.out = out, .graph = graph};
    bool by_device = false; /* their devices differ */
    for (size_t i = 1; i < n && !by_device; i++)
        by_device =
            strcmp(graph_node(graph, (int)i)->assigned, graph_node(graph, 0)->assigned) != 0;
    d.drawn = mem_array(n + 1, sizeof *d.drawn);
    for (size_t i = 0; i < n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        const char *device = by_device ? node->assigned : "";
        char *key = arena_printf(&d.arena, "%s%c%s", device, SEPARATOR, node->name);
        char *c = key + strlen(device) + 1;
        struct drawn drawn = {key, false, node->id};
        for (int level = 1; *c; c++) {
            if (*c != '/')
                continue;
            *c = SEPARATOR;
            if (level++ != depth)
                continue;
            *c = '\0';
            drawn.is_box = true;
            break;
        }
        d.drawn[i] = drawn;
    }
    qsort(d.drawn, n, sizeof *d.drawn, by_key);
    for (size_t i = 0; i + 1 < n; i++) /* a node that a scope is named after belongs into its box */
        if (d.drawn[i + 1].is_box && !strcmp(d.drawn[i].key, d.drawn[i + 1].key))
            d.drawn[i].is_box = true;
    // The older way to rank fails where edges go back and forth between clusters ("trouble in
    // init_rank").
    str_append(out, "digraph graph_ {\nnewrank=true\nnode [fontsize=10]\nedge [fontsize=8]\n");
    print_nodes(&d);
    const struct drawn **of = mem_array(n + 1, sizeof *of);
    for (size_t i = 0; i < n; i++)
        of[d.drawn[i].node] = &d.drawn[i];
    graph_each(node, graph)
        for (int k = 0; k < node->n_inputs + node->n_controls; k++)
            print_edge(&d, of, node_dependency(node, k), node->id);
    mem_free(of);
    str_append(out, "}\n");
    mem_free(d.drawn);
    map_release(&d.edges);
    arena_release(&d.arena);
}
