/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimates of how long what an op declares takes. Rates are those of one ordinary machine: an
 * estimate is for comparing devices and links, and what was measured takes its place.
 */
#include <string.h>

#include "pass/place/cost.h"

struct cost_rates cost_rates_of(const char *type, const struct device_facts *facts)
{
    struct cost_rates rates = {.operations = 10e12, .bandwidth = 500e9, .overhead = 5000};
    if (!strcmp(type, "CPU"))
        rates = (struct cost_rates){.operations = 40e9, .bandwidth = 8e9, .overhead = 500};
    if (facts && facts->operations > 0)
        rates.operations = facts->operations;
    if (facts && facts->bandwidth > 0)
        rates.bandwidth = facts->bandwidth;
    return rates;
}

bool cost_is_view(const struct cost_query *query)
{
    struct op_cost cost = cost_of(query);
    return !cost.is_free && !cost.bytes;
}

double cost_estimate_ns(const struct cost_query *query, const struct cost_rates *rates)
{
    struct op_cost cost = cost_of(query);
    double compute = cost.operations / rates->operations, move = cost.bytes / rates->bandwidth;
    return cost.is_free ? 0 : rates->overhead + 1e9 * (compute > move ? compute : move);
}
