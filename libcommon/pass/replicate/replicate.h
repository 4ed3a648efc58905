/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication: a graph that trains becomes one that many workers train. What a worker computes is
 * there once, on /job:worker/task:*; variables, and what changes them, go to /job:ps, where the
 * placer spreads them. The cut is at the gradients, which minimize() hands over through nodes with
 * the attribute _gradient:
 *
 *     entry train     reads variables, computes, pushes to an AggregatorPush beside each variable,
 *                     then ClockPush: resource/clock.h says how long that waits
 *     entry update    ClockRound, AggregatorTake beside each variable, the optimizer, ClockAdvance;
 *                     on shards only, run again and again by the task that has the clock
 *     entry join      a worker begins: the version to start from, and its last counted step
 *     entry leave     it has no more data
 *     entry rest      it gives shards what is nowhere else, for a checkpoint
 *
 * What an update needs from a worker besides gradients (a rate that is fed, the statistics of a
 * batch) is pushed along. What of it the worker itself needs, it computes of its own gradients.
 * What a worker runs after the updates comes after its ClockPush, and reads variables then.
 *
 * With all-reduce (the collective op AllReduce over the gradients) there are no shards: each worker
 * has all variables and updates them alike. Their sums may go by shards, which only add. The
 * gradient of a matrix of M by N, summed over a batch of K rows, is a product of K by M and K by N:
 * workers may exchange these factors instead, and each multiply all rows (sufficient factor
 * broadcasting; Xie et al., Lighter-Communication Distributed Machine Learning via Sufficient
 * Factor Broadcasting, UAI 2016).
 *
 * Workers may as well update by their own gradients for some steps, and then take the mean of what
 * all have (model averaging; Moritz et al., SparkNet, ICLR 2016). That is apart from the steps:
 *
 *     entry average   run every so many steps, the number that it fetches: what updates write
 *                     becomes the mean over all workers
 *     entry anchor    a worker begins: what it has now is what averages in code start from
 *
 * In-graph replication has no workers: one graph with some towers, each of which computes with a
 * part of the rows that are fed, on a device of its own. What came of them is put together, and
 * what follows is there once. A graph so made trains, alone, as the one that it was made of.
 *
 * Its towers may be micro-batches that go through a pipeline of stages, each a part of the model.
 *
 * Names of variables and seeds do not change, and do not tell workers apart.
 */
#ifndef TF_PASS_REPLICATE_H
#define TF_PASS_REPLICATE_H

#include "graph/graph.h"
#include "pass/place/cost.h"

#define REPLICATE_TOWERS_MAX 1024
#define REPLICATE_WORKERS_MAX 4096 /* costs of an exchange go with their square */
#define REPLICATE_POLICY_MAX 64
#define REPLICATE_INTERVALS_MAX 16
#define REPLICATE_WHOLE (-1)

enum replicate_mode {
    REPLICATE_POLICY,    /* `policy` is a clock's */
    REPLICATE_DOWNPOUR,  /* DistBelief's: fetch every so often, push every so often; async */
    REPLICATE_ALLREDUCE, /* among workers */
    REPLICATE_AUTO,      /* sync or all-reduce, what takes less time */
};

/* The form in which the gradient of a matrix crosses: whole, or as the two factors that it is a
 * product of, for each worker, or for the shard, to multiply. */
enum replicate_factors { FACTORS_NONE, FACTORS_AUTO /* what takes less time */, FACTORS_ALL };

/* All-reduce in few bits: the code's name and attributes (tf-op show QuantizeGradient). */
struct replicate_code {
    const char *name; /* NULL: none */
    int bits;
    double threshold;
    double share; /* of the elements that are kept */
};

/* Gradients of the variables that the pattern is of, or that are in its scope, are pushed every so
 * many steps; '*' stands for any characters. */
struct replicate_interval {
    const char *pattern; /* of the mode's text, which is borrowed */
    int n, steps;
};

/* Towers that are micro-batches of one batch, over stages; and how many of them may be forward on a
 * stage and not yet back again: */
enum replicate_pipeline {
    PIPELINE_NONE, /* towers side by side */
    PIPELINE_1F1B, /* on stage s of S, S - s: one goes forward, one back */
    PIPELINE_GPIPE /* all: first all forward, then all back */
};

