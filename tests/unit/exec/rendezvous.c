/* SPDX-License-Identifier: Apache-2.0
 *
 * The rendezvous of one process: an announced value's source is asked once somebody waits for the
 * value, and each source and each waiter is told exactly once.
 */
#include "exec/step/rendezvous.h"

#include <string.h>

#include "lib/unit.h"

static const struct rendezvous_key key = {.tensor_name = "x", .send_device = "/device:CPU:0"};

struct source {
    struct rendezvous_source source; /* first */
    int n_wanted, n_dropped;
};

static void source_over(struct rendezvous_source *source, bool is_wanted)
{
    struct source *s = (struct source *)source;
    s->n_wanted += is_wanted;
    s->n_dropped += !is_wanted;
}

struct waiter {
    struct rendezvous_waiter waiter; /* first */
    int n_values, n_dead, n_failed;
};

static void arrived(struct rendezvous_waiter *waiter, const struct rendezvous_value *value,
                    const struct error *failure)
{
    struct waiter *w = (struct waiter *)waiter;
    w->n_values += value != NULL;
    w->n_failed += failure != NULL;
    w->n_dead += !value && !failure;
}

struct fixture {
    struct rendezvous *rendezvous;
    struct source source;
    struct waiter waiter;
};

static void begin(struct fixture *f)
{
    *f = (struct fixture){.rendezvous = rendezvous_local_new(0),
                          .source.source.release = source_over,
                          .waiter.waiter.arrived = arrived};
}

static int announce(struct fixture *f)
{
    struct error err = ERROR_INIT;
    struct rendezvous_value value = {.source = &f->source.source};
    return f->rendezvous->send(f->rendezvous, &key, &value, &err);
}

static void receive(struct fixture *f)
{
    f->rendezvous->receive(f->rendezvous, &key, &f->waiter.waiter);
}

/* Sends a scalar, or a dead value. */
static int send(struct fixture *f, bool is_dead, bool was_announced)
{
    struct rendezvous_value value = {.was_announced = was_announced};
    struct error err = ERROR_INIT;
    if (!is_dead)
        assert_int_equal(tensor_alloc(&value.tensor, FLOAT32, &SHAPE_SCALAR, &err), 0);
    return f->rendezvous->send(f->rendezvous, &key, &value, &err);
}

static void a_source_is_asked_for_a_receiver(void **unused)
{
    struct fixture f;
    (void)unused;
    for (int i = 0; i < 4; i++) {
        bool is_dead = i % 2, waits_first = i / 2;
        begin(&f);
        if (waits_first)
            receive(&f);
        assert_int_equal(announce(&f), 0);
        assert_int_equal(f.source.n_wanted, waits_first);
        if (!waits_first)
            receive(&f);
        assert_int_equal(f.source.n_wanted, 1);
        assert_int_equal(f.waiter.n_values + f.waiter.n_dead, 0);
        assert_int_equal(send(&f, is_dead, false), ERR_INTERNAL); /* it is not what was asked for */
        assert_int_equal(send(&f, is_dead, true), 0);
        assert_int_equal(f.waiter.n_values, !is_dead);
        assert_int_equal(f.waiter.n_dead, is_dead);
        assert_int_equal(send(&f, is_dead, true), ERR_INTERNAL); /* twice */
        f.rendezvous->free(f.rendezvous);
        assert_int_equal(f.source.n_dropped + f.waiter.n_failed, 0);
    }
}

static void nobody_is_told_twice(void **unused)
{
    struct fixture f;
    (void)unused;
    begin(&f); /* announced twice, or sent unasked */
    assert_int_equal(announce(&f), 0);
    assert_int_equal(send(&f, false, true), ERR_INTERNAL);
    assert_int_equal(send(&f, false, false), ERR_INTERNAL);
    assert_int_equal(announce(&f), ERR_INTERNAL);
    assert_int_equal(f.source.n_dropped, 1); /* the second one */
    f.rendezvous->free(f.rendezvous);
    assert_int_equal(f.source.n_dropped, 2);
    assert_int_equal(f.source.n_wanted, 0);

    begin(&f); /* sent before it is announced */
    assert_int_equal(send(&f, false, false), 0);
    assert_int_equal(announce(&f), ERR_INTERNAL);
    receive(&f);
    assert_int_equal(f.waiter.n_values, 1);
    f.rendezvous->free(f.rendezvous);
}

static bool is_awaited(void *context, const struct rendezvous_key *found, bool is_received)
{
    (void)context;
    return is_received && !strcmp(found->send_device, key.send_device);
}

static void an_abort_drops_sources_and_fails_waiters(void **unused)
{
    struct error reason = ERROR_INIT;
    struct fixture f;
    (void)unused;
    error_set(&reason, ERR_UNAVAILABLE, "lost");
    for (int is_asked = 0; is_asked < 2; is_asked++) {
        begin(&f);
        assert_int_equal(announce(&f), 0);
        assert_false(f.rendezvous->find(f.rendezvous, is_awaited, NULL));
        if (is_asked)
            receive(&f);
        assert_int_equal(f.rendezvous->find(f.rendezvous, is_awaited, NULL), is_asked);
        f.rendezvous->abort(f.rendezvous, &reason);
        assert_int_equal(f.source.n_wanted, is_asked);
        assert_int_equal(f.source.n_dropped, !is_asked);
        assert_int_equal(f.waiter.n_failed, is_asked);
        assert_int_equal(announce(&f), ERR_UNAVAILABLE);
        assert_int_equal(f.source.n_dropped, 1 + !is_asked);
        f.rendezvous->free(f.rendezvous);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_is_asked_for_a_receiver),
        cmocka_unit_test(nobody_is_told_twice),
        cmocka_unit_test(an_abort_drops_sources_and_fails_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
