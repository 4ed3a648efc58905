/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between two ends: what is sent arrives, once, in order, whole.
 */
#include "lib/links.h"

static const struct peers_options server_options = {
    .job = "test", .task = "ps:0", .producer = "test", .no_key = true};
static const struct peers_options client_options = {
    .job = "test", .task = "worker:0", .producer = "test", .no_key = true};

static void make_float32(struct named_tensor *named, int64_t n, uint32_t seed)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(n);
    named->name = "x";
    must(tensor_alloc(&named->tensor, FLOAT32, &shape, &err), &err);
    uint32_t *values = named->tensor.data;
    for (int64_t i = 0; i < n; i++)
        values[i] = (uint32_t)i * 2654435761u + seed;
}

static void exchange(const char *address, bool sums)
{
    static const int64_t sizes[] = {0, 1, 1000, 5000, 100000, 3000000, 20000000};
    struct peers_options options = server_options;
    struct end server, client;
    options.sums = sums;
    end_serve(&server, options, address);
    end_start(&client, &client_options);
    end_connect(&client, &server, "ps:0");
    assert_string_equal(link_peer(client.link)->task, "ps:0");
    assert_true(link_is_dialed(client.link));
    for (int i = 0; i < 7; i++) {
        struct named_tensor x = {0};
        make_float32(&x, sizes[i], (uint32_t)i);
        end_request(&client, i, &x, 1);
        assert_true(end_pump(&client, end_has_records, i + 1, 20));
        assert_int_equal(client.last_id, i);
        assert_true(tensor_equal(&client.kept.tensor, &x.tensor));
        tensor_release(&x.tensor);
    }
    assert_int_equal(client.n_closed, 0);
    end_stop(&client);
    end_stop(&server);
    assert_int_equal(server.n_closed, 1);
    assert_int_equal(server.why.code, 0); /* the client left in an orderly way */
}

static void test_unix(void **state)
{
    (void)state;
    exchange(NULL, false);
    exchange(NULL, true);
}

static void test_tcp(void **state)
{
    (void)state;
    exchange("127.0.0.1:0", false);
    exchange("[::1]:0", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix),
        cmocka_unit_test(test_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