struct replicate_options {
    enum replicate_mode mode;
    char policy[REPLICATE_POLICY_MAX]; /* resource/clock.h; of REPLICATE_AUTO the code that
                                        * all-reduce may use, as "bits=1" */
    int fetch, push;                   /* of downpour: every so many steps; 0: 1 */
    struct replicate_interval intervals[REPLICATE_INTERVALS_MAX]; /* of downpour: instead of `push`;
                                                                   * the last that matches counts */
    int n_intervals;
    double rate;    /* of downpour: of the worker's own steps in between; < 0: the optimizer's,
                     * if that is gradient descent, else 0 */
    int accumulate; /* steps whose gradients are averaged before they are pushed; 0: 1 */
    int workers;    /* that are expected; 0: as many as the placer's cluster has */
    enum replicate_factors factors;
    struct replicate_code code;
    enum schedule_kind schedule; /* of all-reduce of gradients that cross whole, */
    bool schedules;              /* or what takes the least time, */
    enum by_device by_device;    /* or a library of the devices', */
    bool by_servers;             /* or shards, which add and pass on; workers update */
    char dense;          /* dense layers are cut over workers, by that scheme: as of pass/dense */
    bool update_each;    /* and updated after each pass */
    bool may_code;       /* gradients cross in code only where that takes less time */
    int64_t piece_bytes; /* of all-reduce: whole gradients of products that are twice as large are
                          * made, summed and used in pieces of so many bytes; 0: 8 MiB;
                          * REPLICATE_WHOLE: none are */
    int delay;           /* updates are by what so many steps before have computed: 0 or 1 */
    int after;           /* so many updates gradients are coded */
    int average; /* workers update by their own gradients, and take the mean of what all have
                  * every so many steps; 0: updates are by what all have computed */
    const struct cluster *cluster; /* its links are the model's, and its workers; NULL: none */
    const struct costs *measured;  /* NULL: times are estimated */
    int64_t assume;                /* what an unknown dimension counts as */
    int replica_tasks;             /* of each worker, with shards; 0: 1 */
    int towers;                    /* in-graph replication, and how many; 0: another */
    const char *tower_device;      /* with a '*' for the tower's number; NULL: /job:worker/task:* */
    enum replicate_pipeline pipeline;
    int in_flight;   /* of a pipeline: and no more than these; 0: no such bound */
    int stages;      /* of a pipeline: so many are made, on the towers' devices; 0: the script's */
    double timeout;  /* seconds that a worker waits for others; 0: no limit */
    enum dtype wire; /* in which gradients and variables cross: DTYPE_INVALID: as they are */
    const char *entry; /* that trains; NULL: the one that does */

    /* Told of each node of the result that is new or moved: what became of it. NULL: nobody. */
    void (*note)(void *context, const char *node, const char *what);
    /* Told, a line after the other, what each gradient costs to exchange in each way, and what was
     * chosen by that: schedules, and, of REPLICATE_AUTO, modes. NULL: nobody. */
    void (*explain)(void *context, const char *line);
    void *context;
};

/* "sync", "sync,backup=1", "async", "ssp,bound=3", "downpour,fetch=5,push=5,rate=0.01",
 * "downpour,push.conv*=8", "allreduce", "allreduce,factors=auto", "allreduce,bits=1",
 * "allreduce,schedule=ring", "allreduce,pieces=8M", "allreduce,dense=a", b, c;
 * "allreduce,average=8";
 * "sync,factors=auto"; "sync,update=worker", also with what else all-reduce takes; "auto",
 * "auto,bits=1". ERR_USAGE with what there is. The text is borrowed. */
int replicate_parse(struct replicate_options *options, const char *mode, struct error *err);

/* The mode as users write it, without its further options. */
const char *replicate_mode_name(const struct replicate_options *options);

/* "1f1b", "gpipe", "1f1b,flight=2". ERR_USAGE with what there is. */
int replicate_parse_pipeline(struct replicate_options *options, const char *text,
                             struct error *err);

/* Returns how many workers there will be; 0: nobody knows. */
int replicate_workers(const struct replicate_options *options);

/* Before a graph is replicated by factors: where a gradient is the sum of a product of rows and of
 * terms that are the same in all workers, as of weight decay in the loss, the product is handed
 * over, and the sum comes after it. *to borrows from `from`; NULL: there is none such. */
int replicate_part_terms(const struct graph *from, struct graph **to, struct error *err);

/* The new graph, which borrows from `from`. ERR_USAGE: all-reduce with what is only for pushes, or
 * a choice without a number of workers; ERR_DATA when there is nothing that trains, or naming what
 * cannot be replicated. */
int replicate_graph(const struct graph *from, const struct replicate_options *options,
                    struct graph **to, struct error *err);

#endif
