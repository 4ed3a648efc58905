/* SPDX-License-Identifier: Apache-2.0
 *
 * The table that the public library calls, and functions for the whole process.
 */
#include <string.h>

#include "base/log.h"
#include "base/version.h"
#include "ops/api/internal.h"
#include "ops/user/user.h"

_Static_assert(TF_ERROR_BYTES == ERROR_TEXT_BYTES, "errors are handed on whole");
_Static_assert((int)TF_DATA == (int)ERR_DATA && (int)TF_NOINPUT == (int)ERR_NOINPUT &&
                   (int)TF_CONFIG == (int)ERR_CONFIG && (int)TF_CANCELLED == (int)ERR_CANCELLED,
               "codes have the numbers of the public header");

int api_fail(const struct error *err, struct tf_error *error)
{
    if (error) {
        error->code = err->code;
        strcpy(error->text, err->text);
    }
    return err->code;
}

int api_ops_load(const char *file, struct tf_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&lock);
    if (api_graph_exists())
        error_set(&err, ERR_USAGE, "%s: ops are loaded before there is a graph", file);
    else
        user_ops_load(file, &err);
    pthread_mutex_unlock(&lock);
    return err.code ? api_fail(&err, error) : 0;
}

/* ---- what ops print ---- */

static struct {
    void (*print)(const char *line, void *context);
    void *context;
} printer;

static void print_line(const char *text, void *context)
{
    (void)context;
    printer.print(text, printer.context);
}

void api_on_print(void (*print)(const char *line, void *context), void *context)
{
    log_set_sink(NULL, NULL);
    printer.print = print;
    printer.context = context;
    if (print)
        log_set_sink(print_line, NULL);
}

const struct tf_core tf_core = {.bytes = sizeof tf_core,
                                .abi = TF_TOOLS_ABI,
                                .version = TOOL_VERSION,
#define X(name) .name = api_##name,
                                CORE_FUNCTIONS(X)
#undef X
};
