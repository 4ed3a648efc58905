/* SPDX-License-Identifier: Apache-2.0
 *
 * What the verbs of command.h share.
 */
#ifndef TF_CHECKPOINT_COMMAND_PRIVATE_H
#define TF_CHECKPOINT_COMMAND_PRIVATE_H

#include "checkpoint/command/command.h"

void command_say(struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Names what is damaged, which keeps nobody from the others, and releases it. */
void command_say_damages(struct command *command, damage_vec *damages);

int command_open_writing(struct command *command, const char *path, struct store **store,
                         struct error *err);

#endif
