/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks are made, and peers are sent to, without the lock.
 */
#include "transport/value/rendezvous_remote.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "graph/task.h"

enum meeting_state {
    MEETING_WAITING,   /* a receiver waits */
    MEETING_VALUE,     /* a value waits */
    MEETING_ANNOUNCED, /* a peer waits for the grant */
    MEETING_GRANTED,   /* it was granted; a receiver waits */
};

struct meeting {
    enum meeting_state state;
    const char *key;
    uint64_t iteration;
    const char *from;                 /* the device that a receiver waits for */
    struct rendezvous_waiter *waiter; /* of the states that have one */
    struct tensor value;              /* zeroed: dead */
    struct peer *peer;                /* that sent or announced it, held; NULL: this task */
    uint64_t charged;
    struct meeting *next;
};

struct remote {
    struct rendezvous interface; /* first */
    struct rendezvous_owner owner;
    uint64_t session, step;
    atomic_int holders;
    size_t n_buckets;
    pthread_mutex_t lock; /* guards what follows; held to set the reason */
    struct meeting **buckets;
    _Atomic(struct error *) reason; /* of the abort; NULL: there was none */
};

static struct meeting **find(struct remote *remote, const char *key, uint64_t iteration)
{
    uint64_t hash = hash_bytes(key, strlen(key), iteration);
    struct meeting **at = &remote->buckets[hash & (remote->n_buckets - 1)];
    while (*at &&
           ((*at)->iteration != iteration || ((*at)->key != key && strcmp((*at)->key, key) != 0)))
        at = &(*at)->next;
    return at;
}

static struct meeting *add(struct meeting **at, enum meeting_state state, const char *key,
                           uint64_t iteration)
{
    struct meeting *meeting = mem_alloc(sizeof *meeting);
    meeting->state = state;
    meeting->key = key;
    meeting->iteration = iteration;
    meeting->next = *at;
    *at = meeting;
    return meeting;
}

static struct meeting *take(struct meeting **at)
{
    struct meeting *meeting = *at;
    *at = meeting->next;
    return meeting;
}

static void meeting_free(struct meeting *meeting)
{
    if (meeting->charged)
        flow_return(meeting->peer, meeting->charged);
    peer_release(meeting->peer);
    tensor_release(&meeting->value);
    mem_free(meeting);
}

static int twice(const char *key, const char *what, int code, struct error *err)
{
    return error_set(err, code, "'%s' is %s twice in one iteration", key, what);
}

static bool has_waiter(const struct meeting *meeting)
{
    return meeting->state == MEETING_WAITING || meeting->state == MEETING_GRANTED;
}

/* ---- what comes ---- */

/* With the lock. *met is who waits for it, taken out of the table; NULL: it waits itself. */
static int place_value(struct remote *remote, const struct arrival *arrival, struct meeting **met,
                       struct error *err)
{
    struct meeting **at = find(remote, arrival->key, arrival->iteration), *there = *at;
    int wrong = arrival->peer ? ERR_PROTOCOL : ERR_INTERNAL;
    if (arrival->granted && !(there && there->state == MEETING_GRANTED))
        return error_set(err, wrong, "'%s' was sent without its grant", arrival->key);
    if (there && (there->state == MEETING_WAITING || arrival->granted)) {
        *met = take(at);
        return 0;
    }
    if (there)
        return twice(arrival->key, "sent", wrong, err);
    struct meeting *meeting = add(at, MEETING_VALUE, arrival->key, arrival->iteration);
    if (arrival->value)
        tensor_share(&meeting->value, arrival->value);
    meeting->peer = arrival->peer ? peer_hold(arrival->peer) : NULL;
    meeting->charged = arrival->charged;
    return 0;
}

int remote_arrived(struct rendezvous *rendezvous, const struct arrival *arrival, struct error *err)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct meeting *met = NULL;
    int code = 0;
    pthread_mutex_lock(&remote->lock);
    bool kept = !remote->reason && !(code = place_value(remote, arrival, &met, err));
    pthread_mutex_unlock(&remote->lock);
    if (arrival->charged && (met || !kept))
        flow_return(arrival->peer, arrival->charged);
    if (met) {
        met->waiter->arrived(met->waiter, arrival->value, NULL);
        meeting_free(met);
    }
    return code;
}

