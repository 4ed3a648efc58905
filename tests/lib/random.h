/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers that are the same in each run, for tests and benchmarks.
 */
#ifndef TF_TESTS_LIB_RANDOM_H
#define TF_TESTS_LIB_RANDOM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t unit_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Returns a number from least to most. */
static inline long long random_between(uint64_t *state, long long least, long long most)
{
    return least + (long long)(unit_random(state) % (uint64_t)(most - least + 1));
}

/* Pauses for less than a kernel mostly, now and then for as long as many kernels. */
static inline void pause_at_random(uint64_t *seed)
{
    uint64_t r = unit_random(seed);
    long us = r % 16 ? (long)(r >> 8) % 200 : 2000 + (long)(r >> 8) % 4000; /* a heavy tail */
    struct timespec pause = {0, us * 1000};
    nanosleep(&pause, NULL);
}

/* The seeds of a test with random input: in the environment, NAME is their number and NAME_SEED the
 * first, which a failed test prints. */
struct seed_range {
    uint64_t first;
    int n;
    bool given; /* by NAME_SEED: what holds for many need not hold for these */
};

static inline struct seed_range seeds_of(const char *name, int usual)
{
    char first_name[64];
    snprintf(first_name, sizeof first_name, "%s_SEED", name);
    const char *count = getenv(name), *first = getenv(first_name);
    return (struct seed_range){.first = first ? strtoull(first, NULL, 10) : 1,
                               .n = count ? atoi(count) : usual,
                               .given = first != NULL};
}

#endif
