/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/place/cost.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

static int take(void *context, struct words *words, struct error *err)
{
    struct costs *costs = context;
    bool is_op = !strcmp(words->word[0], "op");
    struct map *map = is_op ? &costs->ops : &costs->nodes;
    double ns;
    int64_t before;
    if (!is_op && strcmp(words->word[0], "node") != 0)
        return error_set(err, ERR_DATA, "'%s' is neither op nor node", words->word[0]);
    if (words->n != 3)
        return error_set(err, ERR_DATA, "%d words instead of 3: %s NAME NANOSECONDS", words->n,
                         words->word[0]);
    if (!str_to_float64(words->word[2], &ns) || !(ns >= 0) || !isfinite(ns))
        return error_set(err, ERR_DATA, "'%s' is not a time in nanoseconds", words->word[2]);
    if (map_get(map, words->word[1], &before))
        return error_set(err, ERR_DATA, "%s %s is there twice", words->word[0], words->word[1]);
    map_put(map, arena_strdup(&costs->arena, words->word[1]), (int64_t)costs->ns.n);
    vec_push(&costs->ns, ns);
    return 0;
}

int costs_read(struct costs *costs, const char *path, struct error *err)
{
    return words_read(path, take, costs, err);
}

int costs_parse(struct costs *costs, const char *text, const char *name, struct error *err)
{
    return words_parse(text, strlen(text), name, take, costs, err);
}

void costs_release(struct costs *costs)
{
    map_release(&costs->nodes);
    map_release(&costs->ops);
    vec_release(&costs->ns);
    arena_release(&costs->arena);
}

bool costs_find(const struct costs *costs, const struct node *node, double *ns)
{
    int64_t index;
    if (!map_get(&costs->nodes, node->name, &index) &&
        !map_get(&costs->ops, node->op->def->name, &index))
        return false;
    *ns = costs->ns.items[index];
    return true;
}
