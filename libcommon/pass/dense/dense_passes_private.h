/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of passes share. Private to libcommon/pass/dense.
 */
#ifndef TF_PASS_DENSE_PASSES_PRIVATE_H
#define TF_PASS_DENSE_PASSES_PRIVATE_H

#include "pass/dense/dense_private.h"

/* What a pass has of an output of the source. */
struct stands_for {
    struct edge edge;
    int pass;
    struct edge result;
};

struct passes {
    struct dense_cutter *c; /* what is known of the source; its copies are of what is there once */
    int n;
    bool by_worker;        /* pass k has the rows of worker k; else each a part of each worker's */
    bool *is_in;           /* by node: it is there in each pass */
    bool *is_update;       /* by node in passes: it changes layers' variables, or is for that */
    bool *is_writer;       /* by node: it changes them */
    bool *is_written;      /* by variable: passes change it */
    bool *reads;           /* by node: it depends on the value of one that they change */
    int *first;            /* by node in passes: its copy in the first; the others follow */
    struct edge reference; /* of the source: the rows of which shares are meant */
    VEC(struct stands_for) known;
    struct build *b;
};

/* dense_passes_find.c: what is in passes, and the rows that shares are of. */
int dense_find_passes(struct passes *p);

/* dense_passes_update.c, with update_each. What changes layers in each pass; once it is known what
 * else is in passes, whether an entry would train that does not now; and, when all is there, that a
 * pass reads what the one before has left. */
int dense_find_updates(struct passes *p);
int dense_check_entries(struct passes *p);
void dense_order_updates(struct passes *p);

#endif
