/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a pipeline's items, as control edges: each item ends with a NoOp after all that
 * nobody in it takes anything of, and the next one of the stage begins after that.
 */
#include <string.h>

#include "pass/replicate/replicate_tower.h"

/* The nodes of an item, of the source. */
struct stage_item {
    int stage;
    enum item_phase phase;
    VEC(int) begin; /* that need nothing of it */
    VEC(int) end;   /* that nothing of it needs */
};

static bool is_in(const struct towers *t, const struct stage_item *item, int node)
{
    return t->towered[node] && pipeline_unit(t->pipeline, node)->phase == item->phase &&
           pipeline_unit(t->pipeline, node)->stage == item->stage;
}

static void find_item(const struct towers *t, struct stage_item *item)
{
    const struct graph *from = t->r->from;
    bool *is_needed = arena_array(&t->r->arena, from->nodes.n + 1, sizeof *is_needed);
    graph_each(node, from) {
        bool begins = t->frames->frame[node->id] == FRAME_ROOT;
        for (int k = 0; is_in(t, item, node->id) && k < node->n_inputs + node->n_controls; k++) {
            int needed = node_dependency(node, k).node;
            is_needed[needed] = true;
            begins &= !is_in(t, item, needed);
        }
        if (begins && is_in(t, item, node->id))
            vec_push_in(&t->r->arena, &item->begin, node->id);
    }
    for (size_t i = 0; i < from->nodes.n; i++) {
        if (is_in(t, item, (int)i) && !is_needed[i]) {
            /* Nothing waits for nodes inside of loops, or for such as may be dead. */
            const struct node *node = graph_node(from, (int)i);
            if (frames_output(t->frames, node) == FRAME_ROOT &&
                t->frames->condition[node->id] == CONDITION_NONE)
                vec_push_in(&t->r->arena, &item->end, (int)i);
        }
    }
}

/* The item of a tower: after `before` (-1: at once). The NoOp that it ends with. */
static int add_item(struct towers *t, const struct stage_item *item, int k, int before)
{
    struct replicator *r = t->r;
    const struct pipeline *p = t->pipeline;
    const char *what = item->phase == PHASE_FORWARD ? "forward" : "backward";
    VEC(int) ends = {0};
    for (size_t i = 0; before >= 0 && i < item->begin.n; i++)
        graph_add_control(r->to, graph_node(r->to, t->copies[k][item->begin.items[i]]), before);
    for (size_t i = 0; i < item->end.n; i++)
        vec_push_in(&t->r->arena, &ends, t->copies[k][item->end.items[i]]);
    for (size_t i = 0; item->phase == PHASE_BACKWARD && i < p->ends.n; i++)
        if (p->ends.items[i].stage == item->stage && p->ends.items[i].tower == k)
            vec_push_in(&t->r->arena, &ends, p->ends.items[i].node);
    struct node_spec spec = {
        .op = "NoOp",
        .name = arena_printf(&r->to->arena, "%ss/stage_%d/%s_%d", t->prefix, item->stage, what, k),
        .controls = ends.items,
        .n_controls = (int)ends.n,
        .device = p->devices[item->stage]};
    struct node *end = ends.n ? graph_add(r->to, &spec, r->err) : NULL;
    return end ? end->id : before;
}

/* Returns how many micro-batches may be forward on the stage and not yet back again. */
static int in_flight(const struct towers *t, int stage)
{
    const struct replicate_options *options = t->r->options;
    int most = options->pipeline == PIPELINE_GPIPE ? t->n : t->pipeline->n_stages - stage;
    if (options->in_flight && options->in_flight < most)
        most = options->in_flight;
    return most < t->n ? most : t->n;
}

int replicate_parse_pipeline(struct replicate_options *options, const char *text, struct error *err)
{
    int64_t most = 0;
    const char *rest = strchr(text, ',');
    size_t n = rest ? (size_t)(rest - text) : strlen(text);
    bool is_1f1b = n == strlen("1f1b") && !strncmp(text, "1f1b", n);
    if ((!is_1f1b && strcmp(text, "gpipe") != 0) ||
        (rest && (!str_starts(rest, ",flight=") ||
                  !str_to_int64(rest + strlen(",flight="), &most) || most < 1)))
        return error_set(err, ERR_USAGE, "--pipeline '%s' is none of 1f1b, 1f1b,flight=N, gpipe",
                         text);
    options->pipeline = is_1f1b ? PIPELINE_1F1B : PIPELINE_GPIPE;
    options->in_flight = most > INT32_MAX ? INT32_MAX : (int)most;
    return 0;
}

int pipeline_order(struct towers *t)
{
    for (int stage = 0; stage < t->pipeline->n_stages && !t->r->err->code; stage++) {
        struct stage_item forward = {.stage = stage, .phase = PHASE_FORWARD};
        struct stage_item backward = {.stage = stage, .phase = PHASE_BACKWARD};
        int most = in_flight(t, stage), before = -1;
        find_item(t, &forward);
        find_item(t, &backward);
        for (int k = 0; k < t->n + most - 1; k++) {
            if (k < t->n)
                before = add_item(t, &forward, k, before);
            if (k >= most - 1)
                before = add_item(t, &backward, k - most + 1, before);
        }
    }
    return t->r->err->code;
}
