/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of the file is NAME TAB NUMBER TAB BYTES. The first one of a name counts.
 */
#include "ops/device/choices_cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

static bool parse(char *line, struct cuda_choice *choice)
{
    char *number = strchr(line, '\t'), *end;
    size_t length = number ? (size_t)(number - line) : 0;
    if (!length || length >= sizeof choice->name)
        return false;
    memcpy(choice->name, line, length);
    choice->name[length] = '\0';
    choice->number = strtol(number + 1, &end, 10);
    if (end == number + 1 || *end != '\t')
        return false;
    char *bytes = end + 1;
    choice->bytes = strtoul(bytes, &end, 10);
    return end != bytes && *end == '\n';
}

static const struct cuda_choice *find(const struct cuda_choices *choices, const char *name)
{
    for (size_t i = 0; i < choices->all.n; i++)
        if (!strcmp(choices->all.items[i].name, name))
            return &choices->all.items[i];
    return NULL;
}

static void keep(struct cuda_choices *choices, const struct cuda_choice *choice)
{
    if (!find(choices, choice->name))
        vec_push(&choices->all, *choice);
}

static void forget(struct cuda_choices *choices)
{
    mem_free(choices->file);
    choices->file = NULL;
    vec_release(&choices->all);
}

static int read_file(struct cuda_choices *choices, struct error *err)
{
    const char *name = getenv("TF_GPU_CHOICES");
    if (!name || !*name)
        return 0;
    choices->file = mem_strdup(name);
    FILE *file = fopen(name, "r");
    if (!file && errno == ENOENT)
        return 0;
    if (!file)
        return error_set(err, ERR_OS, "%s: %s", name, strerror(errno));
    char line[CHOICE_NAME_BYTES + 64];
    struct cuda_choice choice;
    int code = 0;
    for (int n = 1; !code && fgets(line, sizeof line, file); n++) {
        if (parse(line, &choice))
            keep(choices, &choice);
        else
            code = error_set(err, ERR_DATA, "%s: line %d is no choice", name, n);
    }
    if (!code && ferror(file))
        code = error_set(err, ERR_OS, "%s: %s", name, strerror(errno));
    fclose(file);
    return code;
}

void cuda_choices_init(struct cuda_choices *choices)
{
    *choices = (struct cuda_choices){.is_open = false};
    pthread_mutex_init(&choices->lock, NULL);
}

void cuda_choices_close(struct cuda_choices *choices)
{
    forget(choices);
    pthread_mutex_destroy(&choices->lock);
}

int cuda_choices_open(struct cuda_choices *choices, struct error *err)
{
    pthread_mutex_lock(&choices->lock);
    int code = choices->is_open ? 0 : read_file(choices, err);
    if (code)
        forget(choices);
    choices->is_open = !code;
    pthread_mutex_unlock(&choices->lock);
    return code;
}

bool cuda_choices_measured(struct cuda_choices *choices)
{
    pthread_mutex_lock(&choices->lock);
    bool has_file = choices->file != NULL;
    pthread_mutex_unlock(&choices->lock);
    return has_file;
}

bool cuda_choices_find(struct cuda_choices *choices, struct cuda_choice *choice)
{
    pthread_mutex_lock(&choices->lock);
    const struct cuda_choice *known = find(choices, choice->name);
    if (known)
        *choice = *known;
    pthread_mutex_unlock(&choices->lock);
    return known != NULL;
}

void cuda_choices_add(struct cuda_choices *choices, const struct cuda_choice *choice)
{
    pthread_mutex_lock(&choices->lock);
    keep(choices, choice);
    if (choices->file) {
        char line[CHOICE_NAME_BYTES + 64];
        int n = snprintf(line, sizeof line, "%s\t%ld\t%zu\n", choice->name, choice->number,
                         choice->bytes);
        int fd = open(choices->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0) {
            ssize_t written = write(fd, line, (size_t)n);
            (void)written;
            close(fd);
        }
    }
    pthread_mutex_unlock(&choices->lock);
}
