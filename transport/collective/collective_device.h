/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums that devices of all members add, of a round whose values are theirs.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_DEVICE_H
#define TF_TRANSPORT_COLLECTIVE_DEVICE_H

#include "transport/collective/collective_round.h"

struct device_sum;

/* With the lock: the round's call has values on the group's device. */
void device_sum_new(struct process_group *group, struct collective_round *round);
void device_sum_free(struct device_sum *sum);
/* Goes on with the call when the values are there. */
void device_sum_await(struct device_sum *sum);
/* The round is settled, and some member has left. */
void device_sum_to_host(struct device_sum *sum);

/* With the lock: a round runs, or is over, and its number, if it has one, not waited for any more.
 */
void device_sums_look_at(struct device_sums *sums, const struct collective_round *round);
/* With the lock: nothing is enqueued any more, and the communicator is aborted, soon. */
void device_sums_give_up(struct device_sums *sums, const struct error *why);
void device_sums_free(struct device_sums *sums);

#endif
