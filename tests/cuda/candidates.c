/* SPDX-License-Identifier: Apache-2.0
 *
 * Run what plans of networks can choose, each impl and conversion once on random data:
 * for compute-sanitizer, under which scripts/gpu-sanitize-plans.sh starts it.
 *
 *     candidates [-d DEVICE] [-e] [-k RUNS] [-p I/N] [-o NAME,NAME...] [-w NAME,NAME...]
 *                CASE...
 *
 * A CASE is PATH:PRECISION:MATH[:BATCH], as nets/resnet18.ini:fp16:tensor_op:2. Nothing
 * is planned: all that a plan would have timed is made ready as for that, and runs. What
 * is the same in several networks (layer, attributes, shapes, impl, formats) runs once. A
 * line each goes to stdout, ahead of the run:
 *
 *     run ID CASE IMPL        the ID is the same in another process
 *     took ID MICROSECONDS    with the setting up
 *     failed ID CASE MESSAGE
 *
 * With -k the runs are only those whose lines "ID CASE WEIGHT" are in a file, of these
 * with -p the I-th of N parts (0 to N - 1) of about equal weight; -w leaves out impls
 * whose names, or whose modules' files, begin so, -o all others. With -e each tensor is
 * an allocation of CUDA's own, whose ends the tools know, and not of a pool. At each run
 * launch_count (tests/cuda/launch_count.c), if it is loaded, names kernels anew. Exit
 * status: 0; 1, something failed; 2, usage.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/handle.h"
#include "planner/cost/progress.h"
#include "planner/cost/trial.h"
#include "planner/planner.h"
#include "tests/cuda/runtime.h"

enum { MOST_IDS = 1 << 18, CASE_NAME = 512 };

struct chosen {
    uint64_t id;
    char of[CASE_NAME];
    double weight;
};

/* Open addressing; 0 is no ID. */
struct id_set {
    uint64_t ids[MOST_IDS];
    size_t n;
};

struct visit {
    struct cost_source source; /* first */
    strata_handle *handle;
    strata_registry *registry;
    const char *of, *only, *without;
    struct chosen *chosen;
    size_t n_chosen;
    bool choosy; /* whether chosen is what runs */
    struct id_set seen;
    size_t n_runs, failures;
    struct trial_pattern pattern;
};

/* ---- IDs ------------------------------------------------------------------------------
 */

/* FNV-1a of a key without the build of the module and the circumstances of a
 * measurement, so that a choice outlives both and serves another device. */
static uint64_t id_of(const char *key)
{
    uint64_t h = UINT64_C(14695981039346656037);
    const char *module = strstr(key, " module="), *last = strstr(key, " threads=");
    const char *end = module ? strchr(module + 1, ' ') : NULL;
    for (; *key && key != last; key++) {
        if (end && key == module)
            key = end;
        h = (h ^ (unsigned char)*key) * UINT64_C(1099511628211);
    }
    return h ? h : 1;
}

/* False: it was there, or there is no room. */
static bool add_id(struct id_set *s, uint64_t id)
{
    size_t at = id % MOST_IDS;
    if (s->n > MOST_IDS / 2)
        return false;
    for (; s->ids[at]; at = (at + 1) % MOST_IDS)
        if (s->ids[at] == id)
            return false;
    s->ids[at] = id;
    s->n++;
    return true;
}

static bool is_chosen(const struct visit *v, uint64_t id)
{
    for (size_t i = 0; i < v->n_chosen; i++)
        if (v->chosen[i].id == id && strcmp(v->chosen[i].of, v->of) == 0)
            return true;
    return !v->choosy;
}

/* ---- runs
 * ------------------------------------------------------------------------------ */

/* The line goes among the names of what is launched, too. */
static void tell_begin(uint64_t id, const char *of, const char *impl)
{
    void (*begin)(const char *);
    char line[2 * CASE_NAME];
    snprintf(line, sizeof line, "run %016" PRIx64 " %s %s\n", id, of, impl);
    fputs(line, stdout);
    fflush(stdout);
    *(void **)&begin = dlsym(RTLD_DEFAULT, "launch_count_begin");
    if (begin)
        begin(line);
}

static const char *impl_of(const struct cost_query *q)
{
    return q->candidate ? q->candidate->impl->impl.name : "(reformat)";
}

