/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a rendezvous in which values arrive in random order, by a seed. Values sent and
 * requested are kept until the test makes one arrive; so a step runs on the test's thread, except
 * for work left to helpers.
 */
#ifndef TF_TESTS_LIB_SHUFFLED_H
#define TF_TESTS_LIB_SHUFFLED_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/time.h"
#include "exec/step/rendezvous.h"
#include "exec/step/step.h"
#include "lib/random.h"

#define SHUFFLED_SECONDS 30 /* after which a step without an arrival counts as hung */

struct shuffled_item {
    struct rendezvous_key key;
    bool was_sent;
    struct rendezvous_value value; /* of no type: dead */
    struct rendezvous_waiter *waiter;
};

struct shuffled {
    struct rendezvous interface; /* first */
    pthread_mutex_t lock;        /* guards all that follows */
    uint64_t random;
    VEC(struct shuffled_item) items;
    struct error reason; /* of the abort; no code: there was none */
};

/* Finds an item, or makes it. */
static inline struct shuffled_item *shuffled_at(struct shuffled *s,
                                                const struct rendezvous_key *key)
{
    for (size_t i = 0; i < s->items.n; i++)
        if (s->items.items[i].key.iteration == key->iteration &&
            !strcmp(s->items.items[i].key.tensor_name, key->tensor_name))
            return &s->items.items[i];
    vec_push(&s->items, (struct shuffled_item){.key = *key});
    return &s->items.items[s->items.n - 1];
}

static inline int shuffled_send(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                                struct rendezvous_value *value, struct error *err)
{
    struct shuffled *s = (struct shuffled *)rendezvous;
    int code = 0;
    pthread_mutex_lock(&s->lock);
    struct shuffled_item *item = s->reason.code ? NULL : shuffled_at(s, key);
    if (!item) {
        *err = s->reason;
        code = err->code;
    } else if (item->was_sent) {
        code = error_set(err, ERR_INTERNAL, "'%s' is sent twice", key->tensor_name);
    } else {
        item->was_sent = true;
        if (value) {
            item->value = *value;
            *value = (struct rendezvous_value){0};
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (value)
        rendezvous_value_release(value);
    return code;
}

static inline void shuffled_receive(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                                    struct rendezvous_waiter *waiter)
{
    struct shuffled *s = (struct shuffled *)rendezvous;
    struct error failure = ERROR_INIT;
    pthread_mutex_lock(&s->lock);
    struct shuffled_item *item = s->reason.code ? NULL : shuffled_at(s, key);
    if (!item)
        failure = s->reason;
    else if (item->waiter)
        error_set(&failure, ERR_INTERNAL, "'%s' is received twice", key->tensor_name);
    else
        item->waiter = waiter;
    pthread_mutex_unlock(&s->lock);
    if (failure.code)
        waiter->arrived(waiter, NULL, &failure);
}

static inline void shuffled_abort(struct rendezvous *rendezvous, const struct error *reason)
{
    struct shuffled *s = (struct shuffled *)rendezvous;
    VEC(struct rendezvous_waiter *) waiting = VEC_INIT;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->items.n; i++) {
        if (s->items.items[i].waiter)
            vec_push(&waiting, s->items.items[i].waiter);
        rendezvous_value_release(&s->items.items[i].value);
    }
    s->items.n = 0;
    if (!s->reason.code)
        s->reason = *reason;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < waiting.n; i++)
        waiting.items[i]->arrived(waiting.items[i], NULL, reason);
    vec_release(&waiting);
}

static inline bool shuffled_aborted(struct rendezvous *rendezvous, struct error *reason)
{
    struct shuffled *s = (struct shuffled *)rendezvous;
    pthread_mutex_lock(&s->lock);
    bool aborted = s->reason.code != 0;
    if (aborted)
        *reason = s->reason;
    pthread_mutex_unlock(&s->lock);
    return aborted;
}

static inline void shuffled_free(struct rendezvous *rendezvous)
{
    struct shuffled *s = (struct shuffled *)rendezvous;
    for (size_t i = 0; i < s->items.n; i++)
        rendezvous_value_release(&s->items.items[i].value);
    vec_release(&s->items);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static inline struct rendezvous *shuffled_new(uint64_t seed)
{
    struct shuffled *s = mem_alloc(sizeof *s);
    s->interface = (struct rendezvous){.send = shuffled_send,
                                       .receive = shuffled_receive,
                                       .abort = shuffled_abort,
                                       .aborted = shuffled_aborted,
                                       .free = shuffled_free,
                                       .takes_devices = true};
    s->random = seed;
    pthread_mutex_init(&s->lock, NULL);
    return &s->interface;
}

/* Makes one of the values that can arrive do so; false: none can. */
static inline bool shuffled_arrive(struct shuffled *s)
{
    struct shuffled_item item = {0};
    uint64_t n = 0;
    size_t chosen = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->items.n; i++) {
        const struct shuffled_item *other = &s->items.items[i];
        if (other->was_sent && other->waiter && unit_random(&s->random) % ++n == 0)
            chosen = i;
    }
    if (n) {
        item = s->items.items[chosen];
        s->items.items[chosen] = vec_pop(&s->items);
    }
    pthread_mutex_unlock(&s->lock);
    if (!n)
        return false;
    bool is_dead = item.value.tensor.type == DTYPE_INVALID;
    item.waiter->arrived(item.waiter, is_dead ? NULL : &item.value, NULL);
    rendezvous_value_release(&item.value);
    return true;
}

/* Makes values arrive until the step is over; false: it hangs. */
static inline bool shuffled_finish(struct rendezvous *rendezvous, const atomic_bool *is_over)
{
    double last = time_now();
    while (!atomic_load(is_over)) {
        if (shuffled_arrive((struct shuffled *)rendezvous))
            last = time_now();
        else if (time_now() - last > SHUFFLED_SECONDS)
            return false;
        else
            sched_yield();
    }
    return true;
}

/* How a started step ended. */
struct shuffled_ending {
    struct step_done done; /* first */
    atomic_bool is_over;
    int code;
    struct error *err;
};

static inline void shuffled_note_end(struct step_done *done, int code, const struct error *err)
{
    struct shuffled_ending *ending = (struct shuffled_ending *)done;
    ending->code = code;
    if (code)
        *ending->err = *err;
    atomic_store(&ending->is_over, true);
}

#endif
