/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks are made, and peers are sent to, without the lock.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/task.h"
#include "transport/value/exchange_private.h"

enum remote_item_state {
    ITEM_WAITING,   /* a receiver waits */
    ITEM_VALUE,     /* a value waits */
    ITEM_ANNOUNCED, /* a peer waits for the grant */
    ITEM_GRANTED,   /* it was granted; a receiver waits */
};

struct remote_item {
    enum remote_item_state state;
    const char *key;
    uint64_t iteration;
    const char *from;                 /* the device that a receiver waits for */
    struct rendezvous_waiter *waiter; /* of the states that have one */
    struct tensor value;              /* zeroed: dead */
    struct peer *peer;                /* that sent or announced it, held; NULL: this task */
    uint64_t charged;
    struct remote_item *next;
};

static struct remote_item **find(struct remote *remote, const char *key, uint64_t iteration)
{
    uint64_t hash = hash_bytes(key, strlen(key), iteration);
    struct remote_item **at = &remote->buckets[hash & (remote->n_buckets - 1)];
    while (*at &&
           ((*at)->iteration != iteration || ((*at)->key != key && strcmp((*at)->key, key) != 0)))
        at = &(*at)->next;
    return at;
}

static struct remote_item *add(struct remote_item **at, enum remote_item_state state,
                               const char *key, uint64_t iteration)
{
    struct remote_item *item = mem_alloc(sizeof *item);
    item->state = state;
    item->key = key;
    item->iteration = iteration;
    item->next = *at;
    *at = item;
    return item;
}

static struct remote_item *unlink_item(struct remote_item **at)
{
    struct remote_item *item = *at;
    *at = item->next;
    return item;
}

static void wake_waiter(struct rendezvous_waiter *waiter, const struct tensor *value)
{
    struct rendezvous_value arrived = {.tensor = value ? *value : (struct tensor){0}};
    waiter->arrived(waiter, value ? &arrived : NULL, NULL);
}

static void item_free(struct remote_item *item)
{
    if (item->charged)
        flow_return(item->peer, item->charged);
    peer_release(item->peer);
    tensor_release(&item->value);
    mem_free(item);
}

static int twice(const char *key, const char *what, int code, struct error *err)
{
    return error_set(err, code, "'%s' is %s twice in one iteration", key, what);
}

static bool has_waiter(const struct remote_item *item)
{
    return item->state == ITEM_WAITING || item->state == ITEM_GRANTED;
}

/* ---- what comes ---- */

/* With the lock. *met is who waits for it, taken out of the table; NULL: it waits itself. */
static int place_value(struct remote *remote, const struct arrival *arrival,
                       struct remote_item **met, struct error *err)
{
    struct remote_item **at = find(remote, arrival->key, arrival->iteration), *there = *at;
    int wrong = arrival->peer ? ERR_PROTOCOL : ERR_INTERNAL;
    if (arrival->granted && !(there && there->state == ITEM_GRANTED))
        return error_set(err, wrong, "'%s' was sent without its grant", arrival->key);
    if (there && (there->state == ITEM_WAITING || arrival->granted)) {
        *met = unlink_item(at);
        return 0;
    }
    if (there)
        return twice(arrival->key, "sent", wrong, err);
    struct remote_item *item = add(at, ITEM_VALUE, arrival->key, arrival->iteration);
    if (arrival->value)
        tensor_share(&item->value, arrival->value);
    item->peer = arrival->peer ? peer_retain(arrival->peer) : NULL;
    item->charged = arrival->charged;
    return 0;
}

int remote_arrived(struct remote *remote, const struct arrival *arrival, struct error *err)
{
    struct remote_item *met = NULL;
    int code = 0;
    pthread_mutex_lock(&remote->lock);
    bool kept = !remote->reason && !(code = place_value(remote, arrival, &met, err));
    pthread_mutex_unlock(&remote->lock);
    if (arrival->charged && (met || !kept))
        flow_return(arrival->peer, arrival->charged);
    if (met) {
        wake_waiter(met->waiter, arrival->value);
        item_free(met);
    }
    return code;
}

int remote_announced(struct remote *remote, const struct arrival *arrival, struct error *err)
{
    struct value_id id = {remote->exchange->session, remote->step, arrival->key, arrival->iteration,
                          0};
    bool grant = false;
    int code = 0;
    pthread_mutex_lock(&remote->lock);
    struct remote_item **at = find(remote, arrival->key, arrival->iteration);
    if (!remote->reason && !*at) {
        add(at, ITEM_ANNOUNCED, arrival->key, arrival->iteration)->peer =
            peer_retain(arrival->peer);
    } else if (!remote->reason && (*at)->state == ITEM_WAITING) {
        (*at)->state = ITEM_GRANTED;
        grant = true;
    } else if (!remote->reason) {
        code = twice(arrival->key, "sent", ERR_PROTOCOL, err);
    }
    pthread_mutex_unlock(&remote->lock);
    if (grant)
        flow_grant(arrival->peer, &id);
    return code;
}

/* ---- the interface ---- */

/* "W/read/Send_3" is the Send of W/read. */
static void print_key(const char *key, struct str *out)
{
    const char *send = strstr(key, "/Send_");
    str_printf(out, "'%.*s'", send ? (int)(send - key) : (int)strlen(key), key);
}

