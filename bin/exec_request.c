/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/exec_request.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ops/ops.h"

struct request_options request_options;

/* The path of a file may have a '=' too. */
static bool is_file_of_records(const char *feed)
{
    return !strchr(feed, '=') || feeds_is_path(feed);
}

int exec_request_add_constants(struct driver *driver, struct error *err)
{
    const struct option_list *feeds = &request_options.feeds;
    int code = 0;
    for (size_t i = 0; !code && i < feeds->n; i++)
        if (!is_file_of_records(feeds->items[i]))
            code = feeds_add_constant(&driver->feeds, feeds->items[i], err);
    return code ? error_prefix(err, "%s: ", driver->name) : 0;
}

int exec_request_read(struct exec_request *request, struct error *err)
{
    struct driver *driver = request->driver;
    const char *path = request_options.graph;
    bool from_file = path && strcmp(path, "-");
    if (tool_open_reader(request->tool, path, &request->graph_reader, err) ||
        stream_graph_read(request->graph_reader, ops_registry(), &request->joined, err))
        return err->code;
    driver_init(request->driver, request->joined.graph, from_file ? path : "stdin");
    if (from_file) {
        tool_close_reader(request->graph_reader);
        request->graph_reader = NULL;
    }
    /* Names to run and to fetch in every step. */
    const struct option_list *runs = &request_options.runs, *fetches = &request_options.fetches;
    int code = 0;
    for (size_t i = 0; !code && i < runs->n; i++)
        code = request_run(&driver->request, runs->items[i], err);
    for (size_t i = 0; !code && i < fetches->n; i++)
        code = request_fetch(&driver->request, fetches->items[i], err);
    driver->option = runs->n ? "--run" : "--fetch";
    driver->what = runs->n ? runs->items[0] : fetches->n ? fetches->items[0] : "";
    if (code)
        return error_prefix(err, "%s: ", driver->name);
    if (exec_request_add_constants(driver, err) || driver_ready(driver, err))
        return err->code;
    for (size_t i = 0; i < driver->feeds.edges.n; i++) {
        int node = driver->feeds.edges.items[i].node;
        if (!request_uses(&driver->request, node))
            tool_say(request->tool, "%s: --feed %s: %s %s does not use it", driver->name,
                     graph_node(driver->graph, node)->name, driver->option, driver->what);
    }
    return 0;
}

int exec_request_print_needs(struct exec_request *request, struct error *err)
{
    const struct driver *driver = request->driver;
    FILE *out;
    if (tool_open_text(request->tool, &out, err))
        return err->code;
    for (size_t i = 0; i < driver->needs.n; i++)
        fprintf(out, "%s\n", graph_node(driver->graph, driver->needs.items[i])->name);
    return 0;
}

/* Opens the feed records: --feed FILE, the rest of stdin behind the graph, or stdin if -g named the
 * graph and the step needs a feed that no option gives. */
int exec_request_open_feeds(struct exec_request *request, struct error *err)
{
    const struct option_list *feeds = &request_options.feeds;
    struct driver *driver = request->driver;
    const char *path = NULL;
    for (size_t i = 0; i < feeds->n; i++) {
        if (!is_file_of_records(feeds->items[i]))
            continue;
        if (path)
            return error_set(err, ERR_USAGE,
                             "--feed names two files of records; join them with cat");
        path = feeds->items[i];
    }
    if (!path && !driver->needs.n)
        return 0;
    if ((!path || !strcmp(path, "-")) && request->graph_reader) {
        driver->feed_reader = request->graph_reader;
        return 0;
    }
    if (!path && (driver->feeds.n_constant || isatty(STDIN_FILENO)))
        return 0;
    return tool_open_reader(request->tool, path, &driver->feed_reader, err);
}
