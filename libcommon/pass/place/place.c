/* SPDX-License-Identifier: Apache-2.0
 *
 * The placer: groups by union-find, the devices possible for each, and the choice.
 */
#include "pass/place/place.h"

#include <stdio.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/walk.h"
#include "pass/place/place_private.h"
#include "resource/policy.h"

/* ---- groups ---- */

int place_root(struct placer *p, int node)
{
    struct place_node *nodes = p->nodes;
    while (nodes[node].parent != node)
        node = nodes[node].parent = nodes[nodes[node].parent].parent;
    return node;
}

/* Puts two nodes that must share a device into one group. */
static void place_join(struct placer *p, int a, int b)
{
    vec_push_in(&p->arena, &p->links, ((struct place_link){a, b}));
    a = place_root(p, a);
    b = place_root(p, b);
    p->nodes[a > b ? a : b].parent = a > b ? b : a;
}

/* ---- failures ----
 *
 * Explains why a graph cannot be placed: two nodes that conflict, with the shortest chain of nodes
 * that must share a device between them, or one node that fits nowhere. Each function reports one
 * kind of failure, and returns ERR_DATA. */

/* Prints "'W' on /job:ps/task:0 (m.lua:3)". */
static void print_node(struct str *out, const struct node *node, const char *where)
{
    str_printf(out, "'%s'%s%s", node->name, *where ? " on " : "", where);
    if (node->file)
        str_printf(out, " (%s:%d)", node->file, node->line);
}

/* ---- chains ---- */

/* Returns the nearest node to `start` in its group for which the predicate holds; -1: none. From
 * all of the group, by node, *from then leads back to `start`. */
static int find_nearest(struct placer *p, int start,
                        bool (*conflicts)(const struct placer *p, int a, int b), int **from)
{
    size_t n = (size_t)p->n;
    int *queue = arena_array(&p->arena, n, sizeof *queue), head = 0, tail = 0, nearest = -1;
    *from = arena_array(&p->arena, n, sizeof **from); /* -1: not reached */
    memset(*from, -1, n * sizeof **from);
    (*from)[start] = start;
    queue[tail++] = start;
    while (head < tail) {
        int node = queue[head++];
        if (nearest < 0 && node != start && conflicts(p, start, node))
            nearest = node;
        for (size_t i = p->links.n; i-- > 0;) {
            struct place_link link = p->links.items[i];
            int other = link.a == node ? link.b : link.b == node ? link.a : start;
            if ((*from)[other] >= 0)
                continue;
            (*from)[other] = node;
            queue[tail++] = other;
        }
    }
    return nearest;
}

/* ---- conflicts of two nodes ---- */

static bool ask_for_others(const struct placer *p, int a, int b)
{
    struct device_name merged = p->nodes[a].wanted;
    struct error ignored = ERROR_INIT;
    return device_name_merge(&merged, &p->nodes[b].wanted, &ignored) != 0;
}

static bool have_no_common_kernels(const struct placer *p, int a, int b)
{
    return !(p->nodes[a].kernel_types & p->nodes[b].kernel_types);
}

static int report_pair(struct placer *p, const int *from, int near, int start, const char *near_on,
                       const char *start_on)
{
    struct str text = STR_INIT;
    print_node(&text, graph_node(p->graph, near), near_on);
    str_append(&text, " and ");
    print_node(&text, graph_node(p->graph, start), start_on);
    str_append(&text, " must share a device: ");
    /* Print "W -> W/slot -> m", cut in the middle if it is very long. */
    int length = 1;
    for (int i = near; from[i] != i; i = from[i])
        length++;
    for (int i = near, k = 0; k < length; i = from[i], k++) {
        if (length <= 12 || k < 6 || k >= length - 5)
            str_printf(&text, "%s%s", k ? " -> " : "", graph_node(p->graph, i)->name);
        else if (k == 6)
            str_append(&text, " -> ...");
    }
    int code = error_set(p->err, ERR_DATA, "%s", str_text(&text));
    str_release(&text);
    return code;
}

