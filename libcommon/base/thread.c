/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    pthread_attr_t attr;
    size_t bytes;
    int code = pthread_attr_init(&attr);
    if (code)
        return code;
    if (!pthread_attr_getstacksize(&attr, &bytes) && bytes < THREAD_STACK_BYTES)
        code = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    if (!code)
        code = pthread_create(thread, &attr, run, argument);
    pthread_attr_destroy(&attr);
    return code;
}
