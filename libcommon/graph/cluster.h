/* SPDX-License-Identifier: Apache-2.0
 *
 * The cluster file: which tasks there are, where they listen, on what hosts, which devices they
 * have, and how fast the links between them are. For those who write such a file docs/cluster.md
 * describes it.
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
#include "graph/device_name.h"

#define SHARD_JOB "ps" /* the job whose tasks hold variables */

/* Defaults for a link that the file does not describe. */
#define CLUSTER_BANDWIDTH 1e9 /* bytes a second */
#define CLUSTER_LATENCY 50e-6 /* seconds */

/* What cluster files and files of costs state about a device, in KEY=VALUE words. The device itself
 * is never opened for it. A member of 0 is unknown. */
struct device_facts {
    int64_t memory_bytes;
    double speed;      /* compared with others of its type */
    double operations; /* per second, at speed 1, */
    double bandwidth;  /* and bytes per second between a kernel and its memory */
    double bus;        /* bytes per second to and from the memory of its host, in each direction */
};

/* ERR_CONFIG "KEY=VALUE: what", without the name of the file. */
int device_facts_set(struct device_facts *facts, const char *key, const char *value,
                     struct error *err);

/* Takes facts that are unknown from `others`. */
void device_facts_fill(struct device_facts *facts, const struct device_facts *others);

struct cluster_task {
    const char *name; /* "ps:0" */
    const char *job;
    int index;           /* within the job, from 0 */
    const char *address; /* HOST:PORT, unix:NAME */
    int host;            /* index into the hosts */
    int first_device, n_devices;
    int64_t memory_bytes; /* of each of its devices; 0: no limit */
    double speed;         /* of its devices, relative: 2 computes twice as fast as 1 */
};

/* A machine. One adapter carries all that its tasks send to and receive from tasks of other
 * machines. */
struct cluster_host {
    const char *name;
    double bandwidth; /* of the adapter, in each direction, bytes a second; 0: no limit */
    int cores;        /* for all its tasks; 0: unknown */
    int within;       /* host that this container or virtual machine runs on; -1: none */
};

/* One end of a link: the tasks of a host; or one task of a job; or all tasks of a job (index -1);
 * or any task (job ""). */
struct cluster_end {
    const char *job;
    int index;
    int host; /* -1: `job` and `index` apply */
};

struct cluster_link {
    struct cluster_end a, b; /* both directions */
    double bandwidth;        /* bytes a second */
    double latency;          /* seconds */
};

/* A `device` line. */
struct cluster_device {
    struct cluster_end tasks;
    const char *type;
    int index; /* DEVICE_OPEN: all of the type */
    struct device_facts facts;
};

struct cluster {
    VEC(struct cluster_task) tasks;   /* in the file's order */
    VEC(struct device_name) devices;  /* full; those of a task are neighbours */
    VEC(struct cluster_host) hosts;   /* each has a task, or contains a host that has */
    VEC(struct cluster_link) links;   /* in the file's order */
    VEC(struct cluster_device) facts; /* likewise */
    double core_time; /* CPU time of transfers relative to where the costs were measured
                       * (pass/place/cost.h); 0: the same */
    struct arena arena;
};

/* ERR_NOINPUT, or ERR_CONFIG: "FILE:LINE: what". The cluster is zero-initialised before. */
int cluster_read(struct cluster *cluster, const char *path, struct error *err);
int cluster_parse(struct cluster *cluster, const char *text, const char *name, struct error *err);
void cluster_release(struct cluster *cluster);

/* NULL when there is no such task. */
const struct cluster_task *cluster_find(const struct cluster *cluster, const char *job, int index);

/* Returns the number of tasks of a job; 0: there is no such job. */
int cluster_count(const struct cluster *cluster, const char *job);

/* Returns the host whose cores a host's tasks use: the one that it runs on, or itself. */
int cluster_machine(const struct cluster *cluster, int host);

/* Returns the facts of a device, by its full name: each key from the last line that sets it;
 * without one, memory and speed are those of its task. */
struct device_facts cluster_facts(const struct cluster *cluster, const struct device_name *device);

/* Returns the link between two tasks, from the last matching line. Without one: 50 us, and between
 * two hosts the smaller of their bandwidths as far as they state any, else 1 GB/s. Traffic of other
 * tasks of the host is not considered. */
struct cluster_link cluster_link(const struct cluster *cluster, const struct cluster_task *a,
                                 const struct cluster_task *b);

#endif
