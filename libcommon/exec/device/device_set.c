/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/device_set.h"

#include <string.h>

#include "base/cores.h"
#include "exec/device/queue.h"
#include "graph/device_name.h"

static int open_assigned(struct device_set *set, const struct graph *graph,
                         const struct device_options *options, struct error *err)
{
    VEC(struct device_name) names = VEC_INIT; /* without duplicates */
    struct device_options each = *options;
    int cores = options->threads > 0 ? options->threads : cores_usable(), code = 0;
    for (size_t i = 0; !code && i < graph->nodes.n; i++) {
        const struct node *node = graph_node(graph, (int)i);
        struct device_name name;
        size_t at = 0;
        code = device_name_parse(&name, node->assigned, err);
        if (!code && !device_name_is_full(&name))
            code = error_set(err, ERR_CONFIG, "%s: has no device", node_text(node));
        if (!code && names.n && !device_name_same_task(&names.items[0], &name))
            code = error_set(err, ERR_CONFIG, "%s: is on '%s', of another task than other nodes",
                             node_text(node), node->assigned);
        while (!code && at < names.n && !device_name_equal(&names.items[at], &name))
            at++;
        if (!code && at == names.n)
            vec_push(&names, name);
    }
    if (names.n)
        each.threads = cores / (int)names.n;
    each.threads = each.threads > 0 ? each.threads : 1;
    for (size_t i = 0; !code && i < names.n; i++) {
        struct device *device = device_open(names.items[i].type, names.items[i].index, &each, err);
        if (device)
            vec_push(&set->devices, device);
        code = device ? 0 : err->code;
    }
    vec_release(&names);
    return code;
}

int device_set_open(struct device_set *set, const struct graph *graph, bool is_cut,
                    const struct device_options *options, struct error *err)
{
    const char *first = graph->nodes.n ? graph_node(graph, 0)->assigned : "";
    bool is_on_one = *first != '\0';
    for (size_t i = 0; i < graph->nodes.n && is_on_one; i++)
        is_on_one = !strcmp(graph_node(graph, (int)i)->assigned, first);
    if (is_cut || is_on_one)
        return open_assigned(set, graph, options, err);
    struct device *device = device_open("CPU", 0, options, err);
    if (!device)
        return err->code;
    vec_push(&set->devices, device);
    return 0;
}

void device_set_settle(struct device_set *set)
{
    for (size_t i = 0; i < set->devices.n; i++)
        device_settle(set->devices.items[i]);
}

void device_set_release(struct device_set *set)
{
    device_set_settle(set);
    for (size_t i = 0; i < set->devices.n; i++)
        device_free(set->devices.items[i]);
    vec_release(&set->devices);
}

int device_find(struct device *const *devices, int n, const struct node *node, struct error *err)
{
    struct device_name name;
    if (device_name_parse(&name, node->assigned, err))
        return -1;
    for (int i = 0; i < n; i++)
        if (!strcmp(devices[i]->type, name.type) && devices[i]->index == name.index)
            return i;
    error_set(err, ERR_CONFIG, "%s: there is no device '%s' here", node_text(node), node->assigned);
    return -1;
}
