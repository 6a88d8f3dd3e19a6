/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables about the nets of bench/nets.
 *
 *     plan_table [--seeds N] [--net NAME]... [--labels 5|8] [--batch N] [--nets FOLDER]
 *                [--memory | --load] [-o text|md]
 *
 * Without --memory or --load: the cost of our plan against three baselines
 * (bench/plan/baseline.h), on made-up plugins (bench/plan/random.h) that support 40, 70
 * and 100 % of the formats. A baseline's excess is 0 % where its plan costs as much as
 * ours. Fails if a plan does not cost what it says, or a baseline beats one that the
 * planner calls proved.
 * --memory: the arena's peak against the most bytes alive at once, with the impls of the
 * host, and both again for tensors alone, without workspaces. --load: time to read a net
 * with all its shapes.
 * The batch is 8 for plans, which neither launches nor bytes dominate then, else 1.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plan/baseline.h"
#include "bench/plan/random.h"
#include "bench/samples.h"
#include "core/alloc.h"
#include "core/handle.h"
#include "planner/arena.h"

enum { MAX_SEEDS = 10000, LOADS = 21, PATH_SIZE = 2048 };

static const char *const all_nets[] = {
    "resnet18",
    "resnet50",
    "resnet152",
    "googlenet",
    "inception_v3",
    "densenet121",
    "densenet121_running",
    "unet",
    "unetpp",
    "mobilenet_v2",
    "ssd_fpn",
};

static const struct baseline {
    const char *name;
    int (*choose)(const struct plan_problem *p, size_t *choices, strata_error *err);
} baselines[] = {
    {"edge-wise", baseline_edgewise},
    {"greedy", baseline_greedy},
    {"fastest", baseline_fastest},
};
enum { BASELINES = ARRAY_LENGTH(baselines) };

enum table { TABLE_PLANS, TABLE_MEMORY, TABLE_LOAD };

struct arguments {
    const char *nets[ARRAY_LENGTH(all_nets)];
    size_t n_nets;
    const char *folder;
    int seeds, labels, batch;
    enum table table;
    bool markdown;
};

struct session {
    struct arguments arguments;
    strata_handle *handle;
    strata_registry *registry;
};

/* ---- printing
 * -------------------------------------------------------------------------- */

struct column {
    const char *title;
    int width; /* negative: to the left */
};

static void print_cell(const struct session *s, const struct column *c, const char *text,
                       bool first)
{
    if (s->arguments.markdown)
        printf("%s %s |", first ? "|" : "", text);
    else
        printf("%s%*s", first ? "" : "  ", c->width, text);
}

static void print_header(const struct session *s, const struct column *columns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        print_cell(s, &columns[i], columns[i].title, i == 0);
    putchar('\n');
    for (size_t i = 0; s->arguments.markdown && i < n; i++)
        printf("%s%s|", i ? "" : "|", columns[i].width < 0 ? "---" : "--:");
    if (s->arguments.markdown)
        putchar('\n');
}

/* Cells are the fields of `text`, which ends each with a tab but the last. */
static void print_row(const struct session *s, const struct column *columns, char *text)
{
    size_t i = 0;
    for (char *cell = strtok(text, "\t"); cell; cell = strtok(NULL, "\t"), i++)
        print_cell(s, &columns[i], cell, i == 0);
    putchar('\n');
    fflush(stdout);
}

/* ---- nets
 * ------------------------------------------------------------------------------ */

static int load_net(const struct session *s, strata_network **out, const char *name,
                    const char *precision, strata_error *err)
{
    char path[PATH_SIZE], batch[32], set[64];
    const char *defines[] = {batch}, *sets[] = {set};
    const strata_network_options options = {.struct_size = sizeof options,
                                            .define = defines,
                                            .n_define = 1,
                                            .set = sets,
                                            .n_set = precision ? 1 : 0};
    snprintf(path, sizeof path, "%s/%s.ini", s->arguments.folder, name);
    snprintf(batch, sizeof batch, "batch=%d", s->arguments.batch);
    snprintf(set, sizeof set, "build.precision=%s", precision ? precision : "");
    return strata_network_load(out, path, s->registry, &options, err);
}

