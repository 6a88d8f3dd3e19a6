/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks of bench/nets: they are what scripts/make_nets.py writes, and what their
 * publications say, by shape, parameters and multiply-adds; and the memory they take.
 */
#include "planner/planner.h"

#include <criterion/criterion.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/handle.h"
#include "planner/certificate/certificate.h"

extern char **environ;

enum { TEXT = 2048 };

/* Published parameters include those of batch normalisation, two a channel; folded into
 * a convolution, one is left, its bias. That is 0.1 to 0.5 % of a net's parameters.
 * Multiply-adds are those of convolutions and dense layers. bench/nets/README.md says
 * where the figures come from. */
static const struct net {
    const char *name;
    double parameters, multiply_adds;
    struct {
        const char *name;
        int rank;
        int64_t dims[4];
    } outputs[2];
} nets[] = {
    {"resnet18", 11689512, 1.814e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"resnet50", 25557032, 4.089e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"resnet152", 60192808, 11.514e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"googlenet", 7.0e6, 1.586e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"inception_v3", 23834568, 5.713e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"densenet121", 7978856, 2.834e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"densenet121_running", 7978856, 2.834e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"mobilenet_v2", 3504872, 0.301e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"efficientnet_b0", 5288548, 0.386e9, {{"prob", 4, {1, 1000, 1, 1}}}},
    {"unet", 31.03e6, 54.6e9, {{"prob", 4, {1, 2, 256, 256}}}},
    {"unetpp", 9.16e6, 34.65e9, {{"prob", 4, {1, 1, 256, 256}}}},
    {"ssd_fpn",
     33.23e6,
     27.66e9,
     {{"scores", 3, {1, 32736, 21}}, {"boxes", 3, {1, 32736, 4}}}},
};

static strata_registry *registry;
static strata_error err;

static void open_registry(void)
{
    cr_assert(!strata_registry_create(&registry, NULL, &err), "%s", err.message);
}

static void close_registry(void)
{
    strata_registry_destroy(registry);
}

TestSuite(nets, .init = open_registry, .fini = close_registry, .timeout = 600);

static const char *source_folder(void)
{
    const char *source = getenv("srcdir");
    return source ? source : ".";
}

static void net_path(char *out, const char *folder, const char *name)
{
    int n = snprintf(out, TEXT, "%s/%s.ini", folder, name);
    cr_assert(n > 0 && n < TEXT, "path of %s is too long", name);
}

static const char *nets_folder(void)
{
    static char folder[TEXT];
    int n = snprintf(folder, sizeof folder, "%s/bench/nets", source_folder());
    cr_assert(n > 0 && n < TEXT, "path of the nets is too long");
    return folder;
}

static strata_network *load(const char *name)
{
    char path[TEXT];
    strata_network *net = NULL;
    net_path(path, nets_folder(), name);
    cr_assert(!strata_network_load(&net, path, registry, NULL, &err), "%s", err.message);
    return net;
}

static int64_t elements(const struct network_weight *w)
{
    return w->source == WEIGHT_ABSENT ? 0 : network_elements(w->dims, w->rank);
}

static double parameters(const strata_network *net)
{
    double total = 0;
    for (size_t l = 0; l < net->n_layers; l++)
        for (size_t w = 0; w < net->layers[l].type->n_weights; w++)
            total += (double)elements(&net->layers[l].weights[w]);
    return total;
}

/* Each element of the output takes one filter's worth of them. */
static double multiply_adds(const strata_network *net)
{
    double total = 0;
    for (size_t l = 0; l < net->n_layers; l++) {
        const struct network_layer *layer = &net->layers[l];
        const struct network_tensor *out = &net->tensors[layer->outputs[0]];
        if (strcmp(layer->type->layer.name, "Convolution") != 0 &&
            strcmp(layer->type->layer.name, "FullyConnected") != 0)
            continue;
        const struct network_weight *filter = &layer->weights[0];
        total += (double)network_elements(out->dims, out->rank) *
                 (double)elements(filter) / (double)filter->dims[0];
    }
    return total;
}

static bool within_percent(double found, double expected)
{
    return fabs(found - expected) <= 0.01 * expected;
}

