/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication rewrites a graph that trains into one that many workers train. A worker's computation
 * exists once, on /job:worker/task:*; variables, and the nodes that change them, go to /job:ps,
 * where the placer spreads them. The graph is split at the gradients, which minimize() hands over
 * through nodes with the attribute _gradient:
 *
 *     entry train     reads variables, computes, pushes to an AggregatorPush beside each variable,
 *                     then ClockPush: resource/clock.h says how long that waits
 *     entry update    ClockRound, AggregatorTake beside each variable, the optimizer, ClockAdvance;
 *                     on shards only, run again and again by the task that has the clock
 *     entry join      a worker begins: the version to start from, and its last counted step
 *     entry leave     the worker has no more data
 *     entry rest      the worker gives the shards its private state, for a checkpoint
 *
 * Other values that an update needs from a worker (a fed rate, the statistics of a batch) are
 * pushed too. If the worker itself needs results of the update, it computes them from its own
 * gradients. Nodes that a worker runs after the updates follow its ClockPush, and read variables
 * then.
 *
 * With all-reduce (the collective op AllReduce over the gradients) there are no shards: each worker
 * has all variables and updates them identically. Shards may compute the sums, and nothing else.
 * The gradient of an M by N matrix, summed over a batch of K rows, is a product of K by M and K by
 * N: workers may exchange these factors instead, and each multiplies all rows (sufficient factor
 * broadcasting; Xie et al., Lighter-Communication Distributed Machine Learning via Sufficient
 * Factor Broadcasting, UAI 2016).
 *
 * Workers may instead update by their own gradients for some steps, and then average their
 * variables (model averaging; Moritz et al., SparkNet, ICLR 2016). This happens outside the steps:
 *
 *     entry average   run every so many steps, the number that it fetches: all variables that
 *                     updates write become the mean over all workers
 *     entry anchor    a worker begins: averages in code start from its present values
 *
 * In-graph replication has no workers: one graph has several towers, each of which computes with a
 * part of the rows that are fed, on a device of its own. The towers' results are combined, and the
 * nodes that follow exist once. The resulting graph, by itself, trains like the source.
 *
 * The towers may be micro-batches that pass through a pipeline of stages, each a part of the model.
 *
 * Names of variables and seeds do not change, and do not depend on the worker.
 */
#ifndef TF_PASS_REPLICATE_H
#define TF_PASS_REPLICATE_H

#include "pass/pass.h"
#include "pass/place/cost.h"

#define REPLICATE_TOWERS_MAX 1024
#define REPLICATE_WORKERS_MAX 4096 /* the cost of an exchange grows with its square */
#define REPLICATE_POLICY_MAX 64
#define REPLICATE_INTERVALS_MAX 16
#define REPLICATE_WHOLE (-1)

enum replicate_mode {
    REPLICATE_POLICY,    /* `policy` is a clock's */
    REPLICATE_DOWNPOUR,  /* DistBelief's: workers fetch and push every so often; async */
    REPLICATE_ALLREDUCE, /* among workers */
    REPLICATE_AUTO,      /* sync or all-reduce, whichever takes less time */
};

/* The form in which the gradient of a matrix crosses: whole, or as the two factors whose product it
 * is; each worker, or the shard, then multiplies them. */
enum replicate_factors { FACTORS_NONE, FACTORS_AUTO /* whichever takes less time */, FACTORS_ALL };

/* Quantized gradients: the code's name and attributes (tf-op show QuantizeGradient). */
struct replicate_code {
    const char *name; /* NULL: none */
    int bits;
    double threshold;
    double share; /* of the elements that are kept */
};

/* Gradients of the variables that match the pattern, or are in a scope that does, are pushed every
 * `steps` steps; '*' stands for any characters. */
struct replicate_interval {
    const char *pattern; /* part of the mode's text, which is borrowed */
    int n, steps;
};

/* The pipeline of towers that are micro-batches of one batch: how many of them may have gone
 * forward on a stage without having come back. */
enum replicate_pipeline {
    PIPELINE_NONE, /* the towers run side by side */
    PIPELINE_1F1B, /* S - s on stage s of S, which alternates forward and backward */
    PIPELINE_GPIPE /* all: all go forward, then all back */
};

