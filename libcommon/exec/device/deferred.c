/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/deferred.h"

#include "base/thread.h"
#include "exec/device/device.h"

static _Thread_local struct {
    int depth; /* of deferred_begin */
    bool catches_up;
    struct deferred_work *first, *last;
    struct device *device; /* entered last */
    int team;
} me;

static void run_all(void)
{
    while (me.first) {
        struct deferred_work *deferred = me.first;
        me.first = deferred->next;
        deferred->run(deferred);
    }
}

void deferred_run(struct deferred_work *deferred)
{
    deferred->next = NULL;
    if (me.first)
        me.last->next = deferred;
    else
        me.first = deferred;
    me.last = deferred;
    if (!me.depth)
        deferred_catch_up();
}

void deferred_begin(void)
{
    me.depth++;
}

void deferred_end(void)
{
    if (me.depth == 1)
        run_all();
    me.depth--;
}

bool deferred_is_pending(void)
{
    return me.first != NULL;
}

void deferred_catch_up(void)
{
    deferred_begin();
    run_all();
    me.depth--;
}

void deferred_before_long(void)
{
    if (!me.first || me.catches_up)
        return;
    me.catches_up = true;
    deferred_catch_up();
    me.catches_up = false;
}

void thread_enter_device(struct device *device, int team)
{
    if (device->enter_thread && (me.device != device || me.team != team))
        device->enter_thread(device, team);
    me.device = device;
    me.team = team;
}

void thread_take_up(struct device *device)
{
    thread_use_signal_stack();
    if (!device->is_host)
        thread_enter_device(device, 1);
}
