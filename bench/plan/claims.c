/* SPDX-License-Identifier: Apache-2.0
 *
 * What the analytic model says of each way to run a layer against what it takes: every
 * candidate of the networks is timed. One CSV row a candidate and a network on standard
 * output; then, a row an impl on standard error, the quartiles of predicted over measured.
 *
 *     claims [-t THREADS] [-d DEVICE] NETWORK.ini ...
 */
#include "engine/engine.h"
#include "planner/planner.h"
#include "planner/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CLAIMS = 1 << 20 };

struct claim {
    const char *impl; /* LAYER IMPL, ours to free */
    double ratio;     /* predicted / measured */
};

struct claims {
    struct claim *all;
    size_t n;
};

static int by_impl(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    const int names = strcmp(x->impl, y->impl);
    return names ? names : (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

static double bytes_of(const strata_tensor *t, int n)
{
    double bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (double)t[i].size * (double)strata_dtype_size(t[i].dtype);
    return bytes;
}

static int add_claim(struct claims *claims, const char *network, const struct planner *p,
                     const struct planner_candidate *c, strata_error *err)
{
    const struct planner_node *n = &p->nodes[c->node];
    const strata_layer *layer = &n->layer->type->layer;
    const struct cost *cost;
    struct cost_query q;
    struct node_view v = {0};
    int status = cost_query_run(&q, p, c, err);
    if (status == STRATA_OK && (cost = cost_table_find(&p->known, q.key)) &&
        claims->n < MOST_CLAIMS) {
        struct claim *claim = &claims->all[claims->n];
        char name[256];
        v.in = q.in;
        v.out = q.out;
        v.weight = q.weights;
        planner_view(&v, p, n, c->fused, c->row, NULL);
        const double predicted =
            (double)cost_of_run(&v.node, &c->impl->impl, &c->impl->rows[c->row], layer,
                                &p->device.properties) /
            PLAN_UNIT_PER_NS;
        snprintf(name, sizeof name, "%s %s", layer->name, c->impl->impl.name);
        claim->impl = strdup(name);
        claim->ratio = predicted / (double)cost->ns;
        claims->n += claim->impl != NULL;
        printf("%s,%s,%s,%s,%zu,%d,%.0f,%.0f,%.0f,%.0f,%lld,%d\n", network, n->layer->name,
               layer->name, c->impl->impl.name, c->fused, c->row,
               layer->flops ? layer->flops(&v.node) : (double)q.out[0].count,
               bytes_of(q.in, n->n_in) + bytes_of(q.out, n->n_out),
               bytes_of(q.weights, (int)n->layer->type->n_weights), predicted,
               (long long)cost->ns, cost->runs);
    }
    cost_query_free(&q);
    return status;
}

static int time_network(struct claims *claims, strata_registry *registry,
                        strata_handle *handle, const char *path, int threads,
                        strata_error *err)
{
    strata_network *net = NULL;
    strata_engine *engine = NULL;
    int status = strata_network_load(&net, path, registry, NULL, err);
    if (status == STRATA_OK) {
        net->build.costs.kind = COSTS_MEASURE;
        net->build.costs.everything = true;
        net->runtime.threads = threads ? threads : net->runtime.threads;
        status = strata_engine_build(&engine, handle, net, err);
    }
    for (size_t i = 0; status == STRATA_OK && i < engine->planner->model->n_candidates;
         i++) {
        const struct planner_candidate *c = &engine->planner->model->candidates[i];
        if (c->kind == CANDIDATE_RUN && !c->reason)
            status = add_claim(claims, path, engine->planner, c, err);
    }
    strata_engine_destroy(engine);
    strata_network_destroy(net);
    return status;
}

static void print_summary(struct claims *claims)
{
    qsort(claims->all, claims->n, sizeof *claims->all, by_impl);
    fprintf(stderr, "%-40s %6s %8s %8s %8s\n", "predicted / measured", "n", "1/4", "1/2",
            "3/4");
    for (size_t first = 0, last; first < claims->n; first = last) {
        const struct claim *c = &claims->all[first];
        for (last = first; last < claims->n && !strcmp(c->impl, claims->all[last].impl);)
            last++;
        const size_t n = last - first;
        fprintf(stderr, "%-40s %6zu %8.3f %8.3f %8.3f\n", c->impl, n, c[n / 4].ratio,
                c[n / 2].ratio, c[n * 3 / 4].ratio);
    }
}

int main(int argc, char **argv)
{
    static strata_error err;
    struct claims claims = {.all = calloc(MOST_CLAIMS, sizeof *claims.all)};
    const char *device = "host";
    strata_registry *registry = NULL;
    strata_handle *handle = NULL;
    int c, threads = 0, status = claims.all ? STRATA_OK : STRATA_ENOMEM;
    while ((c = getopt(argc, argv, "t:d:")) != -1) {
        if (c == 't')
            threads = atoi(optarg);
        else if (c == 'd')
            device = optarg;
        else
            return 2;
    }
    if (status == STRATA_OK)
        status = strata_registry_create(&registry, NULL, &err);
    if (status == STRATA_OK)
        status = strata_create(&handle, device, &err);
    puts("network,name,layer,impl,fused,row,operations,tensor_bytes,weight_bytes,"
         "predicted_ns,measured_ns,runs");
    for (int i = optind; i < argc && status == STRATA_OK; i++)
        status = time_network(&claims, registry, handle, argv[i], threads, &err);
    print_summary(&claims);
    if (status != STRATA_OK)
        fprintf(stderr, "claims: %s\n", err.message);
    for (size_t i = 0; i < claims.n; i++)
        free((char *)claims.all[i].impl);
    free(claims.all);
    strata_destroy(handle);
    strata_registry_destroy(registry);
    return status != STRATA_OK;
}
