/* SPDX-License-Identifier: Apache-2.0
 *
 * Choices of algorithms that must not change: a repeated measurement may give another result, and
 * another algorithm other bits. A choice has a name, which contains all that it depends on, and one
 * or two numbers. With a file (TF_GPU_CHOICES) choices are measured once, and appended to it.
 * Without a file nothing is measured, and choices live as long as the device.
 */
#ifndef TF_OPS_DEVICE_CHOICES_CUDA_H
#define TF_OPS_DEVICE_CHOICES_CUDA_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/vec.h"

struct cuda_choice {
    const char *name; /* of any length; without tabs and newlines */
    long number;      /* of an algorithm */
    size_t bytes;     /* of memory that it needs */
};

/* A device's choices, for all its libraries. */
struct cuda_choices {
    pthread_mutex_t lock; /* guards what follows */
    bool is_open;
    char *file; /* NULL: none */
    VEC(struct cuda_choice) all;
};

void cuda_choices_init(struct cuda_choices *choices);
void cuda_choices_close(struct cuda_choices *choices);

/* At the first call, reads the file that the environment names, which need not exist yet. ERR_DATA:
 * a line is malformed; ERR_OS: it cannot be read. Prepare calls this before the following
 * functions, which any thread may call. */
int cuda_choices_open(struct cuda_choices *choices, struct error *err);

/* Returns whether there is a file, so that unknown choices are to be measured. */
bool cuda_choices_measured(struct cuda_choices *choices);

/* Finds the choice of the name in *choice. False: there is none yet. */
bool cuda_choices_find(struct cuda_choices *choices, struct cuda_choice *choice);

/* Keeps the choice, with a copy of its name, and appends it to the file, in a single write of one
 * line, as other processes may append, too. If the file cannot be written, the next process has to
 * measure again. */
void cuda_choices_add(struct cuda_choices *choices, const struct cuda_choice *choice);

#endif
