/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/kinds.h"

#include "resource/aggregator.h"
#include "resource/clock.h"
#include "resource/worker_state.h"
#include "resource/worker_value.h"

const struct resource_kind *const resource_kinds[] = {&clock_kind, &aggregator_kind,
                                                      &worker_state_kind, &worker_value_kind, NULL};
