/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources: what outlives steps and is no tensor (a clock, an aggregator), by container, kind and
 * name, beside the variables of a store. Kernels find theirs when they are prepared. The contents
 * of a resource are the business of its kind; the store only keeps, snapshots and restores it.
 *
 * A checkpoint has resources as they were at one moment: at that moment each is marked, which takes
 * no time, and what was marked is saved while steps go on.
 *
 * Thread-safe; each resource guards itself.
 */
#ifndef TF_EXEC_RESOURCE_H
#define TF_EXEC_RESOURCE_H

#include "exec/state/variable.h"

/* Takes the parts of a resource that is saved. The value is valid during the call;
 * reference-counted memory may be shared, and is not changed by anybody. */
struct resource_sink {
    int (*put)(struct resource_sink *sink, const char *part, const struct tensor *value,
               struct error *err);
};

struct resource_size {
    int64_t bytes, items; /* that wait in it */
};

/* A kind: what the store of variables, checkpoints, shards and tools know of its resources. All
 * kinds that are kept in checkpoints stand in resource/kinds.h. */
struct resource_kind {
    const char *name; /* "clock": a word, without ':' and '/' */
    /* The others still have all that it knows of when they are marked after it. */
    bool marked_first;
    void *(*create)(const char *name);
    void (*free)(void *object);
    /* NULL, with the next three: it is kept in no checkpoint, nor does it stand in kinds.h. Its
     * state at this moment: shares of counted tensors and copies of small things, as updates
     * may stand still meanwhile. It does not change with the object. */
    void *(*snapshot)(void *object);
    void (*free_snapshot)(void *snapshot);
    /* Gives all that a restart needs to `sink`, in parts with names of their own, as it was when it
     * was marked. */
    int (*save)(const void *snapshot, struct resource_sink *sink, struct error *err);
    /* Takes a part back, in the order in which parts were given. ERR_DATA when it cannot be one. */
    int (*restore)(void *object, const char *part, const struct tensor *value, struct error *err);
    /* Appends a line for a person. */
    void (*describe)(void *object, struct str *text);
    /* The size of what it keeps for others; NULL: nothing that counts. */
    void (*size)(void *object, struct resource_size *size);
};

/* Finds or makes; valid as long as the store. */
void *resource_get(struct variable_store *store, const struct resource_kind *kind,
                   const char *container, const char *name);

/* The next one of the store, in the order of creation; NULL: the first, and after the last. */
struct resource {
    const struct resource_kind *kind;
    const char *container, *name;
    void *object;
    struct resource *next;
};
struct resource *resource_next(struct variable_store *store, const struct resource *resource);

/* Told of each resource that is made from now on, before anybody gets it; one for a store. Lives
 * longer than the store is used. Not from within `made`. */
struct resource_watcher {
    void (*made)(struct resource_watcher *watcher, const struct resource *resource);
};
void resource_watch(struct variable_store *store, struct resource_watcher *watcher);

/* All resources of a store at one moment; zeroed: none. The store lives longer. */
struct resource_snapshot {
    const struct resource *resource;
    void *state; /* its kind's */
};

struct resource_snapshots {
    VEC(struct resource_snapshot) items;
};

/* Marks all resources, those of kinds that are marked first before the others. */
void resource_snapshots_place(struct variable_store *store, struct resource_snapshots *snapshots);
void resource_snapshots_release(struct resource_snapshots *snapshots);

/* Gives all parts of what was marked to `put`, in the order of the snapshots, under names like
 * "clock:train/members" that no variable has. */
struct resource_writer {
    int (*put)(struct resource_writer *writer, const char *container, const char *name,
               const struct tensor *value, struct error *err);
};
int resource_snapshots_save(const struct resource_snapshots *snapshots,
                            struct resource_writer *writer, struct error *err);

/* Returns whether the name is one of those. */
bool resource_is_part(const char *name);

/* Takes a part back; the resource is made if there is none. `kinds` ends with NULL. ERR_DATA when
 * there is no such kind or the value cannot be such a part. */
int resource_restore(struct variable_store *store, const struct resource_kind *const *kinds,
                     const char *container, const char *name, const struct tensor *value,
                     struct error *err);

#endif
