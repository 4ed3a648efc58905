/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits a straight line with the library of tf-tools: trains the graph of line.lua on points of
 * y = 3 x - 1, saves its variables, and reads them back.
 *
 *     tf-graph line.lua | tf-opt | tf-place > line.tfg
 *     cc line.c $(pkg-config --cflags --libs tf-tools) -o line && ./line line.tfg
 */
#include <stdio.h>
#include <stdlib.h>
#include <tf_tools.h>

static struct tf_error error;

static void *need(void *made)
{
    if (made)
        return made;
    fprintf(stderr, "line: %s\n", error.text);
    exit(error.code);
}

static void check(int code)
{
    need(code ? NULL : &error);
}

static float fetch(tf_call *call, int i)
{
    struct tf_tensor value;
    check(tf_call_fetch(call, i, &value, &error));
    return *(const float *)value.data;
}

int main(int argc, char **argv)
{
    float x[4] = {0, 1, 2, 3}, y[4] = {-1, 2, 5, 8};
    struct tf_tensor points = {TF_FLOAT32, {1, {4}}, x, sizeof x};
    tf_graph *graph = need(tf_graph_open(argc > 1 ? argv[1] : "line.tfg", &error));
    tf_session *session = need(tf_session_new(graph, NULL, &error));
    tf_call *train = need(tf_call_prepare(session, "x,y", "loss", "train", &error));
    check(tf_session_init(session, &error));
    check(tf_call_feed(train, 0, &points, &error));
    points.data = y;
    check(tf_call_feed(train, 1, &points, &error));
    for (int step = 0; step < 2000; step++)
        check(tf_call_run(train, &error));
    printf("loss %.6f after step %d\n", fetch(train, 0), (int)tf_session_step(session));
    check(tf_session_save(session, "line.ckpt", &error));
    tf_call *line = need(tf_call_prepare(session, NULL, "w,b", NULL, &error));
    check(tf_session_init(session, &error)); /* all that was learned is forgotten */
    check(tf_session_restore(session, "line.ckpt", &error));
    check(tf_call_run(line, &error));
    printf("y = %.3f x + %.3f\n", fetch(line, 0), fetch(line, 1));
    tf_call_free(line);
    tf_call_free(train);
    tf_session_free(session);
    tf_graph_free(graph);
    return 0;
}
