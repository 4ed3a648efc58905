/* SPDX-License-Identifier: Apache-2.0
 *
 * Test cases of ops, read from text (tests/ops/README.md has the format). A case is either one op
 * with inputs and what comes out, or a graph with the steps to be run on it.
 */
#ifndef TF_TESTS_OPS_CASE_H
#define TF_TESTS_OPS_CASE_H

#include <stdio.h>

#include "base/arena.h"
#include "base/vec.h"
#include "graph/graph.h"

#define CASE_INPUTS_MAX 32

struct case_attr {
    const char *name, *text;
};

struct case_value { /* "fetch EDGE TENSOR", or one input or output of an op */
    const char *edge;
    struct tensor tensor;
    bool any; /* an output whose value is not checked */
};

struct case_step {
    const char *targets; /* edges, separated by spaces */
    const char *error;
    VEC(struct case_value) feeds;
    VEC(struct case_value) fetches;
};

struct test_case {
    struct arena arena;
    const char *file, *name;
    int line;
    const char *ops;    /* one op; of a graph: what the case is about, NULL: all its ops */
    const char *graph;  /* text of the graph, or NULL */
    const char *error;  /* substrings, any of which the message must have, separated by | */
    const char *nograd; /* why no gradient is checked */
    const char *grad;   /* input numbers; NULL: by default */
    bool grad2;         /* second derivatives, too */
    bool symmetric;     /* matrices are: an element is varied together with its mirror image */
    double tolerance;   /* < 0: by type */
    VEC(struct case_attr) attrs;
    VEC(struct case_value) in;
    VEC(struct case_value) out;
    VEC(struct case_step) steps;
};

struct case_reader {
    FILE *file;
    const char *path;
    int line;
    char *text; /* of getline */
    size_t capacity;
};

/* The next case. *more is false at the end. ERR_DATA with file and line. */
int case_read(struct case_reader *reader, struct test_case *test, bool *more, struct error *err);
void case_release(struct test_case *test);

/* Whether a word is in a list separated by spaces. */
bool case_lists(const char *list, const char *word);

#endif
