/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/step/turn.h"

#include <stddef.h>

#include "exec/device/device.h"

static _Thread_local struct {
    int depth; /* of turn_begin */
    bool catches_up;
    struct turn *first, *last;
    struct device *device; /* entered last */
    int team;
} me;

static void put_off(struct turn *turn)
{
    turn->next = NULL;
    if (me.first)
        me.last->next = turn;
    else
        me.first = turn;
    me.last = turn;
}

static void run_all(void)
{
    while (me.first) {
        struct turn *turn = me.first;
        me.first = turn->next;
        turn->run(turn);
    }
}

void turn_take(struct turn *turn)
{
    if (me.depth > 0) {
        put_off(turn);
        return;
    }
    turn_begin();
    turn->run(turn);
    turn_end();
}

void turn_begin(void)
{
    me.depth++;
}

void turn_end(void)
{
    if (me.depth == 1)
        run_all();
    me.depth--;
}

bool turn_is_pending(void)
{
    return me.first != NULL;
}

void turn_catch_up(void)
{
    turn_begin();
    run_all();
    me.depth--;
}

void turn_before_long(void)
{
    if (!me.first || me.catches_up)
        return;
    me.catches_up = true;
    turn_catch_up();
    me.catches_up = false;
}

void turn_enter_device(struct device *device, int team)
{
    if (device->enter_thread && (me.device != device || me.team != team))
        device->enter_thread(device, team);
    me.device = device;
    me.team = team;
}
