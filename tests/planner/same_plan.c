/* SPDX-License-Identifier: Apache-2.0
 *
 * The same network and costs give the same plan, byte for byte, whatever folders the
 * modules come from, in whatever order, on however many threads and in however many at
 * once.
 */
#include <dirent.h>
#include <jansson.h>
#include <pthread.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "planner/explain/explain.h"
#include "tests/planner/planning.h"

enum { ROUNDS = 100, FOLDERS = 4 };

static const struct {
    const char *name, *text;
} nets[] = {
    {"fire",
     "[network]\nformat = 1\noutputs = pool\n[runtime]\nthreads = 1\n"
     "[build]\ncosts = fire.costs\n[input x]\nshape = 1 x 3 x 12 x 12\n"
     "[weights w]\nrandom = 1\n"
     "[layer a]\ntype = Convolution\nfilters = 16\nkernel = 3\nweights = w:a\n"
     "[layer b]\ntype = Convolution\nfilters = 24\nkernel = 1\ninputs = a\nweights = "
     "w:b\n"
     "[layer c]\ntype = Convolution\nfilters = 24\nkernel = 3\npad = 1\ninputs = a\n"
     "weights = w:c\n[layer cat]\ntype = Concatenation\ninputs = b, c\n"
     "[layer d]\ntype = Convolution\nfilters = 24\nkernel = 1\ninputs = a\nweights = "
     "w:b\n"
     "[layer all]\ntype = Concatenation\ninputs = d, cat\n"
     "[layer pool]\ntype = Pooling\nkind = max\nkernel = 2\nstride = 2\n"},
    {"residual",
     "[network]\nformat = 1\noutputs = y\n[runtime]\nthreads = 1\n"
     "[build]\ncosts = residual.costs\nprecision = any\n"
     "[input x]\nshape = 2 x 5 x 7 x 6\n[weights w]\nrandom = 2\n"
     "[layer a]\ntype = Convolution\nfilters = 5\nkernel = 3\npad = 1\nweights = w:a\n"
     "[layer r]\ntype = Activation\nkind = relu\n"
     "[layer b]\ntype = Convolution\nfilters = 5\nkernel = 3\npad = 1\nweights = w:b\n"
     "[layer s]\ntype = ElementWise\nop = sum\ninputs = b, x\n"
     "[layer q]\ntype = Activation\nkind = relu\n"
     "[layer p]\ntype = Pooling\nkind = average\nkernel = 2\nstride = 2\n"
     "[layer f]\ntype = FullyConnected\nunits = 9\nweights = w:f\n"
     "[layer y]\ntype = Softmax\n"},
    {"readers",
     "[network]\nformat = 1\noutputs = y, z\n[runtime]\nthreads = 1\n"
     "[build]\ncosts = readers.costs\nprecision = fp16\n"
     "[input x]\nshape = 1 x 6 x 8 x 8\n[weights w]\nrandom = 3\n"
     "[layer a]\ntype = Convolution\nfilters = 6\nkernel = 1\nweights = w:a\n"
     "[layer b]\ntype = Pooling\nkind = max\nkernel = 3\npad = 1\nstride = 1\ninputs = "
     "a\n"
     "[layer c]\ntype = Activation\nkind = tanh\ninputs = a\n"
     "[layer d]\ntype = Convolution\nfilters = 6\nkernel = 3\npad = 1\ninputs = a\n"
     "weights = w:d\n"
     "[layer y]\ntype = ElementWise\nop = product\ninputs = b, c\n"
     "[layer z]\ntype = ElementWise\nop = max\ninputs = c, d\n"},
};

static char *expected[ARRAY_LENGTH(nets)];
static uint64_t state = 5;

