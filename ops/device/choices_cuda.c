/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of the file is NAME TAB NUMBER TAB BYTES. The first line of a name counts.
 */
#include "ops/device/choices_cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"

/* Parses a line; `choice->name` points into it, terminated there. */
static bool parse(char *line, struct cuda_choice *choice)
{
    char *tab = strchr(line, '\t'), *end;
    if (!tab || tab == line)
        return false;
    *tab = '\0';
    choice->name = line;
    choice->number = strtol(tab + 1, &end, 10);
    if (end == tab + 1 || *end != '\t')
        return false;
    char *bytes = end + 1;
    choice->bytes = strtoul(bytes, &end, 10);
    return end != bytes && *end == '\n';
}

static const struct cuda_choice *find(const struct cuda_choices *choices, const char *name)
{
    size_t i = vec_find(&choices->all, name);
    return i < choices->all.n ? &choices->all.items[i] : NULL;
}

static void keep(struct cuda_choices *choices, const struct cuda_choice *choice)
{
    struct cuda_choice own = *choice;
    if (find(choices, choice->name))
        return;
    own.name = mem_strdup(choice->name);
    vec_push(&choices->all, own);
}

static void forget(struct cuda_choices *choices)
{
    mem_free(choices->file);
    choices->file = NULL;
    vec_each(choice, &choices->all)
        mem_free((char *)(uintptr_t)choice->name);
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
    char *line = NULL;
    size_t room = 0;
    struct cuda_choice choice;
    int code = 0;
    for (int n = 1; !code && getline(&line, &room, file) >= 0; n++) {
        if (parse(line, &choice))
            keep(choices, &choice);
        else
            code = error_set(err, ERR_DATA, "%s: line %d is no choice", name, n);
    }
    if (!code && ferror(file))
        code = error_set(err, ERR_OS, "%s: %s", name, strerror(errno));
    free(line);
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
    if (known) {
        choice->number = known->number;
        choice->bytes = known->bytes;
    }
    pthread_mutex_unlock(&choices->lock);
    return known != NULL;
}

void cuda_choices_add(struct cuda_choices *choices, const struct cuda_choice *choice)
{
    pthread_mutex_lock(&choices->lock);
    keep(choices, choice);
    if (choices->file) {
        struct str line = STR_INIT;
        str_printf(&line, "%s\t%ld\t%zu\n", choice->name, choice->number, choice->bytes);
        int fd = open(choices->file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0) {
            ssize_t written = write(fd, line.data, line.n);
            (void)written;
            close(fd);
        }
        str_release(&line);
    }
    pthread_mutex_unlock(&choices->lock);
}
