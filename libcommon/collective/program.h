/* SPDX-License-Identifier: Apache-2.0
 *
 * What one member does about a chunk of a value: its part of all flows of the chunk's piece, as a
 * list. Each action is done when those before it are, and what it wants is there.
 */
#ifndef TF_COLLECTIVE_PROGRAM_H
#define TF_COLLECTIVE_PROGRAM_H

#include "collective/schedule.h"

enum act {
    ACT_SEND, /* what the member has, to another */
    ACT_ADD,  /* what another sends, to what it has */
    ACT_COPY, /* the sum, which another sends */
};

struct chunk_action {
    enum act what;
    int member; /* to whom, or from whom */
    bool whole; /* it is the sum; of an add: since then */
};

struct chunk_program {
    VEC(struct chunk_action) actions;
};

/* Appends to the program. Of a schedule that keeps nothing. */
void program_make(const struct sum_schedule *schedule, int member, int piece,
                  struct chunk_program *program);

#endif
