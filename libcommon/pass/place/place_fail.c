/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains why a graph cannot be placed: two nodes that conflict, with the shortest chain of nodes
 * that must share a device between them, or one node that fits nowhere.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "pass/place/place_private.h"

/* Prints "'W' on /job:ps/task:0 (m.lua:3)". */
static void print_node(struct str *out, const struct node *node, const char *where)
{
    str_printf(out, "'%s'%s%s", node->name, *where ? " on " : "", where);
    if (node->file)
        str_printf(out, " (%s:%d)", node->file, node->line);
}

/* ---- chains ---- */

struct chain_search {
    int *from; /* by node: its predecessor in the search; -1: not reached */
    int *queue;
    int *first, *next; /* links of a node: list heads; next links by 2 * link + end */
};

/* Returns the nearest node to `start` in its group for which the predicate holds; -1: none. s->from
 * then leads back to `start`. */
static int find_nearest(const struct placer *p, struct chain_search *s, int start,
                        bool (*conflicts)(const struct placer *p, int a, int b))
{
    int head = 0, tail = 0;
    s->from[start] = start;
    s->queue[tail++] = start;
    while (head < tail) {
        int node = s->queue[head++];
        if (node != start && conflicts(p, start, node))
            return node;
        for (int i = s->first[node]; i >= 0; i = s->next[i]) {
            const struct place_link *link = &p->links.items[i / 2];
            int other = i % 2 ? link->a : link->b;
            if (s->from[other] < 0) {
                s->from[other] = node;
                s->queue[tail++] = other;
            }
        }
    }
    return -1;
}

static void search_init(struct placer *p, struct chain_search *s)
{
    size_t n = p->graph->nodes.n;
    s->from = arena_array(&p->arena, n, sizeof *s->from);
    s->queue = arena_array(&p->arena, n, sizeof *s->queue);
    s->first = arena_array(&p->arena, n, sizeof *s->first);
    s->next = arena_array(&p->arena, 2 * p->links.n, sizeof *s->next);
    memset(s->from, -1, n * sizeof *s->from);
    memset(s->first, -1, n * sizeof *s->first);
    for (size_t i = 0; i < 2 * p->links.n; i++) {
        const struct place_link *link = &p->links.items[i / 2];
        int node = i % 2 ? link->b : link->a;
        s->next[i] = s->first[node];
        s->first[node] = (int)i;
    }
}

/* ---- conflicts of two nodes ---- */

static bool ask_for_others(const struct placer *p, int a, int b)
{
    struct device_name merged = p->wanted[a];
    struct error ignored = ERROR_INIT;
    return device_name_merge(&merged, &p->wanted[b], &ignored) != 0;
}

static bool have_no_common_kernels(const struct placer *p, int a, int b)
{
    return !(p->kernel_types[a] & p->kernel_types[b]);
}

static int report_pair(struct placer *p, const struct chain_search *s, int near, int start,
                       const char *near_on, const char *start_on)
{
    struct str text = STR_INIT;
    print_node(&text, graph_node(p->graph, near), near_on);
    str_append(&text, " and ");
    print_node(&text, graph_node(p->graph, start), start_on);
    str_append(&text, " must share a device: ");
    /* Print "W -> W/slot -> m", cut in the middle if it is very long. */
    int length = 1;
    for (int i = near; s->from[i] != i; i = s->from[i])
        length++;
    for (int i = near, k = 0; k < length; i = s->from[i], k++) {
        if (length <= 12 || k < 6 || k >= length - 5)
            str_printf(&text, "%s%s", k ? " -> " : "", graph_node(p->graph, i)->name);
        else if (k == 6)
            str_append(&text, " -> ...");
    }
    int code = error_set(p->err, ERR_DATA, "%s", str_text(&text));
    str_release(&text);
    return code;
}

static bool none(const struct placer *p, int a, int b)
{
    (void)p, (void)a, (void)b;
    return false;
}

/* Prefers to name the first node of the group, whose device the others share, to naming one of
 * these. */
int place_fail_shared(struct placer *p, int node)
{
    struct chain_search s;
    search_init(p, &s);
    int first = place_root(p, node), other = first;
    if (!ask_for_others(p, node, first))
        other = find_nearest(p, &s, node, ask_for_others);
    else
        find_nearest(p, &s, node, none); /* paths to the whole group */
    BUG_ON(other < 0);                   /* names conflict by parts, so some pair conflicts */
    return report_pair(p, &s, other, node, graph_node(p->graph, other)->device,
                       graph_node(p->graph, node)->device);
}

