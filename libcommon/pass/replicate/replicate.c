/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/replicate/replicate.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "pass/replicate/replicate_private.h"
#include "pass/replicate/replicate_tower.h"
#include "resource/policy.h"

/* ---- modes ---- */

static bool read_count(const char *text, size_t n, const char *key, int *value)
{
    char digits[16];
    int64_t number;
    size_t skip = strlen(key);
    if (n <= skip || n - skip >= sizeof digits || strncmp(text, key, skip) != 0)
        return false;
    memcpy(digits, text + skip, n - skip);
    digits[n - skip] = '\0';
    if (!str_to_int64(digits, &number) || number < 1 || number > INT32_MAX)
        return false;
    *value = (int)number;
    return true;
}

static bool read_number(const char *text, size_t n, const char *key, double *value)
{
    char digits[64];
    size_t skip = strlen(key);
    if (n <= skip || n - skip >= sizeof digits || strncmp(text, key, skip) != 0)
        return false;
    memcpy(digits, text + skip, n - skip);
    digits[n - skip] = '\0';
    return str_to_float64(digits, value) && *value >= 0;
}

static bool read_factors(const char *text, size_t n, enum replicate_factors *factors)
{
    bool all = n == strlen("factors=all") && !strncmp(text, "factors=all", n);
    if (!all && (n != strlen("factors=auto") || strncmp(text, "factors=auto", n) != 0))
        return false;
    *factors = all ? FACTORS_ALL : FACTORS_AUTO;
    return true;
}

static bool read_dense(const char *text, size_t n, struct replicate_options *options)
{
    const char *key = "dense=";
    bool is_it = n == strlen(key) + 1 && !strncmp(text, key, n - 1) && strchr("abc", text[n - 1]);
    if (is_it)
        options->dense = text[n - 1];
    return is_it;
}

static bool read_update(const char *text, size_t n, struct replicate_options *options)
{
    const char *key = "update=pass";
    bool is_it = n == strlen(key) && !strncmp(text, key, n);
    options->update_each |= is_it;
    return is_it;
}

/* Which code the numbers are of. False: there is none. */
static bool name_code(struct replicate_code *code)
{
    if (code->share >= 0 && !code->bits && code->threshold < 0) {
        code->name = "top";
        code->bits = 1;
        return code->share > 0 && code->share <= 1;
    }
    code->bits = code->bits ? code->bits : 2;
    code->name = code->threshold >= 0 ? "threshold" : code->bits > 1 ? "uniform" : "one_bit";
    return code->share < 0 && code->bits <= (code->threshold >= 0 ? 2 : 8) &&
           (code->threshold != 0 || code->bits == 1);
}

static const struct replicate_code no_code = {.threshold = -1, .share = -1};

static bool read_code(const char *text, size_t n, struct replicate_code *code)
{
    return read_count(text, n, "bits=", &code->bits) ||
           read_number(text, n, "threshold=", &code->threshold) ||
           read_number(text, n, "top=", &code->share);
}

/* Takes it, if there is any. */
static int take_code(struct replicate_options *options, struct replicate_code *code,
                     struct error *err)
{
    if (!code->bits && code->threshold < 0 && code->share < 0)
        return 0;
    if (!name_code(code))
        return error_set(err, ERR_USAGE,
                         "--mode %s has codes bits=1 to 8, bits=1 or 2 with threshold=X, and "
                         "top=SHARE, a part of 1",
                         options->mode == REPLICATE_ALLREDUCE  ? "allreduce"
                         : options->mode == REPLICATE_DOWNPOUR ? "downpour"
                                                               : options->policy);
    options->code = *code;
    return 0;
}

