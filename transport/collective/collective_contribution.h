/* SPDX-License-Identifier: Apache-2.0
 *
 * A member's contribution to a round, and the routing of values that go by rows.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_CONTRIBUTION_H
#define TF_TRANSPORT_COLLECTIVE_CONTRIBUTION_H

#include "transport/collective/collective_group.h"

struct reduce;

/* The routing of a value that goes by rows; zeroed: it does not. */
struct routed_value {
    bool is_routed;
    int at;                    /* which of those that are */
    int64_t unit;              /* elements of a row */
    int64_t brought, wanted;   /* here */
    struct row_routes routing; /* of the group; since the round is settled of who takes part */
    int64_t *counts;           /* the routing's */
};

/* A member's contribution to a round. */
struct round_contribution {
    bool here;
    bool nothing;       /* it declines */
    uint64_t signature; /* of types, shapes and kinds */
    struct tensor *values;
    int n, n_taken; /* the values that follow are of what comes next in the call */
    uint64_t *rows; /* two for each value that goes by rows: brought, and wanted */
    int n_rows;
    bool is_ready;   /* it has heard all, where rows come in chunks */
    uint64_t number; /* of a sum that devices add, from 1 on */
};

/* With the lock: which values of the call go by rows. */
void rows_call(struct process_group *group, struct collective_round *round,
               const struct collective_call *call);
void rows_free(struct collective_round *round);
/* Returns whether a value that does not go by rows is contributed, not sent in chunks. */
bool round_is_small(const struct collective_round *round, int value);
/* Tells the other members; the fields of such a record, and how many they are. */
void contribution_send(struct process_group *group, struct collective_round *round);
int contribution_fields(const struct reduce *reduce);
void contribution_pack(const struct process_group *group, msgpack_packer *packer,
                       const struct reduce *reduce);
/* With the lock: what another contributes. ERR_PROTOCOL. */
int contribution_take(struct process_group *group, struct collective_round *round, int rank,
                      uint64_t signature, const struct record *record, struct error *err);
/* The round is settled: makes results of what is small, and cuts rows that are not in chunks. */
int contributions_combine(struct process_group *group, struct collective_round *round,
                          struct error *err);
/* Makes a piece of a sum of rows their mean. */
void rows_divide(const struct collective_round *round, int value, struct tensor *piece);

#endif
