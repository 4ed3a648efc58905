/* SPDX-License-Identifier: Apache-2.0
 *
 * Values meet as those of one process do (exec/step/rendezvous.h); here is what comes from peers,
 * and what was announced. Callbacks are made, and peers are sent to, without the lock.
 */
#include <string.h>

#include "base/memory.h"
#include "graph/task.h"
#include "transport/value/exchange_private.h"

static bool is_aborted(struct remote *remote)
{
    struct error reason;
    return remote->local->aborted(remote->local, &reason);
}

/* ---- what comes ---- */

static void return_credit(const struct rendezvous_value *value)
{
    flow_return(value->owner, value->charged);
    peer_release(value->owner);
}

/* With the lock. The name is the exchange's own, which its values of that key have. */
static struct announcement *find_announced(struct remote *remote, const char *name,
                                           uint64_t iteration)
{
    vec_each(announced, &remote->announced)
        if (announced->name == name && announced->iteration == iteration)
            return announced;
    return NULL;
}

static void announcement_release(struct announcement *announced)
{
    peer_release(announced->peer);
    mem_free(announced->key);
}

/* With the lock: whether the value comes as was agreed; it was announced and is not any more. */
static bool end_announcement(struct remote *remote, const struct arrival *arrival)
{
    struct announcement *announced = find_announced(remote, arrival->key, arrival->iteration);
    if (!announced || !announced->granted || !arrival->granted)
        return !announced && !arrival->granted;
    announcement_release(announced);
    *announced = vec_pop(&remote->announced);
    return true;
}

int remote_arrived(struct remote *remote, const struct arrival *arrival, struct error *err)
{
    const struct rendezvous_key key = {.tensor_name = arrival->key,
                                       .iteration = arrival->iteration};
    struct rendezvous_value value = {.owner = NULL};
    struct error failure = ERROR_INIT;
    if (arrival->value)
        tensor_share(&value.tensor, arrival->value);
    if (arrival->charged) {
        value.released = return_credit;
        value.owner = peer_retain(arrival->peer);
        value.charged = arrival->charged;
    }
    pthread_mutex_lock(&remote->lock);
    bool fits = end_announcement(remote, arrival);
    pthread_mutex_unlock(&remote->lock);
    if (fits)
        remote->local->send(remote->local, &key, &value, &failure);
    else
        error_set(&failure, ERR_PROTOCOL,
                  arrival->granted ? "'%s' was sent without its grant"
                                   : "'%s' is sent twice in one iteration",
                  arrival->key);
    rendezvous_value_release(&value);
    return !failure.code || is_aborted(remote) ? 0
                                               : error_set(err, ERR_PROTOCOL, "%s", failure.text);
}

struct met_key {
    const char *name;
    uint64_t iteration;
    bool is_received;
};

static bool is_met(void *context, const struct rendezvous_key *key, bool is_received)
{
    struct met_key *met = context;
    met->is_received = is_received;
    return key->iteration == met->iteration && !strcmp(key->tensor_name, met->name);
}

int remote_announced(struct remote *remote, const struct arrival *arrival, struct error *err)
{
    struct met_key met = {arrival->key, arrival->iteration, false};
    struct value_id id = {remote->exchange->session, remote->step, arrival->key, arrival->iteration,
                          0};
    bool grants = false, is_twice = false;
    if (is_aborted(remote))
        return 0;
    pthread_mutex_lock(&remote->lock); /* who receives from now on looks for it then */
    is_twice = find_announced(remote, arrival->key, arrival->iteration);
    if (!is_twice && remote->local->find(remote->local, is_met, &met)) {
        grants = met.is_received;
        is_twice = !grants;
    }
    if (!is_twice)
        vec_push(&remote->announced,
                 ((struct announcement){arrival->key, mem_strdup(arrival->key), arrival->iteration,
                                        peer_retain(arrival->peer), grants}));
    pthread_mutex_unlock(&remote->lock);
    if (grants)
        flow_grant(arrival->peer, &id);
    return is_twice
               ? error_set(err, ERR_PROTOCOL, "'%s' is sent twice in one iteration", arrival->key)
               : 0;
}

/* ---- the interface ---- */

