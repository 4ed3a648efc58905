/* SPDX-License-Identifier: Apache-2.0
 *
 * What tf-exec is asked to run: the graph, the part of it, and the source of the feeds.
 */
#ifndef TF_BIN_EXEC_REQUEST_H
#define TF_BIN_EXEC_REQUEST_H

#include "cli/tool.h"
#include "exec/session/driver.h"
#include "graph/join.h"

extern struct request_options {
    const char *graph; /* NULL: stdin */
    struct option_list runs, fetches, feeds;
} request_options;

struct exec_request {
    struct tool *tool;
    struct driver *driver;
    struct stream_graph joined;         /* the graph, once read; the caller releases it */
    struct stream_reader *graph_reader; /* while feeds may follow the graph */
};

/* Reads the graph, and gives the driver the graph, what to run, and constant feeds. */
int exec_request_read(struct exec_request *request, struct error *err);

/* Adds feeds that --feed gives as one tensor for all steps. */
int exec_request_add_constants(struct driver *driver, struct error *err);

/* Prints the names of the feeds that a step needs. */
int exec_request_print_needs(struct exec_request *request, struct error *err);

/* Gives the driver its reader of feed records, if any. */
int exec_request_open_feeds(struct exec_request *request, struct error *err);

#endif