static int send_tensor(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                       const struct tensor *value, struct error *err)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct arrival arrival = {.key = key->tensor_name, .iteration = key->iteration, .value = value};
    struct value_id id = {remote->exchange->session, remote->step, key->tensor_name, key->iteration,
                          key->priority};
    struct peer *peer;
    if (rendezvous->aborted(rendezvous, err) ||
        exchange_find_route(remote->exchange, key->recv_device, &peer, err))
        return err->code;
    if (!peer)
        return remote_arrived(remote, &arrival, err);
    int code = flow_send(peer, &id, value, err);
    peer_release(peer);
    if (code) {
        struct str text = STR_INIT;
        struct error cause = *err;
        print_key(key->tensor_name, &text);
        error_set(err, code, "%.800s, sending %s", cause.text, str_text(&text));
        str_release(&text);
    }
    return code;
}

static int remote_send(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                       struct rendezvous_value *value, struct error *err)
{
    int code = send_tensor(rendezvous, key, value ? &value->tensor : NULL, err);
    if (value)
        rendezvous_value_release(value);
    return code;
}

static void remote_receive(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                           struct rendezvous_waiter *waiter)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct value_id id = {remote->exchange->session, remote->step, key->tensor_name, key->iteration,
                          0};
    struct error failure = ERROR_INIT;
    struct remote_item *met = NULL;
    struct peer *granted = NULL;
    char *granted_key = NULL; /* a copy: whoever aborts may end the waiter, and free its graph */
    pthread_mutex_lock(&remote->lock);
    struct remote_item **at = find(remote, key->tensor_name, key->iteration);
    if (remote->reason) {
        failure = *remote->reason;
    } else if (*at && (*at)->state == ITEM_VALUE) {
        met = unlink_item(at);
    } else if (*at && has_waiter(*at)) {
        twice(key->tensor_name, "received", ERR_INTERNAL, &failure);
    } else {
        struct remote_item *item =
            *at ? *at : add(at, ITEM_WAITING, key->tensor_name, key->iteration);
        if (item->state == ITEM_ANNOUNCED) {
            item->state = ITEM_GRANTED;
            granted = peer_retain(item->peer);
            id.key = granted_key = mem_strdup(key->tensor_name);
        }
        item->waiter = waiter;
        item->from = key->send_device;
    }
    pthread_mutex_unlock(&remote->lock);
    if (failure.code)
        waiter->arrived(waiter, NULL, &failure);
    if (granted)
        flow_grant(granted, &id);
    peer_release(granted);
    mem_free(granted_key);
    if (met) {
        bool is_dead = met->value.type == DTYPE_INVALID;
        wake_waiter(waiter, is_dead ? NULL : &met->value);
        item_free(met);
    }
}

/* Takes all out of the table; with the lock. */
static struct remote_item *take_all(struct remote *remote)
{
    struct remote_item *all = NULL;
    for (size_t i = 0; i < remote->n_buckets; i++) {
        while (remote->buckets[i]) {
            struct remote_item *item = unlink_item(&remote->buckets[i]);
            item->next = all;
            all = item;
        }
    }
    return all;
}

static void meetings_free(struct remote_item *item, const struct error *reason)
{
    while (item) {
        struct remote_item *next = item->next;
        if (has_waiter(item))
            item->waiter->arrived(item->waiter, NULL, reason);
        item_free(item);
        item = next;
    }
}

static void remote_abort(struct rendezvous *rendezvous, const struct error *reason)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct remote_item *all = NULL;
    pthread_mutex_lock(&remote->lock);
    if (!remote->reason) {
        all = take_all(remote);
        struct error *kept = mem_alloc(sizeof *kept);
        *kept = *reason;
        atomic_store(&remote->reason, kept);
    }
    pthread_mutex_unlock(&remote->lock);
    meetings_free(all, reason);
}

static bool remote_aborted(struct rendezvous *rendezvous, struct error *reason)
{
    const struct error *kept = atomic_load(&((struct remote *)rendezvous)->reason);
    if (kept)
        *reason = *kept;
    return kept != NULL;
}

static void remote_free(struct rendezvous *rendezvous)
{
    exchange_end_step((struct remote *)rendezvous);
    remote_release((struct remote *)rendezvous);
}

struct remote *remote_new(struct value_exchange *exchange, uint64_t step, size_t n_keys)
{
    struct remote *remote = mem_alloc(sizeof *remote);
    remote->interface = (struct rendezvous){.send = remote_send,
                                            .receive = remote_receive,
                                            .abort = remote_abort,
                                            .aborted = remote_aborted,
                                            .free = remote_free};
    remote->exchange = exchange;
    remote->step = step;
    atomic_init(&remote->holders, 1);
    remote->n_buckets = 8;
    while (remote->n_buckets < n_keys && remote->n_buckets < 4096)
        remote->n_buckets *= 2;
    remote->buckets = mem_array(remote->n_buckets, sizeof *remote->buckets);
    pthread_mutex_init(&remote->lock, NULL);
    return remote;
}

struct remote *remote_retain(struct remote *remote)
{
    atomic_fetch_add(&remote->holders, 1);
    return remote;
}

void remote_release(struct remote *remote)
{
    if (atomic_fetch_sub(&remote->holders, 1) > 1)
        return;
    meetings_free(take_all(remote), remote->reason); /* nobody waits any more */
    pthread_mutex_destroy(&remote->lock);
    mem_free(remote->reason);
    mem_free(remote->buckets);
    mem_free(remote);
}

bool remote_waits_for(struct remote *remote, const char *task, struct str *out)
{
    struct error ignored = ERROR_INIT;
    const char *found = NULL;
    char of[TASK_TEXT_BYTES];
    pthread_mutex_lock(&remote->lock);
    for (size_t i = 0; i < remote->n_buckets; i++)
        for (const struct remote_item *m = remote->buckets[i]; m && !found; m = m->next)
            if (has_waiter(m) && !task_of_device(of, m->from, &ignored) && !strcmp(of, task))
                found = m->key;
    if (found)
        print_key(found, out);
    pthread_mutex_unlock(&remote->lock);
    return found != NULL;
}