Test(nets, have_the_published_size_and_work)
{
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        strata_network *net = load(nets[i].name);
        double weights = parameters(net), work = multiply_adds(net);
        cr_expect(within_percent(weights, nets[i].parameters),
                  "%s: %.0f parameters, published %.0f", nets[i].name, weights,
                  nets[i].parameters);
        cr_expect(within_percent(work, nets[i].multiply_adds),
                  "%s: %.0f multiply-adds, published %.0f", nets[i].name, work,
                  nets[i].multiply_adds);
        strata_network_destroy(net);
    }
}

static void check_outputs(const strata_network *net, const struct net *expected)
{
    size_t n = expected->outputs[1].name ? 2 : 1;
    cr_assert_eq(net->n_outputs, n, "%s: %zu outputs", expected->name, net->n_outputs);
    for (size_t o = 0; o < n; o++) {
        const struct network_tensor *t = &net->tensors[net->outputs[o].tensor];
        cr_expect_str_eq(net->outputs[o].name, expected->outputs[o].name);
        cr_assert_eq(t->rank, expected->outputs[o].rank, "%s: '%s' has rank %d",
                     expected->name, t->name, t->rank);
        for (int d = 0; d < t->rank; d++)
            cr_expect_eq(t->dims[d], expected->outputs[o].dims[d],
                         "%s: dim %d of '%s' is %lld", expected->name, d, t->name,
                         (long long)t->dims[d]);
    }
}

Test(nets, have_their_outputs)
{
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        strata_network *net = load(nets[i].name);
        check_outputs(net, &nets[i]);
        strata_network_destroy(net);
    }
}

Test(nets, take_any_batch)
{
    static const char *const define[] = {"batch=5"};
    const strata_network_options options = {
        .struct_size = sizeof options, .define = define, .n_define = 1};
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        char path[TEXT];
        strata_network *net = NULL;
        net_path(path, nets_folder(), nets[i].name);
        cr_assert(!strata_network_load(&net, path, registry, &options, &err), "%s",
                  err.message);
        for (size_t o = 0; o < net->n_outputs; o++)
            cr_expect_eq(net->tensors[net->outputs[o].tensor].dims[0], 5, "%s",
                         nets[i].name);
        strata_network_destroy(net);
    }
}

/* ResNet-152 has 240 MB of weights; loading it succeeds with 64 MB left to the process.
 */
Test(nets, load_without_room_for_the_weights)
{
    long long pages = 0;
    strata_network_destroy(load("resnet18")); /* the modules are loaded now */
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lld", &pages) != 1)
        cr_skip_test("/proc/self/statm does not tell the size of the process");
    fclose(f);
    rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)64 << 20);
    cr_assert(!setrlimit(RLIMIT_AS, &(struct rlimit){limit, RLIM_INFINITY}));
    strata_network *net = load("resnet152");
    void *weights = mmap(NULL, (size_t)240 << 20, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_expect_eq(weights, MAP_FAILED, "the limit holds");
    strata_network_destroy(net);
}

/* ---- plans ------------------------------------------------------------------------- */

struct planned {
    struct planner *planner;
    struct execution *execution;
};

static void drop(struct planned *p)
{
    execution_free(p->execution);
    planner_free(p->planner);
}

/* A plan from the analytic model for the host, and its memory. */
static struct planned plan_net(const char *name, const char *precision, int batch)
{
    char path[TEXT], set[64], define[32];
    const char *const sets[] = {set, "runtime.threads=2", "build.plan_nodes=0"};
    const char *const defines[] = {define};
    const strata_network_options options = {sizeof options, sets, 3, defines, 1};
    strata_handle *handle;
    strata_network *net;
    struct planned p = {NULL, NULL};
    snprintf(set, sizeof set, "build.precision=%s", precision);
    snprintf(define, sizeof define, "batch=%d", batch);
    net_path(path, nets_folder(), name);
    cr_assert_eq(strata_create(&handle, "host", &err), STRATA_OK, "%s", err.message);
    const struct planner_device device = {handle->properties, handle->math};
    strata_destroy(handle);
    int status = strata_network_load(&net, path, registry, &options, &err);
    cr_assert_eq(status, STRATA_OK, "%s", err.message);
    status = planner_make(&p.planner, net, &device, NULL, &err);
    strata_network_destroy(net); /* the planner has its own reference */
    if (status == STRATA_OK)
        status = execution_make(&p.execution, p.planner, p.planner->plan, &err);
    cr_assert_eq(status, STRATA_OK, "%s: %s", name, err.message);
    return p;
}

