/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable arrays. `VEC(T) v = VEC_INIT;` holds v.n items of type T in v.items. Zero-initialised is
 * empty. Growth never fails (memory.h). Pointers into v.items are valid until the next push.
 */
#ifndef TF_BASE_VEC_H
#define TF_BASE_VEC_H

#include <stddef.h>
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t n, capacity;                                                                        \
    }

#define VEC_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

#define vec_reserve(v, count)                                                                      \
    vec_grow_((void **)&(v)->items, &(v)->capacity, (count), sizeof *(v)->items)
#define vec_push(v, item) (vec_reserve((v), (v)->n + 1), (void)((v)->items[(v)->n++] = (item)))
/* The same in an arena's memory, with which the array is freed: do not release it. */
#define vec_push_in(arena, v, item)                                                                \
    (vec_grow_in_((arena), (void **)&(v)->items, &(v)->capacity, (v)->n + 1, sizeof *(v)->items),  \
     (void)((v)->items[(v)->n++] = (item)))
/* Iterates over the items of an array that does not grow meanwhile: `item` points to each. */
#define vec_each(item, v)                                                                          \
    for (__typeof__((v)->items + 0) item = (v)->items; (v)->n && item < (v)->items + (v)->n; item++)
#define vec_pop(v) ((v)->items[--(v)->n])
#define vec_release(v) vec_free_((void **)&(v)->items, &(v)->n, &(v)->capacity)

/* The place of a name among n texts, or structs that begin with one; n: it is not there. */
#define names_find(items, n, name) names_find_((items), (n), sizeof *(items), (name))
#define vec_find(v, name) names_find((v)->items, (v)->n, (name))

static inline size_t names_find_(const void *items, size_t n, size_t item_bytes, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(((const char *const *)items)[i * item_bytes / sizeof(char *)], name))
        i++;
    return i;
}

void vec_grow_(void **items, size_t *capacity, size_t count, size_t item_bytes);
struct arena;
void vec_grow_in_(struct arena *arena, void **items, size_t *capacity, size_t count,
                  size_t item_bytes);
void vec_free_(void **items, size_t *n, size_t *capacity);

#endif
