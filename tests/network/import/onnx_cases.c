/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's own cases, imported and run: a TAP line each. onnx_left_out.txt names those that
 * are not expected to pass, with a reason; one of them that passes is an error too.
 *
 *   STRATA_ONNX_DATA=DIR    folder with node/, pytorch-converted/, ...; default Debian's
 *   STRATA_ONNX_CASE=TEXT   only cases whose name holds it
 *   STRATA_ONNX_WHY=1       say after each left-out case what the importer said
 *   STRATA_ONNX_TABLE=FILE  what passed of node/, and what failed by categories, as
 *                           Markdown; the list is not looked at, and a failure outside of
 *                           all categories is the only one
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
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PATH_BYTES 1024
#define SECONDS 120 /* of a case, on a loaded machine */

static const char *const sets[] = {"node", "pytorch-converted", "pytorch-operator",
                                   "simple"};

/* Why a case can fail, by words of the importer's message or of the case's name; the
 * first that fits. */
struct category {
    const char *words, *name;
    bool of_name; /* the words are of the case's name */
    int n;
    char *cases; /* their names, "`a`, `b`" */
    size_t used;
};

static struct category categories[] = {
    {"string", "strings"},
    {"sequence", "sequences and optional values"},
    {"optional", "sequences and optional values", .of_name = true},
    {"sequence", "sequences and optional values", .of_name = true},
    {"_opt", "sequences and optional values", .of_name = true},
    {"_seq", "sequences and optional values", .of_name = true},
    {"elements of type", "operators on types without a dtype"},
    {"random", "random numbers"},
    {"training", "training"},
    {"size depends on values", "data-dependent shapes"},
    {"decodes image files", "image files"},
    {"classical", "ai.onnx.ml"},
    {"ai.onnx.ml", "ai.onnx.ml"},
    {"no layer for it", "operators without a layer"},
    {"BFLOAT16", "expected values that are cut off, where ONNX rounds", .of_name = true},
    {"dft_inverse", "differences of FP32 near 0", .of_name = true},
};

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

static struct category *category_of(const char *name, const char *text)
{
    for (size_t i = 0; i < COUNT(categories); i++)
        if (strstr(categories[i].of_name ? name : text, categories[i].words))
            return &categories[i];
    return NULL;
}

/* Categories of one name are one: the first keeps the cases. */
static void note_failure(const char *name, const char *text)
{
    struct category *c = category_of(name, text);
    for (size_t i = 0; c && i < COUNT(categories); i++)
        if (strcmp(categories[i].name, c->name) == 0) {
            c = &categories[i];
            break;
        }
    char *all = c ? realloc(c->cases, c->used + strlen(name) + 8) : NULL;
    if (!all)
        return;
    c->cases = all;
    c->used += (size_t)sprintf(all + c->used, "%s`%s`", c->n ? ", " : "", name);
    c->n++;
}

static void write_table(const char *path, const struct tally *t)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(
        f,
        "# ONNX's cases\n\n"
        "Cases of ONNX's own suite that are imported, run on the host and agree (1e-3\n"
        "relative, 1e-7 absolute, integers exactly): **%d of %d, %.1f %%**. Written by\n"
        "`make onnx-conformance`, over the node cases of PyPI's onnx 1.22.0.\n\n"
        "| why the others do not | cases |\n|---|---|\n",
        t->passed, t->n, 100.0 * t->passed / (t->n ? t->n : 1));
    for (size_t i = 0; i < COUNT(categories); i++)
        if (categories[i].n)
            fprintf(f, "| %s | %d |\n", categories[i].name, categories[i].n);
    for (size_t i = 0; i < COUNT(categories); i++)
        if (categories[i].n)
            fprintf(f, "\n## %s\n%s\n", categories[i].name, categories[i].cases);
    fclose(f);
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
    const bool table = getenv("STRATA_ONNX_TABLE") != NULL;
    t->n++;
    if (table && !passed) {
        reason = category_of(name, shared->text) ? "left out" : NULL;
        n = reason ? strlen(reason) : 0;
        note_failure(name, shared->text);
    } else if (table)
        reason = NULL;
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
    const char *table = getenv("STRATA_ONNX_TABLE");
    for (size_t i = 0; i < (table ? 1 : COUNT(sets)); i++) {
        const int before = t.passed, n = t.n;
        snprintf(path, sizeof path, "%s/%s", data, sets[i]);
        judge_set(&t, path, list, registry, shared);
        printf("# %s: %d of %d\n", sets[i], t.passed - before, t.n - n);
    }
    printf("# %d cases passed, %d left out, %d failed\n1..%d\n", t.passed, t.left_out,
           t.failed, t.n);
    if (table)
        write_table(table, &t);
    for (size_t i = 0; i < COUNT(categories); i++)
        free(categories[i].cases);
    strata_registry_destroy(registry);
    munmap(shared, sizeof *shared);
    free(list);
    return t.failed ? 1 : 0;
}
