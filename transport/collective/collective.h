/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives (exec/step/collective.h) between processes: the tasks of a job, over links between
 * every two of them.
 *
 * Each member sends every other member one record that describes its contribution and contains all
 * small values and strings: many small tensors are one message. When a member has heard from all
 * (or that they left), large values follow in chunks of 256 KiB. Each chunk has an owner among the
 * members, which gets the part of every member, adds the parts by rank, and sends the sum to all. A
 * member sends parts of later chunks when sums of earlier ones have arrived, so that a chunk is
 * still in the caches when it is added, sent on, and put in its place: 1 MiB in flight is fastest.
 * A member sends and receives 2 (n - 1) / n of the bytes, as in a ring, but in two hops instead of
 * 2 (n - 1), and every element is added by rank whatever its size and place: sums have the same
 * bits as those of one process that has all values. Large data is sent only to members that have
 * called, so that memory is bounded by what the calls themselves hold.
 *
 * Rows that members gather or part are sent only from the member that has them to the member that
 * gets them. A contribution says how many rows the member has and wants; small rows are in it, for
 * each other member its own. (Parts are made for the whole group; if then fewer take part they are
 * sent again.) When all row counts are known, large rows follow in chunks. All members have the
 * same list of chunks, in which the chunks of members alternate, and no member begins one while a
 * window (1 MiB or more) of earlier ones has yet to arrive there. Chunks that arrive before their
 * receiver has heard from all are kept until then. The owner of a part of a sum adds its chunks,
 * and only reports that it has.
 *
 * Members on one host that can map each other's memory do not send chunks, but their addresses
 * (transport/value/segment.h): in the value or the sum, if these are in a segment (conns_outgoing),
 * or else in a copy. So an owner adds the parts in place, and memory that is read is not written
 * again until its reader has released it.
 *
 * A sum or mean of more than 64 KiB may follow a schedule of the call instead
 * (collective/schedule.h): a chain or a ring, a tree, halving, or two levels. It is cut into the
 * schedule's pieces, and these into chunks of 64 KiB, which are pipelined. Each member knows its
 * actions for each chunk and adds in that order, so that sums have the bits of one process that
 * adds all values by the schedule. A member begins as many of its own chunks as fill the way there
 * and back; others hold no more of it than that.
 *
 * Calls may say by_servers: then the chunks of sums have owners among the group's summation servers
 * (sum_server.h) instead of its members; each member sends a value once, and gets the sum. Rows for
 * all other members are sent to a server, which forwards them, if there are at least two others.
 * Small values are still sent between members.
 *
 * If the devices of all members have a library that adds among them, calls that say by_device add
 * values in device memory with it (collective_device.c); the links fix the order of these sums.
 *
 * A member without further work says that it leaves. It may announce that before: then it still
 * contributes to calls that are with_leaving, while all others go on without it.
 *
 * A call of a group (collective_group) concerns only its members: only they are told of it and
 * waited for. A member without a contribution says so.
 *
 * The loss of a member or a server, also one that returns as a newer incarnation, ends all calls
 * that wait, and all later ones, with ERR_UNAVAILABLE, which names it. A member that fails tells
 * the others why.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_H
#define TF_TRANSPORT_COLLECTIVE_H

#include "exec/device/communicator.h"
#include "exec/step/collective.h"
#include "transport/job/member.h"

struct collective_tasks {
    const char *const *names; /* of the members by rank ("worker:0", ...), then of the servers */
    int n, n_servers;
    /* Called in the loop's thread when another member has announced that it leaves, before any call
     * goes on without it: calls that wait for all still wait. May be NULL. */
    void (*leaves)(void *context);
    void *context;
};

/* Makes member `rank`. There is one collective per connection manager, which passes it all records
 * `reduce` and outlives it. Make and free it in the loop's thread or while the loop does not run;
 * make it before the connection manager has links to the tasks. */
struct collective *collective_links_new(struct conns *conns, const struct collective_tasks *tasks,
                                        int rank);

/* Dials the servers and the members of larger rank, and waits for those of smaller rank; runs the
 * loop. The connection manager must already listen. The cluster has all tasks; the options say for
 * how long to wait, and whom to tell. ERR_UNAVAILABLE names a task that is missing; ERR_CANCELLED:
 * given up. */
int collective_links_join(struct collective *collective, const struct cluster *cluster,
                          const struct member_options *options, struct error *err);

/* From now on the devices add the values on `device` of calls that say by_device
 * (exec/device/communicator.h). All members call this before their first step, each with a device
 * of the same kind, with one id. Runs the loop until all have joined. An error is the library's, or
 * that of a lost member. The device outlives the collective. */
int collective_links_add_on(struct collective *collective, struct device *device,
                            const struct communicator_place *place, struct error *err);

/* Makes a call and runs the loop until it is answered. The caller provides *results, n tensors, and
 * releases them. With `met` NULL all members make the call. Else *met becomes false, and the wait
 * ends, once another member has called with a later step that this one has not called. */
int collective_links_run(struct collective *collective, const struct collective_call *call,
                         struct tensor *results, bool *met, struct error *err);

/* Tells the others why this member fails, and closes the links to them. Any thread. */
void collective_links_abort(struct collective *collective, const struct error *why);

/* Frees memory that was kept for the next calls; useful after large calls that will not be
 * repeated. Any thread. */
void collective_links_trim(struct collective *collective);

/* Agreement on the last step. A member that is asked to end, or hears that another was, says once
 * which step it has begun last, and begins none until it has heard from all. All end after the
 * latest of these steps. So all end after the same step, and none waits for data that does not come
 * unless another has begun with its own. */
void collective_links_ask_to_end(struct collective *collective);
/* Returns false if somebody asks and the step is not known yet. *step is INT64_MAX if nobody asks,
 * or if a member is lost, as the next call reports that. */
bool collective_links_last_step(struct collective *collective, int64_t *step);
/* Returns false if the step may not be begun: all end before it, or that is not known yet. */
bool collective_links_begin(struct collective *collective, int64_t step);

/* Returns the least rank that took part in the last call of the whole group that was not
 * with_leaving; all members that took part get the same. */
int collective_links_first(struct collective *collective);

/* Tells the others that this member leaves: their calls go on without it, except those that are
 * with_leaving, in which it takes part until it has left. It makes no other calls. */
void collective_links_announce_leave(struct collective *collective);

/* Leaves, and runs the loop until the others have received all that was sent, or `seconds` have
 * passed. */
void collective_links_end(struct collective *collective, double seconds);

#endif
