/* SPDX-License-Identifier: Apache-2.0
 *
 * The feeds of a step, gathered by name: some for all steps (options), the others from records, of
 * which a step may take several until it has all that it needs.
 */
#ifndef TF_EXEC_FEEDS_H
#define TF_EXEC_FEEDS_H

#include "base/str.h"
#include "exec/session/request.h"
#include "graph/edge_map.h"
#include "wire/record.h"

struct prefetched_batch;

struct feeds {
    const struct graph *graph;
    VEC(struct edge) edges;
    VEC(struct tensor) values;     /* same order; held */
    struct edge_map places;        /* indices of edges, some of which are no longer in the array */
    size_t n_constant;             /* the first ones are for all steps */
    VEC(struct named_tensor) kept; /* passed on unchanged (KEPT_MARK); held, names as well */
    struct record record;          /* the last that some were taken from */
    struct prefetched_batch *prefetched; /* these feeds on devices; NULL: nothing is prefetched */
};

/* Returns whether the text begins as a path, with / or ./, which no name of a node and no literal
 * does. */
static inline bool feeds_is_path(const char *text)
{
    return *text == '/' || str_starts(text, "./");
}

/* "NAME=FILE.npy", "NAME=PATH" of such a file (feeds_is_path), or "NAME=LITERAL", for all steps.
 * The literal takes the node's type. ERR_DATA for an unknown name or a value of another type. */
int feeds_add_constant(struct feeds *feeds, const char *text, struct error *err);

/* Takes another's constant feeds, and its graph; `feeds` is empty. */
void feeds_share_constants(struct feeds *feeds, const struct feeds *from);

/* Takes the tensors of the record, which is of feeds. It is an error if the graph has no node for
 * one, or if the step already has one. */
int feeds_add_record(struct feeds *feeds, struct error *err);

/* The name of a tensor of the record that was already fed, or NULL. */
const char *feeds_repeated(const struct feeds *feeds);

/* Returns whether output 0 of a node is fed. */
bool feeds_has(const struct feeds *feeds, int node);
/* True when every node of `needs` is fed. */
bool feeds_complete(const struct feeds *feeds, const struct node_list *needs);

/* Forgets, before the next step, the feeds from records. */
void feeds_clear(struct feeds *feeds);
void feeds_release(struct feeds *feeds);

#endif
