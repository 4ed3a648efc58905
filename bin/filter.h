/* SPDX-License-Identifier: Apache-2.0
 *
 * What tools that read a graph and write one have in common.
 */
#ifndef TF_BIN_FILTER_H
#define TF_BIN_FILTER_H

#include "cli/tool.h"
#include "graph/graph_io.h"
#include "pass/place/cost.h"

/* A tool has one, static, as its option rows write the paths. */
struct filter {
    /* Called before anything is opened; most read the model (filter_read_model). */
    int (*check)(struct filter *filter, struct error *err);
    /* Changes `graph`, or adds to `made`; its errors get the prefix of the input's name. */
    int (*rewrite)(struct filter *filter, struct error *err);
    /* Opens the output and writes it; NULL: the last graph is the whole output. */
    int (*write)(struct filter *filter, struct error *err);
    const char *cluster_path, *costs_path; /* of options; NULL: not given */
    /* Set by filter_main. */
    struct tool *tool;
    struct graph *graph;      /* that was read */
    VEC(struct graph *) made; /* of it, each may borrow from those before it; freed at the end */
    struct cluster cluster;   /* by filter_read_model */
    struct costs costs;
};

/* Loads users' ops, runs the filter on the file that is the only operand, or stdin, and does what
 * tool_main does. */
int filter_main(struct filter *filter, const struct option_table *table, int argc, char **argv);

/* Reads the files of the cluster and of measured costs, if they are given. */
int filter_read_model(struct filter *filter, struct error *err);

/* Adds a graph to `made`; NULL: none. */
void filter_add(struct filter *filter, struct graph *graph);

/* Prints a line for the user, of a script or of a pass that explains, on stderr. */
void filter_print_line(const char *line);

/* Returns the graph that was made last, or that was read. */
struct graph *filter_last(const struct filter *filter);

#endif