/* A net's nodes, without a plan. */
static int open_planner(const struct session *s, struct planner **out, const char *name,
                        const char *precision, strata_error *err)
{
    const struct planner_device device = {s->handle->properties, s->handle->math};
    strata_network *net = NULL;
    int status = load_net(s, &net, name, precision, err);
    if (status == STRATA_OK)
        status = planner_open(out, net, &device, err);
    strata_network_destroy(net); /* the planner has its own reference */
    return status == STRATA_OK ? planner_make_nodes(*out, err) : status;
}

/* ---- plans
 * ----------------------------------------------------------------------------- */

struct result {
    double excess[BASELINES]; /* percent over our plan */
    double ms;
    size_t reformats;
    bool proved;
};

static int compare(const struct plan_problem *p, const struct plan *plan,
                   struct result *r, strata_error *err)
{
    int status = STRATA_OK;
    size_t *choices = zalloc(p->n_ops, sizeof *choices, "a baseline", err);
    if (!choices)
        return STRATA_ENOMEM;
    if (plan_cost(p, plan->choices) != plan->cost)
        status = error_set(err, STRATA_EINTERNAL, "the plan costs %lld, not %lld",
                           (long long)plan_cost(p, plan->choices), (long long)plan->cost);
    for (int b = 0; b < BASELINES && status == STRATA_OK; b++) {
        status = baselines[b].choose(p, choices, err);
        if (status != STRATA_OK)
            break;
        int64_t cost = plan_cost(p, choices);
        r->excess[b] = 100 * ((double)cost / (double)plan->cost - 1);
        if (plan->proved && cost < plan->cost)
            status = error_set(err, STRATA_EINTERNAL,
                               "%s finds a plan of %lld, less than the %lld that the "
                               "planner calls the least",
                               baselines[b].name, (long long)cost, (long long)plan->cost);
    }
    free(choices);
    return status;
}

static int run_seed(const struct planner *planner, const struct random_options *options,
                    struct result *r, strata_error *err)
{
    struct random_problem problem;
    struct plan *plan = NULL;
    int status = random_problem_make(&problem, planner, options, err);
    if (status != STRATA_OK)
        return status;
    double begin = now_ms();
    status = plan_solve(&plan, &problem.problem, NULL, err);
    r->ms = now_ms() - begin;
    if (status == STRATA_OK) {
        r->proved = plan->proved;
        r->reformats = plan->n_reformats;
        status = compare(&problem.problem, plan, r, err);
    }
    plan_free(plan);
    random_problem_free(&problem);
    if (status != STRATA_OK)
        error_prefix(err, "seed %llu", (unsigned long long)options->seed);
    return status;
}

static const struct column plan_columns[] = {
    {"net", -20},   {"operations", 10},    {"support %", 9}, {"edge-wise mean %", 16},
    {"worst %", 8}, {"greedy mean %", 13}, {"worst %", 8},   {"fastest mean %", 14},
    {"worst %", 8}, {"reformats", 9},      {"proved", 9},    {"median ms", 9},
    {"max ms", 9},
};

static void print_plans(const struct session *s, const char *net, size_t n_ops,
                        int support, const struct result *r, double *ms)
{
    char row[512];
    int n = s->arguments.seeds, proved = 0;
    double mean[BASELINES] = {0}, worst[BASELINES], reformats = 0;
    for (int b = 0; b < BASELINES; b++)
        worst[b] = r[0].excess[b];
    for (int i = 0; i < n; i++) {
        proved += r[i].proved;
        reformats += (double)r[i].reformats / n;
        ms[i] = r[i].ms;
        for (int b = 0; b < BASELINES; b++) {
            mean[b] += r[i].excess[b] / n;
            worst[b] = r[i].excess[b] > worst[b] ? r[i].excess[b] : worst[b];
        }
    }
    double middle = median(ms, (size_t)n);
    snprintf(row, sizeof row,
             "%s\t%zu\t%d\t%+.1f\t%+.1f\t%+.1f\t%+.1f\t%+.1f\t%+.1f\t%.1f\t%d/%d\t%.2f\t"
             "%.2f",
             net, n_ops, support, mean[0], worst[0], mean[1], worst[1], mean[2], worst[2],
             reformats, proved, n, middle, ms[n - 1]);
    print_row(s, plan_columns, row);
}