/* The file's name alone of the module that it came in; "" of a conversion. */
static const char *module_of(const struct cost_query *q)
{
    const char *path = q->candidate ? module_info(q->candidate->impl->module).path : "";
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether the impl's name or its module's file begins as one of a list. */
static bool is_among(const char *list, const struct cost_query *q)
{
    const char *const names[] = {impl_of(q), module_of(q)};
    for (const char *p = list; p && *p;) {
        const size_t n = strcspn(p, ",");
        for (size_t i = 0; i < 2 && n > 0; i++)
            if (strncmp(names[i], p, n) == 0)
                return true;
        p += n + (p[n] == ',');
    }
    return false;
}

static bool left_out(const struct visit *v, const struct cost_query *q)
{
    return is_among(v->without, q) || (v->only && !is_among(v->only, q));
}

/* As a measurement opens and closes it. */
static int run_trial(struct visit *v, const struct planner *planner,
                     const struct cost_query *q, strata_error *err)
{
    const struct device_ops *ops = v->handle->device->ops;
    struct trial t = {.query = q, .planner = planner, .handle = v->handle};
    strata_error late;
    error_clear(&late);
    int status = trial_open(&t, &v->pattern, err);
    if (status == STRATA_OK)
        status = ops->stream_synchronize(v->handle->stream, err);
    if (status == STRATA_OK && !trial_empty(&t))
        status = trial_enqueue(&t, 1, err);
    const int ended =
        ops->stream_synchronize(v->handle->stream, status == STRATA_OK ? err : &late);
    trial_close(&t);
    return status == STRATA_OK ? ended : status;
}

/* EDEVICELOST alone ends all. */
static int run_query(struct visit *v, const struct planner *planner,
                     const struct cost_query *q)
{
    const uint64_t id = id_of(q->key);
    strata_error err;
    error_clear(&err);
    if (left_out(v, q) || !is_chosen(v, id) || !add_id(&v->seen, id))
        return STRATA_OK;
    tell_begin(id, v->of, impl_of(q));
    const double start = progress_now();
    const int status = run_trial(v, planner, q, &err);
    v->n_runs++;
    if (status == STRATA_OK)
        printf("took %016" PRIx64 " %.0f\n", id, (progress_now() - start) * 1e6);
    else
        printf("failed %016" PRIx64 " %s %s: %s\n", id, v->of, impl_of(q), err.message);
    v->failures += status != STRATA_OK;
    return status == STRATA_EDEVICELOST ? status : STRATA_OK;
}

/* In place of times: an end of planning, with all that would be timed in hand. */
static int visit_all(struct cost_source *s, const struct planner *planner,
                     const struct cost_query *const *queries, const int64_t *best,
                     size_t n, struct cost *costs, strata_error *err)
{
    struct visit *v = (struct visit *)s;
    int status = STRATA_OK;
    (void)best, (void)costs;
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = run_query(v, planner, queries[i]);
    return status == STRATA_OK ? error_set(err, STRATA_EBUSY, "all have run")
                               : error_set(err, status, "the device is lost");
}

/* ---- networks
 * --------------------------------------------------------------------------
 */

struct parts {
    char path[CASE_NAME], precision[16], math[16], batch[16];
};

static bool split(const char *of, struct parts *p)
{
    *p = (struct parts){.path = ""};
    return sscanf(of, "%511[^:]:%15[^:]:%15[^:]:%15s", p->path, p->precision, p->math,
                  p->batch) >= 3;
}

static int load(struct visit *v, const struct parts *p, strata_network **out,
                strata_error *err)
{
    char set[2][64], define[64];
    const char *sets[] = {set[0], set[1]}, *defines[] = {define};
    snprintf(set[0], sizeof set[0], "build.precision=%s", p->precision);
    snprintf(set[1], sizeof set[1], "build.math=%s", p->math);
    snprintf(define, sizeof define, "batch=%s", p->batch);
    const strata_network_options options = {.struct_size = sizeof options,
                                            .set = sets,
                                            .n_set = 2,
                                            .define = defines,
                                            .n_define = p->batch[0] != '\0'};
    return strata_network_load(out, p->path, v->registry, &options, err);
}

static bool is_wanted(const struct visit *v)
{
    for (size_t i = 0; i < v->n_chosen; i++)
        if (strcmp(v->chosen[i].of, v->of) == 0)
            return true;
    return !v->choosy;
}

static void visit_case(struct visit *v, const char *of)
{
    struct parts p;
    strata_network *network = NULL;
    struct planner *planner = NULL;
    strata_error err;
    v->of = of;
    error_clear(&err);
    if (!is_wanted(v))
        return;
    int status = split(of, &p) ? load(v, &p, &network, &err)
                               : error_set(&err, STRATA_EINVAL, "no such case");
    if (status == STRATA_OK) {
        const struct planner_device device = {v->handle->properties, v->handle->math, 0};
        network->build.costs.kind = COSTS_MEASURE;
        network->build.costs.everything = true;
        status = planner_make(&planner, network, &device, &v->source, &err);
    }
    if (status != STRATA_EBUSY) {
        printf("failed 0 %s %s\n", of, err.message);
        v->failures++;
    }
    planner_free(planner);
    strata_network_destroy(network);
}

/* ---- what is chosen
 * ----------------------------------------------------------------------
 */

/* Of the file's lines the I-th part by weight: networks are planned by few processes. */
static bool read_chosen(struct visit *v, const char *path, size_t part, size_t parts)
{
    FILE *file = fopen(path, "r");
    double all = 0, before = 0;
    size_t n = 0, kept = 0;
    v->choosy = true;
    v->chosen = calloc(MOST_IDS, sizeof *v->chosen);
    if (!file || !v->chosen)
        return false;
    for (struct chosen *c = v->chosen;
         n < MOST_IDS &&
         fscanf(file, "%" SCNx64 " %511s %lf", &c->id, c->of, &c->weight) == 3;
         c++, n++)
        all += c->weight;
    const bool whole = feof(file);
    fclose(file);
    for (size_t i = 0; i < n; i++) {
        const double middle = before + v->chosen[i].weight / 2;
        before += v->chosen[i].weight;
        if ((size_t)(middle / all * (double)parts) == part)
            v->chosen[kept++] = v->chosen[i];
    }
    v->n_chosen = kept;
    return whole;
}

/* ---- memory
 * ------------------------------------------------------------------------------
 */

typedef int cuda_malloc(void **, size_t);
typedef int cuda_free(void *);

static void *exact_alloc(void *user, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    (void)user;
    return alignment <= 256 && ((cuda_malloc *)runtime("cudaMalloc"))(&memory, bytes) == 0
               ? memory
               : NULL;
}

static void exact_free(void *user, void *memory, size_t bytes)
{
    (void)user, (void)bytes;
    ((cuda_free *)runtime("cudaFree"))(memory);
}

static int usage(void)
{
    fputs("usage: candidates [-d DEVICE] [-e] [-k RUNS] [-p I/N] [-o NAME,NAME...] "
          "[-w NAME,NAME...] PATH:PRECISION:MATH[:BATCH]...\n",
          stderr);
    return 2;
}

struct arguments {
    const char *device, *chosen, *only, *without;
    size_t part, parts;
    bool exact;
};

static bool parse(struct arguments *a, int argc, char **argv)
{
    int option;
    bool good = true;
    *a = (struct arguments){.device = "cuda:0", .parts = 1};
    while ((option = getopt(argc, argv, "d:ek:o:p:w:")) != -1)
        switch (option) {
        case 'd':
            a->device = optarg;
            break;
        case 'e':
            a->exact = true;
            break;
        case 'k':
            a->chosen = optarg;
            break;
        case 'o':
            a->only = optarg;
            break;
        case 'w':
            a->without = optarg;
            break;
        default:
            good &= option == 'p' && sscanf(optarg, "%zu/%zu", &a->part, &a->parts) == 2;
        }
    return good && a->part < a->parts && optind < argc;
}

static int open_visit(struct visit *v, const struct arguments *a, strata_error *err)
{
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .search_path = getenv("STRATA_PLUGIN_PATH"),
                                             .allow_untrusted = 1,
                                             .no_default_path = 1};
    const strata_allocator own = {
        .struct_size = sizeof own, .alloc = exact_alloc, .free = exact_free};
    v->source = (struct cost_source){.name = "once", .measure = visit_all};
    v->only = a->only;
    v->without = a->without;
    trial_pattern_fill(&v->pattern);
    if (a->chosen && !read_chosen(v, a->chosen, a->part, a->parts))
        return error_set(err, STRATA_EIO, "%s cannot be read", a->chosen);
    int status = strata_create(&v->handle, a->device, err);
    if (status == STRATA_OK && a->exact)
        status = strata_set_allocator(v->handle, &own, err);
    return status == STRATA_OK ? strata_registry_create(&v->registry, &options, err)
                               : status;
}

static void close_visit(struct visit *v)
{
    strata_registry_destroy(v->registry);
    strata_destroy(v->handle);
    free(v->chosen);
    free(v);
}

int main(int argc, char **argv)
{
    struct arguments a;
    strata_error err;
    int result = 1;
    error_clear(&err);
    if (!parse(&a, argc, argv))
        return usage();
    struct visit *v = zalloc(1, sizeof *v, "a visit", &err);
    if (!v || open_visit(v, &a, &err) != STRATA_OK) {
        fprintf(stderr, "candidates: %s\n", err.message);
    } else {
        for (int i = optind; i < argc; i++)
            visit_case(v, argv[i]);
        printf("%zu runs, %zu failures\n", v->n_runs, v->failures);
        result = v->failures > 0;
    }
    if (v)
        close_visit(v);
    return result;
}