int remote_announced(struct rendezvous *rendezvous, const struct arrival *arrival,
                     struct error *err)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct value_id id = {remote->session, remote->step, arrival->key, arrival->iteration};
    bool grant = false;
    int code = 0;
    pthread_mutex_lock(&remote->lock);
    struct meeting **at = find(remote, arrival->key, arrival->iteration);
    if (!remote->reason && !*at) {
        add(at, MEETING_ANNOUNCED, arrival->key, arrival->iteration)->peer =
            peer_hold(arrival->peer);
    } else if (!remote->reason && (*at)->state == MEETING_WAITING) {
        (*at)->state = MEETING_GRANTED;
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

static int remote_send(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                       const struct tensor *value, struct error *err)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct arrival arrival = {.key = key->tensor_name, .iteration = key->iteration, .value = value};
    struct value_id id = {remote->session, remote->step, key->tensor_name, key->iteration};
    struct peer *peer;
    if (rendezvous->aborted(rendezvous, err) ||
        remote->owner.route(remote->owner.context, key->recv_device, &peer, err))
        return err->code;
    if (!peer)
        return remote_arrived(rendezvous, &arrival, err);
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

static void remote_receive(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                           struct rendezvous_waiter *waiter)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct value_id id = {remote->session, remote->step, key->tensor_name, key->iteration};
    struct error failure = ERROR_INIT;
    struct meeting *met = NULL;
    struct peer *granted = NULL;
    char *granted_key = NULL; /* a copy: whoever aborts may end the waiter, and free its graph */
    pthread_mutex_lock(&remote->lock);
    struct meeting **at = find(remote, key->tensor_name, key->iteration);
    if (remote->reason) {
        failure = *remote->reason;
    } else if (*at && (*at)->state == MEETING_VALUE) {
        met = take(at);
    } else if (*at && has_waiter(*at)) {
        twice(key->tensor_name, "received", ERR_INTERNAL, &failure);
    } else {
        struct meeting *meeting =
            *at ? *at : add(at, MEETING_WAITING, key->tensor_name, key->iteration);
        if (meeting->state == MEETING_ANNOUNCED) {
            meeting->state = MEETING_GRANTED;
            granted = peer_hold(meeting->peer);
            id.key = granted_key = mem_strdup(key->tensor_name);
        }
        meeting->waiter = waiter;
        meeting->from = key->send_device;
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
        waiter->arrived(waiter, is_dead ? NULL : &met->value, NULL);
        meeting_free(met);
    }
}

/* Takes all out of the table; with the lock. */
static struct meeting *take_all(struct remote *remote)
{
    struct meeting *all = NULL;
    for (size_t i = 0; i < remote->n_buckets; i++) {
        while (remote->buckets[i]) {
            struct meeting *meeting = take(&remote->buckets[i]);
            meeting->next = all;
            all = meeting;
        }
    }
    return all;
}

static void meetings_free(struct meeting *meeting, const struct error *reason)
{
    while (meeting) {
        struct meeting *next = meeting->next;
        if (has_waiter(meeting))
            meeting->waiter->arrived(meeting->waiter, NULL, reason);
        meeting_free(meeting);
        meeting = next;
    }
}

static void remote_abort(struct rendezvous *rendezvous, const struct error *reason)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct meeting *all = NULL;
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
    struct remote *remote = (struct remote *)rendezvous;
    remote->owner.ended(remote->owner.context, rendezvous);
    remote_release(rendezvous);
}

struct rendezvous *remote_new(const struct rendezvous_owner *owner, uint64_t session, uint64_t step,
                              size_t n_keys)
{
    struct remote *remote = mem_alloc(sizeof *remote);
    remote->interface =
        (struct rendezvous){remote_send, remote_receive, remote_abort, remote_aborted, remote_free};
    remote->owner = *owner;
    remote->session = session;
    remote->step = step;
    atomic_init(&remote->holders, 1);
    remote->n_buckets = 8;
    while (remote->n_buckets < n_keys && remote->n_buckets < 4096)
        remote->n_buckets *= 2;
    remote->buckets = mem_array(remote->n_buckets, sizeof *remote->buckets);
    pthread_mutex_init(&remote->lock, NULL);
    return &remote->interface;
}

void remote_hold(struct rendezvous *rendezvous)
{
    atomic_fetch_add(&((struct remote *)rendezvous)->holders, 1);
}

void remote_release(struct rendezvous *rendezvous)
{
    struct remote *remote = (struct remote *)rendezvous;
    if (!rendezvous || atomic_fetch_sub(&remote->holders, 1) > 1)
        return;
    meetings_free(take_all(remote), remote->reason); /* nobody waits any more */
    pthread_mutex_destroy(&remote->lock);
    mem_free(remote->reason);
    mem_free(remote->buckets);
    mem_free(remote);
}

uint64_t remote_step(const struct rendezvous *rendezvous)
{
    return ((const struct remote *)rendezvous)->step;
}

bool remote_waits_for(struct rendezvous *rendezvous, const char *task, struct str *out)
{
    struct remote *remote = (struct remote *)rendezvous;
    struct error ignored = ERROR_INIT;
    const char *found = NULL;
    char of[TASK_TEXT_BYTES];
    pthread_mutex_lock(&remote->lock);
    for (size_t i = 0; i < remote->n_buckets; i++)
        for (const struct meeting *m = remote->buckets[i]; m && !found; m = m->next)
            if (has_waiter(m) && !task_of_device(of, m->from, &ignored) && !strcmp(of, task))
                found = m->key;
    if (found)
        print_key(found, out);
    pthread_mutex_unlock(&remote->lock);
    return found != NULL;
}
