/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources: objects that outlive steps and are no tensors (a clock, an aggregator), by container,
 * kind and name, beside the variables of a store. Kernels find theirs when they are prepared. The
 * contents of a resource are known to its kind alone; the store only keeps, snapshots and restores
 * it.
 *
 * A checkpoint has all resources as they were at one moment: each is marked then, which takes no
 * time, and what was marked is saved while steps go on.
 *
 * Thread-safe; each resource guards itself.
 */
#ifndef TF_EXEC_RESOURCE_H
#define TF_EXEC_RESOURCE_H

#include "exec/state/variable.h"

/* Takes the parts of resources that are saved, under names such as "clock:train/members", which no
 * variable has. The value is valid during the call; reference-counted memory may be shared, and
 * nobody changes it. */
struct resource_sink {
    int (*put)(struct resource_sink *sink, const char *container, const char *name,
               const struct tensor *value, struct error *err);
    const struct resource *saved; /* now */
};
/* Gives a part of the resource that is being saved; for kinds. */
int resource_put(struct resource_sink *sink, const char *part, const struct tensor *value,
                 struct error *err);

struct resource_size {
    int64_t bytes, items; /* that wait in it */
};

/* A kind: what the store of variables, checkpoints, shards and tools know of its resources. All
 * kinds that checkpoints keep are listed in resource/kinds.h. */
struct resource_kind {
    const char *name; /* "clock": a word, without ':' and '/' */
    /* It is marked before the others, which then still have all that it refers to. */
    bool marked_first;
    void *(*create)(const char *name);
    void (*free)(void *object);
    /* NULL, as the next two: no checkpoint keeps the kind, and kinds.h does not list it. Returns
     * another object, freed as any, with what is saved of this one at this moment, which later
     * changes do not affect: shares of counted tensors and copies of small things, as updates may
     * wait meanwhile. */
    void *(*snapshot)(void *object);
    /* Gives everything that a restart needs, as it was when marked, to `sink`, in parts with unique
     * names. */
    int (*save)(const void *snapshot, struct resource_sink *sink, struct error *err);
    /* Takes a part back, in the order of `save`. ERR_DATA: it cannot be such a part. */
    int (*restore)(void *object, const char *part, const struct tensor *value, struct error *err);
    /* Appends a line for a person to read. */
    void (*describe)(void *object, struct str *text);
    /* The size of what it keeps for others; NULL: negligible. */
    void (*size)(void *object, struct resource_size *size);
};

/* Finds or makes a resource, which is valid as long as the store. */
void *resource_get(struct variable_store *store, const struct resource_kind *kind,
                   const char *container, const char *name);

/* The next resource of the store, in the order of creation; NULL: the first, and after the last. */
struct resource {
    const struct resource_kind *kind;
    const char *container, *name;
    void *object;
    int id; /* 0, 1, ... in the order of creation */
};
struct resource *resource_next(struct variable_store *store, const struct resource *resource);

/* All resources of a store at one moment; zeroed: none. The store must live longer. */
struct resource_snapshot {
    const struct resource *resource;
    void *state; /* from its kind */
};

struct resource_snapshots {
    VEC(struct resource_snapshot) items;
};

/* Marks all resources, first those of kinds with marked_first. */
void resource_snapshots_place(struct variable_store *store, struct resource_snapshots *snapshots);
void resource_snapshots_release(struct resource_snapshots *snapshots);

/* Gives all parts of marked resources to `sink`, in the order of the snapshots. */
int resource_snapshots_save(const struct resource_snapshots *snapshots, struct resource_sink *sink,
                            struct error *err);

/* Returns whether the name is that of a part. */
bool resource_is_part(const char *name);

/* Takes a part back; the resource is made if there is none. `kinds` ends with NULL. ERR_DATA if
 * there is no such kind or the value is no such part. */
int resource_restore(struct variable_store *store, const struct resource_kind *const *kinds,
                     const char *container, const char *name, const struct tensor *value,
                     struct error *err);

#endif
