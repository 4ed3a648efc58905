/* SPDX-License-Identifier: Apache-2.0
 *
 * What tf-show prints of a record: one function per kind. To add a kind of record, add its
 * show_KIND here and a row in show.c.
 */
#ifndef TF_SHOW_SHOW_H
#define TF_SHOW_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/str.h"
#include "graph/graph.h"
#include "wire/record.h"

/* Elements of a constant that `elide` leaves. */
#define SHOW_ELIDE 8

struct show {
    FILE *out;
    bool json;                /* one object per line, numbers exact */
    int verbose;              /* all elements of every tensor */
    const char *const *names; /* only these tensors; n_names 0: all */
    int n_names;
    bool *found;                     /* by name: whether the tensor was found; or NULL */
    bool text, dot;                  /* graphs: in full, as text or for Graphviz */
    bool costs;                      /* traces: times for the placer */
    bool elide;                      /* graphs: cut long constants */
    bool no_places;                  /* graphs, with text: no places in the script */
    int64_t depth;                   /* graphs, dot: scopes this deep are one box; 0: none */
    const struct registry *registry; /* the ops that graphs are made of */
    struct trace_summary *trace;     /* trace records are summed up here until show_end */
};

/* Dispatches by the record's kind. ERR_IO. */
int show_record(const struct show *show, const struct record *record, struct error *err);

/* Prints what is known only after all records were read. */
int show_end(const struct show *show, struct error *err);

/* `feed 1  x float32[64,64] min 0 max 16 mean 4.88` */
int show_feed(const struct show *show, const struct record *record, struct error *err);
/* `step 1  accuracy 0.966667` */
int show_fetch(const struct show *show, const struct record *record, struct error *err);
/* `float32[2,1]  3 7`, or with a name `hidden/W  float32[64,128]  min -0.2 max 0.2 mean 0.01` */
int show_tensor(const struct show *show, const struct record *record, struct error *err);

/* `plan   train  61 of 87 nodes  x float32[64,64]  peak 181.0 KiB`, and what runs in which order.
 */
int show_plan(const struct show *show, const struct record *record, struct error *err);
/* Adds to show->trace; with --json prints a line per event. */
int show_trace(const struct show *show, const struct record *record, struct error *err);

/* `graph   87 nodes on 1 device`, then entries, feeds, state, provenance; or the whole graph. */
int show_graph(const struct show *show, const struct record *record, struct error *err);

/* Returns whether the user wants to see a tensor of this name. */
bool show_wants(const struct show *show, const char *name);

/* ---- traces: the time of steps, and the time of kernels by op ---- */

struct trace_summary *trace_summary_new(void);
void trace_summary_free(struct trace_summary *summary); /* NULL is harmless */

/* ERR_DATA for events that lack a required field. */
int trace_summary_add(struct trace_summary *summary, const struct record *record,
                      struct error *err);

/* `trace   460 steps  median 0.31 ms  p90 0.38 ms  in kernels 91%  2 threads`, and a table of ops
 * by decreasing time. Prints nothing if nothing was added. */
void trace_summary_print(const struct trace_summary *summary, struct str *out);

/* The same for the placer (docs/costs.md): `device TYPE memory=BYTES`, for devices with their own
 * memory, where BYTES is the smallest of the type; then `node NAME NS` with the mean time per step,
 * and `op NAME NS` with the mean time per call; each sorted by name. */
void trace_summary_print_costs(const struct trace_summary *summary, struct str *out);

/* ---- helpers, for tests and for other kinds ---- */

/* "512 B", "150.2 KiB" */
struct show_text {
    char s[32];
} show_bytes(int64_t bytes);

/* "min 0 max 16 mean 4.88", of finite numbers; "empty"; NaNs and infinities are counted. */
void show_summary(struct str *line, const struct tensor *t);

/* Elements separated by blanks, floats with six digits; "..." after `limit` elements. */
void show_elements(struct str *line, const struct tensor *t, int64_t limit);

/* Nested arrays with exact numbers. */
void show_json_tensor(struct str *line, const struct tensor *t);
/* Numbers that JSON lacks become "NaN", "Infinity" and "-Infinity". */
void show_json_float(struct str *line, double value);
/* A byte of invalid UTF-8 becomes the character with its number. */
void show_json_text(struct str *line, const char *text, size_t n);

/* Prints any header field as its JSON equivalent. */
void show_json_value(struct str *line, const msgpack_object *value);

/* "loss 0.31  accuracy 1": the scalars of a fetch record, for a live line. */
void show_scalars(const struct show *show, struct str *line, const struct record *record);

#endif