static int draw(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

/* ---- sessions --------------------------------------------------------------------- */

static int load(struct planning *s, size_t net, const char *path, bool costs)
{
    static const char *const analytic[] = {"build.costs=analytic"};
    strata_registry_options from = {.struct_size = sizeof from, .search_path = path};
    char file[300];
    snprintf(file, sizeof file, "%s/%s.ini", scratch, nets[net].name);
    return planning_load(s, file, &from, analytic, costs ? 0 : 1);
}

/* A plan as it is kept, or why there is none. */
struct job {
    const char *path;
    int threads;
    size_t net;
    char *text;
    strata_error err;
};

static void *make_plan(void *data)
{
    struct job *job = data;
    struct planning s;
    struct explain *x = NULL;
#ifdef _OPENMP
    omp_set_num_threads(job->threads);
#endif
    int status = load(&s, job->net, job->path, true);
    if (status == STRATA_OK)
        status = planning_make(&s, NULL);
    if (status == STRATA_OK)
        status = explain_plan(&x, &s.planner->model->problem, &s.planner->plan_options,
                              s.planner->plan, &s.err);
    if (status == STRATA_OK) {
        json_t *report = explain_json(s.planner, s.execution, x, 0);
        job->text = json_dumps(report, JSON_INDENT(1));
        json_decref(report);
    }
    job->err = s.err;
    explain_free(x);
    planning_close(&s);
    return NULL;
}

/* ---- costs ------------------------------------------------------------------------- */

/* A handful of costs for many keys: ties everywhere, to be broken. */
static int invent(struct cost_source *source, const struct planner *planner,
                  const struct cost_query *const *queries, const int64_t *best, size_t n,
                  struct cost *out, strata_error *err)
{
    (void)source, (void)planner, (void)best, (void)err;
    for (size_t i = 0; i < n; i++) {
        uint32_t hash = 2166136261u;
        for (const char *at = queries[i]->key; *at; at++)
            hash = (hash ^ (unsigned char)*at) * 16777619u;
        out[i] = (struct cost){.ns = 20000 * (1 + hash % 5), .runs = 5};
    }
    return STRATA_OK;
}

/* Every cost that the network has, into its file. */
static void write_costs(size_t net)
{
    struct cost_options all = {.kind = COSTS_MEASURE, .everything = true};
    struct cost_source source = {.name = "invented", .measure = invent};
    struct cost_table t;
    struct planning s;
    char file[300];
    snprintf(file, sizeof file, "%s/%s.costs", scratch, nets[net].name);
    int status = load(&s, net, NULL, false);
    cost_table_init(&t, s.device.properties.build);
    if (status == STRATA_OK)
        status = planning_model(&s);
    if (status == STRATA_OK)
        status = cost_plan_from(s.planner, &t, &source, &all, &s.err);
    if (status == STRATA_OK)
        status = cost_table_write(&t, file, &s.err);
    cr_assert_eq(status, STRATA_OK, "%s", s.err.message);
    cost_table_free(&t);
    planning_close(&s);
}

/* ---- folders ----------------------------------------------------------------------- */

/* The modules copied, once, into the first of the folders. */
static void copy_modules(void)
{
    char command[1024];
    const char *from = getenv("STRATA_PLUGIN_DIR");
    cr_assert_not_null(from);
    snprintf(command, sizeof command,
             "cd '%s' && mkdir p0 p1 p2 p3 && cp '%s'/*.so p0 && chmod -R go-w p?",
             scratch, from);
    cr_assert_eq(system(command), 0);
}

static void deal_folder(int folder)
{
    char from[600], to[600];
    snprintf(from, sizeof from, "%s/p%d", scratch, folder);
    DIR *d = opendir(from);
    cr_assert_not_null(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(from, sizeof from, "%s/p%d/%s", scratch, folder, entry->d_name);
        snprintf(to, sizeof to, "%s/p%d/%s", scratch, draw(FOLDERS), entry->d_name);
        cr_assert_eq(rename(from, to), 0, "%s to %s", from, to);
    }
    closedir(d);
}

/* Each module into a folder drawn, and the folders in an order drawn. */
static void deal(char *path, size_t size)
{
    int order[FOLDERS] = {0, 1, 2, 3};
    for (int folder = 0; folder < FOLDERS; folder++)
        deal_folder(folder);
    for (int i = FOLDERS - 1; i > 0; i--) {
        int k = draw(i + 1), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    snprintf(path, size, "%1$s/p%2$d:%1$s/p%3$d:%1$s/p%4$d:%1$s/p%5$d", scratch, order[0],
             order[1], order[2], order[3]);
}

/* ---- the test ---------------------------------------------------------------------- */

/* Every network once; in even rounds all at a time. */
static void check_round(int round, const char *path)
{
    pthread_t thread[ARRAY_LENGTH(nets)];
    struct job job[ARRAY_LENGTH(nets)];
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        job[i] = (struct job){.path = path, .threads = 1 + draw(8), .net = i};
        if (round % 2)
            make_plan(&job[i]);
        else
            cr_assert_eq(pthread_create(&thread[i], NULL, make_plan, &job[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        if (round % 2 == 0)
            pthread_join(thread[i], NULL);
        cr_assert_not_null(job[i].text, "%s", job[i].err.message);
        cr_assert_str_eq(job[i].text, expected[i], "round %d, %s, %d threads", round,
                         nets[i].name, job[i].threads);
        free(job[i].text);
    }
}

Test(same_plan, in_100_runs_from_any_folders_on_any_threads, .init = scratch_make,
     .fini = scratch_remove, .timeout = 600)
{
    char path[2048];
    size_t reformats = 0;
    copy_modules();
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        char file[300];
        snprintf(file, sizeof file, "%s/%s.ini", scratch, nets[i].name);
        FILE *f = fopen(file, "w");
        cr_assert(f && fputs(nets[i].text, f) >= 0 && fclose(f) == 0);
        write_costs(i);
        struct job first = {.threads = 1, .net = i};
        make_plan(&first);
        cr_assert_not_null(first.text, "%s", first.err.message);
        expected[i] = first.text;
        reformats += strstr(expected[i], "\"kind\": \"reformat\"") != NULL;
    }
    cr_assert_gt(reformats, 0, "plans that have something to decide");
    for (int round = 0; round < ROUNDS; round++) {
        deal(path, sizeof path);
        check_round(round, path);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++)
        free(expected[i]);
}