static int plan_net(const struct session *s, const char *name, strata_error *err)
{
    static const int supports[] = {40, 70, 100};
    size_t n = (size_t)s->arguments.seeds;
    struct result *results = zalloc(n, sizeof *results, "results", err);
    double *ms = zalloc(n, sizeof *ms, "results", err);
    struct planner *planner = NULL;
    int status =
        results && ms ? open_planner(s, &planner, name, NULL, err) : STRATA_ENOMEM;
    for (size_t i = 0; i < ARRAY_LENGTH(supports) && status == STRATA_OK; i++) {
        for (size_t seed = 0; seed < n && status == STRATA_OK; seed++) {
            struct random_options options = {seed + 1, supports[i], s->arguments.labels};
            status = run_seed(planner, &options, &results[seed], err);
        }
        if (status == STRATA_OK)
            print_plans(s, name,
                        planner->n_nodes + planner->network->n_inputs +
                            planner->network->n_outputs,
                        supports[i], results, ms);
    }
    planner_free(planner);
    free(results);
    free(ms);
    return status;
}

/* ---- memory
 * ---------------------------------------------------------------------------- */

static const struct column memory_columns[] = {
    {"net", -20},           {"precision", -9}, {"blocks", 6}, {"peak bytes", 11},
    {"MB an image", 11},    {"bound", 11},     {"over %", 6}, {"tensors' peak", 13},
    {"tensors' bound", 14}, {"over %", 6},
};

/* The schedule's tensors placed without the workspaces. */
static int place_tensors(const struct execution *x, size_t *n, int64_t *peak,
                         int64_t *bound, strata_error *err)
{
    struct arena_block *blocks = zalloc(x->n_values, sizeof *blocks, "blocks", err);
    if (!blocks)
        return STRATA_ENOMEM;
    *n = 0;
    for (size_t i = 0; i < x->n_values; i++) {
        const struct execution_value *v = &x->values[i];
        if (v->alias < 0 && v->binding < 0 && v->last >= 0)
            blocks[(*n)++] = (struct arena_block){v->bytes, v->first, v->last, 0};
    }
    int status = arena_place(blocks, *n, peak, bound, err);
    free(blocks);
    return status;
}

static int print_memory(const struct session *s, const struct execution *x,
                        const char *name, const char *precision, strata_error *err)
{
    char row[256];
    size_t blocks;
    int64_t peak, bound;
    int status = place_tensors(x, &blocks, &peak, &bound, err);
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < x->n_nodes; i++)
        blocks += x->nodes[i].workspace > 0;
    snprintf(row, sizeof row, "%s\t%s\t%zu\t%lld\t%.2f\t%lld\t%+.1f\t%lld\t%lld\t%+.1f",
             name, precision, blocks, (long long)x->arena_bytes,
             (double)x->arena_bytes / 1e6 / s->arguments.batch, (long long)x->arena_bound,
             100 * ((double)x->arena_bytes / (double)x->arena_bound - 1), (long long)peak,
             (long long)bound, 100 * ((double)peak / (double)bound - 1));
    print_row(s, memory_columns, row);
    return STRATA_OK;
}

static int measure_memory(const struct session *s, const char *name,
                          const char *precision, strata_error *err)
{
    struct planner *planner = NULL;
    struct execution *x = NULL;
    int status = open_planner(s, &planner, name, precision, err);
    if (status == STRATA_OK)
        status = planner_make_model(planner, err);
    if (status == STRATA_OK)
        status = plan_solve(&planner->plan, &planner->model->problem, NULL, err);
    if (status == STRATA_OK)
        status = execution_make(&x, planner, planner->plan, err);
    if (status == STRATA_OK)
        status = print_memory(s, x, name, precision, err);
    execution_free(x);
    planner_free(planner);
    return status;
}

static int memory_net(const struct session *s, const char *name, strata_error *err)
{
    int status = measure_memory(s, name, "fp32", err);
    return status == STRATA_OK ? measure_memory(s, name, "fp16", err) : status;
}

/* ---- loading
 * --------------------------------------------------------------------------- */

static const struct column load_columns[] = {
    {"net", -20},
    {"layers", 6},
    {"median ms", 9},
    {"max ms", 9},
};

