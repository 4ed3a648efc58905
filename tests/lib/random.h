/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers that are the same in each run, for tests and benchmarks.
 */
#ifndef TF_TESTS_LIB_RANDOM_H
#define TF_TESTS_LIB_RANDOM_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t unit_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

#endif
