/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that give way: a node that asked for a type of device which has no kernel for it, or for
 * a device that there is not, may go to another one of its task. TensorFlow's
 * allow_soft_placement.
 */
#include <stdio.h>
#include <string.h>

#include "pass/place/place_private.h"

static void give_way(struct device_name *name)
{
    *name->type = '\0';
    name->index = DEVICE_OPEN;
}

static bool has_kernel(const struct placer *p, int node)
{
    const char *type = p->asked[node].type;
    for (int i = 0; i < p->n_types; i++)
        if (!strcmp(p->types[i], type))
            return p->kernel_types[node] >> i & 1;
    return false;
}

void place_soften_node(struct placer *p, int node)
{
    p->wanted[node] = p->asked[node];
    if (*p->asked[node].type && !has_kernel(p, node))
        give_way(&p->wanted[node]);
}

bool place_soften_group(struct placer *p, int root)
{
    bool may = p->soft && *p->merged[root].type;
    if (may)
        give_way(&p->merged[root]);
    return may;
}

bool place_why_soft(const struct placer *p, const struct node *node, char reason[static 512])
{
    const struct place_device *device =
        &p->placement->devices.items[p->chosen[place_root((struct placer *)p, node->id)]];
    if (!p->soft || device_name_specialises(&device->name, &p->asked[node->id]))
        return false;
    bool is_there = false;
    for (size_t i = 0; i < p->placement->devices.n; i++)
        is_there |=
            device_name_specialises(&p->placement->devices.items[i].name, &p->asked[node->id]);
    if (!is_there)
        snprintf(reason, 512, "there is no %s", node->device);
    else if (!has_kernel(p, node->id))
        snprintf(reason, 512, "no kernel for %s on %s", node->op->def->name, node->device);
    else
        snprintf(reason, 512, "not all that share a device can have %s", node->device);
    return true;
}
