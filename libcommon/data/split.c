/* SPDX-License-Identifier: Apache-2.0 */
#include "data/split.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/str.h"
#include "base/vec.h"
#include "data/rows.h"

/* ---- rules ---- */

static bool parse_shares(struct split_rule *rule, const char *text, size_t n)
{
    int64_t divisor = 0, sum = 0;
    rule->n = 0;
    for (const char *at = text, *end = text + n; at <= end; rule->n++) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t length = (size_t)((slash ? slash : end) - at);
        int64_t share;
        if (rule->n == 3 || number_int64(at, length, &share) || share < 1 ||
            share > SPLIT_BLOCK_MAX)
            return false;
        rule->shares[rule->n] = share;
        for (int64_t a = share, rest; a; a = rest) { /* common divisor, by Euclid */
            rest = divisor % a;
            divisor = a;
        }
        at += length + 1;
    }
    for (int i = 0; i < rule->n; i++)
        sum += rule->shares[i] /= divisor;
    rule->block = sum;
    return rule->n > 1 && sum <= SPLIT_BLOCK_MAX;
}

/* Returns the length of the part before the name, and sets the name. */
static size_t cut_name(struct split_rule *rule, const char *text)
{
    size_t n = strcspn(text, ":");
    rule->name = text[n] ? text + n + 1 : "";
    return n;
}

int split_rule_parse(struct split_rule *rule, const char *text, const char *part, struct error *err)
{
    static const char *const names[][4] = {{"train", "test", NULL},
                                           {"train", "valid", "test", NULL}};
    if (!parse_shares(rule, text, cut_name(rule, text)))
        return error_set(err, ERR_USAGE,
                         "--split '%s': expected two or three whole shares, as 70/15/15 or "
                         "80/20:NAME",
                         text);
    const char *const *known = names[rule->n - 2];
    for (rule->wanted = 0; known[rule->wanted]; rule->wanted++)
        if (!strcmp(known[rule->wanted], part))
            return 0;
    return error_set(err, ERR_USAGE, "--part '%s': the parts of --split %s are %s", part, text,
                     rule->n == 2 ? "train and test" : "train, valid and test");
}

int split_rule_parse_fold(struct split_rule *rule, const char *text, const char *part,
                          struct error *err)
{
    size_t n = cut_name(rule, text);
    const char *slash = memchr(text, '/', n);
    int64_t fold = 0, folds = 0;
    if (!slash || number_int64(text, (size_t)(slash - text), &fold) ||
        number_int64(slash + 1, n - (size_t)(slash - text) - 1, &folds) || fold < 0 ||
        fold >= folds || folds < 2 || folds > SPLIT_PARTS_MAX)
        return error_set(err, ERR_USAGE,
                         "--fold '%s': expected I/K with 0 <= I < K, and K from 2 to %d", text,
                         SPLIT_PARTS_MAX);
    rule->n = (int)folds;
    rule->block = folds;
    rule->wanted = (int)fold;
    rule->others = !strcmp(part, "train");
    for (int i = 0; i < rule->n; i++)
        rule->shares[i] = 1;
    return rule->others || !strcmp(part, "valid")
               ? 0
               : error_set(err, ERR_USAGE, "--part '%s': the parts of --fold are train and valid",
                           part);
}

/* ---- rows ---- */

/* Rows dealt together: all, or those with one value. */
struct stratum {
    uint64_t seed;
    int64_t rows;   /* so far */
    int64_t *order; /* of the current block */
};

struct split {
    const struct split_rule *rule;
    struct map places; /* indices of strata by value */
    VEC(struct stratum) strata;
    struct arena arena;
    struct str value;
};

struct split *split_new(const struct split_rule *rule)
{
    struct split *split = mem_alloc(sizeof *split);
    split->rule = rule;
    return split;
}

void split_free(struct split *split)
{
    if (!split)
        return;
    for (size_t i = 0; i < split->strata.n; i++)
        mem_free(split->strata.items[i].order);
    vec_release(&split->strata);
    map_release(&split->places);
    arena_release(&split->arena);
    str_release(&split->value);
    mem_free(split);
}

static struct stratum *find_stratum(struct split *split, const char *value, size_t n)
{
    int64_t place;
    str_clear(&split->value);
    str_append_bytes(&split->value, value, n);
    const char *text = str_text(&split->value);
    if (!map_get(&split->places, text, &place)) {
        struct stratum stratum = {.seed = hash_bytes(text, n, hash_text(split->rule->name))};
        place = (int64_t)split->strata.n;
        vec_push(&split->strata, stratum);
        map_put(&split->places, arena_strdup(&split->arena, text), place);
    }
    return &split->strata.items[place];
}

/* A group is assigned as a whole; other rows are dealt, within each stratum. */
bool split_takes(struct split *split, const char *value, size_t n)
{
    const struct split_rule *rule = split->rule;
    int64_t place;
    if (rule->by_group) {
        place = (int64_t)(hash_bytes(value, n, hash_text(rule->name)) % (uint64_t)rule->block);
    } else {
        struct stratum *stratum = find_stratum(split, value, n);
        place = stratum->rows % rule->block;
        if (place == 0) {
            mem_free(stratum->order);
            stratum->order =
                rows_permutation(rule->block, stratum->seed, stratum->rows / rule->block);
        }
        stratum->rows++;
        place = stratum->order ? stratum->order[place] : place;
    }
    int part = 0; /* find the part: a block lists the parts in order */
    while (place >= rule->shares[part])
        place -= rule->shares[part++];
    return (part == rule->wanted) != rule->others;
}