static int parse_downpour(struct replicate_options *options, const char *text, struct error *err)
{
    struct replicate_code code = no_code;
    options->mode = REPLICATE_DOWNPOUR;
    snprintf(options->policy, sizeof options->policy, "async");
    while (*text) {
        size_t n = strcspn(text, ",");
        if (!read_count(text, n, "fetch=", &options->fetch) &&
            !read_count(text, n, "push=", &options->push) &&
            !read_number(text, n, "rate=", &options->rate) &&
            !read_factors(text, n, &options->factors) && !read_code(text, n, &code))
            return error_set(err, ERR_USAGE,
                             "--mode downpour takes fetch=N, push=N, rate=X, factors=auto, "
                             "factors=all, bits=N, threshold=X and top=SHARE, not '%.*s'",
                             (int)n, text);
        text += n + (text[n] == ',');
    }
    return take_code(options, &code, err);
}

/* False: it says nothing of a schedule. ERR_USAGE: there is none of that name. */
static bool read_schedule(const char *text, size_t n, struct replicate_options *options,
                          struct error *err)
{
    static const char key[] = "schedule=";
    char name[16] = "";
    size_t skip = strlen(key);
    if (n < skip || strncmp(text, key, skip) != 0)
        return false;
    if (n - skip < sizeof name)
        memcpy(name, text + skip, n - skip);
    options->schedules = !strcmp(name, "auto");
    options->by_device = by_device_of(name);
    bool is_kind = schedule_kind_of(name, &options->schedule);
    if (!options->schedules && !options->by_device && !is_kind)
        error_set(err, ERR_USAGE,
                  "--mode allreduce: schedule is auto, " SCHEDULE_NAMES
                  ", or of GPUs " BY_DEVICE_NAMES ", not '%.*s'",
                  (int)(n - skip), text + skip);
    if (!is_kind)
        options->schedule = SCHEDULE_DIRECT;
    return true;
}

static int parse_allreduce(struct replicate_options *options, const char *text, struct error *err)
{
    struct replicate_code code = no_code;
    int delay = 0;
    options->mode = REPLICATE_ALLREDUCE;
    while (*text) {
        size_t n = strcspn(text, ",");
        if (!read_factors(text, n, &options->factors) && !read_schedule(text, n, options, err) &&
            !read_code(text, n, &code) && !read_count(text, n, "after=", &options->after) &&
            !read_count(text, n, "delay=", &delay) && !read_dense(text, n, options) &&
            !read_update(text, n, options))
            return error_set(err, ERR_USAGE,
                             "--mode allreduce takes factors=auto, factors=all, bits=N, "
                             "threshold=X, top=SHARE, after=N, delay=1, schedule=NAME, "
                             "dense=a, b or c and update=pass, not '%.*s'",
                             (int)n, text);
        if (err->code)
            return err->code;
        text += n + (text[n] == ',');
    }
    if (options->update_each && options->dense != 'b' && options->dense != 'c')
        return error_set(err, ERR_USAGE,
                         "--mode allreduce: update=pass is of the passes of dense=b and dense=c");
    const char *schedule = options->schedules   ? "auto"
                           : options->by_device ? by_device_name(options->by_device)
                                                : schedule_name(options->schedule);
    if (take_code(options, &code, err))
        return err->code;
    bool any = options->code.name;
    if (!any && options->after)
        return error_set(err, ERR_USAGE,
                         "--mode allreduce: after=N is for a code: bits=N, top=SHARE");
    if (any && strcmp(schedule, schedule_name(SCHEDULE_DIRECT)) != 0)
        return error_set(
            err, ERR_USAGE,
            "--mode allreduce: schedule=%s is for whole gradients: codes are not added "
            "on the way",
            schedule);
    if (delay > 1)
        return error_set(err, ERR_USAGE, "--mode allreduce has no delay but of one step");
    if (delay && options->factors != FACTORS_NONE)
        return error_set(
            err, ERR_USAGE,
            "--mode allreduce: delay=1 keeps gradients, and factors=%s has none to keep",
            options->factors == FACTORS_ALL ? "all" : "auto");
    options->delays = delay;
    return 0;
}