static void print_types(struct str *out, const struct placer *p, uint32_t types)
{
    const char *separator = "";
    for (int i = 0; i < p->n_types; i++) {
        if (types >> i & 1) {
            str_printf(out, "%s%s", separator, p->types[i]);
            separator = " or ";
        }
    }
}

static int report_no_kernel(struct placer *p, const struct node *node, uint32_t types)
{
    struct str text = STR_INIT;
    const char *op = node->op->def->name;
    bool exists = false;
    for (int i = 0; i < p->n_types; i++)
        exists |= types >> i & 1 && kernel_exists(p->kernels, op, p->types[i]);
    str_printf(&text, "%s: no kernel for %s on ", node_text(node), op);
    print_types(&text, p, types);
    if (exists) {
        /* Print "with T=int8, Tidx=int32". */
        const char *separator = " with ";
        for (int i = 0; i < node->n_attrs; i++) {
            const struct attr *attr = &node->attrs[i];
            if (attr->value.kind == ATTR_TYPE) {
                str_printf(&text, "%s%s=%s", separator, attr->name, dtype_name(attr->value.type));
                separator = ", ";
            }
        }
    }
    int code = error_set(p->err, ERR_DATA, "%s", str_text(&text));
    str_release(&text);
    return code;
}

int place_fail_kernels(struct placer *p, int node)
{
    struct chain_search s;
    struct str near_on = STR_INIT, start_on = STR_INIT;
    if (!p->kernel_types[node])
        return report_no_kernel(p, graph_node(p->graph, node),
                                (uint32_t)((uint64_t)1 << p->n_types) - 1);
    search_init(p, &s);
    int other = find_nearest(p, &s, node, have_no_common_kernels);
    if (other < 0)
        return error_set(p->err, ERR_DATA,
                         "%s: of %d nodes that must share a device no type of device has kernels "
                         "for all",
                         node_text(graph_node(p->graph, node)), p->members[place_root(p, node)]);
    print_types(&near_on, p, p->kernel_types[other]);
    print_types(&start_on, p, p->kernel_types[node]);
    int code = report_pair(p, &s, other, node, str_text(&near_on), str_text(&start_on));
    str_release(&near_on);
    str_release(&start_on);
    return code;
}

/* ---- groups without a device ---- */

static bool exists(const struct placer *p, const struct device_name *pattern)
{
    for (size_t i = 0; i < p->placement->devices.n; i++)
        if (device_name_specialises(&p->placement->devices.items[i].name, pattern))
            return true;
    return false;
}

static int report_unknown(struct placer *p, const struct node *node, const char *device)
{
    struct str has = STR_INIT;
    size_t n = p->placement->devices.n;
    for (size_t i = 0; i < n && i < 8; i++)
        str_printf(&has, "%s%s", i ? ", " : "", p->placement->devices.items[i].text);
    if (n > 8)
        str_printf(&has, " and %zu more", n - 8);
    int code = error_set(p->err, ERR_DATA, "%s: %s is not in this cluster: it has %s",
                         node_text(node), device, str_text(&has));
    str_release(&has);
    return code;
}

int place_fail_group(struct placer *p, int root)
{
    int n = (int)p->graph->nodes.n;
    /* The types of the devices that match the group's names. */
    uint32_t types = 0;
    for (size_t i = 0; i < p->placement->devices.n; i++)
        if (device_name_specialises(&p->placement->devices.items[i].name, &p->merged[root]))
            types |= 1u << place_type_of(p, &p->placement->devices.items[i]);

    for (int i = root; i < n; i++) {
        const struct node *node = graph_node(p->graph, i);
        if (place_root(p, i) != root)
            continue;
        if (!types && !exists(p, &p->asked[i]))
            return report_unknown(p, node, node->device);
        if (types && !(p->kernel_types[i] & types))
            return report_no_kernel(p, node, types);
    }
    /* Each node's request or kernels could be satisfied alone, but not together. */
    struct str name = STR_INIT;
    device_name_print(&name, &p->merged[root]);
    int code = report_unknown(p, graph_node(p->graph, root), str_text(&name));
    str_release(&name);
    return code;
}