static void expect_proof(const struct planner *planner, const char *name,
                         const char *precision)
{
    struct plan_certificate *c = NULL;
    const struct plan_problem *p = &planner->model->problem;
    cr_expect(planner->plan->proved, "%s, %s", name, precision);
    cr_assert_eq(plan_certify(&c, p, NULL, planner->plan, &err), STRATA_OK, "%s, %s: %s",
                 name, precision, err.message);
    cr_expect_eq(plan_check(p, NULL, c, &err), STRATA_OK, "%s, %s: %s", name, precision,
                 err.message);
    plan_certificate_free(c);
}

/* Every format may meet every other at a tensor where precision is any. */
Test(nets, have_plans_that_are_proved_and_checked)
{
    static const char *const precisions[] = {"fp32", "fp16", "any"};
    for (size_t i = 0; i < 3 * ARRAY_LENGTH(nets); i++) {
        const char *name = nets[i / 3].name, *precision = precisions[i % 3];
        struct planned p = plan_net(name, precision, 1);
        expect_proof(p.planner, name, precision);
        drop(&p);
    }
}

/* ---- memory ------------------------------------------------------------------------ */

Test(nets, need_little_more_memory_than_is_alive_at_once)
{
    static const char *const precisions[] = {"fp32", "fp16"};
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(nets); i++) {
        const char *name = nets[i / 2].name, *precision = precisions[i % 2];
        struct planned p = plan_net(name, precision, 1);
        cr_expect_leq(p.execution->arena_bytes,
                      p.execution->arena_bound + p.execution->arena_bound / 20, "%s, %s",
                      name, precision);
        drop(&p);
    }
}

Test(nets, resnet50_in_fp16_takes_less_than_3_7_megabytes_an_image)
{
    struct planned p = plan_net("resnet50", "fp16", 8);
    cr_expect_leq(p.execution->arena_bytes, 8 * INT64_C(3700000), "%lld bytes",
                  (long long)p.execution->arena_bytes);
    drop(&p);
}

/* ---- the script ------------------------------------------------------------------- */

static bool run_script(const char *folder)
{
    char script[TEXT];
    int n = snprintf(script, sizeof script, "%s/scripts/make_nets.py", source_folder());
    cr_assert(n > 0 && n < TEXT, "path of the script is too long");
    char *const arguments[] = {"python3", script, "-o", (char *)folder, NULL};
    pid_t child;
    int status = -1;
    if (posix_spawnp(&child, "python3", NULL, NULL, arguments, environ))
        return false;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 127)
        return false;
    cr_assert_eq(WEXITSTATUS(status), 0, "%s failed", script);
    return true;
}

static char *read_text(const char *path, size_t *size)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    cr_assert(f && !fstat(fileno(f), &st), "cannot open %s", path);
    *size = (size_t)st.st_size;
    char *text = malloc(*size + 1);
    cr_assert(text && fread(text, 1, *size, f) == *size, "cannot read %s", path);
    fclose(f);
    return text;
}

static bool same_file(const char *a, const char *b)
{
    size_t na, nb;
    char *x = read_text(a, &na), *y = read_text(b, &nb);
    bool same = na == nb && memcmp(x, y, na) == 0;
    free(x);
    free(y);
    return same;
}

Test(nets, are_what_the_script_writes)
{
    char folder[TEXT], made[TEXT], kept[TEXT];
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/strata-nets-XXXXXX", base ? base : "/tmp");
    cr_assert(mkdtemp(folder), "cannot make %s", folder);
    bool ran = run_script(folder);
    for (size_t i = 0; ran && i < ARRAY_LENGTH(nets); i++) {
        net_path(made, folder, nets[i].name);
        net_path(kept, nets_folder(), nets[i].name);
        cr_expect(same_file(made, kept), "%s differs: run scripts/make_nets.py", kept);
        unlink(made);
    }
    cr_expect_eq(rmdir(folder), 0, "the script writes nets that this test does not know");
    if (!ran)
        cr_skip_test("python3 is needed to run scripts/make_nets.py");
}
