/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes from peers, and what becomes of a step when a peer is gone.
 */
#include <string.h>

#include "transport/value/exchange_private.h"

/* With the lock: the step that a record is for; NULL: it is over, or there is no room for it. */
static struct remote *step_for(struct value_exchange *exchange, uint64_t step)
{
    struct remote **at = exchange_step(exchange, step);
    if (at)
        return *at;
    bool is_early = step > exchange->begun && exchange->steps.n < EXCHANGE_EARLY_MAX;
    return is_early ? exchange_make_step(exchange, step) : NULL;
}

/* Finds the receiver of a value or an announcement, held. NULL with code 0: nobody any more. */
static int find_target(struct value_exchange *exchange, const struct value_id *id,
                       struct arrival *arrival, struct remote **remote, struct error *err)
{
    int64_t index;
    int code = 0;
    if (!map_get(&exchange->names, id->key, &index)) {
        code = error_set(err, ERR_PROTOCOL, "nothing receives '%.200s'", id->key);
    } else {
        const struct expected_value *expected = &exchange->expected.items[index];
        arrival->key = expected->name;
        const struct node_output *output = &expected->output;
        if (arrival->value && (arrival->value->type != output->type ||
                               !shape_compatible(&arrival->value->shape, &output->shape)))
            return error_set(err, ERR_PROTOCOL, "'%s' is %s, but was sent as %s", expected->name,
                             shape_text_typed(output->type, &output->shape),
                             shape_text_typed(arrival->value->type, &arrival->value->shape));
        pthread_mutex_lock(&exchange->lock);
        /* whether the peer is where the graph says that the value comes from */
        const struct route *route = &exchange->routes.items[expected->route];
        if (route->peer != arrival->peer &&
            (route->peer || strcmp(route->task, peer_task(arrival->peer))))
            code = error_set(err, ERR_PROTOCOL, "'%s' does not come from it", expected->name);
        else if ((*remote = step_for(exchange, id->step)))
            remote_retain(*remote);
        pthread_mutex_unlock(&exchange->lock);
    }
    return code;
}

typedef int arrive_function(struct remote *, const struct arrival *, struct error *);

static int arrive(struct exchanges *all, const struct value_id *id, struct arrival *arrival,
                  arrive_function *function, struct error *err)
{
    struct value_exchange *exchange = exchange_find(all, id->session);
    struct remote *remote = NULL;
    arrival->iteration = id->iteration;
    int code = exchange ? find_target(exchange, id, arrival, &remote, err) : 0;
    if (remote) {
        code = function(remote, arrival, err);
        remote_release(remote);
    } else {
        atomic_fetch_add(&all->dropped, 1);
        if (arrival->charged)
            flow_return(arrival->peer, arrival->charged);
    }
    exchange_release(exchange); /* not before: the arrival's key is the exchange's */
    return code;
}

int exchanges_value(struct exchanges *all, struct peer *peer, const struct record *record,
                    struct error *err)
{
    struct arrival arrival = {.peer = peer};
    struct tensor shared = TENSOR_INIT;
    struct value_id id;
    int code = 0;
    bool comes = true;
    if (!value_id_read(&id, record) || record->n_tensors > (record->kind == RECORD_VALUE))
        code = error_set(err, ERR_PROTOCOL, "a value record that says not which it is");
    record_get_bool(&record->header, "granted", &arrival.granted);
    if (!code && record->kind == RECORD_SHARE) {
        code = flow_take_shared(peer, record, &shared, err);
        comes = shared.buffer; /* else as bytes */
        arrival.value = &shared;
    } else if (!code && record->n_tensors) {
        arrival.value = &record->tensors[0].tensor;
    }
    if (!code && comes && !arrival.granted) {
        arrival.charged = flow_cost(arrival.value);
        if (!flow_charge(peer, arrival.charged))
            code = error_set(err, ERR_PROTOCOL, "sends '%.200s' beyond its credit", id.key);
    }
    if (!code && comes)
        code = arrive(all, &id, &arrival, remote_arrived, err);
    tensor_release(&shared);
    return code;
}

int exchanges_announce(struct exchanges *all, struct peer *peer, const struct record *record,
                       struct error *err)
{
    struct arrival arrival = {.peer = peer};
    struct value_id id;
    return value_id_read(&id, record)
               ? arrive(all, &id, &arrival, remote_announced, err)
               : error_set(err, ERR_PROTOCOL, "an announcement that says not of what");
}

/* ---- a peer is lost ---- */

static bool routes_to(const struct value_exchange *exchange, const struct peer *peer)
{
    for (size_t i = 0; i < exchange->routes.n; i++)
        if (exchange->routes.items[i].peer == peer)
            return true;
    return false;
}

void exchanges_lost(struct exchanges *all, struct peer *peer, const struct error *why)
{
    VEC(struct remote *) steps = VEC_INIT; /* of exchanges that have a route to the peer, held */
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < EXCHANGE_BUCKETS; i++)
        for (struct value_exchange *exchange = all->buckets[i]; exchange;
             exchange = exchange->next) {
            pthread_mutex_lock(&exchange->lock);
            for (size_t k = 0; k < exchange->steps.n && routes_to(exchange, peer); k++)
                vec_push(&steps, remote_retain(exchange->steps.items[k]));
            pthread_mutex_unlock(&exchange->lock);
        }
    pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < steps.n; i++) {
        struct error reason = *why;
        struct str key = STR_INIT;
        if (remote_waits_for(steps.items[i], peer_task(peer), &key))
            error_waited(&reason, "%s", str_text(&key));
        struct rendezvous *step = &steps.items[i]->interface;
        step->abort(step, &reason);
        remote_release(steps.items[i]);
        str_release(&key);
    }
    vec_release(&steps);
}
