/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators of CUDA devices (exec/device/communicator.h) with a fake library
 * (lib/fake_cuda_nccl.c): members on cards of one machine, each in a thread of its own.
 */
#include "lib/on_device.h"

#include "base/memory.h"
#include "exec/device/communicator.h"
#include "exec/device/deferred.h"
#include "exec/device/queue.h"
#include "lib/unit.h"

#define MEMBERS 3

struct member {
    pthread_t thread;
    struct device *device;
    struct communicator_place place;
    atomic_bool *gives_up;
    struct communicator *communicator;
    struct error err;
};

static struct device *card(int index)
{
    struct device_options options = {.threads = 1};
    struct error err = ERROR_INIT;
    struct device *device = device_open("CUDA", index, &options, &err);
    if (!device)
        fail_msg("%s", err.text);
    return device;
}

static void *join(void *argument)
{
    struct member *m = argument;
    m->communicator = m->device->communicators->join(m->device, &m->place, m->gives_up, &m->err);
    return NULL;
}

/* Begins a group of n, of which the first `come` members are here and meet. */
static void begin(struct member *members, int n, int come, atomic_bool *gives_up)
{
    struct error err = ERROR_INIT;
    struct communicator_place place = {.n = n};
    atomic_store(gives_up, false);
    for (int k = 0; k < come; k++)
        members[k] = (struct member){.device = card(k), .gives_up = gives_up, .err = error_none()};
    assert_int_equal(members[0].device->communicators->make_id(members[0].device, place.id, &err),
                     0);
    for (int k = 0; k < come; k++) {
        members[k].place = place;
        members[k].place.rank = k;
        assert_int_equal(pthread_create(&members[k].thread, NULL, join, &members[k]), 0);
    }
}

static void meet(struct member *members, int come)
{
    for (int k = 0; k < come; k++)
        pthread_join(members[k].thread, NULL);
}

static void part(struct member *members, int come)
{
    for (int k = 0; k < come; k++) {
        if (members[k].communicator)
            members[k].device->communicators->free(members[k].communicator);
        device_free(members[k].device);
    }
}

/* Each member brings a number in its card's memory, where the sum is put. */
struct inquiry_call {
    enum dtype type;
    bool mean;
    double brings[MEMBERS], wanted;
};

static void put(enum dtype type, void *at, double number)
{
    if (type == FLOAT32)
        *(float *)at = (float)number;
    else if (type == FLOAT64)
        *(double *)at = number;
    else if (type == INT32)
        *(int32_t *)at = (int32_t)number;
    else
        *(int64_t *)at = (int64_t)number;
}

static int add(struct member *m, const struct inquiry_call *asked, void *memory, struct error *err)
{
    const struct communicator_sum sum = {memory, memory, 1, asked->type, asked->mean};
    return m->device->communicators->add(m->communicator, &sum, m->gives_up, err);
}

static void check_sum(struct member *members, const struct inquiry_call *asked)
{
    struct buffer *memory[MEMBERS];
    struct error err = ERROR_INIT;
    for (int k = 0; k < MEMBERS; k++) {
        int64_t brings = 0;
        put(asked->type, &brings, asked->brings[k]);
        memory[k] = device_alloc(members[k].device, sizeof brings);
        assert_int_equal(
            device_write(members[k].device, memory[k]->data, &brings, sizeof brings, &err), 0);
    }
    for (int k = 0; k < MEMBERS; k++)
        assert_int_equal(add(&members[k], asked, memory[k]->data, &err), 0);
    for (int k = 0; k < MEMBERS; k++) {
        int64_t wanted = 0, got = 0;
        size_t bytes = dtype_bytes(asked->type);
        put(asked->type, &wanted, asked->wanted);
        assert_int_equal(device_read(members[k].device, &got, memory[k]->data, bytes, &err), 0);
        assert_memory_equal(&got, &wanted, bytes);
        memory[k]->free(memory[k]);
    }
}

/* This library adds floats from the last to the first, unlike our own sums. */
static void members_add_in_the_librarys_order(void **state)
{
    static const struct inquiry_call sums[] = {{FLOAT32, false, {1, 1e8, -1e8}, 1},
                                               {FLOAT32, false, {1e8, -1e8, 1}, 0},
                                               {FLOAT64, false, {1, 1e17, -1e17}, 1},
                                               {FLOAT64, true, {1, 2, 6}, 3},
                                               {INT32, false, {7, -9, 2147483640}, 2147483638},
                                               {INT64, false, {1e15, 2, 3}, 1e15 + 5}};
    struct member members[MEMBERS];
    atomic_bool gives_up;
    (void)state;
    begin(members, MEMBERS, MEMBERS, &gives_up);
    meet(members, MEMBERS);
    for (int k = 0; k < MEMBERS; k++)
        assert_non_null(members[k].communicator);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        check_sum(members, &sums[i]);
    part(members, MEMBERS);
}

static void the_library_is_named_or_that_it_is_missing(void **state)
{
    struct error err = ERROR_INIT;
    char text[128];
    (void)state;
    struct device *device = card(0);
    assert_int_equal(device->communicators->describe(device, text, sizeof text, &err), 0);
    assert_non_null(strstr(text, " nccl=22809"));
    setenv("TF_TEST_DEVICE_LACKS", "nccl", 1);
    assert_int_equal(device->communicators->describe(device, text, sizeof text, &err),
                     ERR_UNAVAILABLE);
    unsetenv("TF_TEST_DEVICE_LACKS");
    assert_string_equal(err.text, "CUDA:0: the fake library of sums among GPUs is not there");
    device_free(device);
}

static void who_does_not_come_is_waited_for_until_it_is_given_up(void **state)
{
    struct member members[2];
    atomic_bool gives_up;
    (void)state;
    begin(members, 3, 2, &gives_up);
    atomic_store(&gives_up, true);
    meet(members, 2);
    for (int k = 0; k < 2; k++) {
        assert_null(members[k].communicator);
        assert_int_equal(members[k].err.code, ERR_CANCELLED);
    }
    unlink(members[0].place.id);
    part(members, 2);
}

static void an_abort_ends_what_waits_for_another_member(void **state)
{
    static const struct inquiry_call asked = {FLOAT32, false, {1}, 1};
    struct member members[2];
    atomic_bool gives_up;
    struct error err = ERROR_INIT;
    (void)state;
    begin(members, 2, 2, &gives_up);
    meet(members, 2);
    struct buffer *memory = device_alloc(members[0].device, sizeof(float));
    assert_int_equal(add(&members[0], &asked, memory->data, &err), 0);
    members[0].device->communicators->abort(members[0].communicator);
    assert_int_equal(device_finish(members[0].device, &err), 0);
    memory->free(memory);
    part(members, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_add_in_the_librarys_order),
        cmocka_unit_test(the_library_is_named_or_that_it_is_missing),
        cmocka_unit_test(who_does_not_come_is_waited_for_until_it_is_given_up),
        cmocka_unit_test(an_abort_ends_what_waits_for_another_member),
    };
    setenv("TF_TEST_DEVICE", "CUDA:0", 1);
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
