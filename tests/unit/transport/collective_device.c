/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums that the members' devices add among themselves, with a fake library (lib/fake_cuda_nccl.c):
 * which sums are enqueued if some never are. The library gives sums no names: if members do not
 * take them in the same order, it adds values of different sums.
 */
#include "lib/on_device.h"

#include <time.h>

#include "exec/device/communicator.h"
#include "exec/device/queue.h"
#include "exec/device/step_block.h"
#include "lib/reductions.h"

#define MEMBERS 3
#define SECONDS 20 /* a test that would hang fails after this time */

/* A member's state beside its end of the links. */
struct on_card {
    struct member_end *end;
    struct device *device;
    struct pool *pool, *host_pool;
    struct communicator_place place;
    struct error err;
};

static void *run_added(void *argument)
{
    struct on_card *card = argument;
    collective_links_add_on(card->end->collective, card->device, &card->place, &card->err);
    pthread_barrier_wait(&card->end->all->there);
    loop_run(conns_loop(card->end->conns), &card->err);
    return NULL;
}

static void begin(struct members *all, struct on_card *cards, int n)
{
    struct error err = ERROR_INIT;
    struct communicator_place place = {.n = n};
    struct device_options options = {.threads = 1};
    members_start(all, n);
    for (int k = 0; k < n; k++) {
        cards[k] = (struct on_card){.end = &all->ends[k], .err = error_none()};
        cards[k].device = device_open("CUDA", k, &options, &err);
        must(err.code, &err);
        cards[k].pool = pool_new(cards[k].device, true);
        cards[k].host_pool = pool_new(cards[k].device, false);
    }
    must(cards[0].device->communicators->make_id(cards[0].device, place.id, &err), &err);
    for (int k = 0; k < n; k++) { /* so that it runs in the thread of the member's loop */
        cards[k].place = place;
        cards[k].place.rank = k;
        loop_stop(conns_loop(cards[k].end->conns));
        pthread_join(cards[k].end->thread, NULL);
        pthread_create(&cards[k].end->thread, NULL, run_added, &cards[k]);
    }
    pthread_barrier_wait(&all->there);
}

static void end(struct members *all, struct on_card *cards, int n)
{
    for (int k = 0; k < n; k++)
        member_kill(&all->ends[k]);
    for (int k = 0; k < n; k++) {
        must(cards[k].err.code, &cards[k].err);
        pool_free(cards[k].pool);
        pool_free(cards[k].host_pool);
        device_free(cards[k].device);
    }
    members_stop(all);
}

/* A member's contribution: a number in its card's memory. It is put there after all enqueued work,
 * but before any sum that waits. */
struct brought {
    struct tensor value;
    struct device_point at;
};

static struct brought bring(struct on_card *card, float number)
{
    static const struct step_block block;
    struct device *device = card->device;
    struct error err = ERROR_INIT;
    struct brought b = {.value = {.type = FLOAT32, .shape = shape_vector(1)},
                        .at = {device, NULL, pool_alloc(card->pool, sizeof block)}};
    b.value.buffer = pool_alloc(card->pool, sizeof number);
    b.value.data = b.value.buffer->data;
    must(device_write(device, b.at.block->data, &block, sizeof block, &err), &err);
    must(device_write(device, b.value.data, &number, sizeof number, &err), &err);
    b.at.ready = device->queue->record(device, QUEUE_COMPUTE, false);
    return b;
}

static void call(struct on_card *card, const char *name, struct brought b, struct reply *reply)
{
    static const enum collective_kind kind = COLLECTIVE_SUM;
    const struct collective_call what = {.key = {name, 1, 0},
                                         .values = &b.value,
                                         .kinds = &kind,
                                         .n = 1,
                                         .by_device = true,
                                         .at = b.at,
                                         .pool = card->pool,
                                         .host_pool = card->host_pool};
    member_call(card->end->all, card->end->rank, &what, reply);
    tensor_release(&b.value);
}

