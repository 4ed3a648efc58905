/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of tf-ckpt, without its options and its terminal. Each takes its operands, does its
 * work and leaves what is to be printed in `out`.
 *
 * To add a verb: a function here, a row in bin/tf-ckpt.c.
 */
#ifndef TF_CHECKPOINT_COMMAND_H
#define TF_CHECKPOINT_COMMAND_H

#include <stdatomic.h>

#include "checkpoint/command/text.h"
#include "checkpoint/policy/retain.h"

struct command {
    /* Set by the caller. */
    char **operands;
    int n_operands;
    bool json, dry_run, verbose;
    bool all;     /* show, diff: not only variables */
    bool replace; /* copy, import: a checkpoint of the same step */
    double lock_wait;
    const atomic_bool *cancelled; /* waits end; NULL: nothing ends them */
    const char *owner, *producer; /* "tf-ckpt prune", and with version and arguments */
    struct retain_policy policy;
    const char *by;  /* metric of policy.best */
    double fraction; /* of the data that verify reads */
    int64_t step;    /* of import; -1: what the file says, or 0 */
    const char *run_name;
    struct maintain_watch watch;
    void (*say)(void *context, const char *line); /* what is worth a line, though not an error */
    void *context;

    /* Left by the verb; command_release. */
    struct str out;
    struct text_metrics metrics;
};

void command_release(struct command *command);

/* For --metrics: how the store is at the end. */
void command_measure(struct command *command, struct store *store);

int command_init(struct command *command, struct error *err);
int command_list(struct command *command, struct error *err);
int command_show(struct command *command, struct error *err);
int command_diff(struct command *command, struct error *err);   /* ERR_NEGATIVE: they differ */
int command_verify(struct command *command, struct error *err); /* ERR_NEGATIVE: damage */
int command_forget(struct command *command, struct error *err);
int command_tag(struct command *command, struct error *err); /* also untag */
int command_prune(struct command *command, struct error *err);
int command_repair(struct command *command, struct error *err);
int command_copy(struct command *command, struct error *err);
int command_import(struct command *command, struct error *err);

/* Opens what `name` says; tells when a newer checkpoint was passed over. */
int command_open(struct command *command, const char *name, struct source *source,
                 struct error *err);

/* The advice on how to get past an error of copy and import, as a part of its line. */
int command_advise(struct error *err);

#endif
