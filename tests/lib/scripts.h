/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs model scripts for tests.
 */
#ifndef TF_TESTS_LIB_SCRIPTS_H
#define TF_TESTS_LIB_SCRIPTS_H

#include <string.h>

#include "lib/unit.h"
#include "ops/ops.h"
#include "ops/script/script.h"

/* Returns the graph that a script makes, or NULL with the error. Parameters end with NULL. */
static inline struct graph *scripts_try(const char *text, const char *const *parameters,
                                        const struct script_options *options, struct error *err)
{
    struct graph *graph = graph_new(ops_registry());
    struct script *script = script_new(graph, options, err);
    int code = script ? 0 : err->code;
    for (; !code && parameters && *parameters; parameters++)
        code = script_define(script, *parameters, err);
    if (!code)
        code = script_run(script, text, strlen(text), "m.lua", "", err);
    if (!code)
        code = script_finish(script, err);
    script_free(script);
    if (!code)
        return graph;
    graph_free(graph);
    return NULL;
}

static inline struct graph *scripts_build(const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph = scripts_try(text, NULL, NULL, &err);
    if (!graph)
        fail_msg("%s", err.text);
    return graph;
}

/* Asserts that the script fails with this message. */
static inline void scripts_refused(const char *text, const char *message)
{
    struct error err = ERROR_INIT;
    struct graph *graph = scripts_try(text, NULL, NULL, &err);
    assert_null(graph);
    assert_int_equal(err.code, ERR_DATA);
    assert_string_equal(err.text, message);
}

#endif
