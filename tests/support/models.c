/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks that others trained, for tests.
 */
#include "tests/support/models.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

char models[TEXT];
char scratch[TEXT];
char ini[TEXT];

void join(char *out, const char *folder, const char *name, const char *suffix)
{
    int n = snprintf(out, TEXT, "%s/%s%s", folder, name, suffix);
    cr_assert(n > 0 && n < TEXT, "path of %s is too long", name);
}

void *read_file(const char *folder, const char *name, size_t *size)
{
    char path[TEXT];
    struct stat st;
    join(path, folder, name, "");
    FILE *f = fopen(path, "rb");
    cr_assert(f && !fstat(fileno(f), &st), "cannot open %s", path);
    char *data = malloc((size_t)st.st_size + 1);
    cr_assert(data && fread(data, 1, (size_t)st.st_size, f) == (size_t)st.st_size,
              "cannot read %s", path);
    fclose(f);
    data[st.st_size] = 0;
    *size = (size_t)st.st_size;
    return data;
}

void *read_array(const char *folder, const char *name, size_t skip, size_t count,
                 size_t element)
{
    size_t size;
    char *data = read_file(folder, name, &size);
    cr_assert(size == skip + count * element, "%s has %zu bytes, not %zu", name, size,
              skip + count * element);
    memmove(data, data + skip, size - skip);
    return data;
}

static void copy_ini(const char *model)
{
    char name[TEXT];
    size_t size;
    const char *source = getenv("srcdir");
    join(name, "examples/models", model, ".ini");
    char *text = read_file(source ? source : ".", name, &size);
    join(ini, scratch, model, ".ini");
    FILE *f = fopen(ini, "wb");
    cr_assert(f && fwrite(text, 1, size, f) == size && !fclose(f), "cannot write %s",
              ini);
    free(text);
}

int run_quietly(char *const *arguments)
{
    posix_spawn_file_actions_t quiet;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    cr_assert(!posix_spawnp(&child, arguments[0], &quiet, NULL, arguments, environ),
              "%s is needed", arguments[0]);
    posix_spawn_file_actions_destroy(&quiet);
    cr_assert(waitpid(child, &status, 0) == child);
    return status;
}

static void convert(const char *model)
{
    char script[TEXT];
    const char *source = getenv("srcdir");
    join(script, source ? source : ".", "scripts/convert_models.py", "");
    char *const arguments[] = {"python3", script, models, scratch, (char *)model, NULL};
    cr_assert(run_quietly(arguments) == 0, "%s failed on %s", script, model);
}

void make_scratch(void)
{
    const char *base = getenv("TMPDIR");
    join(scratch, base ? base : "/tmp", "strata-models-XXXXXX", "");
    cr_assert(mkdtemp(scratch), "cannot make %s", scratch);
}

void remove_scratch(void)
{
    char *const arguments[] = {"rm", "-rf", scratch, NULL};
    pid_t child;
    if (*scratch && !posix_spawnp(&child, "rm", NULL, NULL, arguments, environ))
        waitpid(child, NULL, 0);
}

void need_model(const char *model)
{
    char path[TEXT];
    const char *given = getenv("STRATA_MODELS"), *source = getenv("srcdir");
    snprintf(models, sizeof models, "%s%s",
             given    ? given
             : source ? source
                      : ".",
             given ? "" : "/../shared/models");
    join(path, models, model, "/weights.tsv");
    if (access(path, R_OK))
        cr_skip_test("%s: no such model here; set STRATA_MODELS", path);
    make_scratch();
    convert(model);
    copy_ini(model);
}