/* Prefers to name the group's first node, whose device the others share, over one of these. */
static int place_fail_shared(struct placer *p, int node)
{
    int *from;
    int first = place_root(p, node), other = find_nearest(p, node, ask_for_others, &from);
    if (ask_for_others(p, node, first))
        other = first;
    BUG_ON(other < 0); /* names conflict by parts, so some pair conflicts */
    return report_pair(p, from, other, node, graph_node(p->graph, other)->device,
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

static int place_fail_kernels(struct placer *p, int node)
{
    int *from;
    struct str near_on = STR_INIT, start_on = STR_INIT;
    if (!p->nodes[node].kernel_types)
        return report_no_kernel(p, graph_node(p->graph, node),
                                (uint32_t)((uint64_t)1 << p->n_types) - 1);
    int other = find_nearest(p, node, have_no_common_kernels, &from);
    if (other < 0)
        return error_set(p->err, ERR_DATA,
                         "%s: of %d nodes that must share a device no type of device has kernels "
                         "for all",
                         node_text(graph_node(p->graph, node)), place_group(p, node)->members);
    print_types(&near_on, p, p->nodes[other].kernel_types);
    print_types(&start_on, p, p->nodes[node].kernel_types);
    int code = report_pair(p, from, other, node, str_text(&near_on), str_text(&start_on));
    str_release(&near_on);
    str_release(&start_on);
    return code;
}

/* ---- groups without a device ---- */

static bool exists(const struct placer *p, const struct device_name *pattern)
{
    for (int i = 0; i < p->n_devices; i++)
        if (device_name_specialises(&place_device(p, i)->name, pattern))
            return true;
    return false;
}

static int report_unknown(struct placer *p, const struct node *node, const char *device)
{
    struct str has = STR_INIT;
    for (int i = 0; i < p->n_devices && i < 8; i++)
        str_printf(&has, "%s%s", i ? ", " : "", place_device(p, i)->text);
    if (p->n_devices > 8)
        str_printf(&has, " and %d more", p->n_devices - 8);
    int code = error_set(p->err, ERR_DATA, "%s: %s is not in this cluster: it has %s",
                         node_text(node), device, str_text(&has));
    str_release(&has);
    return code;
}

static int place_fail_group(struct placer *p, int root)
{
    /* The types of the devices that match the group's names. */
    uint32_t types = 0;
    for (int i = 0; i < p->n_devices; i++)
        if (device_name_specialises(&place_device(p, i)->name, &p->nodes[root].merged))
            types |= 1u << p->type_of[i];

    for (int i = root; i < p->n; i++) {
        const struct node *node = graph_node(p->graph, i);
        if (place_root(p, i) != root)
            continue;
        if (!types && !exists(p, &p->nodes[i].asked))
            return report_unknown(p, node, node->device);
        if (types && !(p->nodes[i].kernel_types & types))
            return report_no_kernel(p, node, types);
    }
    /* Each node's request or kernels could be satisfied alone, but not together. */
    struct str name = STR_INIT;
    device_name_print(&name, &p->nodes[root].merged);
    int code = report_unknown(p, graph_node(p->graph, root), str_text(&name));
    str_release(&name);
    return code;
}

/* ---- implicit colocation with a variable ----
 *
 * Row lookups in it, its initial value, and values computed only for it are placed with a variable.
 * Elsewhere, they would have to be transferred. */

const struct node *place_table_of(const struct graph *graph, const struct node *node)
{
    const struct node *read = graph_node(graph, node->inputs[0].node);
    const struct node *table =
        node_is(read, "Identity") ? graph_node(graph, read->inputs[0].node) : read;
    bool is_it = node_is(table, "Variable") &&
                 shape_bytes(&node->outputs[0].shape, node->outputs[0].type) <=
                     shape_bytes(&table->outputs[0].shape, table->outputs[0].type);
    return is_it ? table : NULL;
}

bool *place_find_initial(const struct graph *graph, struct arena *arena)
{
    struct graph_walk first = graph_walk_new(arena, graph), later = graph_walk_new(arena, graph);
    vec_each(entry, &graph->entries) {
        graph_walk_entry(strcmp(entry->name, "init") ? &later : &first, entry);
    }
    graph_walk_end(&first, graph);
    graph_walk_end(&later, graph);
    for (size_t i = 0; i < graph->nodes.n; i++)
        first.seen[i] &= !later.seen[i];
    return first.seen;
}

enum { NOBODY = -1, SEVERAL = -2 };

static void count_user(int *user, int group)
{
    *user = *user == NOBODY || *user == group ? group : SEVERAL;
}

/* Returns whether the node has inputs and all come from the group. */
static bool comes_from(struct placer *p, const struct node *node, int group)
{
    bool found = false;
    for (int i = 0; i < node->n_inputs; i++) {
        bool is_copied = place_is_copied(graph_node(p->graph, node->inputs[i].node));
        if (!is_copied && place_root(p, node->inputs[i].node) != group)
            return false;
        found |= !is_copied;
    }
    return found;
}

static bool may_be_with(const struct placer *p, const struct node *node, int group)
{
    const struct node *leader = graph_node(p->graph, group);
    uint32_t needed = p->nodes[group].kernel_types;
    return (!*node->device || !strcmp(node->device, leader->device)) &&
           (p->nodes[node->id].kernel_types & needed) == needed &&
           !node_has(node, OP_CONTROL_FLOW | OP_SOURCE) && !node_is(node, "Variable");
}

/* On a cluster, joins nodes to a variable if their values would otherwise be transferred for it. */
static int join_near(struct placer *p)
{
    size_t n = p->graph->nodes.n;
    if (!p->placement->cluster)
        return 0;
    graph_each(node, p->graph) {
        /* A shard sends only the requested rows of its table, unless those are more. */
        if (!cluster_count(p->placement->cluster, SHARD_JOB) || node_rows(node) != ROWS_LOOKUP)
            continue;
        const struct node *table = place_table_of(p->graph, node);
        if (table && (!*node->device || !strcmp(node->device, table->device)))
            place_join(p, table->id, node->id);
    }
    int *order = arena_array(&p->arena, n + 1, sizeof *order);
    char *has_variable = arena_alloc(&p->arena, n + 1);      /* by root of earlier groups */
    int *user = arena_array(&p->arena, n + 1, sizeof *user); /* by node: the group of all users */
    if (graph_order(p->graph, order, p->err))
        return p->err->code;
    graph_each(node, p->graph) {
        user[node->id] = NOBODY;
        if (node_is(node, "Variable"))
            has_variable[place_root(p, node->id)] = 1;
    }
    vec_each(entry, &p->graph->entries) {
        for (int k = 0; k < entry->n_edges; k++)
            user[entry->edges[k].node] = SEVERAL;
    }
    /* Backwards: a node whose users are all in one group may join it, then its inputs may. */
    while (n-- > 0) {
        const struct node *node = graph_node(p->graph, order[n]);
        int group = user[node->id];
        bool joins = group >= 0 && has_variable[group] && may_be_with(p, node, group) &&
                     (p->initial[node->id] || comes_from(p, node, group));
        if (joins && place_root(p, node->id) == node->id) {
            place_join(p, group, node->id);
            has_variable[place_root(p, group)] = 1;
        }
        group = place_root(p, node->id);
        for (int k = 0; k < node->n_inputs; k++)
            count_user(&user[node->inputs[k].node], group);
        for (int k = 0; k < node->n_controls; k++)
            count_user(&user[node->controls[k]], p->initial[node->id] ? group : SEVERAL);
    }
    return 0;
}

/* ---- soft placement ----
 *
 * A node that asked for a type of device without a kernel for it, or for a device that does not
 * exist, may go to another device of its task: TensorFlow's allow_soft_placement. */

static void give_way(struct device_name *name)
{
    *name->type = '\0';
    name->index = DEVICE_OPEN;
}

static bool has_kernel(const struct placer *p, int node)
{
    const char *type = p->nodes[node].asked.type;
    for (int i = 0; i < p->n_types; i++)
        if (!strcmp(p->types[i], type))
            return p->nodes[node].kernel_types >> i & 1;
    return false;
}

/* Returns whether the node is not on the device that it asked for, with the reason. */
static bool why_soft(struct placer *p, const struct node *node, char reason[static 512])
{
    const struct device_name *asked = &p->nodes[node->id].asked;
    const struct place_device *device = place_device(p, place_group(p, node->id)->chosen);
    if (!p->soft || device_name_specialises(&device->name, asked))
        return false;
    if (!exists(p, asked))
        snprintf(reason, 512, "there is no %s", node->device);
    else if (!has_kernel(p, node->id))
        snprintf(reason, 512, "no kernel for %s on %s", node->op->def->name, node->device);
    else
        snprintf(reason, 512, "not all that share a device can have %s", node->device);
    return true;
}

/* ---- types ---- */

static int find_types(struct placer *p)
{
    p->type_of = arena_array(&p->arena, (size_t)p->n_devices, sizeof *p->type_of);
    for (int i = 0; i < p->n_devices; i++) {
        const char *type = place_device(p, i)->name.type;
        int k = 0;
        while (k < p->n_types && strcmp(p->types[k], type))
            k++;
        if (k == PLACE_TYPES_MAX)
            return error_set(p->err, ERR_DATA, "more than %d types of devices", PLACE_TYPES_MAX);
        if (k == p->n_types)
            p->types[p->n_types++] = type;
        p->type_of[i] = k;
    }
    return 0;
}

/* ---- possible devices of nodes and groups ---- */

static int read_request(struct placer *p, const struct node *node)
{
    const struct node *before = node->id ? graph_node(p->graph, node->id - 1) : NULL;
    struct device_name *asked = &p->nodes[node->id].asked;
    *asked = device_name_open();
    if (!*node->device)
        return 0;
    if (before && !strcmp(before->device, node->device))
        *asked = p->nodes[before->id].asked;
    else if (device_name_parse(asked, node->device, p->err))
        return error_prefix(p->err, "%s: ", node_text(node));
    return 0;
}

static int merge_into_group(struct placer *p, int node)
{
    struct place_node *own = &p->nodes[node], *group = place_group(p, node);
    struct error ignored = ERROR_INIT;
    if (group == own) {
        own->merged = own->wanted;
        own->common_types = own->kernel_types;
    } else if (device_name_merge(&group->merged, &own->wanted, &ignored)) {
        return place_fail_shared(p, node);
    }
    group->members++;
    group->common_types &= own->kernel_types;
    return group->common_types ? 0 : place_fail_kernels(p, node);
}

/* Finds the devices that a group may be on, by kernels and by name. Prefers accelerators to CPUs,
 * then the first device; chosen is -1 if it can have none. */
static void find_devices(struct placer *p, struct place_node *group)
{
    bool every = p->placement->cluster && device_task_is_many(group->merged.task);
    bool is_cpu = false; /* the chosen one */
    group->chosen = -1;
    for (int i = 0; i < p->n_devices; i++) {
        const struct place_device *device = place_device(p, i);
        group->may[i] = every == (device->tasks > 0) && group->common_types >> p->type_of[i] & 1 &&
                        device_name_specialises(&device->name, &group->merged);
        bool is_other = strcmp(device->name.type, "CPU") != 0;
        if (!group->may[i] || (group->chosen >= 0 && !(is_cpu && is_other)))
            continue;
        group->chosen = i;
        is_cpu = !is_other;
    }
}

static int choose(struct placer *p, int root)
{
    struct place_node *group = &p->nodes[root];
    struct device_name wish = group->merged;
    group->may = arena_array(&p->arena, (size_t)p->n_devices, sizeof *group->may);
    find_devices(p, group);
    if (group->chosen < 0 && p->soft && *wish.type) {
        give_way(&group->merged);
        find_devices(p, group);
    }
    if (group->chosen >= 0)
        return 0;
    group->merged = wish;
    return place_fail_group(p, root);
}

/* ---- reasons ---- */

static void explain(struct placer *p, const struct node *node, const char *before,
                    char reason[static 512])
{
    int root = place_root(p, node->id), able = 0;
    const struct place_node *own = &p->nodes[node->id], *group = &p->nodes[root];
    for (int i = 0; i < p->n_devices; i++)
        able += own->kernel_types >> p->type_of[i] & 1;
    const struct place_device *device = place_device(p, group->chosen);
    if (!strcmp(before, node->assigned))
        snprintf(reason, 512, "placed there before");
    else if (why_soft(p, node, reason))
        return;
    else if (device->tasks > 0)
        snprintf(reason, 512, "one in each of %d %ss", device->tasks, device->name.job);
    else if (node_is(node, "Variable") && group->by_bytes)
        snprintf(reason, 512, "variable, by bytes: %.0f of %.0f", own->held, p->by_bytes_total);
    else if (*node->device)
        snprintf(reason, 512, "asked for %s", node->device);
    else if (root != node->id)
        snprintf(reason, 512, "with %s", graph_node(p->graph, root)->name);
    else if (p->best && !group->settled && p->n_devices > 1)
        snprintf(reason, 512, "simulated: %.1f to %.1f us", p->best[node->id].start / 1e3,
                 p->best[node->id].finish / 1e3);
    else if (node_is(node, "Variable"))
        snprintf(reason, 512, "variable");
    else if (p->n_devices == 1)
        snprintf(reason, 512, "only device");
    else if (able == 1)
        snprintf(reason, 512, "only device with a kernel");
    else if (group->members > 1)
        snprintf(reason, 512, "first device for %d that share one", group->members);
    else
        snprintf(reason, 512, "first device with a kernel");
}

/* Tells each clock the cluster's number of workers, unless the graph states it. */
static int tell_clocks(struct placer *p, struct graph *graph)
{
    /* The number of tasks of a job with a node in each of them; 0: there is none. */
    int workers = 0;
    for (int i = 0; i < p->n; i++) {
        int n = place_device(p, place_group(p, i)->chosen)->tasks;
        workers = n > workers ? n : workers;
    }

    for (size_t i = 0; workers > 0 && i < graph->nodes.n; i++) {
        struct node *node = graph_node(graph, (int)i);
        const struct attr_value *known = node_attr(node, "workers");
        if (!known || known->kind != ATTR_INT || known->i || !node_round(node))
            continue;
        const struct attr_value *policy = node_attr(node, "policy");
        if (policy && policy_check_workers(policy->s, workers, p->err))
            return node_fail(node, p->err);
        if (graph_set_attr(graph, node, &(struct attr){"workers", attr_int(workers)}, p->err))
            return p->err->code;
    }
    return 0;
}

/* Forms groups and finds the devices possible for each; afterwards each has one. */
static int prepare(struct placer *p)
{
    p->nodes = arena_array(&p->arena, (size_t)p->n, sizeof *p->nodes);
    p->initial = place_find_initial(p->graph, &p->arena);
    for (int i = 0; i < p->n; i++)
        p->nodes[i].parent = i;
    if (find_types(p))
        return p->err->code;
    graph_each(node, p->graph) {
        if (read_request(p, node))
            return p->err->code;
        struct place_node *own = &p->nodes[node->id];
        for (int j = 0; j < p->n_types; j++)
            if (kernel_find(p->kernels, node, p->types[j]))
                own->kernel_types |= 1u << j;
        own->wanted = own->asked;
        if (p->soft && *own->asked.type && !has_kernel(p, node->id))
            give_way(&own->wanted);
        /* A resource is memory of one task, which no other task can use. */
        for (int j = 0; j < node->n_inputs; j++)
            if (node_takes_ref(node, j) ||
                graph_output(p->graph, node->inputs[j])->type == RESOURCE)
                place_join(p, node->inputs[j].node, node->id);
        const struct attr_value *groups = node_attr(node, "_class");
        for (int j = 0; groups && j < groups->n; j++) {
            const struct node *leader = group_leader(p->graph, groups->strings[j]);
            if (leader && leader != node)
                place_join(p, leader->id, node->id);
        }
    }
    if (join_near(p))
        return p->err->code;
    for (int i = 0; i < p->n; i++) /* the root has the smallest id, and so comes first */
        if (merge_into_group(p, i))
            return p->err->code;
    for (int i = 0; i < p->n; i++)
        if (place_root(p, i) == i && choose(p, i))
            return p->err->code;
    graph_each(node, p->graph) {
        /* A group keeps the device of its first node that had a feasible one. */
        struct place_node *group = place_group(p, node->id);
        for (int j = 0; *node->assigned && !group->settled && j < p->n_devices; j++) {
            if (group->may[j] && !strcmp(place_device(p, j)->text, node->assigned)) {
                group->chosen = j;
                group->settled = true;
            }
        }
    }
    return 0;
}

int place_graph(struct graph *graph, const struct place_options *options, struct error *err)
{
    struct placer p = {.graph = graph,
                       .placement = options->placement,
                       .kernels = options->kernels,
                       .n = (int)graph->nodes.n,
                       .n_devices = (int)options->placement->devices.n,
                       .soft = options->soft,
                       .err = err};
    int code = prepare(&p);
    if (!code && options->model)
        code = place_search(&p, options->model, options->result);
    if (!code) {
        for (size_t i = 0; i < graph->nodes.n; i++) {
            struct node *node = graph_node(graph, (int)i);
            const char *before = node->assigned;
            char reason[512];
            const char *device = place_device(&p, place_group(&p, node->id)->chosen)->text;
            if (strcmp(before, device))
                graph_set_assigned(graph, node, device);
            if (options->note) {
                explain(&p, node, before, reason);
                options->note(options->context, node, reason);
            }
            if (options->moved && why_soft(&p, node, reason))
                options->moved(options->context, node, reason);
        }
    }
    if (!code)
        code = tell_clocks(&p, graph);
    arena_release(&p.arena);
    return code;
}
