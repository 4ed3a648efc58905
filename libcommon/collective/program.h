/* SPDX-License-Identifier: Apache-2.0
 *
 * What one member does about a chunk of a value, as a list of actions. Each is done when those
 * before it are, and what it wants is there. With direct sums of three members the owner of a chunk
 * has the program {SUM}, and the two others have {SEND to the owner, COPY from the owner}.
 */
#ifndef TF_COLLECTIVE_PROGRAM_H
#define TF_COLLECTIVE_PROGRAM_H

#include <stddef.h>

#include "collective/schedule.h"

enum act {
    ACT_SEND, /* what the member has */
    ACT_ADD,  /* what another has sent, to what the member has */
    ACT_SUM,  /* adds what all others have sent and its own, by rank, and sends all the sum */
    ACT_COPY, /* the sum, or whatever another has for it */
};

#define PROGRAM_PEER (-1) /* as a member: the chunk's own; one program serves many chunks */

struct chunk_action {
    enum act what;
    int member; /* to whom, or from whom */
    bool whole; /* nothing is to be added to it any more; of an add: since then */
};

struct chunk_program {
    struct chunk_action *actions;
    size_t n;
    bool awaits; /* something of others' */
};

/* Of a direct sum: its owner's, and another's, whose peer is the owner, or a server. */
extern const struct chunk_program program_owner, program_member;
/* Of what is not added: of who has it, whose peer gets it, and of who gets it from its peer. */
extern const struct chunk_program program_source, program_destination;

/* A member's part of a piece of a schedule, to be released. */
void program_make(const struct sum_schedule *schedule, int member, int piece,
                  struct chunk_program *program);
void program_release(struct chunk_program *program);

#endif
