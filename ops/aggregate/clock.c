/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of a training job, for workers and for the task that runs updates: resource/clock.h.
 */
#include "graph/infer.h"
#include "graph/op_cost.h"

#define NO_GRADIENT "a graph is replicated after its gradients are there"

#define CLOCK_ATTRS                                                                                \
    "clock: string, container: string = \"\", policy: string = \"sync\", workers: int = 0 >= 0, "  \
    "keeps: bool = false"
#define CLOCK_FLAGS (OP_STATEFUL | OP_NO_GRADIENT)

static int join_shape(struct infer *infer)
{
    if (infer->n_in > 1)
        return infer_fail(infer, "a worker has one journal");
    const struct shape rows = shape_matrix(-1, 2);
    if (infer->n_in && !shape_compatible(&infer->in[0]->shape, &rows))
        return infer_fail(infer, "the journal's heads are rows of two");
    return infer_output_scalar(infer);
}

#define CLOCK(op, ...)                                                                             \
    const struct op_def op_##op = {                                                                \
        .name = #op, .cost = cost_elements, .no_gradient = NO_GRADIENT, __VA_ARGS__}

CLOCK(
    ClockJoin, .inputs = "journal: N*int64",
    .outputs = "version: int64, seq: int64, clock: int64, counted: bool, own: bool, asked: bool",
    .attrs = CLOCK_ATTRS ", timeout: float = 0, drives: bool = false, N: int >= 0",
    .doc = "A worker begins: the version of the variables, and its last step that was decided.",
    .detail =
        "Waits until what the worker pushed in an earlier life is decided. 0: no step was. policy "
        "is sync;\nsync,backup=B; async; or ssp,bound=S. workers: how many are expected; 0: those "
        "who join. timeout: in\nseconds; 0: none. keeps: workers have states of their own "
        "(WorkerValueGive), and one that lost\nits own cannot come back. drives: rounds are of the "
        "one worker's steps (ClockRound), and what waits\nfor its round when the worker joins "
        "again is pushed again. journal: what JournalHeads says, if the\nworker has one. clock is "
        "the clock's incarnation; counted whether the step seq is in the variables;\nown whether "
        "the worker's state is in its journal and not on shards; asked as of ClockPush.",
    .flags = CLOCK_FLAGS | OP_ASYNC, .round = ROUND_OTHER, .shape = join_shape);

CLOCK(
    ClockPush, .inputs = "version: int64, tokens: N*int64",
    .outputs = "newest: int64, counted: bool, asked: bool",
    .attrs = CLOCK_ATTRS ", timeout: float = 0, N: int >= 0",
    .doc = "A worker's step is pushed whole: waits until it is decided and the worker may go on.",
    .detail =
        "version is that of the variables it was computed from. tokens are of AggregatorPushes of "
        "the step,\nand are checked; it waits for others by control edges. newest is the version "
        "to go on with. asked:\na checkpoint is to be made, and the worker is to give its state "
        "before it goes on, and to ClockRest.",
    .flags = CLOCK_FLAGS | OP_ASYNC, .round = ROUND_COMMIT, .shape = infer_all_scalars);

CLOCK(
    ClockRest, .inputs = "tokens: N*int64", .outputs = "newest: int64",
    .attrs = CLOCK_ATTRS ", timeout: float = 0, N: int >= 1",
    .doc = "A worker has given its state: waits until it is in a checkpoint, if one is to be made.",
    .detail = "tokens are those of its WorkerValueGives, after its last ClockPush. newest is the "
              "version to go\non with.",
    .flags = CLOCK_FLAGS | OP_ASYNC, .round = ROUND_OTHER, .shape = infer_all_scalars);

static int round_shape(struct infer *infer)
{
    infer->out[0] = SHAPE_SCALAR;
    infer->out[1] = (struct shape){.rank = 2, .dims = {-1, 3}};
    infer->out[2] = (struct shape){.rank = 2, .dims = {-1, 3}};
    return 0;
}

CLOCK(ClockRound, .outputs = "round: int64, members: int64, dropped: int64",
      .attrs = CLOCK_ATTRS ", entry: string = \"update\"",
      .doc = "Waits for the pushes that make up the next update, by the clock's policy.",
      .detail =
          "members and dropped are rows of worker, incarnation and step; members are ordered "
          "by worker.\nA step with a ClockRound that does not reach its ClockAdvance fails the "
          "clock. entry is what to run, again\nand again, on the task that has the clock; "
          "where it is empty rounds are of the steps of the one worker.",
      .flags = CLOCK_FLAGS | OP_ASYNC | OP_SHAPED_BY_DATA, .round = ROUND_BEGIN,
      .shape = round_shape);

CLOCK(ClockAdvance, .inputs = "round: int64", .attrs = CLOCK_ATTRS,
      .doc = "A round is applied: its version is published, and who may go on is let go.",
      .flags = CLOCK_FLAGS, .round = ROUND_OTHER, .shape = infer_all_scalars);

CLOCK(ClockLeave, .attrs = CLOCK_ATTRS,
      .doc = "A worker has no more data: nobody waits for it any more.", .flags = CLOCK_FLAGS,
      .round = ROUND_OTHER);
