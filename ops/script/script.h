/* SPDX-License-Identifier: Apache-2.0
 *
 * The front end: a Lua 5.4 script that builds a graph. The language is described in
 * docs/language.md; layers, optimizers and the like are Lua in ops/prelude, which is built in.
 *
 * A script is input and runs in a sandbox: it sees ops, tensors and the pure part of Lua's library,
 * no files but Lua modules beside it, no clock, no other process; memory, instructions and nodes
 * are limited. All failures are one line: "digits.lua:7: node 'h': MatMul: inner dimensions ...".
 *
 * A script works on one graph, which it does not own, and is used by one thread.
 */
#ifndef TF_SCRIPT_SCRIPT_H
#define TF_SCRIPT_SCRIPT_H

#include "graph/graph.h"

struct script;

struct script_options {
    int64_t seed;         /* of every random op without its own seed */
    size_t memory_bytes;  /* of the Lua state, and of the graph; 0: SCRIPT_MEMORY_BYTES */
    int64_t instructions; /* of the Lua machine; 0: SCRIPT_INSTRUCTIONS */
    int64_t nodes;        /* in the graph; 0: SCRIPT_NODES */
    void (*print)(const char *line); /* gets the output of the script's print(); may be NULL */
};

#define SCRIPT_MEMORY_BYTES ((size_t)2 << 30)
#define SCRIPT_INSTRUCTIONS ((int64_t)2000000000) /* about half a minute */
#define SCRIPT_NODES ((int64_t)16 << 20)

/* The graph may already hold nodes, if it was read. Returns NULL with the error set. */
struct script *script_new(struct graph *graph, const struct script_options *options,
                          struct error *err);
void script_free(struct script *script);

/* Sets a parameter, "NAME=VALUE", which the script sees in D: a number, true, false or text, by its
 * form. ERR_USAGE if it is malformed. */
int script_define(struct script *script, const char *assignment, struct error *err);

/* Runs Lua text. `name` is for messages and the places of nodes; `require` looks in `folder`.
 */
int script_run(struct script *script, const char *text, size_t n, const char *name,
               const char *folder, struct error *err);

/* Runs a file ("-": stdin); `require` looks in its folder. */
int script_run_file(struct script *script, const char *path, struct error *err);

/* Adds gradients and an optimizer's updates, and the entry "train". The optimizer is a function of
 * the prelude's `optim` and its parameters: "adam,rate=0.001". */
int script_minimize(struct script *script, const char *loss, const char *optimizer,
                    struct error *err);

/* Adds d(of)/d(wrt[i]); each can be fetched as "grad/NAME", all of them by the entry "grad". */
int script_gradients(struct script *script, const char *of, const char *const *wrt, int n,
                     struct error *err);

/* Completes the graph: writes entries, aliases, colocation groups and seeds to it, with the entries
 * "init" (sets the variables' initial values) and "ready" (whether all have a value). ERR_USAGE for
 * a parameter that the script never read. Call once. */
int script_finish(struct script *script, struct error *err);

#endif
