/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's own cases, imported and run: a TAP line each. onnx_left_out.txt names those that
 * are not expected to pass, with a reason; one of them that passes is an error too.
 *
 *   STRATA_ONNX_DATA=DIR    folder with node/, pytorch-converted/, ...; default Debian's
 *   STRATA_ONNX_CASE=TEXT   only cases whose name holds it
 *   STRATA_ONNX_WHY=1       say after each left-out case what the importer said
 *
 * A case runs in a process of its own, so that one that dies is one that fails.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/model/data_set.h"

#define FOLDER "/usr/share/libonnx-testdata/data"
#define LIST "tests/network/import/onnx_left_out.txt"
#define PATH_BYTES 1024
#define SECONDS 120 /* of a case, on a loaded machine */

static const char *const sets[] = {"node", "pytorch-converted", "pytorch-operator",
                                   "simple"};

struct verdict {
    int status;
    char text[400];
};

struct tally {
    int n, passed, left_out, failed;
};

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 18);
    size_t n = f && text ? fread(text, 1, (1 << 18) - 1, f) : 0;
    if (f)
        fclose(f);
    if (n == 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* The reason beside a case's name, its length in *n; NULL: it is not in the list. */
static const char *reason_of(const char *list, const char *name, size_t *n)
{
    const size_t length = strlen(name);
    for (const char *line = list; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == '\t') {
            *n = strcspn(line + length + 1, "\n");
            return line + length + 1;
        }
    }
    return NULL;
}

static void run_case(struct verdict *v, const char *folder, strata_registry *registry)
{
    char model[PATH_BYTES + 16], data[PATH_BYTES + 24];
    strata_error err = {0};
    struct data_set_result result;
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    snprintf(data, sizeof data, "%s/test_data_set_0", folder);
    const struct data_set_options o = {.model = model, .folder = data, .bake = true};
    alarm(SECONDS);
    v->status = data_set_check(&result, &o, registry, &err);
    snprintf(v->text, sizeof v->text, "%.399s", err.message);
    _exit(0);
}

static void judge(struct tally *t, const char *folder, const char *name, const char *list,
                  strata_registry *registry, struct verdict *shared)
{
    size_t n = 0;
    const char *reason = reason_of(list, name, &n);
    int status;
    *shared = (struct verdict){.status = STRATA_EINTERNAL, .text = "the process ended"};
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        run_case(shared, folder, registry);
    waitpid(child, &status, 0);
    for (char *c = shared->text; (c = strpbrk(c, "\n#"));)
        *c = ' ';
    const bool passed = shared->status == STRATA_OK;
    t->n++;
    if (passed && !reason) {
        t->passed++;
        printf("ok %d - %s\n", t->n, name);
    } else if (passed) {
        t->failed++;
        printf("not ok %d - %s is left out (%.*s), and passes\n", t->n, name, (int)n,
               reason);
    } else if (reason) {
        t->left_out++;
        printf("ok %d - %s # SKIP %.*s\n", t->n, name, (int)n, reason);
    } else {
        t->failed++;
        printf("not ok %d - %s: %s\n", t->n, name, shared->text);
    }
    if (getenv("STRATA_ONNX_WHY") && !passed && reason)
        printf("# %s\n", shared->text);
}

static void judge_set(struct tally *t, const char *folder, const char *list,
                      strata_registry *registry, struct verdict *shared)
{
    struct dirent **names = NULL;
    const char *only = getenv("STRATA_ONNX_CASE");
    const int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%.767s/%s", folder, name);
        if (strncmp(name, "test_", 5) == 0 && (!only || strstr(name, only)))
            judge(t, path, name, list, registry, shared);
        free(names[i]);
    }
    free(names);
}

int main(void)
{
    const char *data = getenv("STRATA_ONNX_DATA"), *source = getenv("srcdir");
    struct tally t = {0};
    strata_registry *registry = NULL;
    strata_error err = {0};
    char path[768];
    data = data ? data : FOLDER;
    if (access(data, R_OK) != 0) {
        printf("1..1\nok 1 - ONNX's cases # SKIP %s (libonnx-testdata) is absent\n",
               data);
        return 0;
    }
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", LIST);
    char *list = read_text(path);
    struct verdict *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!list || shared == MAP_FAILED ||
        strata_registry_create(&registry, NULL, &err) != STRATA_OK) {
        printf("Bail out! %s: %s\n", path, list ? err.message : "cannot be read");
        return 1;
    }
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const int before = t.passed, n = t.n;
        snprintf(path, sizeof path, "%s/%s", data, sets[i]);
        judge_set(&t, path, list, registry, shared);
        printf("# %s: %d of %d\n", sets[i], t.passed - before, t.n - n);
    }
    printf("# %d cases passed, %d left out, %d failed\n1..%d\n", t.passed, t.left_out,
           t.failed, t.n);
    strata_registry_destroy(registry);
    munmap(shared, sizeof *shared);
    free(list);
    return t.failed ? 1 : 0;
}
