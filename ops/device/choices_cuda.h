/* SPDX-License-Identifier: Apache-2.0
 *
 * What was measured on a device and is to stay as it is: a measurement that is made anew may come
 * out otherwise, and other algorithms have other bits. A choice has a name, which says all that it
 * depends on, and a number or two. With a file (TF_GPU_CHOICES) choices are measured once, and
 * appended to it; without one nothing is measured, and choices live as long as the device.
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

/* A device's, of all its libraries. */
struct cuda_choices {
    pthread_mutex_t lock; /* guards what follows */
    bool is_open;
    char *file; /* NULL: none */
    VEC(struct cuda_choice) all;
};

void cuda_choices_init(struct cuda_choices *choices);
void cuda_choices_close(struct cuda_choices *choices);

/* Reads the file that the environment names, which need not be there yet, the first time that it is
 * asked. ERR_DATA: a line of it is none of a choice; ERR_OS: it cannot be read. Called by prepare,
 * before the following ones, which any thread may call. */
int cuda_choices_open(struct cuda_choices *choices, struct error *err);

/* Returns whether there is a file, and so what is not known is to be measured. */
bool cuda_choices_measured(struct cuda_choices *choices);

/* The choice of the name that *choice has. False: nobody has chosen. */
bool cuda_choices_find(struct cuda_choices *choices, struct cuda_choice *choice);

/* Keeps it, with a copy of its name, and appends it to the file: one line, at once, as other
 * processes do it, too. A file that cannot be written costs no more than the next process's
 * measurement. */
void cuda_choices_add(struct cuda_choices *choices, const struct cuda_choice *choice);

#endif
