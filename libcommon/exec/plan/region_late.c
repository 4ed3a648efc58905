/* SPDX-License-Identifier: Apache-2.0
 *
 * A gradient that is larger than all others together, as that of the first dense layer behind
 * convolutions, is computed later than it could be: when half of the work that is left has been
 * done. By then the others are likely to be back, and it takes their memory; and it has the other
 * half of the time for its way.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/plan/region_private.h"
#include "graph/op_cost.h"

#define INPUTS_SHARE                                                                               \
    8                  /* inputs stay for longer, and so have to be much smaller than the output   \
                        */
#define OTHERS_SHARE 4 /* the others have to be worth it: a part of the largest one */

static double bytes_of(const struct value *value)
{
    return shape_is_known(&value->shape) ? (double)shape_bytes(&value->shape, value->type) : 0;
}

static double outgoing_bytes(const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    double bytes = 0;
    for (int i = 0; i < item->n_out; i++) {
        const struct value *value = &plan->values.items[item->out[i]];
        if (value->is_outgoing && value->alias_input < 0)
            bytes += bytes_of(value);
    }
    return bytes;
}

/* Returns whether what it reads may stay: it is small, and no variable that is written. */
static bool may_wait(const struct plan *plan, int id)
{
    const struct item *item = &plan->items.items[id];
    double bytes = 0;
    for (int i = 0; i < item->n_in; i++) {
        const struct value *value = item->in[i] < 0 ? NULL : &plan->values.items[item->in[i]];
        if (value && value->kind == VALUE_VARIABLE)
            return false;
        bytes += value ? bytes_of(value) : 0;
    }
    return !item->refs && bytes * INPUTS_SHARE <= outgoing_bytes(plan, id);
}

/* Items behind the first that have to come after it move with it. False: they are not only other
 * views of its output. */
static bool find_moving(const struct plan *plan, const int *order, int n, bool *moves)
{
    before_vec befores = VEC_INIT;
    bool good = true;
    moves[order[0]] = true;
    for (int i = 1; i < n && good; i++) {
        const struct item *item = &plan->items.items[order[i]];
        befores.n = 0;
        plan_collect_befores(plan, order[i], &befores);
        for (size_t k = 0; k < befores.n; k++)
            moves[order[i]] |= moves[befores.items[k].item];
        good = !moves[order[i]] ||
               (item->n_out == 1 && plan->values.items[item->out[0]].alias_input >= 0);
    }
    vec_release(&befores);
    return good;
}

static double work_of(const struct plan *plan, int id)
{
    const struct node *node = plan->items.items[id].node;
    const struct cost_query query = {.node = node, .graph = plan->graph, .assume = 1};
    return node ? cost_of(&query).operations : 0;
}

/* The position after which half of the work behind `at` is done. */
static int halfway(const struct plan *plan, const int *order, int n, int at)
{
    double all = 0, done = 0;
    int to = at;
    for (int i = at + 1; i < n; i++)
        all += work_of(plan, order[i]);
    while (to + 1 < n && done < all / 2)
        done += work_of(plan, order[++to]);
    return to;
}

/* Those that move come together, behind the others up to `to`. */
static void move_behind(int *order, int to, const bool *moves)
{
    int n_moved = 0, n_left = 0;
    int *moved = mem_array((size_t)to + 1, sizeof *moved);
    for (int i = 0; i <= to; i++)
        if (moves[order[i]])
            moved[n_moved++] = order[i];
        else
            order[n_left++] = order[i];
    memcpy(order + n_left, moved, (size_t)n_moved * sizeof *order);
    mem_free(moved);
}

/* The item that makes more of what leaves than all others of the region; -1: there is none. */
static int find_largest(const struct plan *plan, const int *order, int n)
{
    double most = 0, all = 0;
    int at = -1;
    for (int i = 0; i < n; i++) {
        double bytes = outgoing_bytes(plan, order[i]);
        all += bytes;
        at = bytes > most ? i : at;
        most = bytes > most ? bytes : most;
    }
    return most > all - most && (all - most) * OTHERS_SHARE >= most ? at : -1;
}

static void put_late_in(const struct plan *plan, int *order, int n)
{
    int at = find_largest(plan, order, n);
    if (at < 0 || !may_wait(plan, order[at]))
        return;
    bool *moves = mem_array(plan->items.n + 1, sizeof *moves);
    if (find_moving(plan, order + at, n - at, moves))
        move_behind(order + at, halfway(plan, order, n, at) - at, moves);
    mem_free(moves);
}

/* Regions come one after the other. */
void region_put_late(struct plan *plan)
{
    for (int first = 0, next; first < plan->n_order; first = next) {
        const struct item *item = &plan->items.items[plan->order[first]];
        for (next = first;
             next < plan->n_order && plan->items.items[plan->order[next]].region == item->region;)
            next++;
        if (!plan_has_order(plan, item->frame))
            put_late_in(plan, plan->order + first, next - first);
    }
}
