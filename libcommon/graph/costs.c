/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/costs.h"

#include <math.h>
#include <string.h>

#include "base/words.h"

/* Returns the type as devices spell it; NULL: it is none. */
static const char *type_of(struct costs *costs, const char *word, struct error *err)
{
    struct device_name name;
    const char *full = arena_printf(&costs->arena, "/device:%s", word);
    if (!strpbrk(word, "/:") && !device_name_parse(&name, full, err) && *name.type)
        return arena_strdup(&costs->arena, name.type);
    error_set(err, ERR_DATA, "'%s' is not a type of device, as CPU is", word);
    return NULL;
}

static int take_device(struct costs *costs, struct words *words, struct error *err)
{
    struct device_facts facts = {0};
    int64_t before;
    if (words->n < 3)
        return error_set(err, ERR_DATA, "%d words: device TYPE KEY=VALUE...", words->n);
    const char *type = type_of(costs, words->word[1], err);
    if (!type)
        return err->code;
    if (map_get(&costs->types, type, &before))
        return error_set(err, ERR_DATA, "device %s is there twice", words->word[1]);
    for (int i = 2; i < words->n; i++) {
        char *value = words_value(words->word[i]);
        if (!value)
            return error_set(err, ERR_DATA, "'%s' is not key=value", words->word[i]);
        if (!strcmp(words->word[i], "speed"))
            return error_set(err, ERR_DATA, "costs are those of devices of speed 1");
        if (device_facts_set(&facts, words->word[i], value, err))
            return err->code = ERR_DATA;
    }
    map_put(&costs->types, type, (int64_t)costs->facts.n);
    vec_push(&costs->facts, facts);
    return 0;
}

static int read_cost_words(void *context, struct words *words, struct error *err)
{
    struct costs *costs = context;
    bool is_op = !strcmp(words->word[0], "op");
    struct map *map = is_op ? &costs->ops : &costs->nodes;
    double ns;
    int64_t before;
    if (!strcmp(words->word[0], "device"))
        return take_device(costs, words, err);
    if (!is_op && strcmp(words->word[0], "node") != 0)
        return error_set(err, ERR_DATA, "'%s' is none of op, node and device", words->word[0]);
    if (words->n != 3 && words->n != 4)
        return error_set(err, ERR_DATA, "%d words instead of 3 or 4: %s NAME NANOSECONDS [TYPE]",
                         words->n, words->word[0]);
    if (!str_to_float64(words->word[2], &ns) || !(ns >= 0) || !isfinite(ns))
        return error_set(err, ERR_DATA, "'%s' is not a time in nanoseconds", words->word[2]);
    const char *key = arena_strdup(&costs->arena, words->word[1]);
    const char *type = words->n == 4 ? type_of(costs, words->word[3], err) : "";
    if (!type)
        return err->code;
    if (*type)
        key = arena_printf(&costs->arena, "%s %s", key, type);
    if (map_get(map, key, &before))
        return error_set(err, ERR_DATA, "%s %s is there twice", words->word[0], key);
    map_put(map, key, (int64_t)costs->ns.n);
    vec_push(&costs->ns, ns);
    return 0;
}

int costs_read(struct costs *costs, const char *path, struct error *err)
{
    return words_read(path, read_cost_words, costs, err);
}

int costs_parse(struct costs *costs, const char *text, const char *name, struct error *err)
{
    return words_parse(text, strlen(text), name, read_cost_words, costs, err);
}

void costs_release(struct costs *costs)
{
    map_release(&costs->nodes);
    map_release(&costs->ops);
    map_release(&costs->types);
    vec_release(&costs->ns);
    vec_release(&costs->facts);
    arena_release(&costs->arena);
}

/* Finds the time of a name on that type of device; NULL: one without a type. */
static bool find(const struct costs *costs, const struct map *map, const char *name,
                 const char *type, double *ns)
{
    struct str key = STR_INIT;
    int64_t index;
    str_printf(&key, "%s%s%s", name, type ? " " : "", type ? type : "");
    bool found = map_get(map, str_text(&key), &index);
    str_release(&key);
    if (found)
        *ns = costs->ns.items[index];
    return found;
}

bool costs_find_own(const struct costs *costs, const struct node *node, const char *type,
                    double *ns)
{
    return costs && find(costs, &costs->nodes, node->name, type, ns);
}

bool costs_find(const struct costs *costs, const struct node *node, const char *type, double *ns)
{
    const char *op = node->op->def->name;
    return costs && (find(costs, &costs->nodes, node->name, type, ns) ||
                     find(costs, &costs->ops, op, type, ns) ||
                     find(costs, &costs->nodes, node->name, NULL, ns) ||
                     find(costs, &costs->ops, op, NULL, ns));
}

struct device_facts cost_facts(const struct device_name *device, const struct cluster *cluster,
                               const struct costs *costs)
{
    struct device_facts facts = {0};
    int64_t index;
    if (cluster)
        facts = cluster_facts(cluster, device);
    if (costs && map_get(&costs->types, device->type, &index))
        device_facts_fill(&facts, &costs->facts.items[index]);
    return facts;
}
