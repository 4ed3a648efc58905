/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster file: which tasks there are, where they listen, on what hosts, what devices they
 * have, and how fast the links between them are. docs/cluster.md describes it for those who write
 * one.
 *
 *     task  ps:0      10.0.0.6:7000  device=CPU:0 memory=1G
 *     task  worker:0  10.0.0.7:7010  device=CPU:0,CPU:1 speed=1.5 host=fast
 *     host  fast      bandwidth=120M cores=8
 *     host  10.0.0.6  bandwidth=60M within=fast
 *     device worker:0 GPU:0 memory=80G bus=24G
 *     link  *  *      bandwidth=2G latency=50us
 *
 * A cluster owns what it points to. Any number of threads may read it.
 */
#ifndef TF_GRAPH_CLUSTER_H
#define TF_GRAPH_CLUSTER_H

#include "base/arena.h"
#include "base/vec.h"
#include "graph/device_facts.h"
#include "graph/device_name.h"

#define SHARD_JOB "ps" /* the tasks that keep variables */

/* Defaults for a link that the file does not describe. */
#define CLUSTER_BANDWIDTH 1e9 /* bytes a second */
#define CLUSTER_LATENCY 50e-6 /* seconds */

struct cluster_task {
    const char *job;
    int index;           /* of the job's tasks, from 0 */
    const char *address; /* HOST:PORT, unix:NAME */
    int host;            /* index into the hosts */
    int first_device, n_devices;
    int64_t memory_bytes; /* of each of its devices; 0: no limit */
    double speed;         /* of its devices: 2 computes twice as fast as 1 */
};

/* A machine. One adapter carries all that its tasks send to and receive from tasks of other
 * machines. */
struct cluster_host {
    const char *name;
    double bandwidth; /* of the adapter, in each direction, bytes a second; 0: no limit */
    int cores;        /* for all its tasks; 0: not said */
    int within;       /* a container or a virtual machine, on that host; -1: a machine itself */
};

/* Which tasks a link is between: those of a host; or a job's, or any ("*", ""): one of them, or
 * any (-1). */
struct cluster_end {
    const char *job;
    int index;
    int host; /* -1: the others say */
};

/* Returns whether a task is one of those. */
bool cluster_end_fits(const struct cluster_end *end, const struct cluster_task *task);

struct cluster_link {
    struct cluster_end a, b; /* both directions */
    double bandwidth;        /* bytes a second */
    double latency;          /* seconds */
};

/* A line that describes devices. */
struct cluster_device {
    struct cluster_end tasks;
    const char *type;
    int index; /* DEVICE_OPEN: all of the type */
    struct device_facts facts;
};

struct cluster {
    VEC(struct cluster_task) tasks;   /* in the file's order */
    VEC(struct device_name) devices;  /* full; those of a task are neighbours */
    VEC(struct cluster_host) hosts;   /* each has a task, or one within it */
    VEC(struct cluster_link) links;   /* in the file's order */
    VEC(struct cluster_device) facts; /* likewise */
    double core_time; /* what exchanges take of cores, of what they take where that was measured
                       * (pass/place/cost.h); 0: as much */
    struct arena arena;
};

/* ERR_NOINPUT, or ERR_CONFIG: "FILE:LINE: what". The cluster is zero-initialised before. */
int cluster_read(struct cluster *cluster, const char *path, struct error *err);
int cluster_parse(struct cluster *cluster, const char *text, const char *name, struct error *err);
void cluster_release(struct cluster *cluster);

/* NULL when there is no such task. */
const struct cluster_task *cluster_find(const struct cluster *cluster, const char *job, int index);

/* The tasks of a job; 0: there is no such job. */
int cluster_count(const struct cluster *cluster, const char *job);

/* The host whose cores a host's tasks have: the one that it is within, or itself. */
int cluster_machine(const struct cluster *cluster, int host);

/* Returns the facts of a device, by its full name: for each key those of the last line that has it,
 * or the memory and the speed of its task where no line has them. */
struct device_facts cluster_facts(const struct cluster *cluster, const struct device_name *device);

/* The link between two tasks: the last line that is about them; without one 50 us, and the smaller
 * bandwidth of their hosts where these are two and say any, else 1 GB/s. The traffic of other tasks
 * of the host is not part of it. */
struct cluster_link cluster_link(const struct cluster *cluster, const struct cluster_task *a,
                                 const struct cluster_task *b);

#endif