static void wait_for(struct reply *reply)
{
    struct timespec until;
    int late = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    pthread_mutex_lock(&reply->lock);
    while (!reply->done && !late)
        late = pthread_cond_timedwait(&reply->changed, &reply->lock, &until);
    bool done = reply->done;
    pthread_mutex_unlock(&reply->lock);
    assert_true(done);
}

/* The sum of all members is that number; 1e8 and -1e8 cancel only if they are added first, as by
 * the library, which begins with the last member. */
static void check_sum(struct on_card *cards, int n, const char *name)
{
    static const float brings[MEMBERS] = {1, 1e8f, -1e8f};
    struct reply replies[MEMBERS];
    struct error err = ERROR_INIT;
    for (int k = 0; k < n; k++)
        call(&cards[k], name, bring(&cards[k], brings[k + MEMBERS - n]), &replies[k]);
    for (int k = 0; k < n; k++) {
        float sum = -1;
        wait_for(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        must(device_read(cards[k].device, &sum, replies[k].results[0].data, sizeof sum, &err),
             &err);
        assert_true(sum == (n == MEMBERS ? 1 : 0));
        reply_release(&replies[k]);
    }
}

/* Each member in turn has no contribution to one sum: that sum fails, and the next one does not
 * wait for it. */
static void what_fails_is_passed_over(void **state)
{
    static const char *const names[2][MEMBERS] = {{"dead0", "dead1", "dead2"}, {"a", "b", "c"}};
    struct members all;
    struct on_card cards[MEMBERS];
    (void)state;
    begin(&all, cards, MEMBERS);
    for (int dead = 0; dead < MEMBERS; dead++) {
        struct reply replies[MEMBERS];
        struct error err = ERROR_INIT;
        const struct collective_key key = {names[0][dead], 1, 0};
        struct collective *declines = all.ends[dead].collective;
        for (int k = 0; k < MEMBERS; k++)
            if (k != dead)
                call(&cards[k], key.name, bring(&cards[k], 1), &replies[k]);
        must(declines->decline(declines, &key, &(struct collective_group){0}, &err), &err);
        for (int k = 0; k < MEMBERS; k++) {
            if (k == dead)
                continue;
            wait_for(&replies[k]);
            assert_int_equal(replies[k].err.code, ERR_DATA);
            assert_non_null(strstr(replies[k].err.text, "brings nothing: its input is dead"));
            reply_release(&replies[k]);
        }
        check_sum(cards, MEMBERS, names[1][dead]);
    }
    end(&all, cards, MEMBERS);
}

/* The others add a sum that one member announced and then cancels: its devices take no part, and
 * its next sum is not the one that theirs wait for. */
static void a_cancel_gives_the_communicator_up(void **state)
{
    struct members all;
    struct on_card cards[2];
    struct reply cancelled, replies[2], waits;
    (void)state;
    begin(&all, cards, 2);
    check_sum(cards, 2, "before");
    struct brought given_up = bring(&cards[0], 1), other = bring(&cards[1], 2);
    struct brought next[2] = {bring(&cards[0], 4), bring(&cards[1], 4)};
    struct collective *collective = all.ends[0].collective;
    call(&cards[0], "cancelled", given_up, &cancelled);
    assert_true(collective->cancel(collective, &cancelled.waiter));
    call(&cards[1], "cancelled", other, &waits);
    for (int k = 0; k < 2; k++)
        call(&cards[k], "next", next[k], &replies[k]);
    wait_for(&replies[0]);
    assert_int_equal(replies[0].err.code, ERR_CANCELLED);
    assert_non_null(strstr(replies[0].err.text, "a sum on devices was given up"));
    member_kill(&all.ends[0]);
    wait_for(&waits);
    wait_for(&replies[1]);
    assert_int_equal(waits.err.code, ERR_UNAVAILABLE);
    assert_int_equal(replies[1].err.code, ERR_UNAVAILABLE);
    reply_release(&cancelled);
    reply_release(&waits);
    for (int k = 0; k < 2; k++)
        reply_release(&replies[k]);
    end(&all, cards, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_is_passed_over),
        cmocka_unit_test(a_cancel_gives_the_communicator_up),
    };
    setenv("TF_TEST_DEVICE", "CUDA:0", 1);
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