/* A policy's words, and those that are about what is pushed. */
static int parse_policy(struct replicate_options *options, const char *text, bool *is_known,
                        struct error *err)
{
    struct error why = ERROR_INIT;
    struct replicate_code code = no_code;
    struct policy policy;
    size_t length = 0;
    *options->policy = '\0';
    while (*text) {
        size_t n = strcspn(text, ",");
        if (!read_factors(text, n, &options->factors) && !read_code(text, n, &code))
            length += (size_t)snprintf(options->policy + length, sizeof options->policy - length,
                                       "%s%.*s", length ? "," : "", (int)n, text);
        if (length >= sizeof options->policy)
            return 0;
        text += n + (text[n] == ',');
    }
    *is_known = !policy_parse(&policy, options->policy, &why);
    return *is_known ? take_code(options, &code, err) : 0;
}

/* Of what all-reduce takes, what changes no result but by rounding, and codes if asked for. */
static int parse_auto(struct replicate_options *options, const char *text, struct error *err)
{
    struct replicate_options code = {.mode = REPLICATE_ALLREDUCE};
    if (strlen(text) >= sizeof options->policy || parse_allreduce(&code, text, err) ||
        code.delays || code.factors != FACTORS_NONE)
        return error_set(err, ERR_USAGE,
                         "--mode auto takes a code that may be used, as all-reduce has them "
                         "(bits=N, threshold=X, top=SHARE, after=N), not '%s'",
                         text);
    options->mode = REPLICATE_AUTO;
    memcpy(options->policy, text, strlen(text) + 1);
    return 0;
}

int replicate_parse(struct replicate_options *options, const char *mode, struct error *err)
{
    options->rate = -1;
    options->mode = REPLICATE_POLICY;
    if (!strcmp(mode, "allreduce") || str_starts(mode, "allreduce,"))
        return parse_allreduce(options, mode + strlen("allreduce") + (mode[9] == ','), err);
    if (!strcmp(mode, "downpour") || str_starts(mode, "downpour,"))
        return parse_downpour(options, mode + strlen("downpour") + (mode[8] == ','), err);
    if (!strcmp(mode, "auto") || str_starts(mode, "auto,"))
        return parse_auto(options, mode + strlen("auto") + (mode[4] == ','), err);
    bool is_known = false;
    if (parse_policy(options, mode, &is_known, err) || is_known)
        return err->code;
    struct str usages = STR_INIT;
    policy_print_usages(&usages);
    error_set(err, ERR_USAGE,
              "--mode '%s' is none of %s; downpour,fetch=N,push=M; "
              "allreduce,factors=auto,bits=1; auto",
              mode, str_text(&usages));
    str_release(&usages);
    return err->code;
}

/* ---- the result ---- */

/* The outside version of what has one; else that of the update, for aliases. */
static struct edge name_edge(struct replicator *r, struct edge edge)
{
    if (r->towers)
        return towers_whole(r->towers, edge);
    if (has(r, edge.node, FACT_WRITER) || r->copy[edge.node] >= 0)
        return replicate_edge(r, edge);
    return (struct edge){r->updated[edge.node], edge.slot};
}

/* What an entry runs besides. */
static void add_nodes(struct edge *edges, int *n, const int *nodes, size_t n_nodes)
{
    for (size_t i = 0; i < n_nodes; i++)
        edges[(*n)++] = (struct edge){nodes[i], CONTROL_SLOT};
}

static int copy_entry(struct replicator *r, const struct entry *entry)
{
    size_t most = (size_t)entry->n_edges + r->ends.n + r->inits.n;
    struct edge *edges = arena_array(&r->arena, most + 1, sizeof *edges);
    int n = 0;
    while (n < entry->n_edges) {
        edges[n] = name_edge(r, entry->edges[n]);
        n++;
    }
    if (r->options->mode == REPLICATE_ALLREDUCE && entry == r->entry)
        add_nodes(edges, &n, r->ends.items, r->ends.n);
    if (!strcmp(entry->name, "init"))
        add_nodes(edges, &n, r->inits.items, r->inits.n);
    if (graph_entry(r->to, entry->name))
        return error_set(r->err, ERR_DATA,
                         "there is an entry '%s', which a replicated graph has for itself",
                         entry->name);
    graph_add_entry(r->to, entry->name, edges, n);
    return 0;
}

