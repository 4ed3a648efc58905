/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of tf-ckpt, apart from its options and terminal. Each takes its operands, does its work
 * and leaves its output in `out`.
 *
 * To add a verb: a function here, a row in bin/ckpt_verbs.def.
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
    bool replace; /* copy, import: replace a checkpoint of the same step */
    double lock_wait;
    const atomic_bool *cancelled; /* when true, waits end; NULL: they cannot be cancelled */
    const char *owner, *producer; /* "tf-ckpt prune", and the same with version and arguments */
    struct retain_policy policy;
    const char *by;  /* metric of policy.best */
    double fraction; /* share of the data that verify reads */
    int64_t step;    /* of import; -1: the step in the file, or 0 */
    const char *run_name;
    struct maintain_watch watch;
    void (*say)(void *context, const char *line); /* gets notices that are not errors */
    void *context;

    /* Left by the verb; command_release. */
    struct str out;
    struct text_metrics metrics;
};

void command_release(struct command *command);

/* For --metrics: measures the store's final state. */
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

/* Opens the source `name`; reports if a newer checkpoint was skipped. */
int command_open(struct command *command, const char *name, struct source *source,
                 struct error *err);

/* Opens a store to write to it, whatever dry_run says, which other verbs may have been given. */
int command_open_writing(struct command *command, const char *path, struct store **store,
                         struct error *err);

#endif
