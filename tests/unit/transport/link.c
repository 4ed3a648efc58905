/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between two ends: records arrive once, in order and whole, over every kind of link.
 */
#include <fcntl.h>
#include <link.h>

#include "lib/links.h"

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

static void exchange_sizes(struct end *client)
{
    static const int64_t sizes[] = {0, 1, 1000, 5000, 100000, 2000000};
    for (int i = 0; i < 6; i++) {
        struct named_tensor x = {0};
        make_float32(&x, sizes[i], (uint32_t)i);
        end_request(client, i, &x, 1);
        assert_true(end_pump(client, end_has_records, i + 1, 20));
        assert_int_equal(client->last_id, i);
        assert_true(tensor_equal(&client->kept.tensor, &x.tensor));
        tensor_release(&x.tensor);
    }
}

/* More than a bin holds. */
static void exchange_huge(struct end *client)
{
    struct named_tensor x = {0};
    make_float32(&x, 20000000, 3);
    atomic_store(&client->n_records, 0);
    end_request(client, 1, &x, 1);
    assert_true(end_pump(client, end_has_records, 1, 60));
    assert_true(tensor_equal(&client->kept.tensor, &x.tensor));
    tensor_release(&x.tensor);
}

/* 40 MB each way, all under way at the same time. */
static void exchange_both_ways(struct end *client)
{
    struct named_tensor x;
    make_float32(&x, 1 << 20, 1);
    atomic_store(&client->n_records, 0);
    for (int i = 0; i < 10; i++)
        end_request(client, i, &x, 1);
    assert_true(end_pump(client, end_has_records, 10, 60));
    assert_int_equal(client->last_id, 9);
    assert_true(tensor_equal(&client->kept.tensor, &x.tensor));
    assert_int_equal(link_waiting(client->link), 0);
    tensor_release(&x.tensor);
}

/* All kinds of tensors in one record; one borrows memory that is then overwritten. */
static void exchange_kinds(struct end *client)
{
    struct named_tensor tensors[3] = {{.name = "a"}, {.name = "texts"}, {.name = "borrowed"}};
    struct shape shape = shape_vector(3), large = shape_vector(1 << 20);
    int32_t *values = mem_array(1 << 20, sizeof *values);
    make_tensor(&tensors[0].tensor, INT64, &shape);
    make_tensor(&tensors[1].tensor, STRING, &shape);
    tensors[2].tensor = tensor_borrow(INT32, &large, values);
    for (int i = 0; i < 1 << 20; i++)
        values[i] = i;
    atomic_store(&client->n_records, 0);
    client->last_of = 2;
    end_request(client, 1, tensors, 3);
    memset(values, 0, sizeof *values << 20);
    assert_true(end_pump(client, end_has_records, 1, 20));
    const int32_t *got = client->kept.tensor.data;
    for (int i = 0; i < 1 << 20; i++)
        if (got[i] != i)
            fail_msg("element %d is %d", i, got[i]);
    client->last_of = 1;
    end_request(client, 2, tensors, 2);
    assert_true(end_pump(client, end_has_records, 2, 20));
    assert_true(tensor_equal(&client->kept.tensor, &tensors[1].tensor));
    client->last_of = 0;
    tensor_release(&tensors[0].tensor);
    tensor_release(&tensors[1].tensor);
    mem_free(values);
}

static void exchange(const char *address, struct peers_options options)
{
    struct end server, client;
    options.producer = "test";
    options.no_key = !options.key_file;
    options.task = "ps:0";
    end_serve(&server, options, address);
    options.task = "worker:0";
    options.sums = false;
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    assert_string_equal(link_peer(client.link)->task, "ps:0");
    exchange_sizes(&client);
    exchange_both_ways(&client);
    exchange_kinds(&client);
    if (!options.shared_bytes)
        exchange_huge(&client);
    assert_int_equal(client.n_closed, 0);
    end_stop(&client);
    end_stop(&server);
    assert_int_equal(server.n_closed, 1);
    assert_int_equal(server.why.code, 0); /* the client left in an orderly way */
}

static void test_unix(void **state)
{
    (void)state;
    exchange(NULL, (struct peers_options){.no_shared_memory = true});
    exchange(NULL, (struct peers_options){.no_shared_memory = true, .sums = true});
}

static void test_shared_memory(void **state)
{
    (void)state;
    exchange(NULL, (struct peers_options){.sums = true});
    exchange(NULL, (struct peers_options){.shared_bytes = 1}); /* the smallest that there is */
    exchange(NULL, (struct peers_options){.shared_bytes = (size_t)1 << 30}); /* the largest */
}

/* One side wants shared memory, the other one does not. */
static void test_no_agreement(void **state)
{
    (void)state;
    struct peers_options options = {.task = "ps:0", .producer = "test", .no_key = true};
    struct end server, client;
    for (int which = 0; which < 2; which++) {
        options.no_shared_memory = which;
        options.task = "ps:0";
        end_serve(&server, options, NULL);
        options.no_shared_memory = !which;
        options.task = "";
        end_start(&client, &options);
        end_connect(&client, &server, "ps:0");
        exchange_both_ways(&client);
        end_stop(&client);
        end_stop(&server);
    }
}

static void test_tcp(void **state)
{
    (void)state;
    exchange("127.0.0.1:0", (struct peers_options){0});
    exchange("[::1]:0", (struct peers_options){.sums = true});
}

static int is_tls(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    (void)context;
    return strstr(info->dlpi_name, "/tls.so") != NULL;
}

static bool has_openssl(void)
{
    return dl_iterate_phdr(is_tls, NULL);
}

/* Links within a host need no OpenSSL, whether there is a key or not. */
static void test_tls(void **state)
{
    (void)state;
    char folder[64], path[128];
    end_folder(folder);
    snprintf(path, sizeof path, "%s/key", folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_int_equal(
        write(fd, "00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff\n", 65), 65);
    close(fd);
    exchange(NULL, (struct peers_options){.key_file = path});
    assert_false(has_openssl());
    exchange("127.0.0.1:0", (struct peers_options){.key_file = path});
    assert_true(has_openssl());
    exchange("127.0.0.1:0", (struct peers_options){.key_file = path, .sums = true});
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix),         cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_no_agreement), cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
