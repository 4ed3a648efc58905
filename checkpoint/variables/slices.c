/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/slices.h"

#include "base/container_of.h"

struct entries {
    struct saved_parts parts;
    struct checkpoint *checkpoint; /* mutable for reading; looking up does not change it */
};

static struct checkpoint *checkpoint_of(const struct saved_parts *parts)
{
    return CONTAINER_OF(parts, const struct entries, parts)->checkpoint;
}

static struct saved_part entry_at(const struct saved_parts *parts, size_t i)
{
    return manifest_tensor_part(checkpoint_of(parts)->entries.items[i].tensor);
}

static int read_entry(const struct saved_parts *parts, size_t i, struct tensor *value,
                      struct error *err)
{
    return checkpoint_read(checkpoint_of(parts), (int)i, value, err);
}

/* Several threads may ask for the first variables. */
static struct entries entries_of(struct checkpoint *c)
{
    struct entries all = {{c->name, c->entries.n, entry_at, read_entry, &c->index}, c};
    pthread_mutex_lock(&c->index_lock);
    if (!c->index.links.n)
        saved_parts_index(&all.parts, &c->index);
    pthread_mutex_unlock(&c->index_lock);
    return all;
}

int checkpoint_load_variables(struct checkpoint *c, const struct load_request *wanted,
                              saved_variables *saved, struct error *err)
{
    const struct entries entries = entries_of(c);
    return saved_parts_load(&entries.parts, wanted, saved, err);
}

int checkpoint_read_variable(struct checkpoint *c, const struct variable *like,
                             struct tensor *value, uint64_t *updates, struct error *err)
{
    const struct entries entries = entries_of(c);
    return saved_parts_read(&entries.parts, like, value, updates, err);
}