/* "W/read/Send_3" is the Send of W/read. */
static void print_key(const char *key, struct str *out)
{
    const char *send = strstr(key, "/Send_");
    str_printf(out, "'%.*s'", send ? (int)(send - key) : (int)strlen(key), key);
}

static int send_to(struct remote *remote, struct peer *peer, const struct rendezvous_key *key,
                   const struct tensor *value, struct error *err)
{
    struct value_id id = {remote->exchange->session, remote->step, key->tensor_name, key->iteration,
                          key->priority};
    int code = flow_send(peer, &id, value, err);
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
    struct remote *remote = (struct remote *)rendezvous;
    struct peer *peer = NULL;
    int code = rendezvous->aborted(rendezvous, err)
                   ? err->code
                   : exchange_find_route(remote->exchange, key->recv_device, &peer, err);
    if (!code && !peer)
        return remote->local->send(remote->local, key, value, err);
    if (!code)
        code = send_to(remote, peer, key, value ? &value->tensor : NULL, err);
    peer_release(peer);
    if (value)
        rendezvous_value_release(value);
    return code;
}

/* Once it is told, who waits may end the step, and with that the session and its names. */
static void remote_receive(struct rendezvous *rendezvous, const struct rendezvous_key *key,
                           struct rendezvous_waiter *waiter)
{
    struct remote *remote = remote_retain((struct remote *)rendezvous);
    const char *name = exchange_find_name(remote->exchange, key->tensor_name);
    struct value_id id = {remote->exchange->session, remote->step, NULL, key->iteration, 0};
    struct announcement granted = {.peer = NULL};
    remote->local->receive(remote->local, key, waiter);
    pthread_mutex_lock(&remote->lock);
    struct announcement *announced = find_announced(remote, name, id.iteration);
    if (announced && !announced->granted && !is_aborted(remote)) {
        announced->granted = true;
        granted.peer = peer_retain(announced->peer);
        id.key = granted.key = mem_strdup(announced->key);
    }
    pthread_mutex_unlock(&remote->lock);
    if (granted.peer)
        flow_grant(granted.peer, &id);
    announcement_release(&granted);
    remote_release(remote);
}

static void remote_abort(struct rendezvous *rendezvous, const struct error *reason)
{
    struct rendezvous *local = ((struct remote *)rendezvous)->local;
    local->abort(local, reason);
}

static bool remote_aborted(struct rendezvous *rendezvous, struct error *reason)
{
    struct rendezvous *local = ((struct remote *)rendezvous)->local;
    return local->aborted(local, reason);
}

static void remote_free(struct rendezvous *rendezvous)
{
    struct remote *remote = (struct remote *)rendezvous;
    exchange_end_step(remote, is_aborted(remote));
    remote_release(remote);
}

struct remote *remote_new(struct value_exchange *exchange, uint64_t step, size_t n_keys)
{
    struct remote *remote = mem_alloc(sizeof *remote);
    remote->interface = (struct rendezvous){.send = remote_send,
                                            .receive = remote_receive,
                                            .abort = remote_abort,
                                            .aborted = remote_aborted,
                                            .free = remote_free};
    remote->local = rendezvous_local_new(n_keys);
    remote->exchange = exchange;
    remote->step = step;
    atomic_init(&remote->holders, 1);
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
    remote->local->free(remote->local);
    vec_each(announced, &remote->announced)
        announcement_release(announced);
    vec_release(&remote->announced);
    pthread_mutex_destroy(&remote->lock);
    mem_free(remote);
}

struct awaited_key {
    const char *task;
    struct str *out;
};

static bool is_awaited(void *context, const struct rendezvous_key *key, bool is_received)
{
    const struct awaited_key *awaited = context;
    struct error ignored = ERROR_INIT;
    char of[TASK_TEXT_BYTES];
    bool found = is_received && !task_of_device(of, key->send_device, &ignored) &&
                 !strcmp(of, awaited->task);
    if (found)
        print_key(key->tensor_name, awaited->out);
    return found;
}

bool remote_waits_for(struct remote *remote, const char *task, struct str *out)
{
    struct awaited_key awaited = {task, out};
    return remote->local->find(remote->local, is_awaited, &awaited);
}
