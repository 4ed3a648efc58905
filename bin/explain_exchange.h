/* SPDX-License-Identifier: Apache-2.0
 *
 * What tf-replicate --explain prints on stderr, as it is told of it (pass/replicate/replicate.h):
 * tables of what gradients cost to exchange, and what was chosen by them.
 */
#ifndef TF_BIN_EXPLAIN_EXCHANGE_H
#define TF_BIN_EXPLAIN_EXCHANGE_H

#include "pass/replicate/replicate.h"

/* The part of the table that has been printed. */
struct explanation {
    bool has_begun;
    char mode[128]; /* that it is of, where several are compared */
    struct replicate_total total;
};

/* A line for each gradient: what a worker sends in a step, and how long a step's exchange takes;
 * `context` is a struct explanation, zeroed at first. */
void explain_gradient(void *context, const struct replicate_choice *choice);
/* The last line, where one mode is all there is: what its table comes to. */
void explain_total(const struct explanation *explained, enum replicate_mode mode);
/* A line for each mode: the exchange of a step, with what is read. */
void explain_mode(void *context, const struct replicate_mode_choice *choice);
/* A line for each schedule, of all gradients that go by one. */
void explain_schedule(void *context, const struct replicate_schedule *schedule);

#endif
