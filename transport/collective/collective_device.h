/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums that the devices of all members add: rounds whose values are in the memory of the devices.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_DEVICE_H
#define TF_TRANSPORT_COLLECTIVE_DEVICE_H

#include "transport/collective/collective_round.h"

struct device_sum;

/* With the lock: the values of the round's call are on the group's device. */
void device_sum_new(struct process_group *group, struct collective_round *round);
void device_sum_free(struct device_sum *sum);
/* Continues the call when the values are computed. */
void device_sum_await(struct device_sum *sum);
/* Continues in host memory: the round has settled, and some member has left. */
void device_sum_to_host(struct device_sum *sum);

/* With the lock: a round runs, or is over, so that its number, if any, is not waited for. */
void device_sums_look_at(struct device_sums *sums, const struct collective_round *round);
/* With the lock: nothing is enqueued from now on, and the communicator is aborted soon. */
void device_sums_give_up(struct device_sums *sums, const struct error *why);
void device_sums_free(struct device_sums *sums);

#endif
