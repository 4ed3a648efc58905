/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the verbs of command.h.
 */
#ifndef TF_CHECKPOINT_COMMAND_PRIVATE_H
#define TF_CHECKPOINT_COMMAND_PRIVATE_H

#include "checkpoint/command/command.h"

void command_say(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports each damaged checkpoint, which does not affect the others, and releases the list. */
void command_say_damages(struct command *command, damage_vec *damages);

#endif
