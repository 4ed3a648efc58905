/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of numbers by name. Names are borrowed: they must outlive the index. Not thread-safe for
 * writing.
 */
#ifndef TF_BASE_NAME_INDEX_H
#define TF_BASE_NAME_INDEX_H

#include "base/map.h"
#include "base/vec.h"

struct name_link {
    int value;
    int next; /* index of the next link, plus one; 0: the end */
};

struct name_index {
    struct map first; /* name -> index of a link, plus one */
    VEC(struct name_link) links;
};

/* Prepends the number to the name's list. */
static inline void name_index_add(struct name_index *index, const char *name, int value)
{
    int64_t next = 0;
    map_get(&index->first, name, &next);
    vec_push(&index->links, ((struct name_link){value, (int)next}));
    map_put(&index->first, name, (int64_t)index->links.n);
}

/* for (const struct name_link *l = name_index_first(index, name); l; l = name_index_next(index, l))
 */
static inline const struct name_link *name_index_first(const struct name_index *index,
                                                       const char *name)
{
    int64_t link;
    return map_get(&index->first, name, &link) ? &index->links.items[link - 1] : NULL;
}

static inline void name_index_release(struct name_index *index)
{
    map_release(&index->first);
    vec_release(&index->links);
}

static inline const struct name_link *name_index_next(const struct name_index *index,
                                                      const struct name_link *link)
{
    return link->next ? &index->links.items[link->next - 1] : NULL;
}

#endif
