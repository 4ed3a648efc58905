/* SPDX-License-Identifier: Apache-2.0
 *
 * Which variant of the C library's functions computes in double precision. glibc chooses by the
 * CPU: with fused multiply-add some results differ in the last bit. For the arguments here they do,
 * so that the results tell the variants apart.
 */
#include <math.h>

#include "base/map.h"
#include "ops/device/cpu.h"

unsigned cpu_libm(void)
{
    volatile double base = 0.29239999999999999; /* computed at run time */
    static const struct {
        double (*function)(double);
        double at[2];
    } samples[] = {
        {exp, {0.15040000000000001, 0.48880000000000001}},
        {log, {1.1546000000000001, 3.2957000000000001}},
        {log1p, {0.24420000000000003, 0.38390000000000002}},
        {tanh, {0.046830000000000004, 0.073910000000000003}},
        {sin, {0.22090000000000001, 0.24100000000000002}},
        {cos, {0.31710000000000005, 0.33380000000000004}},
        {erf, {1.26729, 1.3004100000000001}},
    };
    double results[2 * sizeof samples / sizeof *samples + 1];
    size_t n = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (int k = 0; k < 2; k++)
            results[n++] = samples[i].function(samples[i].at[k]);
    results[n++] = pow(base, 2.7);
    return (unsigned)(hash_bytes(results, n * sizeof *results, 0) & 0xffff);
}
