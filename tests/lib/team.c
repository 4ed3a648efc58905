/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenMP's teams as plain threads, for ThreadSanitizer, which does not see how GCC's runtime
 * synchronizes. A program that is linked with this (and exports it, -rdynamic) runs its own
 * parallel loops, and those of the libraries that it loads, here. Each parallel region starts its
 * members and joins them, so that only the program itself can order one member's work before
 * another's. It has the functions that ops/math/team_cpu.c, OpenBLAS and oneDNN call; a nested
 * region has one member, and a thread's settings end with it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define MEMBERS_MAX 64

void GOMP_parallel(void (*body)(void *), void *data, unsigned wanted, unsigned flags);
void GOMP_barrier(void);
int omp_get_max_threads(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
int omp_get_thread_limit(void);
int omp_in_parallel(void);
void omp_set_num_threads(int n);
void omp_set_dynamic(int dynamic);

extern const int parallel_always; /* ops/math/parallel_cpu.h */
const int parallel_always = 1;

struct thread_team {
    pthread_barrier_t barrier;
    int n;
};

struct team_member {
    struct thread_team *team;
    int number;
    void (*body)(void *);
    void *data;
    pthread_t thread;
};

static _Thread_local const struct team_member *self; /* NULL outside of regions */
static _Thread_local int setting;                    /* of omp_set_num_threads; 0: none */

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    int n = text ? atoi(text) : 0;
    return n > 0 ? n : otherwise;
}

int omp_get_thread_limit(void)
{
    return from_environment("OMP_THREAD_LIMIT", MEMBERS_MAX);
}

int omp_get_max_threads(void)
{
    return setting ? setting : from_environment("OMP_NUM_THREADS", 2);
}

void omp_set_num_threads(int n)
{
    setting = n;
}

void omp_set_dynamic(int dynamic)
{
    (void)dynamic; /* teams are as large as requested */
}

int omp_get_num_threads(void)
{
    return self ? self->team->n : 1;
}

int omp_get_thread_num(void)
{
    return self ? self->number : 0;
}

int omp_in_parallel(void)
{
    return self && self->team->n > 1;
}

void GOMP_barrier(void)
{
    if (self && self->team->n > 1)
        pthread_barrier_wait(&self->team->barrier);
}

static void *run(void *argument)
{
    const struct team_member *member = argument, *outside = self;
    self = member;
    member->body(member->data);
    self = outside;
    return NULL;
}

static int team_size(unsigned wanted)
{
    int n = wanted ? (int)wanted : omp_get_max_threads(), limit = omp_get_thread_limit();
    if (omp_in_parallel())
        return 1;
    n = n < limit ? n : limit;
    return n < MEMBERS_MAX ? n : MEMBERS_MAX;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned wanted, unsigned flags)
{
    struct thread_team team = {.n = team_size(wanted)};
    struct team_member members[MEMBERS_MAX];
    (void)flags;
    pthread_barrier_init(&team.barrier, NULL, (unsigned)team.n);
    for (int i = 0; i < team.n; i++)
        members[i] = (struct team_member){.team = &team, .number = i, .body = body, .data = data};
    for (int i = 1; i < team.n; i++)
        if (pthread_create(&members[i].thread, NULL, run, &members[i]))
            abort();
    run(&members[0]);
    for (int i = 1; i < team.n; i++)
        pthread_join(members[i].thread, NULL);
    pthread_barrier_destroy(&team.barrier);
}
