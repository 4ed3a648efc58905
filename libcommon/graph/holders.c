/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/holders.h"

#include <string.h>

#include "graph/cluster.h"
#include "graph/device_name.h"
#include "graph/worker_attr.h"

const char *const holders_words[HOLDERS_KINDS] = {
    [HOLDERS_NONE] = "none",
    [HOLDERS_SHARDS] = "shards",
    [HOLDERS_EACH_WORKER] = "each-worker",
    [HOLDERS_FIRST_WORKER] = "first-worker",
    [HOLDERS_SPREAD] = "spread",
};

bool holders_must_save(const struct node *node)
{
    return node_is(node, "Variable") && !node_attr(node, WORKER_LOCAL) &&
           !node_attr(node, PER_WORKER) && !node_attr(node, WORKER_ASKED);
}

static struct device_name place_of(const struct node *node)
{
    struct device_name name;
    struct error ignored = ERROR_INIT;
    return device_name_parse(&name, node->assigned, &ignored) ? device_name_open() : name;
}

const struct node *holders_find_elsewhere(const struct graph *graph, const char *job, int task)
{
    graph_each(node, graph) {
        if (holders_must_save(node)) {
            const struct device_name name = place_of(node);
            if (strcmp(name.job, job) ||
                !(task == DEVICE_OPEN || name.task == task || name.task == DEVICE_EVERY))
                return node;
        }
    }
    return NULL;
}

enum holders holders_of(const struct graph *graph, const struct node **one)
{
    const struct node *other;
    bool on_each = true;
    *one = NULL;
    graph_each(node, graph) {
        if (!holders_must_save(node))
            continue;
        *one = *one ? *one : node;
        on_each &= place_of(node).task == DEVICE_EVERY;
    }
    if (!*one)
        return HOLDERS_NONE;
    if (!(other = holders_find_elsewhere(graph, SHARD_JOB, DEVICE_OPEN)))
        return HOLDERS_SHARDS;
    *one = other; /* shards may hold some as well */
    if (holders_find_elsewhere(graph, place_of(other).job, 0))
        return HOLDERS_SPREAD;
    return on_each ? HOLDERS_EACH_WORKER : HOLDERS_FIRST_WORKER;
}
