/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives (exec/step/collective.h) between processes: the tasks of a job, over links from each
 * to each.
 *
 * How values meet. Each member sends each other one record that says what it brings, with all that
 * is small and strings in it: many small tensors are one message. When a member has heard of all
 * (or that they left), large values follow in blocks of 256 KiB: each block has an owner among the
 * members, which is sent everybody's part, adds them by rank, and sends all the sum. A member sends
 * parts of later blocks when sums of earlier ones have come, so that a block is still in the caches
 * when it is added, sent on, and put in its place: 1 MiB on its way is fastest. A member sends and
 * receives 2 (n - 1) / n of the bytes, as in a ring, but in two hops instead of 2 (n - 1), and
 * every element is added by rank whatever its size and place: sums have the same bits as those of
 * one process that has all values. Nothing large is sent to a member that has not asked, so that
 * memory is bounded by what the calls themselves hold.
 *
 * Rows that members gather or part go from who has them to who is to have them, and nowhere else. A
 * member's contribution says how many rows it has, and wants; where these are small they are there
 * as well, for each other member its own. (Parts are made for all of the group; if then fewer take
 * part they are sent again.) When all rows are known, and all have said that they know and have
 * memory, large ones follow in blocks. These are one list in all members, where the blocks of one
 * take turns with those of the others, and nobody begins one while more than 1 MiB of those before
 * it has yet to come to it. The owner of a part of a sum adds its blocks, and only says so.
 *
 * Members on one host that can map each other's memory send no blocks, but where these lie
 * (transport/value/segment.h): in the value or its sum themselves, if these are in a segment
 * (conns_outgoing), or else in a copy. So an owner adds the parts where they are, and what is read
 * is not written again until whoever reads it has let go of it.
 *
 * A sum or mean of more than 64 KiB may go by a schedule of the call instead
 * (collective/schedule.h): along a line or a ring, by a tree, by halves, or by hosts. It is cut in
 * the schedule's pieces and these in blocks of 64 KiB, which each go their way as soon as they can,
 * one behind the other; each member knows of each block what it has to do, and adds in that order,
 * so that sums have the bits of one process that adds all values by it. A member begins as many of
 * its own as fill the way there and back, and the others hold no more of it than that.
 *
 * Calls may say by_servers: then the blocks of sums have owners among the group's servers
 * (sum_server.h) instead of its members, each of which sends a value once, and gets its sum. Rows
 * that are for all others are sent to a server, which passes them on, if there are at least two
 * others. Small values go from member to member as ever.
 *
 * Where devices of all members have a library that adds among them, sums of values in their memory
 * are added so if calls say by_device (collective_device.c); the links say what is added when.
 *
 * A member that has less to do says that it leaves. It may say so before: then it has something to
 * give to those who stay, in calls that are with_leaving, while all others go on without it.
 *
 * A call of a group (collective_group) is its members' alone: only they are told of it and waited
 * for. A member without a contribution says so.
 *
 * A member or a server that is lost, also one that comes back as a newer incarnation, ends all
 * calls that wait, and all later ones, with ERR_UNAVAILABLE, which names it; and who fails tells
 * the others why.
 */
#ifndef TF_TRANSPORT_COLLECTIVE_H
#define TF_TRANSPORT_COLLECTIVE_H

#include "exec/device/communicator.h"
#include "exec/step/collective.h"
#include "transport/value/conns.h"

struct collective_tasks {
    const char *const *names; /* of the members by rank, "worker:0", ...; then of the servers */
    int n, n_servers;
};

/* Member `rank`. The connection manager gives it all records `reduce`, so there is one of it; it
 * outlives the collective. Before the connection manager has links to them, in the loop's thread or
 * while nobody runs the loop; so is its `free`. */
struct collective *collective_links_new(struct conns *conns, const struct collective_tasks *tasks,
                                        int rank);

struct collective_join {
    const char *const *addresses; /* in the order of the names */
    double seconds;               /* that all must be there in */
    /* Both as in transport/job/member.h; may be NULL. */
    void (*waiting)(void *context, const char *text);
    bool (*given_up)(void *context);
    void *context;
};

/* Dials the servers and the members of larger rank, and waits for those of smaller; runs the loop.
 * The connection manager listens by then. ERR_UNAVAILABLE naming one that is not there;
 * ERR_CANCELLED: given up.
 */
int collective_links_join(struct collective *collective, const struct collective_join *meet,
                          struct error *err);

/* Calls of values on that device that say by_device are added by devices from now on
 * (exec/device/communicator.h): all members call this before their first step, each on a device of
 * the same kind, with one id. Runs the loop until all have joined. An error is the library's, or
 * that of a member that is lost. The device outlives the collective. */
int collective_links_add_on(struct collective *collective, struct device *device,
                            const struct communicator_place *place, struct error *err);

/* Does a call and runs the loop until it is answered. *results, n tensors of the caller's, are to
 * be released. `met` NULL: all members make it. Else this one waits for nothing, and *met is false,
 * once another has called with a later step, which this one has not. */
int collective_links_run(struct collective *collective, const struct collective_call *call,
                         struct tensor *results, bool *met, struct error *err);

/* Tells the others why this member fails, and ends the links to them. Any thread. */
void collective_links_abort(struct collective *collective, const struct error *why);

/* Memory that was kept for the next calls goes back, as is good behind calls with large values that
 * do not come again. Any thread. */
void collective_links_trim(struct collective *collective);

/* When all end. A member that is asked to, or hears that another was, says once which step it has
 * begun last. All end after the latest of these, which each knows when it has heard of all; until
 * then it begins none. So all end after the same step, and none waits for data that does not come
 * unless another has begun with its own. */
void collective_links_ask_to_end(struct collective *collective);
/* False: somebody asks, and it is not known yet. *step INT64_MAX: nobody asks; as well when a
 * member is lost, for the next call says so. */
bool collective_links_last_step(struct collective *collective, int64_t *step);
/* False: it may not be begun, since all end before it or that is not known. */
bool collective_links_begin(struct collective *collective, int64_t step);

/* The least rank among those that took part in the call before, but for calls with_leaving: the
 * same for all of them. */
int collective_links_first(struct collective *collective);

/* Tells the others that this member leaves: their calls go on without it, but for those that are
 * with_leaving, in which it takes part until it has left. It makes no others. */
void collective_links_announce_leave(struct collective *collective);

/* Called in the loop's thread when another member has told so, before any call goes on without it:
 * what waits for all still waits. Set before members meet. */
struct collective_leave {
    void (*hear)(void *context);
    void *context;
};
void collective_links_hear_of_leaving(struct collective *collective,
                                      const struct collective_leave *leaving);

/* Leaves, and runs the loop until the others have all that was sent, at most so long. */
void collective_links_end(struct collective *collective, double seconds);

#endif
