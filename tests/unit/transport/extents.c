/* SPDX-License-Identifier: Apache-2.0
 *
 * Extents compared with a model of single bytes. EXTENTS is how many random steps (default 20,000),
 * EXTENTS_SEED where they begin.
 */
#include "transport/value/extents.h"

#include <stdlib.h>
#include <string.h>

#include "lib/random.h"
#include "lib/unit.h"

#define SPACE 64
#define NONE (-2)

struct model {
    struct extents extents;
    int user[SPACE]; /* of each byte; EXTENT_KEPT; NONE: no memory */
};

static void check(const struct model *m)
{
    int user[SPACE];
    size_t end = 0, bytes = 0;
    for (int i = 0; i < SPACE; i++)
        user[i] = NONE;
    for (size_t i = 0; i < m->extents.all.n; i++) {
        const struct memory_extent *extent = &m->extents.all.items[i];
        assert_true(extent->offset >= end && extent->bytes > 0);
        end = extent->offset + extent->bytes;
        bytes += extent->bytes;
        assert_true(end <= SPACE);
        for (size_t k = extent->offset; k < end; k++)
            user[k] = extent->user;
    }
    assert_memory_equal(user, m->user, sizeof user);
    assert_int_equal(extents_bytes(&m->extents), bytes);
}

/* Returns the number of bytes without memory; SPACE + 1 if some are in use. */
static size_t fresh_at(const struct model *m, size_t offset, size_t bytes)
{
    size_t fresh = 0;
    for (size_t k = offset; k < offset + bytes; k++) {
        if (m->user[k] >= 0)
            return SPACE + 1;
        fresh += m->user[k] == NONE;
    }
    return fresh;
}

static void use(struct model *m, size_t from, size_t to, size_t bytes, int user)
{
    size_t offset, fresh, least = SPACE + 1;
    for (size_t at = from; at + bytes <= to; at++) {
        size_t here = fresh_at(m, at, bytes);
        least = here < least ? here : least;
    }
    bool found = extents_find(&m->extents, from, to, bytes, &offset, &fresh);
    assert_int_equal(found, least <= SPACE);
    if (!found)
        return;
    assert_true(offset >= from && offset + bytes <= to);
    assert_int_equal(fresh, fresh_at(m, offset, bytes));
    assert_int_equal(fresh, least);
    extents_use(&m->extents, offset, bytes, user, 0);
    for (size_t k = offset; k < offset + bytes; k++)
        m->user[k] = user;
}

static void change(struct model *m, bool forgets, size_t i)
{
    const struct memory_extent extent = m->extents.all.items[i];
    if (forgets)
        extents_forget(&m->extents, i);
    else
        m->extents.all.items[i].user = EXTENT_KEPT;
    for (size_t k = extent.offset; k < extent.offset + extent.bytes; k++)
        m->user[k] = forgets ? NONE : EXTENT_KEPT;
}

static size_t below(uint64_t *random, size_t n)
{
    return (size_t)(unit_random(random) % n);
}

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

static void random_steps(void **state)
{
    struct model m = {0};
    uint64_t random = (uint64_t)number("EXTENTS_SEED", 1);
    (void)state;
    for (int i = 0; i < SPACE; i++)
        m.user[i] = NONE;
    for (long step = 0, n = number("EXTENTS", 20000); step < n; step++) {
        size_t half = below(&random, 2) ? SPACE / 2 : 0;
        size_t i = m.extents.all.n ? below(&random, m.extents.all.n) : 0;
        uint64_t what = below(&random, 5);
        if (what < 2)
            use(&m, half, half + SPACE / 2, 1 + below(&random, 12), (int)(step % 1000));
        else if (m.extents.all.n && (what < 4 || m.extents.all.items[i].user == EXTENT_KEPT))
            change(&m, what == 4, i);
        check(&m);
    }
    vec_release(&m.extents.all);
}

/* It takes neighbouring free extents, and no more new memory than is missing. */
static void a_large_one_takes_what_others_left(void **state)
{
    struct model m = {0};
    size_t offset, fresh;
    (void)state;
    for (int i = 0; i < SPACE; i++)
        m.user[i] = NONE;
    use(&m, 0, SPACE, 4, 0);
    use(&m, 0, SPACE, 16, 1);
    use(&m, 0, SPACE, 2, 2);
    change(&m, false, 0);
    change(&m, false, 1);
    assert_true(extents_find(&m.extents, 0, SPACE, 20, &offset, &fresh));
    assert_int_equal(offset, 0);
    assert_int_equal(fresh, 0);
    assert_true(extents_find(&m.extents, 0, SPACE, 16, &offset, &fresh)); /* the extent that fits */
    assert_int_equal(offset, 4);
    change(&m, false, 2);
    assert_true(extents_find(&m.extents, 0, SPACE, 30, &offset, &fresh));
    assert_int_equal(offset, 0);
    assert_int_equal(fresh, 8);
    vec_release(&m.extents.all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_one_takes_what_others_left),
        cmocka_unit_test(random_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
