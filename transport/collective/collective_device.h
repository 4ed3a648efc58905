/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by devices, as in the interface (collective_device.c).
 */
#ifndef TF_TRANSPORT_COLLECTIVE_DEVICE_H
#define TF_TRANSPORT_COLLECTIVE_DEVICE_H

#include "exec/step/collective.h"

struct device_sums;

void device_sums_reduce(struct device_sums *sums, const struct collective_call *call,
                        struct collective_waiter *waiter);
bool device_sums_cancel(struct device_sums *sums, struct collective_waiter *waiter);
/* Nothing meets any more: the communicator is aborted, soon. */
void device_sums_give_up(struct device_sums *sums, const struct error *why);
void device_sums_free(struct device_sums *sums);

#endif
