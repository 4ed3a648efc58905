/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/device_facts.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"

/* Parses "80G", or a plain number such as "2e12". */
static bool read_bytes(const char *value, double *n)
{
    int64_t bytes;
    if (str_to_bytes(value, &bytes)) {
        *n = (double)bytes;
        return bytes > 0;
    }
    return str_to_float64(value, n) && *n > 0 && isfinite(*n);
}

int device_facts_set(struct device_facts *facts, const char *key, const char *value,
                     struct error *err)
{
    const struct {
        const char *key;
        double *to;
    } rates[] = {{"bandwidth", &facts->bandwidth}, {"bus", &facts->bus}};
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"speed", &facts->speed}, {"operations", &facts->operations}};
    for (int i = 0; i < 2; i++) {
        if (!strcmp(key, rates[i].key))
            return read_bytes(value, rates[i].to)
                       ? 0
                       : error_set(err, ERR_CONFIG, "%s=%s: not bytes a second, as 24G is", key,
                                   value);
        if (!strcmp(key, numbers[i].key))
            return str_to_float64(value, numbers[i].to) && *numbers[i].to > 0 &&
                           isfinite(*numbers[i].to)
                       ? 0
                       : error_set(err, ERR_CONFIG, "%s=%s: not a positive number", key, value);
    }
    if (!strcmp(key, "memory"))
        return str_to_bytes(value, &facts->memory_bytes) && facts->memory_bytes > 0
                   ? 0
                   : error_set(err, ERR_CONFIG, "%s=%s: not a size, as 80G is", key, value);
    return error_set(err, ERR_CONFIG,
                     "a device has memory, speed, operations, bandwidth and bus, not '%s'", key);
}

void device_facts_fill(struct device_facts *facts, const struct device_facts *others)
{
    facts->memory_bytes = facts->memory_bytes ? facts->memory_bytes : others->memory_bytes;
    facts->speed = facts->speed > 0 ? facts->speed : others->speed;
    facts->operations = facts->operations > 0 ? facts->operations : others->operations;
    facts->bandwidth = facts->bandwidth > 0 ? facts->bandwidth : others->bandwidth;
    facts->bus = facts->bus > 0 ? facts->bus : others->bus;
}
