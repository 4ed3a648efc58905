/* SPDX-License-Identifier: Apache-2.0 */
#include "pass/pass.h"

#include <string.h>

#include "pass/rewrite.h"

static void note_gone(struct graph *graph, const char *name)
{
    struct error none = ERROR_INIT;
    if (!map_get(&graph->alias_names, name, NULL))
        BUG_ON(graph_add_removed(graph, name, &none)); /* it was the name of a node */
}

int pass_optimize(struct graph *source, const struct pass *const *passes, int n_passes,
                  const struct pass_options *options, struct pass_result *result, struct error *err)
{
    memset(result, 0, sizeof *result);
    result->graph = source;
    BUG_ON(n_passes > (int)(sizeof result->n_changes / sizeof *result->n_changes));
    struct edge kept;
    int code = 0, idle = 0; /* passes since the last change */
    for (int i = 0; i < options->n_keep && !code; i++)
        if (graph_parse_edge(source, options->keep[i], &kept, err))
            code = error_prefix(err, "cannot keep '%s': ", options->keep[i]);
    for (int turn = 0; !code && idle < n_passes && turn < n_passes * PASS_ROUNDS_MAX; turn++) {
        struct graph *to = NULL;
        int n_changes = 0, i = turn % n_passes;
        code = passes[i]->run(result->graph, options, &to, &n_changes, err);
        idle++;
        if (to) {
            idle = 0;
            vec_push(&result->graphs, to);
            result->graph = to;
        }
        result->n_changes[i] += n_changes;
        result->n_rounds = turn / n_passes + 1;
    }
    if (code)
        pass_result_release(result);
    else if (result->graph != source) {
        /* Names that a user may ask for: the constants that stand for numbers in a script are
         * none. */
        for (size_t i = 0; i < source->removed.n; i++)
            note_gone(result->graph, source->removed.items[i]);
        graph_each(node, source) {
            bool is_number = node_is(node, "Const") && strchr(node->name, '/');
            if (!is_number)
                note_gone(result->graph, node->name);
        }
    }
    return code;
}

void pass_result_release(struct pass_result *result)
{
    while (result->graphs.n)
        graph_free(vec_pop(&result->graphs));
    vec_release(&result->graphs);
    result->graph = NULL;
}
