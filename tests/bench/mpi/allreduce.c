/* SPDX-License-Identifier: Apache-2.0
 *
 * Median time, in microseconds, of MPI_Allreduce of float32. usage: mpirun -n N allreduce BYTES
 * CALLS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WARM 3

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, n = argc == 3 ? atoi(argv[1]) / 4 : 0, calls = argc == 3 ? atoi(argv[2]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *value = malloc(4 * (size_t)n + 4), *sum = malloc(4 * (size_t)n + 4);
    double *times = malloc(sizeof *times * (size_t)(calls + 1));
    if (!value || !sum || !times || n < 1 || calls < 1)
        MPI_Abort(MPI_COMM_WORLD, 64);
    for (int i = 0; i < n; i++)
        value[i] = (float)(rank + 1);
    for (int i = 0; i < WARM + calls; i++) {
        double start = MPI_Wtime();
        MPI_Allreduce(value, sum, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (i >= WARM)
            times[i - WARM] = MPI_Wtime() - start;
    }
    qsort(times, (size_t)calls, sizeof *times, by_value);
    if (!rank)
        printf("%.1f\n", 1e6 * times[calls / 2]);
    free(value);
    free(sum);
    free(times);
    MPI_Finalize();
    return 0;
}