struct replicate_options {
    enum replicate_mode mode;
    char policy[REPLICATE_POLICY_MAX]; /* resource/clock.h; REPLICATE_AUTO: the code that all-reduce
                                        * may use, as "bits=1" */
    int fetch, push;                   /* downpour: every so many steps; 0: 1 */
    struct replicate_interval intervals[REPLICATE_INTERVALS_MAX]; /* downpour, instead of `push`;
                                                                   * the last match applies */
    int n_intervals;
    double rate;    /* downpour: learning rate of the worker's own steps in between; < 0: the
                     * optimizer's if that is gradient descent, else 0 */
    int accumulate; /* number of steps whose gradients are averaged before a push; 0: 1 */
    int workers;    /* expected number; 0: as many as the placer's cluster has */
    enum replicate_factors factors;
    struct replicate_code code;
    enum schedule_kind schedule; /* all-reduce: how whole gradients are summed */
    bool schedules;              /* by the schedule that takes the least time instead */
    enum by_device by_device;    /* by a library of the devices instead */
    bool by_servers;             /* by shards instead, which add and pass on; workers update */
    char dense;          /* the scheme by which dense layers are split over workers: pass/dense */
    bool update_each;    /* dense layers are updated after each pass */
    bool may_code;       /* gradients cross in code only where that takes less time */
    int64_t piece_bytes; /* all-reduce: gradients of products that are at least twice as large are
                          * computed, summed and used in pieces of so many bytes; 0: 8 MiB;
                          * REPLICATE_WHOLE: none are */
    int delay;           /* updates use the gradients of so many steps before: 0 or 1 */
    int after;           /* gradients are coded only after so many updates */
    int average; /* workers update by their own gradients, and average their variables every so many
                  * steps; 0: updates use the gradients of all workers */
    const struct cluster *cluster; /* the workers, and the cost model's links; NULL: none */
    const struct costs *measured;  /* NULL: times are estimated */
    int64_t assume;                /* the size assumed for an unknown dimension */
    int replica_tasks;             /* tasks of each worker, with shards; 0: 1 */
    int towers;                    /* number of towers of in-graph replication; 0: another kind */
    const char *tower_device;      /* with a '*' for the tower's number; NULL: /job:worker/task:* */
    enum replicate_pipeline pipeline;
    int in_flight;     /* pipeline: at most so many micro-batches are in flight; 0: no limit */
    int stages;        /* pipeline: so many are made, on the towers' devices; 0: the script's */
    double timeout;    /* seconds that a worker waits for others; 0: no limit */
    enum dtype wire;   /* in which gradients and variables cross; DTYPE_INVALID: their own */
    const char *entry; /* the entry that trains; NULL: the only one that does */
    const struct pass_options *pass; /* told of each new or moved node of the result, and of what
                                      * became of it; NULL: nobody */
    /* Called for each line of the explanation: the cost of exchanging each gradient in each way,
     * and the choices made by it: schedules and, with REPLICATE_AUTO, modes. NULL: nobody. */
    void (*explain)(const char *line);
};

/* Parses a mode: "sync", "sync,backup=1", "async", "ssp,bound=3",
 * "downpour,fetch=5,push=5,rate=0.01", "downpour,push.conv*=8", "allreduce",
 * "allreduce,factors=auto", "allreduce,bits=1", "allreduce,schedule=ring", "allreduce,pieces=8M",
 * "allreduce,dense=a" (b, c), "allreduce,average=8", "sync,factors=auto", "sync,update=worker"
 * (also with all-reduce's words), "auto", "auto,bits=1". ERR_USAGE naming these. The text is
 * borrowed. */
int replicate_parse(struct replicate_options *options, const char *mode, struct error *err);

/* Returns the mode as users write it, without its further options. */
const char *replicate_mode_name(const struct replicate_options *options);

/* Parses "1f1b", "gpipe", "1f1b,flight=2". ERR_USAGE naming the valid ones. */
int replicate_parse_pipeline(struct replicate_options *options, const char *text,
                             struct error *err);

/* Returns how many workers there will be; 0: unknown. */
int replicate_workers(const struct replicate_options *options);

/* Prepares a graph for replication by factors: where a gradient is the sum of a product of rows and
 * of terms that are equal in all workers (weight decay in the loss), the product is handed over,
 * and the sum comes after it. *to borrows from `from`; NULL: no gradient is such a sum. */
int replicate_part_terms(const struct graph *from, struct graph **to, struct error *err);

/* Makes the new graph, which borrows from `from`. ERR_USAGE if all-reduce has options that apply
 * only to pushes, or a choice depends on an unknown number of workers; ERR_DATA if nothing trains,
 * or naming a node that cannot be replicated. */
int replicate_graph(const struct graph *from, const struct replicate_options *options,
                    struct graph **to, struct error *err);

/* Adds a clock on ps:0 to a graph in tiles that are on shards: each step of the entry that trains
 * (NULL: the only one) is one of its rounds, and the driver, worker:0, its only worker. A graph
 * that does not train stays as it is. timeout: seconds that a step waits for its round. ERR_DATA:
 * several entries train, or another one needs what changes in that one. */
int replicate_grid_clock(struct graph *graph, const char *entry, double timeout, struct error *err);

#endif
