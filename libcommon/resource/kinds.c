/* SPDX-License-Identifier: Apache-2.0 */
#include "resource/kinds.h"

#include "resource/aggregator.h"
#include "resource/clock.h"

const struct resource_kind *const resource_kinds[] = {&clock_kind, &aggregator_kind, NULL};