static int copy_names(struct replicator *r)
{
    const struct graph *from = r->from;
    for (size_t i = 0; i < from->entries.n; i++)
        if (copy_entry(r, &from->entries.items[i]))
            return r->err->code;
    for (size_t i = 0; i < from->aliases.n; i++)
        if (graph_add_alias(r->to, from->aliases.items[i].name,
                            name_edge(r, from->aliases.items[i].edge), r->err))
            return r->err->code;
    graph_add_history(r->to, from);
    return 0;
}

static int build(struct replicator *r)
{
    if (r->options->towers) {
        if (replicate_towers(r) || copy_names(r))
            return r->err->code;
        return graph_check(r->to, r->err);
    }
    if (r->options->mode == REPLICATE_ALLREDUCE) {
        if (r->options->accumulate > 1 || r->options->wire != DTYPE_INVALID)
            return error_set(r->err, ERR_USAGE,
                             "--%s is for what is pushed to shards; with --mode allreduce "
                             "there are none",
                             r->options->accumulate > 1 ? "accumulate" : "compress");
        if (replicate_allreduce(r) || copy_names(r))
            return r->err->code;
        return graph_check(r->to, r->err);
    }
    if (replicate_find(r) || replicate_add_local(r) || replicate_copy_before(r) ||
        replicate_add_pushes(r) || replicate_add_update(r) || replicate_copy_update(r) ||
        replicate_end_update(r) || replicate_copy_after(r) || copy_names(r) || replicate_group(r))
        return r->err->code;
    return graph_check(r->to, r->err);
}

static void release(struct replicator *r)
{
    for (size_t i = 0; i < r->pushes.n; i++) {
        vec_release(&r->pushes.items[i].edges);
        vec_release(&r->pushes.items[i].values);
    }
    vec_release(&r->pushes);
    vec_release(&r->todo);
    vec_release(&r->open);
    vec_release(&r->reduced);
    vec_release(&r->products);
    vec_release(&r->locals);
    vec_release(&r->joined);
    vec_release(&r->coded);
    vec_release(&r->delayed);
    vec_release(&r->row_sums);
    vec_release(&r->exchanges);
    vec_release(&r->ends);
    vec_release(&r->inits);
    towers_release(r->towers);
    arena_release(&r->arena);
}

int replicate_graph(const struct graph *from, const struct replicate_options *options,
                    struct graph **to, struct error *err)
{
    if (options->mode == REPLICATE_AUTO)
        return replicate_auto(from, options, to, err);
    size_t n = from->nodes.n;
    struct replicator r = {.from = from, .options = options, .err = err, .round = -1};
    r.fetches = r.fires = r.rank = r.coding = EDGE_NONE;
    r.order = arena_array(&r.arena, n + 1, sizeof *r.order);
    r.facts = arena_array(&r.arena, n + 1, sizeof *r.facts);
    r.copy = arena_array(&r.arena, n + 1, sizeof *r.copy);
    r.updated = arena_array(&r.arena, n + 1, sizeof *r.updated);
    r.variable_of = arena_array(&r.arena, n + 1, sizeof *r.variable_of);
    r.update_names = arena_array(&r.arena, n + 1, sizeof *r.update_names);
    memset(r.copy, -1, n * sizeof *r.copy);
    memset(r.updated, -1, n * sizeof *r.updated);
    r.to = graph_new(from->registry);
    int code = graph_order(from, r.order, err);
    if (!code)
        code = build(&r);
    if (code)
        graph_free(r.to);
    *to = code ? NULL : r.to;
    release(&r);
    return code;
}