static int load_time(const struct session *s, const char *name, strata_error *err)
{
    char row[256];
    double ms[LOADS];
    size_t layers = 0;
    int status = STRATA_OK;
    for (int i = 0; i < LOADS && status == STRATA_OK; i++) {
        strata_network *net = NULL;
        double begin = now_ms();
        status = load_net(s, &net, name, NULL, err);
        ms[i] = now_ms() - begin;
        layers = status == STRATA_OK ? net->n_layers : 0;
        strata_network_destroy(net);
    }
    if (status != STRATA_OK)
        return status;
    double middle = median(ms, LOADS);
    snprintf(row, sizeof row, "%s\t%zu\t%.2f\t%.2f", name, layers, middle, ms[LOADS - 1]);
    print_row(s, load_columns, row);
    return STRATA_OK;
}

/* ---- command line
 * ---------------------------------------------------------------------- */

static const struct {
    const struct column *columns;
    size_t n;
    int (*net)(const struct session *s, const char *name, strata_error *err);
} tables[] = {
    [TABLE_PLANS] = {plan_columns, ARRAY_LENGTH(plan_columns), plan_net},
    [TABLE_MEMORY] = {memory_columns, ARRAY_LENGTH(memory_columns), memory_net},
    [TABLE_LOAD] = {load_columns, ARRAY_LENGTH(load_columns), load_time},
};

static int usage(void)
{
    fputs("usage: plan_table [--seeds N] [--net NAME]... [--labels 5|8] [--batch N]\n"
          "                  [--nets FOLDER] [--memory | --load] [-o text|md]\n",
          stderr);
    return 2;
}

static int number(const char *text, int most, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > most)
        return -1;
    *out = (int)value;
    return 0;
}

static int take_net(struct arguments *a, const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(all_nets); i++)
        if (strcmp(all_nets[i], name) == 0 && a->n_nets < ARRAY_LENGTH(a->nets)) {
            a->nets[a->n_nets++] = all_nets[i];
            return 0;
        }
    fprintf(stderr, "plan_table: no net '%s'\n", name);
    return -1;
}

static int take_option(struct arguments *a, int option, const char *value)
{
    switch (option) {
    case 's':
        return number(value, MAX_SEEDS, &a->seeds);
    case 'n':
        return take_net(a, value);
    case 'l':
        return number(value, 8, &a->labels) || (a->labels != 5 && a->labels != 8);
    case 'b':
        return number(value, 65536, &a->batch);
    case 'f':
        a->folder = value;
        return 0;
    case 'm':
        a->table = TABLE_MEMORY;
        return 0;
    case 't':
        a->table = TABLE_LOAD;
        return 0;
    case 'o':
        a->markdown = strcmp(value, "md") == 0;
        return !a->markdown && strcmp(value, "text") != 0;
    default:
        return -1;
    }
}

static int parse(struct arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 's'},  {"net", required_argument, NULL, 'n'},
        {"labels", required_argument, NULL, 'l'}, {"batch", required_argument, NULL, 'b'},
        {"nets", required_argument, NULL, 'f'},   {"memory", no_argument, NULL, 'm'},
        {"load", no_argument, NULL, 't'},         {NULL, 0, NULL, 0}};
    int option;
    *a = (struct arguments){.folder = "bench/nets", .seeds = 30, .labels = 5};
    while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1)
        if (take_option(a, option, optarg))
            return -1;
    if (a->n_nets == 0) {
        memcpy(a->nets, all_nets, sizeof all_nets);
        a->n_nets = ARRAY_LENGTH(all_nets);
    }
    if (a->batch == 0)
        a->batch = a->table == TABLE_PLANS ? 8 : 1;
    return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    static strata_error err;
    struct session s = {0};
    if (parse(&s.arguments, argc, argv))
        return usage();
    int status = strata_create(&s.handle, "host", &err);
    if (status == STRATA_OK)
        status = strata_registry_create(&s.registry, NULL, &err);
    if (status == STRATA_OK)
        print_header(&s, tables[s.arguments.table].columns, tables[s.arguments.table].n);
    for (size_t i = 0; i < s.arguments.n_nets && status == STRATA_OK; i++) {
        status = tables[s.arguments.table].net(&s, s.arguments.nets[i], &err);
        if (status != STRATA_OK)
            error_prefix(&err, "%s", s.arguments.nets[i]);
    }
    if (status != STRATA_OK)
        fprintf(stderr, "plan_table: %s\n", err.message);
    strata_registry_destroy(s.registry);
    strata_destroy(s.handle);
    return status == STRATA_OK ? 0 : 1;
}
